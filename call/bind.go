package call

import (
	"maps"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
)

// bound holds the record that is resumed against its call, and against the attempt
// that it is, or is not yet, spent on.
func (s subject) bound() error {
	if !belongs(*s.grant, s.call) {
		return errAltered(s.grant.ID, s.call.ID)
	}
	a := s.attempt
	switch {
	case a == nil:
	case a.ApprovalID == s.grant.ID: // spent, whatever it says of itself
		return errAltered(s.grant.ID, s.call.ID)
	case s.grant.Kind == decision.KindInterrupted && s.grant.SpentDigest != a.GrantDigest:
		return errAltered(s.grant.ID, s.call.ID)
	}
	return s.unaltered()
}

// belongs holds a record against its call: run id, call id, tool and the digest of
// the original arguments, all four; then whose it is, who asks and their metadata,
// which the policy sees.
func belongs(d decision.Decision, c Call) bool {
	return d.Type == decision.Approval && d.Owner == c.Root() && d.RunID == c.RunID && d.CallID == c.approvedAs() && d.StepID == c.StepID && d.Tool == c.Tool && d.ArgsDigest == c.ArgsDigest &&
		d.Space == c.Space && d.RequestedBy == c.Principal && maps.Equal(d.Metadata, c.Metadata)
}

// unaltered holds a call against its own digests, and its last attempt against the
// grant that it spent. So what is probed, shown to a person or run again is what ran.
func (s subject) unaltered() error {
	digest, err := request.ArgsDigest(s.call.Args)
	if err != nil || digest != s.call.ArgsDigest || !s.paidFor() {
		return s.errForeign()
	}
	return nil
}

func (s subject) errForeign() error {
	return ErrApprovalHash.Say("Call %s is not stored as it was made or carried out.", s.call.ID).
		Hint("It was altered in the store. Make the call again.")
}

func (s subject) paidFor() bool {
	a, g := s.attempt, s.paid
	if a == nil || g == nil {
		return a == nil || a.GrantDigest == "" && a.EffectiveDigest == "" && a.Args == nil
	}
	if s.call.ApprovalID == "" || g.Status != decision.Consumed || g.Choice != decision.ChoiceApprove || g.ConsumedBy == 0 || g.ConsumedBy > a.N {
		return false
	}
	if a.GrantDigest != g.Digest || !belongs(*g, s.call) || g.Intact() != nil {
		return false
	}
	if a.EffectiveDigest == "" {
		return a.Args == nil
	}
	edited, err := request.ArgsDigest(a.Args)
	if err != nil {
		return false
	}
	effective, err := request.EffectiveDigest(a.GrantDigest, edited)
	return err == nil && effective == a.EffectiveDigest
}

func errAltered(approvalID, callID string) error {
	return ErrApprovalHash.Say("Approval %s does not belong to call %s as it is stored.", approvalID, callID).
		Hint("One of them was altered in the store. Make the call again.")
}
