package decision

import (
	"cmp"
	"fmt"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/request"
)

// Command is what can be done to a decision.
type Command interface{ command() }

// Decide is a person's answer. Everything in it is fact by the time it is judged.
type Decide struct {
	Answer
	Bound     bool   // Answer.Shown has to be the stored digest, also when it is empty
	Principal string // who was proved to answer
	Verified  bool
	MayOwn    bool   // the principal may decide what it asked for
	Waiting   error  // what the owner said: nil while it waits for exactly this
	Unfit     error  // what the recorded schema says to edited arguments; nil: they fit
	Checked   string // digest of the approval that Unfit was found with
}

// Expire ends what is overdue.
type Expire struct{}

// Withdraw is the asker taking a request back.
type Withdraw struct {
	By, Principal, Note string
	MayOwn              bool // the principal may take back what others asked for
	Waiting             error
	// ByRuntime: nobody has to answer any more, because its owner ends or the outcome
	// became known in this transaction. Then it does not matter whose it is, whether
	// it is overdue, or how much is told of it.
	ByRuntime     bool
	MaxEventBytes int // of a question; 0: [MaxEventBytes]
}

// Consume spends a grant on an attempt, or returns a denial (Attempt 0).
type Consume struct{ Attempt int64 }

// Supersede replaces a decision by a newer one, or by an outcome learnt late. By is set
// where somebody took a yes back.
type Supersede struct{ By, Principal string }

// Close notes that what waited on a decision has ended otherwise. The decision
// stays as it stands for ever; it is no work for anybody any more.
type Close struct{}

func (Decide) command()    {}
func (Expire) command()    {}
func (Withdraw) command()  {}
func (Consume) command()   {}
func (Supersede) command() {}
func (Close) command()     {}

// Change is what the transaction must write, all of it or none.
type Change struct {
	Next   Decision
	Vote   *Vote
	Events []event.Event // for the owner's stream
	Refuse error         // committed with the rest, then returned to the caller; nil: accepted
	// Repeated: the command asked for what stands already; there is nothing to write.
	Repeated bool
}

// Step judges a command. It is pure: the same decision, command and time give
// the same answer. An error means that there is nothing to write.
func (d Decision) Step(cmd Command, now time.Time) (Change, error) {
	if err := d.takes(cmd); err != nil {
		return Change{}, err
	}
	switch cmd := cmd.(type) {
	case Decide:
		return d.decide(cmd, now)
	case Resolve:
		return d.resolve(cmd, now)
	case Expire:
		return d.expire(now)
	case Withdraw:
		return d.withdraw(cmd, now)
	case Consume:
		return d.consume(cmd, now)
	case Supersede:
		return d.supersede(cmd, now)
	case Close:
		return d.close()
	}
	panic(fmt.Sprintf("decision: unknown command %T", cmd))
}

// takes refuses what can only be done to the other type of decision.
func (d Decision) takes(cmd Command) error {
	switch cmd.(type) {
	case Expire, Withdraw, Close:
		return nil
	case Resolve:
		if d.Type != Question {
			return ErrUsage.Say("%s is an approval, not a question.", d.ID).Hint("Decide it with placet approve or placet reject.")
		}
		return nil
	}
	if d.Type == Question {
		return ErrUsage.Say("%s is a question, not an approval.", d.ID).Hint("Answer it with placet resolve.")
	}
	return nil
}

// decide follows spec 1.3: the first failure is the answer.
func (d Decision) decide(cmd Decide, now time.Time) (Change, error) {
	if d.Status != Pending {
		return Change{}, d.errNotPending()
	}
	if cmd.Waiting != nil {
		return Change{}, cmd.Waiting
	}
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if err := d.checkShown(cmd); err != nil {
		return Change{}, err
	}
	if d.Overdue(now) {
		return d.expired(now, true), nil
	}
	if err := d.checkDecider(cmd); err != nil {
		return Change{}, err
	}
	if !cmd.Approved { // a no is always possible
		return d.settle(cmd, Rejected, now), nil
	}
	if err := d.Intact(); err != nil {
		return Change{}, err
	}
	return d.approve(cmd, now)
}

func (d Decision) checkShown(cmd Decide) error {
	if !cmd.Bound && cmd.Shown == "" || cmd.Shown == d.Digest {
		return nil
	}
	refused := ErrApprovalChanged.Say("Approval %s is not the one that was shown.", d.ID)
	if len(cmd.Shown) != len(d.Digest) {
		return refused.Hint("What was given is no whole digest. Look at it again: placet show %s.", d.ID)
	}
	return refused.Hint("Look at it again: placet show %s.", d.ID)
}

