package run

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Verdict is how a step stands after a call of the gate.
type Verdict struct {
	Outcome VerdictOutcome
	Reason  string // in words: the policy's, the tool's message, or how the run ended
	Ruling  Ruling // the policy's; without an outcome it was not asked
	Result  json.RawMessage
	CallID  string // of the tool call; empty: it has none yet

	// Of pending, and of an allowed step that an approval was given for. ApprovalDigest is
	// what a reviewer's yes is bound to.
	ApprovalID     string
	ApprovalDigest string

	// Late: what Confirm reported came after the lease or the run had ended, and is
	// recorded on its attempt.
	Late bool
	Run  Run // as it is now: the next step may be claimed, or a limit have ended it
}

// VerdictOutcome is how a step stands.
type VerdictOutcome string

// The outcomes. Allowed is the only one after which the step is still to be done;
// where a repeat under the tool's idempotency key is to settle an unknown outcome, it
// is allowed again.
const (
	VerdictAllowed     VerdictOutcome = "allowed"     // Execute, or Reserve
	VerdictPending     VerdictOutcome = "pending"     // a person has to agree; the run waits
	VerdictDenied      VerdictOutcome = "denied"      // by the policy or a guard; the run goes on
	VerdictInvalid     VerdictOutcome = "invalid"     // no such tool, or it does not take the arguments; the run goes on
	VerdictSucceeded   VerdictOutcome = "succeeded"   // Result is the tool's
	VerdictFailed      VerdictOutcome = "failed"      // Reason is the tool's message; the run goes on
	VerdictInterrupted VerdictOutcome = "interrupted" // it is not known how the tool ended, and the run goes on
	VerdictAborted     VerdictOutcome = "aborted"     // the policy or the tool ended the run
	VerdictEnded       VerdictOutcome = "ended"       // the run ended with this step otherwise
)

// see reads how the step stands.
func (o *OpenStep) see(ctx context.Context) (Verdict, error) {
	s := o.in.s
	r := s.known()
	st, err := s.find(ctx, o.id, o.index)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{
		Outcome: standing(r, st), Reason: st.Message, Ruling: st.Ruling, CallID: st.CallID, ApprovalID: st.ApprovalID, Run: r.Clone(),
	}
	switch {
	case o.in.ready || s.held != nil || s.reserved != nil:
		v.Outcome = VerdictAllowed
	case v.Outcome == VerdictSucceeded:
		v.Result = json.RawMessage(st.Result)
	case v.Outcome == VerdictEnded && v.Reason == "":
		v.Reason = r.Detail
	}
	if s.held != nil {
		ru := s.held.Ruling()
		v.Ruling = Ruling{Outcome: ru.Outcome, Reason: ru.Reason, Kind: ru.Kind}
	}
	if v.Reason == "" {
		v.Reason = v.Ruling.Reason
	}
	if v.ApprovalID == "" || v.Outcome != VerdictPending && v.Outcome != VerdictAllowed {
		return v, nil
	}
	err = txn.View(ctx, s.e.conf.Store, func(tx Tx) error {
		var d decision.Decision
		if d, err = tx.Decision(v.ApprovalID); err == nil {
			v.ApprovalDigest = d.Digest
		}
		return err
	})
	return v, err
}

// find is a step of the run as it stands now.
func (s *session) find(ctx context.Context, stepID string, index int64) (Step, error) {
	s.mu.Lock()
	r, last := s.run, s.last
	s.mu.Unlock()
	switch {
	case r.Current.ID == stepID:
		return r.Current, nil
	case last != nil && last.ID == stepID:
		return *last, nil
	}
	var found []Step
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
		found, err = tx.Steps(r.ID, index-1, 1)
		return err
	})
	if err != nil || len(found) == 0 || found[0].ID != stepID {
		return Step{}, errors.Join(err, ErrNotFound.Say("There is no step %s.", stepID))
	}
	return found[0], nil
}

// standing is how a step stands in its run.
func standing(r Run, st Step) VerdictOutcome {
	with := r.Status.Terminal() && r.Current.ID == st.ID && !r.Reason.ofLimit()
	switch {
	case with && (r.Reason == PolicyAbort || r.Reason == ToolAbort):
		return VerdictAborted
	case with || st.Kind == "":
		return VerdictEnded
	case st.Status == AwaitingApproval:
		return VerdictPending
	case st.Status == Done:
		return VerdictSucceeded
	case st.Observation == ToolError:
		return VerdictFailed
	case st.Observation == PolicyDenied:
		return VerdictDenied
	case st.Observation == InvalidDecision:
		return VerdictInvalid
	}
	return VerdictInterrupted
}

// ofLimit reports whether a run that ended so did for what came before, and not for
// what its last step did.
func (r Reason) ofLimit() bool {
	switch r {
	case LimitSteps, LimitActiveTime, LimitElapsedTime, LimitModelCalls, LimitTokens, LimitCost, RepeatedFailures, LoopDetected:
		return true
	}
	return false
}
