package call

import (
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/decision"
)

// Result is the answer to a call.
type Result struct {
	Status Status
	Value  []byte // the tool's JSON value; nil unless succeeded
	Kind   Kind   // why it did not succeed
	// Message says it in words. Of a denial it holds the reviewer's note. It may
	// carry text of a tool or a model.
	Message         string
	CallID          string // empty: nothing was stored
	RunID           string
	ApprovalID      string
	Args            []byte // what ran, or would have
	Edited          bool   // a reviewer changed the arguments; Args are the new ones
	EffectiveDigest string // binds edited arguments to the approval
}

// Failed reports whether the call did anything else than succeed.
func (r Result) Failed() bool { return r.Status != Succeeded }

func resultOf(c Call) Result {
	return Result{
		Status: c.Status, Value: c.Result, Kind: c.Kind, Message: c.Message, CallID: c.ID, RunID: c.RunID,
		ApprovalID: c.ApprovalID, Args: c.Args, EffectiveDigest: c.EffectiveDigest,
	}
}

// EditedArgs are the arguments that a reviewer put in the place of the call's; nil: none.
func (r Result) EditedArgs() []byte {
	if !r.Edited {
		return nil
	}
	return r.Args
}

// ResultOf is what a call that has ended came to, with what its last attempt ran with;
// a is nil where there was none.
func ResultOf(c Call, a *Attempt) Result {
	r := resultOf(c)
	if a != nil {
		r.edited(*a)
	}
	return r
}

// edited shows the arguments that an attempt really ran with.
func (r *Result) edited(a Attempt) {
	if a.Args != nil {
		r.Args, r.Edited, r.EffectiveDigest = a.Args, true, a.EffectiveDigest
	}
}

func invalid(args []byte, err error) *Result {
	return &Result{Status: Invalid, Kind: KindInvalidArguments, Message: err.Error(), Args: args}
}

const maxID = 200 // bytes of an id that a caller chose

// checkID bounds an id that a caller chose.
func checkID(name, s string) error {
	if len(s) > maxID {
		return ErrUsage.Say("The %s has %d bytes; the limit is %d.", name, len(s), maxID)
	}
	if !utf8.ValidString(s) {
		return ErrUsage.Say("The %s is not valid UTF-8.", name)
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return ErrUsage.Say("The %s has a control character.", name)
		}
	}
	return nil
}

// returnDenial hands a stored no to who asked, and spends the record.
func returnDenial(tx Tx, d decision.Decision, c Call, now time.Time) (Result, error) {
	ch, err := d.Step(decision.Consume{}, now)
	if err != nil {
		return Result{}, err
	}
	if err := tx.PutDecision(d, ch); err != nil {
		return Result{}, err
	}
	res := resultOf(c)
	res.ApprovalID = d.ID
	return res, nil
}
