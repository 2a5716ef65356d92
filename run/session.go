package run

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// session is this process's hold on a run: the run as it knows it, and the lease.
// Everything that it writes goes through write, which is guarded by the fence.
type session struct {
	e      *engine
	keeper keeper
	life   context.Context // ends when the lease does
	cancel context.CancelCauseFunc

	// Of what works on the run: one goroutine at a time.
	reach    reach
	held     *call.Case // that may run, where the reach ends before the start
	reserved *attempt   // started, where the reach ends before the tool
	closing  bool       // no step is claimed any more

	mu        sync.Mutex
	run       Run
	last      *Step  // the last one that ended with its successor claimed
	steps     []Step // all that have ended, oldest first
	loaded    bool   // steps and approvals were read
	approvals []decision.Decision
}

// watching is a session of a run that is only looked at: it holds no lease.
func watching(ctx context.Context, e *engine, r Run) *session {
	s := newSession(ctx, e, r)
	s.abandon()
	return s
}

// abandon lets the lease end unrenewed.
func (s *session) abandon() {
	s.keeper.stop()
	s.cancel(ErrLeaseLost)
}

// reach is how far a session goes by itself with a request that may run.
type reach int

const (
	carriesOut reach = iota // all the way: the tool is called and its outcome recorded
	holds                   // up to the start: nothing is written
	reserves                // the start is committed; the caller runs the tool
)

// newSession is a session of a run whose lease is yet to be taken.
func newSession(ctx context.Context, e *engine, r Run) *session {
	s := &session{e: e, run: r, reach: e.reach}
	s.life, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return s
}

func (s *session) close() {
	s.keeper.stop()
	s.cancel(nil)
}

func (s *session) known() Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// within ends with ctx and with the lease, whichever is first.
func (s *session) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// errOver: the run was ended by somebody else, who has the last word.
var errOver = errors.New("the run has ended")

// errAgain: what the request was judged on has moved, and the run has not: judge again.
var errAgain = errors.New("judge again")

// writing is one transaction of the loop.
type writing struct {
	tx   Tx
	run  Run
	hold Hold
	now  time.Time // the engine's clock
	ch   Change
}

// step applies a command to what the transaction makes of the run.
func (w *writing) step(cmd Command) (err error) {
	w.ch, err = w.ch.Then(cmd, w.now)
	return err
}

// tell appends the events so far, where the stream has to have them before what a
// call writes.
func (w *writing) tell() error {
	es := w.ch.Events
	w.ch.Events = nil
	return w.tx.Append(w.run.Stream(), es...)
}

// writeTries is how often a write is tried again because the run's row moved
// under it without the run being lost: an event was appended, or a lease renewed.
const writeTries = 5

// write changes the run in one transaction, guarded by the fence. Where it was lost
// or ended by others the answer is [ErrLeaseLost] or errOver, and nothing is
// written; errAgain where only what fn compares has moved.
func (s *session) write(ctx context.Context, fn func(w *writing) error) error {
	for range writeTries {
		r := s.known()
		asked := time.Now()
		var next Run
		var ended *Step
		err := s.e.update(ctx, func(tx Tx) (err error) {
			next, ended = Run{}, nil
			if err := tx.LockRun(r); err != nil {
				return err
			}
			w := &writing{tx: tx, run: r, now: s.e.clock(tx), ch: Change{Next: r}, hold: Hold{
				Fence: r.Fence, Epoch: tx.Epoch(), At: tx.Now(), Until: tx.Now().Add(s.e.conf.LeaseTTL),
			}}
			if err := fn(w); err != nil {
				return err
			}
			if err := tx.PutRun(r, w.ch); err != nil {
				return err
			}
			ended = w.ch.Ended
			next, err = stored(tx, r.Version, w.ch)
			return err
		})
		if err == nil {
			s.adopt(next, ended, asked)
			return nil
		}
		if !errors.Is(err, decision.ErrMoved) {
			return err
		}
		moved, err := s.refresh(ctx)
		if err != nil {
			return err
		}
		if !moved {
			return errAgain
		}
	}
	return ErrRunState.Say("Run %s changed %d times in a row while it was written.", s.known().ID, writeTries).Hint("Try again.")
}

