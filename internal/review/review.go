package review

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// Tx is what reviewing reads with.
type Tx interface {
	run.Tx
	job.Tx
}

// Approval is an approval with all that whoever decides it needs to see, as it stood at
// one moment.
type Approval struct {
	decision.Decision
	At time.Time // of the reading, by the store's clock
	// Seen is the end of its owner's stream: whoever waits from there misses nothing.
	Seen event.Cursor

	Request request.Request
	Altered error // the stored record does not match its digest, or cannot be read; nil: it does
	Moot    error // why an answer would change nothing although it is pending; nil: it waits
	Mask    *display.Mask

	Overdue    bool   // its time is over, although nobody has expired it yet
	Replaces   string // the approval whose yes this one is asked instead of
	ReplacedBy string // the approval that is asked instead of this one

	Call     *call.Call // that it is about; nil: there is none, or not yet
	Attempts []call.Attempt
	Run      *run.Run  // that waits for it; nil: none does
	Step     *run.Step // of that run
	Way      Way       // who goes on once it is approved
	Doubtful bool      // what it is about may have run already

	// Before is the approval of the same tool to which people said yes last; nil: none yet.
	Before *decision.Decision

	History []Entry

	// learnt are the arguments of the run's steps up to this one, for what the run's own words
	// repeat of secrets; without all of them those words are not shown.
	learnt [][]byte
	unsaid bool

	args *display.Node // what would run: taking it apart is what a page of large arguments costs; nil: not yet
}

