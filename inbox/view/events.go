package view

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// EventList is a page of events, of one stream or of all.
type EventList struct {
	Stream     string // empty: all
	Newest     bool
	Type       string
	Types      []Option
	Orders     []Option
	Rows       []EventRow
	Names      review.Names
	Chain      *Chain // of the stream; nil: it is a page of all streams
	Back, Next string
	Room       *Room
}

// EventRow is an event in a list.
type EventRow struct {
	event.Object
	Mask *display.Mask
	To   string // the page of its subject; empty: it has none
}

// Chain is whether the record of a stream is whole.
type Chain struct {
	Checked bool
	Events  int64 // that were looked at; of one that was not checked, that there are
	Removed int   // of them, events whose content was removed
	Hash    string
	Break   *event.Break // nil: it holds
	CheckTo string       // where it is checked, as it is long; empty: it was
}

// streamTo is the page of a stream's events.
func streamTo(stream string) string { return "/events?stream=" + url.QueryEscape(stream) }

// rootPage is the page of what a stream is of.
func rootPage(stream string) string {
	noun, id, ok := strings.Cut(stream, ":")
	path := map[string]string{"run": "/runs/", "call": "/calls/", "job": "/jobs/"}[noun]
	if !ok || path == "" {
		return ""
	}
	return path + url.PathEscape(id)
}

// rootName is what the event's stream is of, as a part of the line about its subject.
func rootName(names review.Names, e EventRow) string {
	if name := names[review.About{Stream: e.Stream}.Root()]; name != "" {
		return "in " + name
	}
	return ""
}

func (e EventRow) what() string { return review.EventWords(e.Type, e.Payload) }

// spoken is what of a payload is shown in a line.
type spoken struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

func (e EventRow) spoken() (s spoken) {
	_ = json.Unmarshal(e.Payload, &s) // what has another shape says nothing in a line
	return s
}

// printed is the name that a printed event gives itself; empty for any other.
func (e EventRow) printed() string {
	if e.Type != event.JobOutput {
		return ""
	}
	return e.spoken().Type
}

func (e EventRow) message() string {
	s := e.spoken()
	if s.Message == "" && e.Type != event.JobOutput {
		return s.Reason
	}
	return s.Message
}

// says tells in plain words whether the chain holds.
func (c Chain) says() string {
	switch {
	case c.Break != nil:
		return fmt.Sprintf("The chain of this stream breaks at event %s: %s.", display.Count(int(c.Break.StreamSeq)), c.Break.Problem)
	case !c.Checked:
		return fmt.Sprintf("This stream has %s events. Whether their chain holds was not looked at yet.", display.Count(int(c.Events)))
	case c.Events == 1:
		return "The chain of 1 event holds, up to hash"
	}
	return fmt.Sprintf("The chain of %s events holds, up to hash", display.Count(int(c.Events)))
}

func (c Chain) removed() string {
	if c.Removed == 1 {
		return "What one of them told was removed by a person; the chain holds all the same."
	}
	return fmt.Sprintf("What %s of them told was removed by a person; the chain holds all the same.", display.Count(c.Removed))
}
