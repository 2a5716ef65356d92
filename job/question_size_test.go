package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// A question, an answer and a withdrawal are bounded by one limit, in bytes of what their
// event tells: what fits to the byte is stored, one byte more and nothing is.
func TestQuestionSizes(t *testing.T) {
	t.Parallel()
	const emoji = "\U0001F642" // four bytes, and not escaped
	asking := decision.Asking{Prompt: strings.Repeat(emoji, 20), By: "bot"}
	withForm := decision.Asking{Prompt: "p", By: "bot", Form: []byte(`{"type":"object","properties":{"note":{"type":"string"}}}`)}
	answering := decision.Answering{Choice: "approve", Input: []byte(`{"note":"` + strings.Repeat(emoji, 90) + `"}`), By: "ana", Note: strings.Repeat("x", 1000)}
	for name, tt := range map[string]struct {
		ask decision.Asking // what is asked first, without a limit
		of  event.Type      // what tells of the try
		try func(a *asker, op decision.Operator, q decision.AskedAt) error
	}{
		"ask": {decision.Asking{Prompt: "p", By: "bot"}, event.DecisionRequested, func(a *asker, op decision.Operator, _ decision.AskedAt) error {
			_, err := op.Ask(a.ctx, "main", a.j.ID, asking)
			return err
		}},
		"resolve": {withForm, event.DecisionResolved, func(a *asker, op decision.Operator, q decision.AskedAt) error {
			_, err := op.Resolve(a.ctx, a.j.ID, q.ID, answering)
			return err
		}},
		"withdraw": {decision.Asking{Prompt: "p", By: "bot"}, event.DecisionWithdrawn, func(a *asker, op decision.Operator, q decision.AskedAt) error {
			_, err := op.WithdrawQuestion(a.ctx, a.j.ID, q.ID, strings.Repeat(emoji, 200), "")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := func(limit int) (n int, err error) {
				a := askingJob(t)
				q := a.ask(tt.ask)
				before := a.all()
				op := a.op
				op.Principal, op.MaxEventBytes = "", limit
				err = tt.try(a, op, q)
				es := a.events(a.j.ID)
				if err != nil {
					a.unchanged(before)
				} else if last := es[len(es)-1]; last.Type != tt.of {
					t.Errorf("the last event is %s", last.Type)
				}
				return len(es[len(es)-1].Payload), err
			}
			n, err := size(0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := size(n); err != nil {
				t.Errorf("%d bytes of %d: %v", n, n, err)
			}
			if _, err := size(n - 1); !errors.Is(err, decision.ErrTooLarge) {
				t.Errorf("%d bytes of %d: %v", n, n-1, err)
			}
		})
	}
}

// The usual limit is 64 KiB, counted as the UTF-8 that is stored.
func TestQuestionSizeUsually(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	options := make([]string, decision.MaxOptions) // 50 options of 200 emoji are 40,000 bytes
	for i := range options {
		options[i] = strings.Repeat("\U0001F642", decision.MaxOption-1) + string(rune('!'+i+1))
	}
	fits := decision.Asking{Prompt: strings.Repeat("\U0001F642", 6000), Options: options, By: "bot"}
	if _, err := a.op.Ask(a.ctx, "main", a.j.ID, fits); err != nil {
		t.Errorf("64,000 bytes: %v", err)
	}
	before := a.all()
	over := fits
	over.Prompt += strings.Repeat("\U0001F642", 400)
	if _, err := a.op.Ask(a.ctx, "main", a.j.ID, over); !errors.Is(err, decision.ErrTooLarge) {
		t.Errorf("65,600 bytes: %v", err)
	}
	a.unchanged(before)
}

// Neither a job's end nor a deadline is ever held up by the limit.
func TestQuestionEndsUnderAnyLimit(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	overdue, waits := a.ask(decision.Asking{Prompt: "p", Timeout: time.Second, By: "bot"}), a.ask(decision.Asking{Prompt: "p", By: "bot"})
	op := a.op
	op.MaxEventBytes = 1
	a.clock.Advance(2 * time.Second)
	if n, err := op.ExpireDue(a.ctx, 10); n != 1 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	a.end()
	a.stands(overdue.ID, decision.Expired)
	a.stands(waits.ID, decision.Withdrawn)
}