func (d Decision) checkDecider(cmd Decide) error {
	switch {
	case cmd.Principal == "" || cmd.Principal != d.RequestedBy || cmd.MayOwn:
		return nil
	case d.Type == Question:
		return ErrSelfDecision.Say("%s asked question %s and may not answer it.", quote(cmd.Principal), d.ID)
	}
	return ErrSelfDecision.Say("%s asked for approval %s and may not decide it.", quote(cmd.Principal), d.ID)
}

func (d Decision) approve(cmd Decide, now time.Time) (Change, error) {
	if cmd.EditedArgs == nil {
		return d.settle(cmd, Approved, now), nil
	}
	if err := d.checkEdit(cmd); err != nil {
		return Change{}, err
	}
	edited, err := request.ArgsDigest(cmd.EditedArgs)
	if err != nil {
		return Change{}, err
	}
	effective, err := request.EffectiveDigest(d.Digest, edited)
	if err != nil {
		return Change{}, err
	}
	d.EditedArgs, d.EditedDigest, d.EffectiveDigest = cmd.EditedArgs, edited, effective
	return d.settle(cmd, Approved, now), nil
}

// checkEdit takes no edit that was not held against the schema of this very request.
func (d Decision) checkEdit(cmd Decide) error {
	if err := d.mayEdit(); err != nil {
		return err
	}
	if cmd.Checked != d.Digest {
		return ErrApprovalChanged.Say("The edited arguments were checked for another request than approval %s now holds.", d.ID).
			Hint("Look at it again: placet show %s.", d.ID)
	}
	return cmd.Unfit
}

func (d Decision) mayEdit() error {
	switch {
	case d.Owner.Kind != OwnerCall:
		return ErrUsage.Say("Arguments can be edited only in approvals of calls; %s belongs to a %s.", d.ID, d.Owner.Kind)
	case d.Kind == KindInterrupted:
		return ErrUsage.Say("The arguments of an interrupted call cannot be edited: what may have run already is what would run.").
			Hint("Approve or reject it as it is.")
	case d.ForbidEdits:
		return ErrUsage.Say("The policy does not let the arguments of approval %s be edited.", d.ID).
			Hint("Approve or reject it as it is.")
	}
	return nil
}

// settle is the one door into approved and rejected.
func (d Decision) settle(cmd Decide, to Status, now time.Time) Change {
	d.Status, d.Choice = to, ChoiceReject
	if to == Approved {
		d.Choice = ChoiceApprove
		if d.GrantTTL > 0 {
			d.GrantExpiresAt = now.Add(d.GrantTTL)
		}
	}
	d.Open = to == Approved // a grant can still expire or be replaced
	d.DecidedBy, d.DecidedPrincipal, d.Verified = cmd.By, cmd.Principal, cmd.Verified
	d.DecidedAt, d.SettledAt, d.Note = now, now, cmd.Note
	return Change{
		Next: d,
		Vote: &Vote{
			DecisionID: d.ID, Principal: cmd.Principal, By: cmd.By, Choice: d.Choice,
			Shown: cmd.Shown, EditedDigest: d.EditedDigest, Note: cmd.Note, At: now,
		},
		Events: []event.Event{d.event(event.ApprovalDecided, cmd.By, decidedPayload{d.ID, to, cmd.By, cmd.Principal})},
	}
}

func (d Decision) expire(now time.Time) (Change, error) {
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if !d.Overdue(now) {
		return Change{}, ErrNotPending.Say("%s %s is %s and not overdue.", d.noun(), d.ID, d.Status).With(d.Standing())
	}
	return d.expired(now, false), nil
}

// expired is the one door into that status. Who decided a grant, and when, is kept.
func (d Decision) expired(now time.Time, refuse bool) Change {
	if d.Status == Pending {
		d.SettledAt = now
	}
	d.Status, d.Open = Expired, false
	ch := Change{Next: d, Events: []event.Event{d.expiredEvent()}}
	if refuse {
		ch.Refuse = d.errExpired()
	}
	return ch
}

func (d Decision) expiredEvent() event.Event {
	if d.Type == Question {
		return d.event(event.DecisionExpired, event.System, questionPayload{d.ID})
	}
	return d.event(event.ApprovalExpired, event.System, approvalPayload{d.ID})
}

