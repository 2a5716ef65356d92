package review

import (
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
)

// Editable reports whether other arguments may be approved in place of those asked for.
func (a Approval) Editable() bool { return a.WhyFixed() == "" }

// WhyFixed says why no other arguments can be approved; empty: they can.
func (a Approval) WhyFixed() string {
	switch {
	case !a.Decidable():
		return "It cannot be decided any more."
	case a.Altered != nil:
		return "Its record was altered."
	case a.Owner.Kind != decision.OwnerCall:
		return "It is a step of a run: what runs is what the agent proposed."
	case a.Kind == decision.KindInterrupted:
		return "It may have run already: what runs again is the same."
	case a.ForbidEdits:
		return "The policy does not allow it."
	}
	return ""
}

// InsteadOfEdit is what can be done where no other arguments can be approved; empty: nothing.
func (a Approval) InsteadOfEdit() string {
	switch {
	case !a.Decidable():
		return ""
	case a.Altered != nil:
		return "Reject it, and have it asked again."
	}
	return "Approve or reject it as it is."
}

// HasSecrets reports whether there are secrets in the arguments: all of them in one text
// would show those.
func (a Approval) HasSecrets() bool { return hides(a.Args()) }

// ErrSame is an edit that changes nothing.
var ErrSame = fault.Sentinel(fault.Invalid, "nothing_changed", "Nothing was changed.", decision.ErrUsage).Hint("Change something, or approve it as it is.")

// CheckEdit says why arguments cannot be approved in place of those asked for: [ErrSame],
// or tool.ErrInvalidArguments.
func (a Approval) CheckEdit(args []byte) error {
	if err := canon.Valid(args); err != nil {
		return tool.ErrInvalidArguments.Say("The arguments are not one JSON value: %s.", err)
	}
	same, err := canon.Equal(args, a.Request.Args)
	switch {
	case err != nil:
		return tool.ErrInvalidArguments.Say("The arguments cannot be compared with those asked for.").Because(err)
	case same:
		return ErrSame
	}
	return decision.CheckEditedArgs(a.Decision, args)
}
