package call

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Resume carries out a parked call, in whatever process calls it. Without an
// answer it needs a decided record: it never approves by itself. With one, a
// pending record is decided so first; a decided one runs if it agrees.
//
// The same call id, run id and recorded arguments go through every stage again.
// A denial is a Result with status denied, which never ran the tool. A refusal
// on the way leaves the grant unspent and the call pending, and the Result says
// why. A ruling that asks for something else parks anew: a [*PendingError].
//
// Nothing is decided or started on an error: [ErrApprovalNotFound], [ErrUsage]
// (the wrong door, or an answer is missing), [ErrAlreadyDecided] (spent, or the
// store holds another decision), [ErrApprovalExpired], [ErrApprovalHash],
// [ErrRunState].
func (e *Executor) Resume(ctx context.Context, approvalID string, answer *decision.Answer, opts ...Option) (Result, error) {
	o, err := e.options(opts)
	if err != nil {
		return Result{}, err
	}
	s, err := e.read(ctx, approvalID)
	if err != nil {
		return Result{}, err
	}
	if err := s.checkDoor(o); err != nil {
		return Result{}, err
	}
	if s, err = e.settleAnswer(ctx, s, answer, o.principal); err != nil {
		return Result{}, err
	}
	return e.goOn(ctx, s)
}

// parks reports whether this executor's calls wait as rows at all.
func (e *Executor) parks() error {
	if e.misuse != nil {
		return e.misuse
	}
	if _, ok := e.conf.Approval.(*DeferredPort); !ok {
		return ErrUsage.Say("This executor's approval port keeps nothing that could be resumed.").
			Hint("Use call.Deferred(store) as the port.")
	}
	return nil
}

// read finds a record with everything that resuming it needs.
func (e *Executor) read(ctx context.Context, approvalID string) (subject, error) {
	if err := e.parks(); err != nil {
		return subject{}, err
	}
	var s subject
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		s, err = e.readSubject(tx, approvalID)
		return err
	})
	return s, err
}

func (e *Executor) readSubject(tx Tx, approvalID string) (subject, error) {
	d, err := tx.Decision(approvalID)
	if errors.Is(err, decision.ErrNotFound) || err == nil && d.Space != e.conf.Space {
		return subject{}, ErrApprovalNotFound.Say("There is no approval %s.", approvalID)
	}
	if err != nil {
		return subject{}, err
	}
	if err := callsOnly(d); err != nil {
		return subject{}, err
	}
	c, err := tx.Call(d.Owner.ID)
	if err != nil {
		return subject{}, err
	}
	s := subject{call: c, grant: &d, argsDigest: d.ArgsDigest, life: e.lifeOf(tx)}
	return s, s.readAttempt(tx)
}

// callsOnly refuses the records of runs, flows and jobs by naming their door.
func callsOnly(d decision.Decision) error {
	switch {
	case d.Type != decision.Approval:
		return ErrUsage.Say("%s is a question of a job, not an approval.", d.ID).Hint("Answer it with placet resolve.")
	case d.Node != "":
		return ErrUsage.Say("Approval %s is a flow's.", d.ID).Hint("Continue it with flow.Runner.Resume.")
	case d.Owner.Kind != decision.OwnerCall || d.StepID != "":
		return ErrUsage.Say("Approval %s is a run's.", d.ID).Hint("Continue it with run.Driver.Resume, or placet run resume %s.", d.RunID)
	}
	return nil
}

// readAttempt reads a call's last attempt and the grants that stand behind it.
func (s *subject) readAttempt(tx Tx) (err error) {
	if s.call.Attempts > 0 {
		a, err := tx.Attempt(s.call.ID, s.call.Attempts)
		if err != nil {
			return err
		}
		s.attempt = &a
		if a.ApprovalID != "" {
			g, err := tx.Decision(a.ApprovalID)
			if err != nil {
				return err
			}
			s.paid = &g
		}
	}
	from := s.paid
	if from == nil && s.attempt == nil {
		from = s.grant // restored: the attempt is lost, and only the new question names what was spent
	}
	s.spent, err = policysOwn(tx, from)
	return err
}