func (d Decision) withdraw(cmd Withdraw, now time.Time) (Change, error) {
	if d.Type == Question && d.Status == Withdrawn { // once more is fine
		return Change{Next: d, Repeated: true}, nil
	}
	if d.Type == Approval && d.Owner.Kind != OwnerCall && !cmd.ByRuntime {
		return Change{}, ErrUsage.Say("Only a call's approval can be withdrawn; %s belongs to a %s.", d.ID, d.Owner.Kind).
			Hint("Cancel the run: placet cancel %s.", d.Owner.ID)
	}
	if d.Status != Pending {
		return Change{}, d.errNotPending()
	}
	if cmd.Waiting != nil {
		return Change{}, cmd.Waiting
	}
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if d.Overdue(now) && !cmd.ByRuntime {
		return d.expired(now, true), nil
	}
	if cmd.Principal != "" && cmd.Principal != d.RequestedBy && !cmd.MayOwn {
		return Change{}, d.errNotAsker(cmd.Principal)
	}
	d.Status, d.Open, d.SettledAt, d.Note = Withdrawn, false, now, cmd.Note
	d.WithdrawnBy, d.WithdrawnPrincipal = cmd.By, cmd.Principal
	if d.Type == Question {
		e := d.event(event.DecisionWithdrawn, cmd.By, withdrawnPayload{d.ID, cmd.By})
		ch := Change{Next: d, Events: []event.Event{e}}
		if cmd.ByRuntime {
			return ch, nil
		}
		return ch, fits(e, cmd.MaxEventBytes)
	}
	return Change{Next: d, Events: []event.Event{d.event(event.ApprovalWithdrawn, cmd.By, approvalPayload{d.ID})}}, nil
}

func (d Decision) errNotAsker(principal string) error {
	if d.Type == Question {
		return ErrForbidden.Say("%s did not ask question %s and cannot take it back.", quote(principal), d.ID).Hint("Answer it instead.")
	}
	return ErrForbidden.Say("%s did not ask for approval %s and cannot take it back.", quote(principal), d.ID).Hint("Reject it instead.")
}

// consume is the one door into spent. It refuses whatever is not a live grant.
func (d Decision) consume(cmd Consume, now time.Time) (Change, error) {
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if d.Overdue(now) {
		return d.expired(now, true), nil
	}
	switch {
	case d.Status == Approved && cmd.Attempt > 0 && d.Choice == ChoiceApprove && d.ConsumedBy == 0 && d.ConsumedAt.IsZero():
		d.ConsumedBy = cmd.Attempt
	case d.Status == Rejected && cmd.Attempt == 0 && d.Choice == ChoiceReject:
	default:
		return Change{}, d.ErrDecided()
	}
	denial := d.Status == Rejected
	d.Status, d.Open, d.ConsumedAt = Consumed, false, now
	ch := Change{Next: d}
	if denial { // a spent grant shows in the start's own event
		ch.Events = []event.Event{d.event(event.ApprovalConsumed, event.System, approvalPayload{d.ID})}
	}
	return ch, nil
}

func (d Decision) supersede(cmd Supersede, now time.Time) (Change, error) {
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if d.Status != Approved && d.Status != Pending {
		return Change{}, d.errNotPending()
	}
	if d.Status == Pending {
		d.SettledAt = now
	}
	d.Status, d.Open = Superseded, false
	d.WithdrawnBy, d.WithdrawnPrincipal = cmd.By, cmd.Principal
	return Change{Next: d, Events: []event.Event{d.event(event.ApprovalSuperseded, cmp.Or(cmd.By, event.System), approvalPayload{d.ID})}}, nil
}

func (d Decision) close() (Change, error) {
	switch {
	case d.closed():
		return Change{}, d.errClosed()
	case !d.Open:
		return Change{}, d.errNotPending()
	}
	d.Open = false
	return Change{Next: d}, nil
}

// closed reports whether d stands as it did when what waited on it ended.
func (d Decision) closed() bool { return !d.Open && (d.Status == Pending || d.Status == Approved) }

// ErrDecided is the answer to an attempt to use d again: [ErrApprovalExpired],
// or [ErrAlreadyDecided] with the standing decision.
func (d Decision) ErrDecided() *fault.Error {
	if d.Type == Question {
		return d.errAnswered()
	}
	if d.Status == Expired {
		return d.errExpired()
	}
	err := ErrAlreadyDecided.Say("Approval %s is already %s%s.", d.ID, d.Status, byWhom(d)).With(d.Standing())
	if d.Status == Approved {
		return err.Hint("That yes stands until it is used%s.", d.orUntil())
	}
	return err.Hint("A new call asks again.")
}

type approvalPayload struct {
	ApprovalID string `json:"approval_id"`
}

type decidedPayload struct {
	ApprovalID string `json:"approval_id"`
	Status     Status `json:"status"`
	By         string `json:"by"`
	Principal  string `json:"principal,omitempty"`
}

type requestedPayload struct {
	ApprovalID string `json:"approval_id"`
	Kind       string `json:"kind"`
	Reason     string `json:"reason,omitempty"`
	Digest     string `json:"digest"`
}

func (d Decision) event(t event.Type, actor string, payload any) event.Event {
	return event.New(t, d.ID, actor, payload)
}
