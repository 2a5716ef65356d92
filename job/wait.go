package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Limits of a wait (spec 3.3).
const (
	DefaultWait = time.Hour
	MaxWait     = 24 * time.Hour
)

// Result says how a wait ended.
type Result string

// The results (spec 3.5).
const (
	GotEvent    Result = "event"
	GotProgress Result = "progress"
	GotEnd      Result = "ended" // the job has ended and nothing matched
	GotTimeout  Result = "timeout"
	GotShutdown Result = "shutdown" // the process that waits is going down
)

// ErrShutdown as the cause of a context makes its waits end as shutdown.
var ErrShutdown = fault.Sentinel(fault.Unavailable, "shutdown", "The process is going down.")

// Waiting says what to wait for. Types or DecisionID is required.
type Waiting struct {
	JobID string
	// Types are lifecycle types, and output:NAME for a printed event that names NAME.
	Types      []string
	DecisionID string        // its answer, withdrawal or expiry
	After      event.Cursor  // empty: from the job's first event
	Timeout    time.Duration // Default: 1 h; at most 24 h.
	Progress   bool          // return also at printed progress
}

// Waited is how a wait ended, and where to go on from.
type Waited struct {
	Result Result
	Event  event.Event // of GotEvent and GotProgress
	Cursor event.Cursor
}

// ends are the types of the event that ends a job.
var ends = []event.Type{event.JobCompleted, event.JobFailed, event.JobTimeout, event.JobCancelled, event.JobOrphaned}

// Lifecycle lists the types of a job's events that are not printed.
func Lifecycle() []event.Type { return event.JobTypes() }

// CheckTypes refuses words that no event of a job has: [ErrUsage]. Wake targets use
// the same words.
func CheckTypes(types []string) error {
	for _, t := range types {
		if _, ok := event.OutputName(t); ok {
			continue
		}
		if !slices.Contains(event.JobTypes(), event.Type(t)) {
			return ErrUsage.Say("No event of a job is of type %q.", t).Hint("Write a lifecycle type, or output:NAME for what a job prints.")
		}
	}
	return nil
}

// Wait returns the first event of the job after the cursor that matches; one that is
// stored already at once. A job that has ended and has none is GotEnd. A context that
// ends is its error, unless its cause is [ErrShutdown]. Errors: [ErrUsage],
// [ErrNotFound], event.ErrCursor.
//
// Something has to take in what jobs leave meanwhile: [Supervisor.Loop], or use
// [Supervisor.Wait].
func Wait(ctx context.Context, s txn.Store, space string, w Waiting) (Waited, error) {
	got, err := WaitApart(ctx, s, space, w)
	return *got, err
}

// WaitApart is [Wait] with an answer that does not lie on the stack of whoever waits:
// where thousands do, stacks are what they cost. The answer is never nil.
func WaitApart(ctx context.Context, s txn.Store, space string, w Waiting) (*Waited, error) {
	a := event.NewAnswer[Waited]()
	a.Got.Cursor = w.After
	stop, err := Await(ctx, s, space, w, a.Take)
	if err != nil {
		return &a.Got, a.Got.without(ctx, err)
	}
	if at, gone := a.Listen(ctx, stop); gone {
		a.Got.Cursor = at
		return &a.Got, a.Got.without(ctx, context.Cause(ctx))
	}
	if a.Err != nil {
		return &a.Got, a.Got.without(ctx, a.Err)
	}
	return &a.Got, nil
}

// without says why there is no answer: a shutdown is one.
func (got *Waited) without(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrShutdown) {
		got.Result = GotShutdown
		return nil
	}
	return err
}

// Await is [Wait] for many: nothing runs for it while it waits, and done is called
// once, here or later. done is quick and does not wait. stop ends the wait without an
// answer and says from where to go on; stopped is false where it was answered.
func Await(ctx context.Context, s txn.Store, space string, w Waiting, done func(Waited, error)) (stop func() (at event.Cursor, stopped bool), err error) {
	m, err := w.matcher()
	if err != nil {
		return nil, err
	}
	over, err := m.ended(ctx, s, space, &w)
	if err != nil {
		return nil, err
	}
	if over {
		done(Waited{Result: GotEnd, Cursor: w.After}, nil)
		return func() (event.Cursor, bool) { return "", false }, nil
	}
	stop, err = event.Await(ctx, s, m.of(w), func(got event.Waited, err error) { done(m.answer(got, err)) })
	return stop, m.inWords(err)
}

// inWords says in a job's words that its stream is gone: it was cleaned up meanwhile.
func (m *matcher) inWords(err error) error {
	if errors.Is(err, event.ErrNoStream) {
		return ErrNotFound.Say("There is no job %s.", m.jobID)
	}
	return err
}

func (m *matcher) of(w Waiting) event.Waiting {
	return event.Waiting{Stream: RefOf(w.JobID).Stream(), After: w.After, Match: m.stops, Timeout: w.Timeout}
}