// policysOwn is the approval that the policy asked for behind one for running
// again; nil where there is none.
func policysOwn(tx Tx, d *decision.Decision) (_ *decision.Decision, err error) {
	for d != nil && d.Kind == decision.KindInterrupted {
		if d.SpentDigest == "" {
			return nil, nil
		}
		if d, err = spentBefore(tx, *d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// spentBefore finds the record whose digest an interrupted approval names.
func spentBefore(tx Tx, d decision.Decision) (*decision.Decision, error) {
	ds, err := tx.Decisions(decision.Query{Space: d.Space, CallID: d.CallID, StepID: d.StepID, Limit: 500})
	for _, o := range ds {
		if o.Digest == d.SpentDigest && o.N < d.N {
			return &o, err
		}
	}
	return nil, err
}

// reload reads a stored subject again after something moved, and checks that it
// still is what can be judged.
func (e *Executor) reload(ctx context.Context, s subject) (subject, error) {
	tool, err := e.conf.Tools.Lookup(s.call.Tool)
	if err != nil {
		return s, err
	}
	fresh, err := e.readAgain(ctx, s)
	if err != nil {
		return s, err
	}
	s.tool = tool
	fresh = s.goingOn(fresh)
	if s.grant == nil {
		fresh.grant = nil
		if fresh.call.Status != Unknown || fresh.call.ApprovalID != s.call.ApprovalID { // settled, tried again or asked about
			return s, fresh.call.errState()
		}
		return fresh, fresh.unaltered()
	}
	return fresh, e.usable(ctx, fresh)
}

func (e *Executor) readAgain(ctx context.Context, s subject) (fresh subject, err error) {
	err = txn.View(ctx, e.conf.Store, func(tx Tx) error {
		if s.grant != nil {
			fresh, err = e.readSubject(tx, s.grant.ID)
			return err
		}
		c, err := tx.Call(s.call.ID)
		fresh = subject{call: c, argsDigest: c.ArgsDigest, life: e.lifeOf(tx)}
		if err != nil {
			return err
		}
		return fresh.readAttempt(tx)
	})
	return fresh, err
}

// checkDoor is the checks before any write that need no more than what was read
// (spec 2.2, 2.4).
func (s subject) checkDoor(o options) error {
	if decision.FromServer(s.call.Metadata) || s.grant != nil && decision.FromServer(s.grant.Metadata) {
		return s.errServer()
	}
	if s.call.Hosted() {
		return ErrUsage.Say("Call %s belongs to a step of run %s.", s.call.ID, s.call.RunID).
			Hint("Continue it with run.Driver.Resume, or placet run resume %s.", s.call.RunID)
	}
	if s.grant == nil {
		return nil
	}
	if err := callsOnly(*s.grant); err != nil {
		return err
	}
	if o.runID != "" && o.runID != s.grant.RunID {
		return ErrUsage.Say("Approval %s belongs to run %s, not to %s.", s.grant.ID, s.grant.RunID, o.runID)
	}
	return nil
}

// settleAnswer makes sure that the record is decided, as the answer says if there
// is one; principal is who was proved to give it.
func (e *Executor) settleAnswer(ctx context.Context, s subject, answer *decision.Answer, principal string) (subject, error) {
	if s.grant.Status == decision.Pending {
		switch {
		case s.grant.Overdue(s.life.clock):
			return s, e.expire(ctx, s.grant.ID)
		case answer == nil:
			return s, ErrUsage.Say("Approval %s is still pending; resuming never approves by itself.", s.grant.ID).
				Hint("Decide it first: placet approve %[1]s, or placet resume %[1]s --approve.", s.grant.ID)
		}
		op := e.operator()
		op.Principal = principal
		_, err := op.Decide(ctx, s.grant.ID, *answer)
		if err != nil && (!errors.Is(err, decision.ErrNotPending) || errors.Is(err, ErrApprovalExpired)) {
			return s, err
		}
		if s, err = e.read(ctx, s.grant.ID); err != nil { // decided here, or by somebody who was first
			return s, err
		}
	}
	if answer != nil && !agrees(*s.grant, *answer) {
		return s, s.grant.ErrDecided()
	}
	return s, nil
}

// agrees reports whether an answer says what stands: the same yes or no, and the same edits.
func agrees(d decision.Decision, a decision.Answer) bool {
	if a.Approved != (d.Choice == decision.ChoiceApprove) || a.Shown != "" && a.Shown != d.Digest {
		return false
	}
	if a.EditedArgs == nil || d.EditedArgs == nil {
		return a.EditedArgs == nil && d.EditedArgs == nil
	}
	digest, err := request.ArgsDigest(a.EditedArgs)
	return err == nil && digest == d.EditedDigest
}

func (e *Executor) operator() decision.Operator {
	return decision.Operator{Store: e.conf.Store, Observer: e.conf.Observer, Now: e.conf.Now, MayOwn: true}
}

// expire ends an overdue record and answers so, or says what others made of it first.
func (e *Executor) expire(ctx context.Context, approvalID string) error {
	if _, err := e.operator().Expire(ctx, approvalID); err != nil && !errors.Is(err, decision.ErrNotPending) {
		return err
	}
	var d decision.Decision
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		d, err = tx.Decision(approvalID)
		return err
	})
	switch {
	case err != nil:
		return err
	case d.Status == decision.Pending || d.Status == decision.Approved:
		return decision.Moved("The approval")
	}
	return d.ErrDecided()
}

// goOn acts on a decided record.
func (e *Executor) goOn(ctx context.Context, s subject) (Result, error) {
	d := s.grant
	switch d.Status {
	case decision.Rejected:
		return e.deny(ctx, s)
	case decision.Approved:
		return e.runGrant(ctx, s)
	case decision.Consumed:
		if d.Choice == decision.ChoiceApprove && s.call.ApprovalID == d.ID && s.interrupted() {
			return e.recover(ctx, s)
		}
	case decision.Superseded: // by the doubt about an earlier life; what comes next was not found out yet
		if s.call.ApprovalID == d.ID && s.call.Status == Unknown {
			return e.recover(ctx, s)
		}
	}
	return Result{}, e.errSpent(s)
}

// errSpent says that a record was used already, and what became of the call.
func (e *Executor) errSpent(s subject) error {
	err := s.grant.ErrDecided()
	if s.call.ApprovalID != s.grant.ID && !s.call.Status.Terminal() {
		return err.Hint("The call now waits on approval %s.", s.call.ApprovalID)
	}
	return err.Hint("Call %s is %s. A new call asks again.", s.call.ID, s.call.Status)
}

// deny returns a stored no: the tool never runs, and the record is spent.
func (e *Executor) deny(ctx context.Context, s subject) (Result, error) {
	var res Result
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) error {
		d, err := tx.LockDecision(s.grant.ID)
		if err != nil {
			return err
		}
		c, err := tx.Call(s.call.ID)
		if err != nil {
			return err
		}
		if c.ApprovalID != d.ID {
			return s.errLatest(c)
		}
		res, err = returnDenial(tx, d, c, e.clock(tx))
		return err
	})
	return res, err
}

