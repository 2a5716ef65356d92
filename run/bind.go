package run

import (
	"maps"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
)

// sameFlow refuses a flow's run to everybody who does not hold that flow.
func (r Run) sameFlow(f FlowRef) error {
	switch {
	case r.Flow == f:
		return nil
	case f == FlowRef{}:
		return ErrUsage.Say("Run %s is of the flow %q.", r.ID, r.Flow.Name).Hint("Continue it with flow.Runner.Resume.")
	case r.Flow.Name != f.Name:
		return ErrUsage.Say("Run %s is of the flow %q, not of %q.", r.ID, r.Flow.Name, f.Name)
	case r.Flow.Version == f.Version:
		return ErrUsage.Say("Run %s is of version %s of the flow %q, which was defined otherwise when it started.", r.ID, f.Version, f.Name).
			Hint("Give a changed definition a new version.")
	}
	return ErrUsage.Say("Run %s is of version %s of the flow %q; this is version %s.", r.ID, r.Flow.Version, f.Name, f.Version).
		Hint("Resume it with version %s, or cancel it.", r.Flow.Version)
}

// whole holds the run against its last step: what is not stored as this package stores
// it is gone on with by nobody. [ErrApprovalHash].
func (r Run) whole() error {
	s := r.Current
	switch {
	case r.Reason != "" || !r.FinishedAt.IsZero():
	case r.untouched():
		return nil
	case s.ID == "" || s.RunID != r.ID || s.Index != r.StepCount:
	case s.Status == Deciding && (s.CallID != "" || s.ApprovalID != ""):
	case s.Status == Executing && (s.CallID == "" || s.Kind != CallTool):
	case s.ApprovalID != "" && s.ApprovalID != r.ApprovalID:
	case s.CallID != "" && (r.Flow.Name == "" && s.Node != "" || !s.sealed()):
	default:
		return nil
	}
	return ErrApprovalHash.Say("Run %s is not stored as it was carried out.", r.ID).
		Hint("It was altered in the store. Cancel the run: placet run cancel %s.", r.ID)
}

// untouched reports whether the run was left without a step and nobody has claimed one
// since.
func (r Run) untouched() bool {
	return r.Status == Running && r.LeaseUntil.IsZero() && r.Current == (Step{}) && r.StepCount == 0 && r.ApprovalN == 0 && r.ApprovalID == "" &&
		r.Usage == (Usage{}) && r.LastDigest == "" && r.Failures == 0 && r.Repeats == 0
}

// sealed reports whether the arguments of a step are those that its digest was made of.
func (s Step) sealed() bool {
	digest, err := request.ArgsDigest([]byte(s.Args))
	return err == nil && digest == s.ArgsDigest
}

// bound holds the record that the run waits on against the run: [ErrApprovalHash].
func (r Run) bound(d decision.Decision) error {
	s := r.Current
	digest, err := request.ArgsDigest([]byte(s.Args))
	fits := err == nil && d.Type == decision.Approval && s.Status == AwaitingApproval && s.ApprovalID == d.ID && r.ApprovalID == d.ID && d.N == r.ApprovalN &&
		d.Owner == r.Ref() && d.RunID == r.ID && d.Space == r.Space && d.Tool == s.Tool && d.ArgsDigest == digest &&
		d.RequestedBy == r.Principal && maps.Equal(d.Metadata, r.Metadata) && r.whole() == nil
	if s.CallID == "" {
		fits = fits && s.Kind == AskApproval && d.Node == s.Node && d.StepID == ""
	} else {
		fits = fits && s.Kind == CallTool && d.Node == "" && d.StepID == s.ID
	}
	if fits {
		return nil
	}
	return ErrApprovalHash.Say("Approval %s does not belong to run %s as it is stored.", d.ID, r.ID).
		Hint("One of them was altered in the store. Cancel the run: placet run cancel %s.", r.ID)
}