func (m *matcher) answer(got event.Waited, err error) (Waited, error) {
	switch {
	case err != nil:
		return Waited{Cursor: got.Cursor}, m.inWords(err)
	case got.Outcome == event.TimedOut:
		return Waited{Result: GotTimeout, Cursor: got.Cursor}, nil
	}
	return m.result(got.Event, got.Cursor), nil
}

// matcher is a wait that has been checked.
type matcher struct {
	jobID      string
	types      []event.Type
	names      []string // of printed events
	decisionID string
	progress   bool
}

func (w *Waiting) matcher() (*matcher, error) {
	if w.Timeout == 0 {
		w.Timeout = DefaultWait
	}
	switch {
	case w.Types != nil && len(w.Types) == 0:
		return nil, ErrUsage.Say("The list of types is empty.").Hint("Name a type, or leave it out and name a decision.")
	case w.Types == nil && w.DecisionID == "":
		return nil, ErrUsage.Say("There is nothing to wait for.").Hint("Name types or a decision.")
	case w.Timeout < 0 || w.Timeout > MaxWait:
		return nil, ErrUsage.Say("The wait is %s; it is at most %s.", w.Timeout, MaxWait)
	}
	if err := CheckTypes(w.Types); err != nil {
		return nil, err
	}
	m := &matcher{jobID: w.JobID, decisionID: w.DecisionID, progress: w.Progress}
	for _, t := range w.Types {
		if name, ok := event.OutputName(t); ok {
			m.names = append(m.names, name)
		} else {
			m.types = append(m.types, event.Type(t))
		}
	}
	return m, nil
}

// stops reports whether the wait ends with e.
func (m *matcher) stops(e event.Event) bool {
	return m.wants(e) || m.shows(e) || Status(e.Type).Terminal()
}

// wants reports whether e is what is waited for. What a job prints is compared with
// output:NAME alone, whatever it names.
func (m *matcher) wants(e event.Event) bool {
	if e.Type == event.JobOutput {
		if len(m.names) == 0 {
			return false
		}
		name, ok := e.Printed()
		return ok && slices.Contains(m.names, name)
	}
	if m.decisionID != "" && e.Subject == m.decisionID {
		switch e.Type {
		case event.DecisionResolved, event.DecisionWithdrawn, event.DecisionExpired:
			return true
		}
	}
	return slices.Contains(m.types, e.Type)
}

func (m *matcher) shows(e event.Event) bool {
	if !m.progress {
		return false
	}
	name, ok := e.Printed()
	return ok && name == progressType
}

func (m *matcher) result(e event.Event, at event.Cursor) Waited {
	switch {
	case m.wants(e):
		return Waited{Result: GotEvent, Event: e, Cursor: at}
	case m.shows(e):
		return Waited{Result: GotProgress, Event: e, Cursor: at}
	}
	return Waited{Result: GotEnd, Cursor: at}
}

// ended reports whether the cursor stands behind the job's end: nothing more will come.
func (m *matcher) ended(ctx context.Context, s txn.Store, space string, w *Waiting) (over bool, err error) {
	err = txn.View(ctx, s, func(tx Tx) error {
		j, err := tx.Job(w.JobID)
		if err == nil && j.Space != space {
			err = ErrNotFound.Say("There is no job %s.", w.JobID)
		}
		if err != nil {
			return err
		}
		if m.decisionID != "" {
			d, err := tx.Decision(m.decisionID)
			if errors.Is(err, ErrNotFound) || err == nil && d.Owner != j.Ref() {
				err = ErrNotFound.Say("Job %s has no question %s.", j.ID, m.decisionID)
			}
			if err != nil {
				return err
			}
		}
		if !j.Status.Terminal() || w.After == "" {
			return nil
		}
		over, err = isBehindEnd(tx, j, w.After)
		return err
	})
	return over, err
}

// isBehindEnd reports whether no end of the job's life comes after the cursor. The event
// of the end need not be the stream's last: a body may be emptied later.
func isBehindEnd(tx Tx, j Job, at event.Cursor) (bool, error) {
	n, err := event.Place(tx, j.Stream(), at)
	if err != nil {
		return false, err
	}
	es, err := tx.Events(event.Query{Stream: j.Stream(), After: n, Types: ends, Limit: 1})
	return len(es) == 0, err
}

// Wait is [Wait] for a process without a loop: it takes in what the job's runner
// leaves as long as it waits.
func (s *Supervisor) Wait(ctx context.Context, w Waiting) (Waited, error) {
	if s.misuse != nil {
		return Waited{}, s.misuse
	}
	s.mu.Lock()
	looping := s.looping
	s.mu.Unlock()
	if looping {
		return Wait(ctx, s.conf.Store, s.conf.Space, w)
	}
	if _, err := s.Get(ctx, w.JobID); err != nil {
		return Waited{}, err
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.awaitEnd(watching, w.JobID) // errors: the wait itself meets them
	}()
	defer func() {
		stop()
		<-done
	}()
	return Wait(ctx, s.conf.Store, s.conf.Space, w)
}
