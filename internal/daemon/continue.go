package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// continuer carries out approved work that is a daemon's to carry out, as far as this
// one has the tool or the agent. It starts nothing itself: each start is guarded by
// its engine, so that nothing runs twice however often it is tried.
type continuer struct {
	store    *store.Store
	tools    *tool.Registry
	exec     *call.Executor
	door     call.Server
	runs     *run.Driver
	agents   map[string]run.Agent
	log      *slog.Logger
	slots    chan struct{} // how much is at work at once
	unserved *unserved

	mu       sync.Mutex
	stopping bool
	busy     map[string]bool
	refused  map[string]refusals // by id
	working  sync.WaitGroup
}

const (
	firstWait  = 5 * time.Second
	longestTry = 10 * time.Minute
	pageOfWork = 100
)

func newContinuer(d *daemon, agents map[string]run.Agent) *continuer {
	return &continuer{
		store: d.st, tools: d.c.Conf.Tools, exec: d.exec, door: d.exec.Server(httpapi.Origin), runs: d.runs, agents: agents, log: d.c.Log,
		slots: make(chan struct{}, d.c.atWork), unserved: newUnserved(d.c), busy: map[string]bool{}, refused: map[string]refusals{},
	}
}

// pass begins whatever can be gone on with.
func (k *continuer) pass(ctx context.Context) error {
	err := errors.Join(k.passCalls(ctx), k.passRuns(ctx))
	if err == nil {
		k.unserved.passed()
	}
	return err
}

func (k *continuer) passCalls(ctx context.Context) error {
	for after := ""; ; {
		var cs []call.Call
		err := txn.View(ctx, k.store, func(tx call.Tx) (err error) {
			cs, err = tx.Continuable(event.MainSpace, tx.Now(), after, pageOfWork)
			return err
		})
		for _, c := range cs {
			after = c.ID
			k.tryCall(c)
		}
		if err != nil || len(cs) < pageOfWork {
			return err
		}
	}
}

func (k *continuer) passRuns(ctx context.Context) error {
	for after := ""; ; {
		var rs []run.Run
		err := txn.View(ctx, k.store, func(tx run.Tx) (err error) {
			rs, err = tx.ContinuableRuns(event.MainSpace, tx.Now(), after, pageOfWork)
			return err
		})
		for _, r := range rs {
			after = r.ID
			k.tryRun(r)
		}
		if err != nil || len(rs) < pageOfWork {
			return err
		}
	}
}

// tryCall begins to go on with a call, if this daemon has its tool as it was approved.
// Another one may have it otherwise.
func (k *continuer) tryCall(c call.Call) {
	if why, hint := c.Unserved(k.tools); why != "" {
		k.unserved.note(c.ID, why, hint)
		return
	}
	_ = k.begin(c.ID, func() { // what has no room now is found by the next pass
		res, err := k.door.Continue(context.Background(), c.ID, mayAsk)
		if why := refusal(c, res, err); why != "" {
			k.postpone(c.ID, func(ctx context.Context, wait time.Duration) error { return k.exec.Postpone(ctx, c, why, wait) })
			return
		}
		k.forget(c.ID)
	})
}

// Errors of going on with a run here.
var (
	errNoAgent = fault.Sentinel(fault.Conflict, "no_agent", "This daemon has no such agent.")
	errNoTool  = fault.Sentinel(fault.Conflict, "no_tool", "This daemon has no such tool.")
	errFlow    = fault.Sentinel(fault.Conflict, "flow_run", "A daemon does not go on with flows.")
	errBusy    = fault.Sentinel(fault.Conflict, "at_work", "This daemon is at work on it already.")
	errFull    = fault.Sentinel(fault.Unavailable, "no_slot", "This daemon is at work on as much as it takes on at once.")
)

// able says what this daemon lacks to go on with a run; nil: nothing.
func (k *continuer) able(r run.Run) error {
	s := r.Current
	switch {
	case r.Flow.Name != "":
		return errFlow.Say("Run %s is one of the flow %s, which only its own program knows.", r.ID, r.Flow.Name).Hint("That program goes on with it: flow.Runner.Resume.")
	case r.Agent.Name == "":
		return errNoAgent.Say("Run %s was started by an agent that is not named in a configuration.", r.ID).Hint("Go on with it where it was started: placet run resume %s.", r.ID)
	case k.agents[r.Agent.Name] == nil:
		return errNoAgent.Say("Run %s needs the agent %q, which is not in this daemon's configuration.", r.ID, r.Agent.Name).Hint("Add it there and start the daemon again.")
	case s.CallID == "" || s.Status != run.AwaitingApproval && s.Status != run.Executing && s.Status != run.Interrupted:
		return nil
	}
	if _, err := k.tools.Lookup(s.Tool); err != nil {
		return errNoTool.Say("Run %s stands at a call of tool %q, which is not in this daemon's configuration.", r.ID, s.Tool).Hint("Add it there and start the daemon again.")
	}
	return nil
}

// tryRun begins to go on with a run, if this daemon has what it needs.
func (k *continuer) tryRun(r run.Run) {
	if err := k.able(r); err != nil {
		f := fault.From(err)
		k.unserved.note(r.ID, f.Message, f.Advice)
		return
	}
	_ = k.begin(r.ID, func() { _ = k.goOn(r, func() {}) }) // it notes what keeps it
}

