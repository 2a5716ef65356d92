package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
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
	store  *store.Store
	tools  *tool.Registry
	exec   *call.Executor
	door   call.Server
	runs   *run.Driver
	agents map[string]run.Agent
	log    *slog.Logger
	slots  chan struct{} // how much is at work at once

	mu       sync.Mutex
	stopping bool
	busy     map[string]bool
	refused  map[string]int // how often in a row, by id
	working  sync.WaitGroup
}

const (
	atWork     = 256
	firstWait  = 5 * time.Second
	longestTry = 10 * time.Minute
	pageOfWork = 100
)

func newContinuer(st *store.Store, tools *tool.Registry, exec *call.Executor, door call.Server, runs *run.Driver, agents map[string]run.Agent, log *slog.Logger) *continuer {
	return &continuer{
		store: st, tools: tools, exec: exec, door: door, runs: runs, agents: agents, log: log,
		slots: make(chan struct{}, atWork), busy: map[string]bool{}, refused: map[string]int{},
	}
}

// pass begins whatever can be gone on with.
func (k *continuer) pass(ctx context.Context) error {
	return errors.Join(k.passCalls(ctx), k.passRuns(ctx))
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
			if k.tryRun(r) != nil {
				continue // another daemon may have the agent
			}
		}
		if err != nil || len(rs) < pageOfWork {
			return err
		}
	}
}

// tryCall begins to go on with a call, if this daemon has its tool as it was approved.
func (k *continuer) tryCall(c call.Call) {
	t, err := k.tools.Lookup(c.Tool)
	if err != nil || t.SpecDigest() != c.SpecDigest {
		return
	}
	k.begin(c.ID, func() {
		res, err := k.door.Continue(context.Background(), c.ID, mayAsk)
		if why := refusal(c, res, err); why != "" {
			k.postpone(c.ID, func(ctx context.Context, wait time.Duration) error { return k.exec.Postpone(ctx, c, why, wait) })
			return
		}
		k.forget(c.ID)
	})
}

// errNoAgent: this daemon's configuration lacks the run's agent.
var errNoAgent = fault.Sentinel(fault.Conflict, "no_agent", "This daemon has no such agent.")

// tryRun begins to go on with a run, if this daemon has its agent.
func (k *continuer) tryRun(r run.Run) error {
	if _, ok := k.agents[r.Agent.Name]; !ok || r.Flow.Name != "" {
		return errNoAgent.Say("Run %s needs the agent %q, which is not in this daemon's configuration.", r.ID, r.Agent.Name)
	}
	k.begin(r.ID, func() {
		_, err := k.runs.Resume(context.Background(), r.ID)
		if why := failure(err); why != "" {
			k.postpone(r.ID, func(ctx context.Context, wait time.Duration) error { return k.runs.Postpone(ctx, r, why, wait) })
			return
		}
		k.forget(r.ID)
	})
	return nil
}

// begin does work in the background, unless it is at work on that id already or there
// is no room: the next pass finds it then.
func (k *continuer) begin(id string, work func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopping || k.busy[id] {
		return
	}
	select {
	case k.slots <- struct{}{}:
	default:
		return
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

// postpone notes a refusal, and tries again later and later.
func (k *continuer) postpone(id string, note func(ctx context.Context, wait time.Duration) error) {
	k.mu.Lock()
	n := k.refused[id]
	k.refused[id]++
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
func (k *continuer) follow(ctx context.Context, poke func()) {
	for ctx.Err() == nil {
		if err := k.followFrom(ctx, poke); ctx.Err() == nil {
			k.log.Error("decisions could not be followed; they are looked for every so often", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

func (k *continuer) followFrom(ctx context.Context, poke func()) error {
	after, err := end(ctx, k.store)
	if err != nil {
		return err
	}
	poke() // what came in between
	for {
		got, err := event.Wait(ctx, k.store, event.Waiting{After: after, Types: []event.Type{event.ApprovalDecided, event.RunCreated}})
		if err != nil {
			return err
		}
		after = got.Cursor
		poke()
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