// Read reads an approval of the space: [decision.ErrNotFound] where there is none.
func Read(ctx context.Context, s txn.Store, space, id string) (a Approval, err error) {
	err = txn.View(ctx, s, func(tx Tx) error {
		a = Approval{}
		d, err := tx.Decision(id)
		if err == nil && (d.Type != decision.Approval || d.Space != space) {
			err = decision.ErrNotFound.Say("There is no approval %s.", id)
		}
		if err != nil {
			return err
		}
		a.Decision, a.At, a.Overdue = d, tx.Now(), d.Overdue(tx.Now())
		for _, read := range []func(Tx) error{a.readOwner, a.readOthers, a.readBefore, a.readHistory} {
			if err := read(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		a.Understand()
	}
	return a, err
}

// Understand takes apart what [Read] read, which does so itself. That of large arguments
// takes longer than a view may last.
func (a *Approval) Understand() {
	a.Mask, a.Altered = Mask(a.Decision), a.Intact()
	req, err := request.Decode(a.Decision.Request)
	if err == nil {
		a.Request = req
	} else if a.Altered == nil {
		a.Altered = err
	}
	for _, args := range a.learnt {
		a.Mask.Learn(args)
	}
	if a.Call != nil && !bytes.Equal(a.Call.Args, a.Request.Args) {
		a.Mask.Learn(a.Call.Args)
	}
	if a.Before != nil {
		m := Mask(*a.Before)
		m.Share(a.Mask)
		a.Mask.Share(m)
	}
	hide(a.History, a.Mask)
	args := a.Mask.Tree(a.RunArgs())
	a.args = &args
}

// readOwner reads what waits, and whether it still waits for exactly this.
func (a *Approval) readOwner(tx Tx) error {
	h, err := tx.Head(a.Owner.Stream())
	if err != nil {
		return err
	}
	a.Seen = event.CursorAt(h)
	owner, err := tx.Owner(a.Owner)
	if err != nil {
		return err
	}
	if a.Status == decision.Pending {
		a.Moot = owner.Waiting(a.Decision)
	}
	callID := a.CallID
	if a.Owner.Kind == decision.OwnerRun {
		r, err := tx.Run(a.Owner.ID)
		if err != nil {
			return err
		}
		a.Run = &r
		if err := a.readStep(tx); err != nil {
			return err
		}
		if a.Step != nil {
			callID = a.Step.CallID
		}
	}
	if err := a.readCall(tx, callID); err != nil {
		return err
	}
	a.Way = wayOf(a.Run, a.Call)
	a.Doubtful = a.Kind == decision.KindInterrupted || a.Call != nil && a.Call.Status == call.Unknown
	return nil
}

// mostLearnt bounds what is read of a run's steps for the sake of its words, in bytes.
const mostLearnt = 4 << 20

// readStep finds the step that asks, if it is there yet.
func (a *Approval) readStep(tx Tx) error {
	after, size := int64(0), 0
	for a.StepID != "" {
		steps, err := tx.Steps(a.Run.ID, after, 1000)
		if err != nil || len(steps) == 0 {
			return err
		}
		for i, s := range steps {
			if size += len(s.Args); size <= mostLearnt {
				a.learnt = append(a.learnt, []byte(s.Args))
			}
			if s.ID == a.StepID {
				a.Step, a.unsaid = &steps[i], size > mostLearnt
				return nil
			}
		}
		after = steps[len(steps)-1].Index
	}
	return nil
}

func (a *Approval) readCall(tx Tx, id string) error {
	if id == "" {
		return nil
	}
	k, err := tx.Call(id)
	if errors.Is(err, decision.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	a.Call = &k
	a.Attempts, err = tx.Attempts(id)
	return err
}

// readOthers finds the yes that this approval took the place of, and what took its own.
// A question of the runtime's own is another one.
func (a *Approval) readOthers(tx Tx) error {
	replaced := a.Status == decision.Superseded
	if a.N < 2 && !replaced {
		return nil
	}
	ds, err := tx.Decisions(decision.Query{Space: a.Space, Type: decision.Approval, Owner: a.Owner, StepID: a.StepID, Limit: 500})
	for _, o := range ds {
		switch {
		case o.N == a.N-1 && o.Status == decision.Superseded && o.Choice == decision.ChoiceApprove && a.Kind != decision.KindInterrupted:
			a.Replaces = o.ID
		case o.N == a.N+1 && replaced:
			a.ReplacedBy = o.ID
		}
	}
	return err
}

// readBefore finds what people said yes to last of the same tool.
func (a *Approval) readBefore(tx Tx) error {
	if a.Tool == "" {
		return nil
	}
	until := a.ID
	if a.Status == decision.Pending {
		until = "" // what was asked later may have been approved already
	}
	d, err := tx.LastApproved(a.Space, a.Tool, until)
	if errors.Is(err, decision.ErrNotFound) {
		return nil
	}
	if err == nil {
		a.Before = &d
	}
	return err
}

// Asked is the arguments that an approval is about.
func Asked(d decision.Decision) []byte {
	req, err := request.Decode(d.Request)
	if err != nil {
		return nil
	}
	return req.Args
}

// Ran is the arguments that an approval is about, or those that were to run instead.
func Ran(d decision.Decision) []byte {
	if d.EditedArgs != nil {
		return d.EditedArgs
	}
	return Asked(d)
}

// RunArgs are the arguments that run: those asked for, or others that were approved.
func (a Approval) RunArgs() []byte {
	if a.EditedArgs != nil {
		return a.EditedArgs
	}
	return a.Request.Args
}

// EditDigests are what an approval of other arguments is recorded under: their own digest,
// which is compared, and the one that also has what was asked, which the record shows.
func (a Approval) EditDigests(args []byte) (edited, effective string, err error) {
	if edited, err = request.ArgsDigest(args); err != nil {
		return "", "", err
	}
	effective, err = request.EffectiveDigest(a.Digest, edited)
	return edited, effective, err
}

// Changes is how the arguments differ from those that were approved of this tool last.
func (a Approval) Changes() []display.Change {
	if a.Before == nil {
		return nil
	}
	return a.Mask.Diff(Ran(*a.Before), a.Request.Args)
}

// Decidable reports whether an answer can still be given.
func (a Approval) Decidable() bool {
	return a.Status == decision.Pending && a.Open && !a.Overdue && a.Moot == nil
}

// Granted reports whether there is a yes that can still be used.
func (a Approval) Granted() bool { return a.Status == decision.Approved && a.Open && !a.Overdue }

// PlainCapability reports whether the capability says nothing that the arguments do not.
func (a Approval) PlainCapability() bool {
	return a.PlainDocument(a.Capability) || len(a.Mask.Tree(a.Capability).Nodes) == 0 // it is an object
}

// PlainDocument reports whether a capability or presentation is the {tool, args} that
// stands where the policy said nothing: the arguments say the same.
func (a Approval) PlainDocument(doc []byte) bool {
	plain, err := policy.Plain(a.Request)
	if err != nil {
		return false
	}
	if bytes.Equal(plain, doc) { // as it was stored
		return true
	}
	same, err := canon.Equal(plain, doc)
	return err == nil && same
}