// resumeRun goes on with a run on somebody's word. It returns once the run's lease is
// taken; an error means that nothing goes on.
func (k *continuer) resumeRun(ctx context.Context, r run.Run) error {
	if err := k.able(r); err != nil {
		return err
	}
	began := make(chan error, 2)
	err := k.begin(r.ID, func() { began <- k.goOn(r, func() { began <- nil }) })
	if err != nil {
		return err
	}
	select {
	case err := <-began:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// goOn works on a run until it waits or ends. A refusal is noted where this daemon
// tries again; a run that is its caller's is tried only on somebody's word.
func (k *continuer) goOn(r run.Run, begun func()) error {
	_, err := k.runs.ResumeThen(context.Background(), r.ID, begun)
	why := failure(err)
	switch {
	case why == "":
		k.forget(r.ID)
	case r.ContinueBy == call.ByDaemon:
		k.postpone(r.ID, func(ctx context.Context, wait time.Duration) error { return k.runs.Postpone(ctx, r, why, wait) })
	default:
		k.log.Warn("a run could not be gone on with; it is its caller's to go on with", "run", r.ID, "error", err)
	}
	return err
}

// begin does work in the background. An error says that it does not: the daemon stops,
// is at work on that id already, or has no room.
func (k *continuer) begin(id string, work func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stopping:
		return httpapi.ErrShutdown
	case k.busy[id]:
		return errBusy.Say("This daemon is at work on %s already.", id)
	}
	select {
	case k.slots <- struct{}{}:
	default:
		return errFull.Hint("Try again later; it goes on with approved work by itself.")
	}
	k.busy[id] = true
	k.working.Add(1)
	go func() {
		defer k.working.Done()
		defer func() {
			<-k.slots
			k.mu.Lock()
			delete(k.busy, id)
			k.mu.Unlock()
		}()
		work()
	}()
	return nil
}

// mayAsk authorises the call's principal again, now that it is about to run.
func mayAsk(tx txn.Tx, c call.Call) (bool, error) {
	return token.MayAsk(tx.(token.Tx), c.Space, c.Principal)
}

// refusal is why going on with a call came to nothing; empty: it ran, waits for a
// person again, or somebody else was faster.
func refusal(before call.Call, res call.Result, err error) string {
	var parked *call.PendingError
	switch {
	case errors.As(err, &parked):
		return ""
	case err != nil:
		return failure(err)
	case res.Status == call.Pending, res.Status == call.Unknown && res.ApprovalID == before.ApprovalID && before.Status == call.Unknown:
		return string(res.Kind) + ": " + res.Message
	}
	return ""
}

func failure(err error) string {
	switch {
	case err == nil, errors.Is(err, call.ErrRunState), errors.Is(err, decision.ErrNotPending), errors.Is(err, call.ErrRunning), errors.Is(err, run.ErrStopped):
		return ""
	}
	return fault.From(err).Message
}

// refusals are how often something was refused in a row.
type refusals struct {
	n    int
	last time.Time
}

// postpone notes a refusal, and tries again later and later. What has not been tried for
// long has ended in another way.
func (k *continuer) postpone(id string, note func(ctx context.Context, wait time.Duration) error) {
	k.mu.Lock()
	n, now := k.refused[id].n, time.Now()
	maps.DeleteFunc(k.refused, func(_ string, r refusals) bool { return now.Sub(r.last) > 2*longestTry })
	k.refused[id] = refusals{n + 1, now}
	k.mu.Unlock()
	wait := min(firstWait<<min(n, 10), longestTry)
	if err := note(context.Background(), wait); err != nil {
		k.log.Error("a refusal could not be noted", "id", id, "error", err)
	}
}

func (k *continuer) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.refused, id)
}

// follow pokes the loop at each decision, also of other processes.
func (k *continuer) follow(ctx context.Context, p *pulse, poke func()) {
	for ctx.Err() == nil {
		err := k.followFrom(ctx, p, poke)
		if errors.Is(err, event.ErrCursor) {
			continue // the last event was cleaned up with its job: what came since is looked for at once
		}
		if ctx.Err() == nil {
			k.log.Error("decisions could not be followed; they are looked for every so often", "error", err)
			p.beat()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

func (k *continuer) followFrom(ctx context.Context, p *pulse, poke func()) error {
	after, err := end(ctx, k.store)
	if err != nil {
		return err
	}
	poke() // what came in between
	for {
		p.beat()
		got, err := event.Wait(ctx, k.store, event.Waiting{After: after, Types: []event.Type{event.ApprovalDecided, event.RunCreated}, Timeout: p.every})
		if err != nil {
			return err
		}
		if after = got.Cursor; got.Outcome == event.Matched {
			poke()
		}
	}
}

// end is the place behind the last event of all streams.
func end(ctx context.Context, st *store.Store) (at event.Cursor, err error) {
	err = txn.View(ctx, st, func(tx event.Tx) error {
		at = ""
		last, err := tx.LastPos()
		if err != nil || last == 0 {
			return err
		}
		es, err := tx.Events(event.Query{After: last - 1, Limit: 1})
		if err == nil && len(es) == 1 {
			at = event.PosCursorOf(es[0])
		}
		return err
	})
	return at, err
}

// stop lets nothing new begin, and waits for what is at work until ctx ends.
func (k *continuer) stop(ctx context.Context) error {
	k.mu.Lock()
	k.stopping = true
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		k.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
