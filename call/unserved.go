package call

import (
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
)

// ServedWithin is how long a daemon's call may wait for a process that can carry it out
// before it is told that there is none.
const ServedWithin = time.Minute

// Unserved says why a process with these tools does not go on with a call that is a
// daemon's to go on with, and what to do about it; empty: it does. Whether the call may
// go on at all, by a yes, is its caller's to know.
func (c Call) Unserved(tools *tool.Registry) (why, hint string) {
	if c.ContinueBy != ByDaemon || c.Status != Pending && c.Status != Unknown {
		return "", ""
	}
	stands := "approved"
	if c.Status == Unknown {
		stands = "its outcome is unknown"
	}
	t, err := tools.Lookup(c.Tool)
	switch {
	case err != nil:
		return stands + ", no process here has tool " + c.Tool,
			"Give the tool to placet serve, or take the call back: DELETE /v1/calls/" + c.ID + ", or placet withdraw " + c.ID + "."
	case t.SpecDigest() != c.SpecDigest:
		return stands + ", and tool " + c.Tool + " has changed since: what was agreed to is not what it does now",
			"Take the call back and ask again: DELETE /v1/calls/" + c.ID + ", or placet withdraw " + c.ID + "."
	}
	return "", ""
}

// Overlooked reports whether a yes is so old that a process which could act on it would have.
func Overlooked(d decision.Decision, now time.Time) bool {
	return d.Status == decision.Approved && now.Sub(d.DecidedAt) > ServedWithin
}
