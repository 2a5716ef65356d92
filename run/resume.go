package run

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Resume goes on with a run, in whatever process calls it: with a waiting one whose
// approval was given, and with one whose process was lost or gave it back. It
// returns the run as Start does.
//
// Of a waiting run only the latest approval counts; until it is approved the answer
// is [ErrRunState], and nothing changes however often it is asked (spec 1.6). Where
// the approval or its yes has grown too old the run is cancelled, and returned so.
//
// Nothing is started on an error: [ErrNotFound], [ErrRunState] (it has ended, waits,
// or another process was faster), [ErrRunLeased] (it is worked on),
// [ErrApprovalHash] (a row was altered), tool.ErrUnknown, or the policy's own.
func (d *Driver) Resume(ctx context.Context, runID string) (Run, error) {
	return d.resumeAs(ctx, runID, FlowRef{})
}

// ResumeThen is Resume for whoever has to know whether anything goes on: begun is told,
// at most once, when this process has taken the run's lease, and before it works on it.
func (d *Driver) ResumeThen(ctx context.Context, runID string, begun func()) (Run, error) {
	return d.resumeAs(context.WithValue(ctx, begunKey{}, sync.OnceFunc(begun)), runID, FlowRef{})
}

type begunKey struct{}

// tellBegun tells who asked to know that the lease is taken.
func tellBegun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}

// ResumeFlow is Resume for a flow's run: it has to be of exactly this flow. One whose
// definition changed under a paused run is [ErrUsage], naming both versions.
func (d *Driver) ResumeFlow(ctx context.Context, runID string, f FlowRef) (Run, error) {
	return d.resumeAs(ctx, runID, f)
}

func (d *Driver) resumeAs(ctx context.Context, runID string, f FlowRef) (Run, error) {
	if d.misuse != nil {
		return Run{}, d.misuse
	}
	defer d.calls.Hold()()
	if d.isStopping() {
		return Run{}, ErrStopped
	}
	r, err := d.read(ctx, runID)
	if err != nil {
		return r, err
	}
	if err := r.sameFlow(f); err != nil {
		return r, err
	}
	s, r, err := d.reopen(ctx, r)
	if err != nil || s == nil {
		return r, err
	}
	return s.loop(ctx)
}

// reopen takes the lease of a run and does what it was stopped at. Without a
// session the run has nothing for this process to go on with.
func (e *engine) reopen(ctx context.Context, r Run) (*session, Run, error) {
	switch r.Status {
	case Running:
		return e.takeOver(ctx, r)
	case Waiting:
		return e.resume(ctx, r)
	}
	return nil, r, e.errEnded(ctx, r)
}

// errEnded says that a run has ended, and who worked on it last.
func (e *engine) errEnded(ctx context.Context, r Run) error {
	owner, err := e.lastOwner(ctx, r)
	if err != nil {
		return err
	}
	if owner == "" { // its events were redacted
		return r.errState()
	}
	return ErrRunState.Say("Run %s is %s (%s); %s worked on it last.", r.ID, r.Status, r.Reason, owner).Hint("Look at it: placet show %s.", r.ID)
}

// lastOwner is who took the run's lease last, from its events: the row forgets it when
// the run rests.
func (e *engine) lastOwner(ctx context.Context, r Run) (owner string, err error) {
	err = txn.View(ctx, e.conf.Store, func(tx Tx) error {
		owner = ""
		q := event.Query{Stream: r.Stream(), Types: []event.Type{event.RunStarted, event.RunResumed, event.LeaseTakenOver}, Limit: 1000}
		for {
			es, err := tx.Events(q)
			if err != nil {
				return err
			}
			for _, t := range es {
				q.After = t.StreamSeq
				var p takenPayload
				if json.Unmarshal(t.Payload, &p) == nil && p.Owner != "" {
					owner = p.Owner
				}
			}
			if len(es) < q.Limit {
				return nil
			}
		}
	})
	return owner, err
}

// paused is a waiting run with what it waits for.
type paused struct {
	run   Run
	on    decision.Decision
	c     *call.Case // nil: of a flow's approval
	now   time.Time  // the engine's clock
	epoch int64      // life of the store

	unknown error // the tool is not registered here
}