// adopt makes what was committed the run as this process knows it.
func (s *session) adopt(next Run, ended *Step, asked time.Time) {
	s.mu.Lock()
	if next.Current.ID != s.run.Current.ID || next.Current.Status != s.run.Current.Status {
		s.held = nil
	}
	if ended != nil {
		s.last = ended
		if s.loaded {
			s.steps = append(s.steps, *ended)
		}
	}
	if next.Version > s.run.Version { // a meter that outlived its step may have been faster
		s.run = next
	}
	s.mu.Unlock()
	s.keeper.extend(asked)
}

// refresh reads the run again after its row moved. moved is false where it did not.
func (s *session) refresh(ctx context.Context) (moved bool, err error) {
	r, err := s.e.read(context.WithoutCancel(ctx), s.known().ID)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	moved = r.Version != s.run.Version
	mine := r.Fence == s.run.Fence && r.Epoch == s.run.Epoch
	switch {
	case mine && r.Status == s.run.Status && r.Current.ID == s.run.Current.ID && r.Current.Status == s.run.Current.Status:
		s.run = r
		return moved, nil
	case r.Status.Terminal():
		s.run = r
		return moved, errOver
	}
	return moved, r.errLost()
}

// next ends a step's transaction: the following step is claimed in it, or the lease
// given back where this process is to stop.
func (s *session) next(ctx context.Context, w *writing) error {
	switch {
	case w.hold.At.After(w.run.LeaseUntil):
		return nil // it has ended: this process claims nothing more
	case s.leaving(ctx):
		return w.step(Release{w.hold})
	}
	return w.step(Advance{w.hold, s.e.conf.NewID(id.Step)})
}

// leaving reports whether this process is to stop working on the run.
func (s *session) leaving(ctx context.Context) bool {
	return s.closing || !s.e.gate && ctx.Err() != nil || s.life.Err() != nil || s.e.isStopping()
}

// site is where the present step's call hangs.
func (s *session) site() call.Site { return s.known().site() }

func (r Run) site() call.Site {
	return call.Site{
		RunID: r.ID, StepID: r.Current.ID, Approvals: r.ApprovalN, Principal: r.Principal, Metadata: r.Metadata,
		Space: r.Space, ApprovalID: r.Current.ApprovalID, Tool: r.Current.Tool, ArgsDigest: r.Current.ArgsDigest,
		Goal: r.Goal, Index: int(r.Current.Index), ApprovalTTL: r.Limits.ApprovalTTL, GrantTTL: r.Limits.GrantTTL,
	}
}

// load reads what came before the present step, once.
func (s *session) load(ctx context.Context) error {
	r := s.known()
	if s.loaded {
		return nil
	}
	var steps []Step
	var approvals []decision.Decision
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
		if steps, err = allSteps(tx, r.ID); err != nil {
			return err
		}
		approvals, err = allApprovals(tx, r)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range steps {
		if st.ID != r.Current.ID {
			s.steps = append(s.steps, st)
		}
	}
	s.approvals, s.loaded = approvals, true
	return nil
}

func allSteps(tx Tx, runID string) ([]Step, error) {
	const page = 1000
	var all []Step
	for after := int64(0); ; {
		steps, err := tx.Steps(runID, after, page)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
		if len(steps) < page {
			return all, nil
		}
		after = steps[len(steps)-1].Index
	}
}

// allApprovals lists the run's approvals, oldest first.
func allApprovals(tx Tx, r Run) ([]decision.Decision, error) {
	const page = 500
	var all []decision.Decision
	for q := (decision.Query{Space: r.Space, Type: decision.Approval, Owner: r.Ref(), Limit: page}); r.ApprovalN > 0; {
		ds, err := tx.Decisions(q)
		if err != nil {
			return nil, err
		}
		all = append(all, ds...)
		if len(ds) < page {
			break
		}
		q.After = ds[len(ds)-1].ID
	}
	slices.Reverse(all)
	return all, nil
}

// input is what the agent sees: its own copy of everything.
func (s *session) input() StepInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := StepInput{Run: s.run.Clone(), Steps: slices.Clone(s.steps)}
	for _, d := range s.approvals {
		in.Approvals = append(in.Approvals, d.Clone())
	}
	for _, t := range s.e.conf.Tools.List() {
		in.Tools = append(in.Tools, specOf(&t))
	}
	return in
}

func specOf(t *tool.Tool) tool.Spec {
	spec := t.Spec
	spec.InputSchema = slices.Clone(spec.InputSchema)
	return spec
}
