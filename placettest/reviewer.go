package placettest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Match picks the approvals that a rule is for. Any function like it will do.
type Match func(d decision.Decision) bool

// Any matches whatever a policy asks. It does not match the runtime's own
// question, whether a call that may have run is to run again: see [Interrupted].
func Any(d decision.Decision) bool { return !Interrupted(d) }

// Tool matches what a policy asks about the tool of that name.
func Tool(name string) Match {
	return func(d decision.Decision) bool { return Any(d) && d.Tool == name }
}

// Interrupted matches the question whether to run a call again that started and
// whose outcome is unknown. [Witness.Missing] and [Witness.Done] tell its cases apart.
func Interrupted(d decision.Decision) bool { return d.Kind == decision.KindInterrupted }

// Reviewer answers approvals by rules, the first that matches. What no rule
// matches stays pending. Each answer is bound to the digest of what the rule saw.
//
//	ana := placettest.Reviewer{Store: store, By: "ana"}.
//		Reject(placettest.Tool("drop_table"), "Never.").
//		Approve(placettest.Any)
//
// A Reviewer is a value: the methods that add a rule return a copy.
type Reviewer struct {
	Store txn.Store        // required
	By    string           // the name it answers under. Default: reviewer.
	Now   func() time.Time // Default: the store's clock.

	rules []rule
}

type rule struct {
	match  Match
	answer func(decision.Decision) decision.Answer
}

// Approve says yes.
func (r Reviewer) Approve(m Match) Reviewer {
	return r.Answer(m, func(decision.Decision) decision.Answer { return decision.Answer{Approved: true} })
}

// Reject says no. The call's result says so, with the note.
func (r Reviewer) Reject(m Match, note string) Reviewer {
	return r.Answer(m, func(decision.Decision) decision.Answer { return decision.Answer{Note: note} })
}

// Edit says yes to other arguments than those that were asked for.
func (r Reviewer) Edit(m Match, args string) Reviewer {
	return r.Answer(m, func(decision.Decision) decision.Answer {
		return decision.Answer{Approved: true, EditedArgs: []byte(args)}
	})
}

// Answer says what answer returns. By and Shown are the reviewer's own to fill in.
func (r Reviewer) Answer(m Match, answer func(decision.Decision) decision.Answer) Reviewer {
	r.rules = append(slices.Clip(r.rules), rule{m, answer})
	return r
}

var requested = []event.Type{event.ApprovalRequested}

// Run answers what is pending and then what comes, in the order in which it was
// asked. It returns nil once ctx has ended, and an error that an answer met with.
func (r Reviewer) Run(ctx context.Context) error {
	err := r.follow(ctx)
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// follow goes on until something fails; the end of ctx does.
func (r Reviewer) follow(ctx context.Context) error {
	for at := event.Cursor(""); ; {
		next, err := event.Wait(ctx, r.Store, event.Waiting{After: at, Types: requested})
		if err != nil {
			return err
		}
		at = next.Cursor
		if _, err := r.decide(ctx, next.Event.Subject); err != nil {
			return err
		}
	}
}

// Start runs the reviewer in the background until the test ends, which fails if
// [Reviewer.Run] does.
func (r Reviewer) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("reviewer %s: %v", r.name(), err)
		}
	})
}

// Decide answers what is pending now and says how many approvals it decided.
func (r Reviewer) Decide(ctx context.Context) (int, error) {
	n := 0
	for at := event.Cursor(""); ; {
		page, err := event.Read(ctx, r.Store, "", at, 0)
		if err != nil || len(page.Events) == 0 {
			return n, err
		}
		at = page.Cursor
		for _, e := range page.Events {
			if e.Type != event.ApprovalRequested {
				continue
			}
			decided, err := r.decide(ctx, e.Subject)
			if err != nil {
				return n, err
			}
			if decided {
				n++
			}
		}
	}
}

// decide answers one approval, if it is pending and a rule is for it.
func (r Reviewer) decide(ctx context.Context, id string) (bool, error) {
	op := decision.Operator{Store: r.Store, Now: r.Now}
	shown, err := op.Show(ctx, id)
	if err != nil || shown.Status != decision.Pending {
		return false, err
	}
	i := slices.IndexFunc(r.rules, func(u rule) bool { return u.match(shown.Clone()) })
	if i < 0 {
		return false, nil
	}
	a := r.rules[i].answer(shown.Clone())
	a.By, a.Shown = r.name(), shown.Digest
	_, err = op.Decide(ctx, id, a)
	if errors.Is(err, decision.ErrNotPending) || errors.Is(err, decision.ErrRunState) {
		return false, nil // somebody else was first, or it was too late
	}
	return err == nil, err
}

func (r Reviewer) name() string {
	if r.By == "" {
		return "reviewer"
	}
	return r.By
}

// patience bounds how long a test waits for what a reviewer should do.
const patience = time.Minute

// settled are the events after which an approval is not pending any more.
var settled = []event.Type{event.ApprovalDecided, event.ApprovalExpired, event.ApprovalWithdrawn, event.ApprovalSuperseded}

// Decided waits until what a call waits for is not pending any more, for tests with
// a reviewer in the background, and returns that approval.
func Decided(t testing.TB, s txn.Store, waits *call.PendingError) decision.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := event.Wait(ctx, s, event.Waiting{
		Stream: decision.Ref{Kind: decision.OwnerCall, ID: waits.CallID}.Stream(),
		Types:  settled, Subject: waits.ApprovalID,
	})
	if err != nil {
		t.Fatalf("approval %s was not answered; does a rule of the reviewer match it? %v", waits.ApprovalID, err)
	}
	shown, err := decision.Operator{Store: s}.Show(ctx, waits.ApprovalID)
	if err != nil {
		t.Fatal(err)
	}
	return shown.Decision
}