func (e *engine) readPaused(ctx context.Context, runID string) (paused, error) {
	var p paused
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		p = paused{now: e.clock(tx), epoch: tx.Epoch()}
		if p.run, err = e.find(tx, runID); err != nil {
			return err
		}
		if p.run.Status != Waiting {
			return p.run.errState()
		}
		if p.on, err = tx.Decision(p.run.ApprovalID); err != nil {
			return err
		}
		if err := p.run.bound(p.on); err != nil || p.run.Current.CallID == "" {
			return err
		}
		p.c, err = e.calls.OpenCase(tx, p.run.site(), p.run.Current.CallID, p.on.ID)
		if errors.Is(err, tool.ErrUnknown) { // first what needs no tool
			p.unknown, err = err, nil
		}
		return err
	})
	return p, err
}

// resume follows spec 1.6.
func (e *engine) resume(ctx context.Context, r Run) (*session, Run, error) {
	for range judgeTries {
		p, err := e.readPaused(ctx, r.ID)
		if err == nil && p.run.ApprovalID != r.ApprovalID { // it went on meanwhile: that yes is to something else
			err = ErrRunState.Say("Run %s has gone on, and waits on approval %s by now.", r.ID, p.run.ApprovalID).Hint("Look at it: placet show %s.", r.ID)
		}
		if err != nil {
			return nil, p.run, err
		}
		s, now, err := e.resumePaused(ctx, p)
		if !errors.Is(err, decision.ErrMoved) {
			return s, now, err
		}
	}
	return nil, r, ErrRunState.Say("Run %s changed while it was resumed, %d times in a row; nothing was started.", r.ID, judgeTries).Hint("Try again.")
}

func (e *engine) resumePaused(ctx context.Context, p paused) (*session, Run, error) {
	switch {
	case p.on.Overdue(p.now):
		return e.expire(ctx, p)
	case p.learnt():
		return e.resumeLearnt(ctx, p)
	case p.on.Status != decision.Approved:
		return nil, p.run, p.errNoGrant()
	case p.c == nil:
		return e.resumeNode(ctx, p)
	}
	if err := p.c.Unspent(); err != nil {
		return nil, p.run, err
	}
	if p.unknown != nil {
		return nil, p.run, p.unknown
	}
	if p.c.OfEarlierLife() {
		return e.outlive(ctx, p)
	}
	if p.c.Call().Status == call.Unknown {
		out, wait, err := e.calls.Probe(ctx, p.c)
		switch {
		case err != nil:
			return nil, p.run, err
		case out != nil:
			return e.resumeWith(ctx, p, *out)
		case wait != "":
			return nil, p.run, ErrRunState.Say("Run %s cannot go on yet. %s", p.run.ID, wait).Hint("Try again later.")
		}
	}
	return e.resumeGranted(ctx, p)
}

func (p paused) errNoGrant() error {
	return ErrRunState.Say("Run %s waits on approval %s, which is %s.", p.run.ID, p.on.ID, p.on.Status).
		Hint("Decide it first: placet approve %s.", p.on.ID)
}

// expire ends an approval or a yes that has grown too old, and the run with it.
func (e *engine) expire(ctx context.Context, p paused) (*session, Run, error) {
	if _, err := e.operator().Expire(ctx, p.on.ID); err != nil && !errors.Is(err, decision.ErrNotPending) {
		return nil, p.run, err
	}
	r, err := e.read(ctx, p.run.ID)
	if err == nil && !r.Status.Terminal() {
		err = decision.Moved("Approval %s", p.on.ID)
	}
	return nil, r, err
}

// resumeGranted judges the recorded request again and acts on it.
func (e *engine) resumeGranted(ctx context.Context, p paused) (*session, Run, error) {
	switch err := e.calls.Judge(ctx, p.c); {
	case err == nil:
	case errors.Is(err, policy.ErrRuling) && !errors.Is(err, policy.ErrFailed):
		return e.resumeInto(ctx, p, func(s *session, w *writing) error {
			if err := e.giveUp(w.tx, p, call.KindPolicyDenied, words(err.Error())); err != nil {
				return err
			}
			return w.step(internal(w, err))
		})
	default:
		return nil, p.run, err // a policy that fails writes nothing
	}
	kind, why := p.c.Refused()
	switch {
	case kind != "":
		return e.resumeRefused(ctx, p, kind, why)
	case p.c.Asks():
		return e.askAnew(ctx, p)
	case e.reach == holds:
		return nil, p.run, errReady
	}
	return e.resumeStart(ctx, p)
}

