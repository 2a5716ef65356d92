package review

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
)

// Entry is one thing that happened to what waits, in plain words.
type Entry struct {
	At   time.Time
	Type event.Type
	What string // ours
	Who  string // a label; empty: nobody did it
	Why  string // a policy's, tool's or person's words, without secrets; empty: none
	Late bool
}

const (
	historyOfCall = 200 // events of a call's stream that are shown
	historyOfOne  = 50  // of each thing in a run's or a job's
)

// readHistory reads what happened, oldest first. A call's stream is its own; of a run's
// the events of this step are taken.
func (a *Approval) readHistory(tx Tx) error {
	subjects := []string{""}
	limit := historyOfCall
	if a.Run != nil {
		subjects, limit = []string{a.ID, a.StepID}, historyOfOne
		if a.Call != nil {
			subjects = append(subjects, a.Call.ID)
		}
	}
	es, err := eventsOf(tx, a.Owner.Stream(), subjects, limit)
	a.History = entriesOf(es)
	return err
}

// entriesOf are events as they are told. That something was asked for and that a person was
// asked about it at once is one thing to whoever reads it.
func entriesOf(es []event.Event) (all []Entry) {
	for i, e := range es {
		n := entryOf(e)
		if i > 0 && askedAtOnce(es[i-1], e) {
			n.What = "Asked for, and put to a person"
			all = all[:len(all)-1]
		}
		all = append(all, n)
	}
	return all
}

func askedAtOnce(asked, put event.Event) bool {
	return asked.Type == event.CallCreated && put.Type == event.ApprovalRequested && asked.At.Equal(put.At) && !asked.Redacted && !put.Redacted
}

func eventsOf(tx event.Tx, stream string, subjects []string, limit int) (all []event.Event, err error) {
	for _, s := range slices.Compact(subjects) {
		es, err := tx.Events(event.Query{Stream: stream, Subject: s, Limit: limit})
		if err != nil && !errors.Is(err, event.ErrNoStream) {
			return nil, err
		}
		all = append(all, es...)
	}
	slices.SortFunc(all, func(a, b event.Event) int { return int(a.StreamSeq - b.StreamSeq) })
	return all, nil
}

// hide masks in a history what its words repeat of secrets.
func hide(es []Entry, m *display.Mask) {
	for i := range es {
		es[i].Why = m.Text(es[i].Why)
	}
}

// told is what the payloads of decisions, calls and steps hold.
type told struct {
	Status    string `json:"status"`
	Kind      string `json:"kind"`
	Outcome   string `json:"outcome"`
	By        string `json:"by"`
	Principal string `json:"principal"`
	Choice    string `json:"choice"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Late      bool   `json:"late"`
	Attempt   int64  `json:"attempt"`
	Tool      string `json:"tool"`
}

func entryOf(e event.Event) Entry {
	var t told
	if !e.Redacted {
		_ = json.Unmarshal(e.Payload, &t) // what has another shape tells nothing more
	}
	n := Entry{At: e.At, Type: e.Type, What: words(e.Type, t), Late: t.Late, Why: t.Reason}
	if e.Actor != event.System {
		n.Who = e.Actor
	}
	if t.By != "" {
		n.Who = t.By
	}
	if t.Message != "" {
		n.Why = t.Message
	}
	if e.Redacted {
		n.What += "; what it told was removed"
	}
	return n
}

// words tells what an event means to somebody who knows the business.
func words(e event.Type, t told) string {
	if w, ok := plainWords[e]; ok {
		return w
	}
	switch e {
	case event.ApprovalDecided:
		return sentence(t.Status)
	case event.DecisionResolved:
		return "Answered"
	case event.CallFinished, event.StepToolFinished:
		return "Finished: " + orUnknown(t.Status)
	case event.StepPolicy:
		return "The policy ruled: " + orUnknown(t.Outcome)
	}
	return TypeWords(e)
}

// plainWords are those of a history, which says of what it is; of other events it has the words
// of their types.
var plainWords = map[event.Type]string{
	event.CallCreated: "Asked for", event.ApprovalRequested: "A person was asked", event.ApprovalExpired: "Nobody answered in time",
	event.ApprovalWithdrawn: "Taken back by who asked", event.ApprovalSuperseded: "Replaced", event.ApprovalConsumed: "The no was passed on",
	event.CallStarted: "Started", event.CallUnknown: "The outcome is unknown", event.CallCancelled: "Cancelled",
	event.ResumeRefused: "Not started yet", event.StepStarted: "The step began", event.StepDecided: "The agent proposed it",
	event.StepToolStarted: "Started", event.StepFailed: "The step failed", event.StepInterrupted: "Interrupted",
	event.DecisionRequested: "Asked", event.DecisionExpired: "Nobody answered in time", event.DecisionWithdrawn: "Taken back",
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return strings.ReplaceAll(s, "_", " ")
}

// sentence is a word of ours as it begins a line.
func sentence(s string) string {
	s = strings.NewReplacer("_", " ", ".", " ").Replace(orUnknown(s))
	return strings.ToUpper(s[:1]) + s[1:]
}
