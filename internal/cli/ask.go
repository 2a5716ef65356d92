package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/store"
)

// person is the one in front of a terminal: who sees what is shown can answer.
type person struct {
	keys *terminal
	show *writer // what they look at
}

// person is nil where nobody could see a question and answer it.
func (a *app) person() *person {
	keys := terminalOf(a.in)
	switch {
	case keys == nil:
		return nil
	case terminalOf(a.out.to) != nil:
		return &person{keys, a.out}
	case terminalOf(a.errs.to) != nil:
		return &person{keys, a.errs}
	}
	return nil
}

// put puts a question once nobody is typing, and hands out the line that is typed, empty
// where there comes none. An error says that nothing was asked.
func (p *person) put(ctx context.Context, question string) (<-chan string, error) {
	if err := p.keys.settle(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.show, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, err := p.keys.line()
		if err != nil {
			line = ""
			fmt.Fprintln(p.show) // what ended it may have left the question's line open
		}
		answer <- line
	}()
	return answer, nil
}

// isYes reports whether a line says yes. Everything else is a no.
func isYes(line string) bool {
	w := strings.ToLower(strings.TrimSpace(line))
	return w == "y" || w == "yes"
}

// ask puts a question whose answer is no unless somebody types yes. It returns
// nil for a yes. Everything else is an error that says how things stand: another
// word, an empty line, the end of input, a signal, and that the approval was
// decided elsewhere or ran out meanwhile.
func (a *app) ask(ctx context.Context, st *store.Store, p *person, s review.Approval, question string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	settled := a.settledElsewhere(ctx, st, s)
	answer, err := p.put(ctx, question)
	if err != nil {
		return undecided(s.ID, "")
	}
	var late <-chan time.Time
	if !s.ExpiresAt.IsZero() {
		t := time.NewTimer(time.Until(s.ExpiresAt) + time.Microsecond)
		defer t.Stop()
		late = t.C
	}
	select {
	case line := <-answer:
		if isYes(line) {
			return nil
		}
		return undecided(s.ID, "")
	case <-ctx.Done():
		fmt.Fprintln(p.show)
		return undecided(s.ID, "")
	case <-late:
		fmt.Fprintln(p.show)
		return decision.ErrApprovalExpired.Say("Approval %s expired at %s, before it was answered. Nothing was decided.", s.ID, stamp(s.ExpiresAt)).
			Hint("Make the call again to ask again.")
	case err := <-settled:
		fmt.Fprintln(p.show)
		return err
	}
}

var errUndecided = decision.ErrUsage.Say("Not decided.")

func undecided(id, why string) error {
	return errUndecided.Say("Not decided: approval %s is as it was.%s", id, why)
}

// settledElsewhere tells, once, that the approval is not pending any more.
func (a *app) settledElsewhere(ctx context.Context, st *store.Store, s review.Approval) <-chan error {
	told := make(chan error, 1)
	go func() {
		_, err := event.Wait(ctx, st, event.Waiting{
			Stream: s.Owner.Stream(), After: s.Seen, Subject: s.ID,
			Types: []event.Type{event.ApprovalDecided, event.ApprovalExpired, event.ApprovalWithdrawn, event.ApprovalSuperseded},
		})
		if err != nil {
			return // the answer, or the deciding, says what is wrong
		}
		now, err := operator(st).Show(ctx, s.ID)
		if err != nil {
			return
		}
		told <- closedMeanwhile(now.Decision)
	}()
	return told
}

// closedMeanwhile says what became of an approval while a person looked at it.
func closedMeanwhile(d decision.Decision) error {
	who := ""
	if d.DecidedBy != "" {
		who = " by " + quote(d.DecidedBy) + " at " + stamp(d.DecidedAt)
	}
	what := string(d.Status)
	if d.Status == decision.Consumed {
		what = map[decision.Choice]string{decision.ChoiceApprove: "approved and used", decision.ChoiceReject: "rejected"}[d.Choice]
	}
	return decision.ErrNotPending.Say("Approval %s was %s%s, before you answered. Nothing was decided here.", d.ID, what, who).With(d.Standing())
}