// errReady: the grant can be spent, and is not: the run goes on waiting until the
// start, which judges all of it again.
var errReady = errors.New("the grant is ready to be spent")

// resumeRefused goes on past a request that a gate does not let through in spite of its
// grant.
func (e *engine) resumeRefused(ctx context.Context, p paused, kind call.Kind, why string) (*session, Run, error) {
	return e.resumeInto(ctx, p, func(s *session, w *writing) error {
		if err := e.giveUp(w.tx, p, kind, why); err != nil {
			return err
		}
		return s.refuse(ctx, w, p.c, kind, why)
	})
}

// giveUp ends the call and replaces the grant of a request that is not carried out.
func (e *engine) giveUp(tx Tx, p paused, kind call.Kind, why string) error {
	if err := e.calls.Supersede(tx, p.c); err != nil {
		return err
	}
	return e.calls.GiveUp(tx, p.c, kind, why)
}

// askAnew replaces a grant that the policy does not take any more: the run goes on
// waiting, for another approval.
func (e *engine) askAnew(ctx context.Context, p paused) (*session, Run, error) {
	return e.stillWaiting(ctx, p, func(w *writing) error {
		return e.ask(w, p.c)
	})
}

// resumeStart spends the grant and starts the recorded request: one commit of the
// run, its lease, the policy's word, the grant and the attempt.
func (e *engine) resumeStart(ctx context.Context, p paused) (*session, Run, error) {
	asked := time.Now()
	var st call.Started
	s, r, err := e.resumeInto(ctx, p, func(s *session, w *writing) (err error) {
		st, err = e.start(w, p.c)
		return err
	})
	switch {
	case errors.Is(err, ErrApprovalExpired):
		return e.expire(ctx, p)
	case errors.Is(err, call.ErrGuardRefused):
		return e.resumeRefused(ctx, p, call.KindGuardRefused, messageOf(err))
	case err != nil:
		return nil, r, err
	}
	if err := s.carry(ctx, p.c, st, asked); err != nil {
		s.close()
		r, err := s.ended(err)
		return nil, r, err
	}
	return s, s.known(), nil
}

// learnt reports whether the outcome of the step's call became known while the run
// waited to be told what to do about it: that answered the question.
func (p paused) learnt() bool {
	return p.c != nil && (p.on.Status == decision.Withdrawn || p.on.Status == decision.Superseded) &&
		(p.c.Call().Status == call.Succeeded || p.c.Call().Status == call.Failed)
}

// resumeLearnt goes on with an outcome that is in the store already.
func (e *engine) resumeLearnt(ctx context.Context, p paused) (*session, Run, error) {
	c := p.c.Call()
	if err := p.c.Unaltered(); err != nil {
		return nil, p.run, err
	}
	return e.resumeInto(ctx, p, func(s *session, w *writing) error {
		return s.outcome(ctx, w, outcomeOf(c))
	})
}

// resumeWith goes on with an outcome that the tool's probe knew.
func (e *engine) resumeWith(ctx context.Context, p paused, out call.Outcome) (*session, Run, error) {
	return e.resumeInto(ctx, p, func(s *session, w *writing) error {
		return s.settleAs(ctx, w, p.c, out)
	})
}

// outlive handles a yes of an earlier life of the store: the call may have run after
// the backup was taken, so it needs a new yes, or the tool's own word.
func (e *engine) outlive(ctx context.Context, p paused) (*session, Run, error) {
	if p.c.Tool().Probe == nil {
		return e.stillWaiting(ctx, p, func(w *writing) error {
			d, err := e.calls.Outlive(w.tx, p.c)
			if err != nil {
				return err
			}
			return w.step(Pause{Approval: *d, CallID: p.c.Call().ID})
		})
	}
	s, r, err := e.resumeInto(ctx, p, func(s *session, w *writing) error {
		if _, err := e.calls.Outlive(w.tx, p.c); err != nil {
			return err
		}
		if err := w.step(Execute{w.hold, p.c.Call().ID}); err != nil {
			return err
		}
		return w.step(Interrupt{w.hold, "The store went back in time; the call may already have run."})
	})
	if err != nil {
		return nil, r, err
	}
	return s.settled(ctx)
}
