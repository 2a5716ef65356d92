package review

import (
	"context"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// ReadCalls reads the calls that decisions of a page are about, by the decisions' ids: what
// became of a yes. A page does without the rest of those that take long to read.
func ReadCalls(ctx context.Context, s txn.Store, ds []decision.Decision) (calls map[string]call.Call, err error) {
	err = txn.View(ctx, s, func(tx Tx) error {
		calls = map[string]call.Call{}
		began := time.Now()
		for _, d := range ds {
			if d.Choice != decision.ChoiceApprove || len(calls) >= alwaysNamed && time.Since(began) > longNaming {
				continue
			}
			k, err := callOf(tx, d)
			if err = absent(err); err != nil {
				return err
			}
			if k.ID != "" && k.Space == d.Space {
				calls[d.ID] = k
			}
		}
		return nil
	})
	return calls, err
}

// callOf is the call that a decision is about, of a run the one that its step has led to;
// the zero Call where there is none yet.
func callOf(tx Tx, d decision.Decision) (k call.Call, err error) {
	id := d.CallID
	if id == "" && d.Owner.Kind == decision.OwnerRun {
		id, err = tx.StepCall(d.Owner.ID, d.StepID)
	}
	if id == "" || err != nil {
		return k, err
	}
	return tx.Call(id)
}

// BecameWord is what became of a yes, in a word or two; empty: it was none, or that is not known.
func BecameWord(d decision.Decision, k call.Call) string {
	switch {
	case d.Choice != decision.ChoiceApprove:
		return ""
	case d.Status == decision.Approved && d.Open:
		return "not run yet"
	case d.Status != decision.Consumed:
		return "did not run"
	}
	return StatusWord(string(k.Status))
}
