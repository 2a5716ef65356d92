package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
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

// relearn is adopt where it is not known what was written: what came before is read again.
func (s *session) relearn(r Run) {
	s.mu.Lock()
	s.steps, s.approvals, s.loaded = nil, nil, false
	s.mu.Unlock()
	s.adopt(r, nil, time.Time{})
}
