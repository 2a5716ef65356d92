package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
)

const foreword = `# States

Written by ` + "`make states`" + ` from the machines themselves; do not edit it. ` + "`internal/states`" + ` gives every command to every state and notes the
answer, and a test fails where this page is not what comes out.

A machine is the method ` + "`Step`" + ` of a noun: ` + "`decision/step.go`, `call/step.go`, `run/step.go`, `job/step.go`, `delivery/step.go`" + `. It is pure: it gets the thing as it stands, a command
and the time, and answers with the thing as it is to be and the events that tell of it. The transaction that asks writes both or neither.

In the tables a column is a state and a row is something that happens. **→** leads to another state, *stays* is accepted and leaves the
state, and a word in ` + "`this type`" + ` is the reason for which it is refused: then nothing is written. The reasons are explained at the end.
Where both stand, the change is written and who asked for something else is refused all the same.
`

// sentinels explain the reasons.
var sentinels = []*fault.Error{
	decision.ErrNotPending, decision.ErrAlreadyDecided, decision.ErrApprovalExpired, decision.ErrRunState, decision.ErrUsage, decision.ErrMoved,
	decision.ErrChoiceConflict, decision.ErrWithdrawn, decision.ErrExpired, call.ErrLeaseLost, call.ErrRunning, run.ErrRunLeased,
	job.ErrClaimLost, delivery.ErrState,
}

// broader are reasons that say more here than their sentinel's own sentence.
var broader = map[string]string{
	decision.ErrRunState.Reason: "A call or a run is not where that is possible, or does not wait for this any more.",
	call.ErrLeaseLost.Reason:    "The lease has ended, was given back or is another's; or there was no such attempt.",
}

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	late = noon.Add(24 * time.Hour) // behind every deadline and lease of the page
)

// page is docs/states.md; root is the folder of the repository.
func page(root string) (string, error) {
	p := &paper{root: root, reasons: map[string]bool{}}
	p.line("%s", foreword)
	values, err := readMeanings(root)
	if err != nil {
		return "", err
	}
	for _, write := range []func(*paper) error{
		approvals(values).write, questions(values).write, calls(values).write, runs(values).write, jobs(values).write, deliveries(values).write,
	} {
		if err := write(p); err != nil {
			return "", err
		}
	}
	if err := p.explain(); err != nil {
		return "", err
	}
	return p.text.String(), nil
}

// explain writes what the reasons mean.
func (p *paper) explain() error {
	p.line("## Reasons\n\n| reason | |\n| --- | --- |")
	for _, r := range slices.Sorted(maps.Keys(p.reasons)) {
		i := slices.IndexFunc(sentinels, func(e *fault.Error) bool { return e.Reason == r })
		if i < 0 {
			return fmt.Errorf("the reason %s has no explanation", r)
		}
		says, ok := broader[r]
		if !ok {
			says = sentinels[i].Message
		}
		p.line("| `%s` | %s |", r, says)
	}
	return nil
}

// must is the value of what cannot fail with the samples of this page.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