// runGrant takes a yes through the stages.
func (e *Executor) runGrant(ctx context.Context, s subject) (Result, error) {
	if err := e.usable(ctx, s); err != nil {
		return Result{}, err
	}
	t, err := e.conf.Tools.Lookup(s.call.Tool)
	if err != nil {
		return Result{}, err
	}
	s.tool = t
	if s.grant.Epoch < s.life.epoch && !s.call.keyed(recoveryOf(t), t.SpecDigest()) {
		return e.doubtGrant(ctx, s)
	}
	if s.call.Status == Unknown && t.Probe != nil {
		res, settled, err := e.probe(ctx, s)
		if settled || err != nil {
			return res, err
		}
	}
	return e.carryOut(ctx, s)
}

// usable checks a grant before it is judged: unspent, in time (else it is expired
// here), unaltered, and the call's latest. The start's transaction checks again.
func (e *Executor) usable(ctx context.Context, s subject) error {
	d := s.grant
	if d.Status != decision.Approved {
		return e.errSpent(s)
	}
	if d.Overdue(s.life.clock) {
		return e.expire(ctx, d.ID)
	}
	if err := d.SoundGrant(); err != nil {
		return err
	}
	if s.call.ApprovalID != d.ID {
		return s.errLatest(s.call)
	}
	return s.bound()
}

// errLatest: of several records of one call only the latest can answer.
func (s subject) errLatest(c Call) error {
	return ErrRunState.Say("Call %s waits on another approval than %s.", c.ID, s.grant.ID).Hint("Its latest one is %s.", c.ApprovalID)
}
