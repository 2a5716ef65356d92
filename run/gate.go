package run

import (
	"context"
	"errors"
	"sync"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Gate is for a loop that belongs to others: a framework keeps its own, and has each
// action that it proposes recorded, validated, judged, parked and carried out here.
// Runs, steps, calls and events are those of a [Driver]; a run that was begun by one
// can be gone on with by the other. A gate is safe for concurrent use.
//
//	Begin or Attach ──▶ Session ── Step ──▶ OpenStep ── Propose ──▶ Verdict
//	                       ▲                               │ allowed
//	                       │      Execute, or Reserve and Confirm
//	                       └───────────────┘
type Gate struct{ *engine }

// NewGate makes a gate. It needs no Agent. A configuration that cannot work makes
// Begin and Attach refuse with the error of [Config.Validate].
func NewGate(c Config) *Gate {
	e := newEngine(c)
	e.gate = true
	return &Gate{e}
}

// reaching is the engine with another reach of its sessions.
func (e *engine) reaching(r reach) *engine {
	other := *e
	other.reach = r
	return &other
}

// Begin makes a run and claims its first step. The session holds the run's lease,
// renewed in the background, until the run waits for a person or ends, the lease is
// lost, or the session is closed.
func (g *Gate) Begin(ctx context.Context, goal string, limits Limits, opts ...Option) (*Session, error) {
	return g.BeginWithID(ctx, g.conf.NewID(id.Run), goal, limits, opts...)
}

// BeginWithID is Begin for a run whose id the caller chose, as in [Driver.StartWithID].
func (g *Gate) BeginWithID(ctx context.Context, runID, goal string, limits Limits, opts ...Option) (*Session, error) {
	if g.misuse != nil {
		return nil, g.misuse
	}
	if ofFlow(opts) {
		return nil, ErrUsage.Say("A gate carries out no flows.").Hint("Start it with flow.Runner.")
	}
	s, err := g.reaching(holds).begin(ctx, runID, goal, limits, opts)
	if err != nil {
		return nil, err
	}
	return g.session(s, false), nil
}

func ofFlow(opts []Option) bool {
	var r Run
	for _, f := range opts {
		f(&r)
	}
	return r.Flow != FlowRef{}
}

// Attach goes on with a run in whatever process: with a waiting one whose approval
// was given, with one whose process was lost, and with one whose lease was given back.
// It does what [Driver.Resume] does, up to the start of a tool, with the same errors.
//
// Of a waiting run nothing is written and no lease taken while its grant is good: it
// goes on waiting, its approved step stands ready for Execute or Reserve, and the start
// judges all of it again and spends the grant. Of two sessions that attach to one
// grant one starts, and the other is told [ErrRunState].
// Where there is nothing to go on with, since the yes has grown too old or a person
// has to be asked anew, the session has no open step, and Run says how the run stands.
func (g *Gate) Attach(ctx context.Context, runID string) (*Session, error) {
	switch {
	case g.misuse != nil:
		return nil, g.misuse
	case g.isStopping():
		return nil, ErrStopped
	}
	r, err := g.read(ctx, runID)
	if err != nil {
		return nil, err
	}
	if err := r.sameFlow(FlowRef{}); err != nil {
		return nil, err
	}
	e := g.reaching(holds)
	s, r, err := e.reopen(ctx, r)
	ready := errors.Is(err, errReady)
	switch {
	case err != nil && !ready:
		return nil, err
	case s == nil:
		s = watching(ctx, e, r)
	}
	return g.session(s, ready), nil
}

// Stop makes every session of this gate give its lease back at the end of its
// present step; what is begun or attached later is [ErrStopped]. Stop returns at once.
func (g *Gate) Stop() { g.stop() }

// Wait waits until all sessions are closed and tools that outlived their time limit
// have ended, so that their late outcomes are recorded, or until ctx ends.
func (g *Gate) Wait(ctx context.Context) error { return g.calls.Wait(ctx) }

// Session is a caller's hold on a run. Its methods, and those of its steps, may be
// called from several goroutines, but a run does one thing at a time: what is called
// while another call is at work is refused with [ErrRunState], and changes nothing.
type Session struct {
	g    *Gate
	done func() // to be called when it is closed

	op     sync.Mutex // held by the one call that is at work
	closed bool
	stale  bool // it is not known whether the last write was committed
	step   *OpenStep

	mu sync.Mutex // guards s: Run may be asked at any time
	s  *session   // without a lease where the run waits or has ended
	// ready: the run waits, and its grant can be spent.
	ready bool
}

func (g *Gate) session(s *session, ready bool) *Session {
	return &Session{g: g, s: s, ready: ready, done: g.calls.Hold()}
}

// Run is the run as this session knows it.
func (s *Session) Run() Run { return s.held().known().Clone() }

func (s *Session) held() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

// replace puts another hold on the run in the place of the one so far.
func (s *Session) replace(next *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s != next {
		s.s.close()
	}
	s.s, s.ready = next, false
}

var (
	errClosed = ErrUsage.Say("This session is closed.").Hint("Go on with the run: Gate.Attach.")
	errBusy   = ErrRunState.Say("Another call of this session is at work.").Hint("Make one at a time; for two runs at once begin two sessions.")
)

// enter makes its caller the one that is at work, until leave is called.
func (s *Session) enter(ctx context.Context) (leave func(), err error) {
	if !s.op.TryLock() {
		return nil, errBusy
	}
	if s.closed {
		err = errClosed
	} else {
		err = s.learn(ctx)
	}
	if err != nil {
		s.op.Unlock()
		return nil, err
	}
	return s.op.Unlock, nil
}

// learn reads the run again where it is not known what was written last.
func (s *Session) learn(ctx context.Context) error {
	if !s.stale {
		return nil
	}
	was := s.s.known()
	r, err := s.g.read(ctx, was.ID)
	if err != nil {
		return err
	}
	s.stale = false
	lost := !r.Status.Terminal() && (r.Fence != was.Fence || r.Epoch != was.Epoch)
	if !lost || r.Status == Waiting {
		s.s.relearn(r)
	}
	if r.ApprovalID != was.ApprovalID { // another grant than the one that was attached to
		s.mu.Lock()
		s.ready = false
		s.mu.Unlock()
	}
	if lost || r.Current.Status == Executing && s.s.reserved == nil { // a start that nobody may act on
		s.s.abandon()
	}
	return nil
}

// Step is the step that is to be done next: the one that was claimed, or the one whose
// approval was given. Asked again before that step has ended, it is the same one.
// An error says why there is none: [ErrEnded], by a limit for example; [ErrRunState],
// the run waits for a person; [ErrLeaseLost]; [ErrStopped]. Run has the details.
func (s *Session) Step(ctx context.Context) (*OpenStep, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.idle(ctx); err != nil {
		return nil, err
	}
	if now := s.s.known().Current; s.step == nil || s.step.id != now.ID {
		o := &OpenStep{in: s, id: now.ID, index: now.Index}
		if s.ready || s.s.held != nil {
			if o.verdict, err = o.see(ctx); err != nil {
				return nil, err
			}
		}
		s.step = o
	}
	return s.step, nil
}

// idle is why the session has no step to do; nil: it has one.
func (s *Session) idle(ctx context.Context) error {
	switch r := s.s.known(); {
	case r.Status.Terminal():
		return ErrEnded.Say("Run %s is %s (%s).", r.ID, r.Status, r.Reason)
	case s.ready:
		return nil
	case r.Status == Waiting:
		return ErrRunState.Say("Run %s waits on approval %s.", r.ID, r.ApprovalID).
			Hint("Decide it first: placet approve %s. Then attach to the run again.", r.ApprovalID)
	case s.s.life.Err() != nil:
		return r.errLost()
	case !r.LeaseUntil.IsZero() && r.Current.Status == Interrupted:
		return nil // what became of it is still to be found out
	}
	return s.s.left(ctx)
}

// Close gives the run's lease back, so that any process may attach at once; a run
// that waits or has ended stays as it is. A step that was not carried out ends as
// interrupted. Of a reserved attempt that was not confirmed the outcome is unknown,
// and settled like any other; Confirm still records it, as late.
//
// Close waits for a call that is at work. After an error, and without Close, the
// lease ends by itself. Closing twice is fine.
func (s *Session) Close(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.done()
	defer s.s.close()
	if err := s.learn(ctx); err != nil {
		return err
	}
	if s.s.life.Err() != nil {
		return nil // there is nothing to give back
	}
	_, err := s.s.ended(s.giveUp(ctx))
	if errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// giveUp ends what is open of the step, and releases the lease.
func (s *Session) giveUp(ctx context.Context) error {
	s.s.closing = true
	if a := s.s.reserved; a != nil {
		if err := s.s.finish(ctx, a.c, a.st, a.c.OutcomeOf(nil, errUnreported)); err != nil {
			return err
		}
	}
	if r := s.s.known(); r.Status != Running || r.LeaseUntil.IsZero() {
		return nil
	}
	return s.s.giveBack(ctx)
}

// note keeps in mind what an error says of the session.
func (s *Session) note(err error) {
	switch {
	case errors.Is(err, ErrLeaseLost):
		s.s.abandon()
	case errors.Is(err, txn.ErrUnknown):
		s.stale = true
	}
}
