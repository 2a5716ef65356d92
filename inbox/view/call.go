package view

import (
	"fmt"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// Call is the page of one call.
type Call struct {
	call.Object
	Mask   *display.Mask
	Room   *Room
	Stream string // in which its events are: its own, or that of its run
}

func (c Call) version() string {
	return fmt.Sprint(c.Status, len(c.Attempts), c.ApprovalID, c.EndedAt, c.Stuck)
}

// kindWord tells what a refusal or failure was.
func kindWord(k call.Kind) string { return capital(review.PlainWord(string(k))) }

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}
