package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func runs(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":       runReadBack,
		"texts":           runTexts,
		"bytes":           runBytes,
		"not found":       runNotFound,
		"ids are unique":  runIDsUnique,
		"guards":          runGuards,
		"what is fixed":   runFixed,
		"steps":           runSteps,
		"step pages":      runStepPages,
		"filters":         runFilters,
		"pages":           runPages,
		"renewal":         runRenewal,
		"adrift":          runAdrift,
		"impossible rows": runImpossible,
		"head":            runHead,
		"stale head":      runStaleHead,
		"hosted calls":    runHostedCalls,
	})
}

// waitingRun is a run that waits, with its last step, and every field that one can have.
func waitingRun() run.Run {
	r := run.Run{
		ID: id.New(id.Run), Space: event.MainSpace, Goal: "tidy up", Limits: run.DefaultLimits(), Agent: run.AgentRef{Name: "tidy", Argv: []string{"a", ""}, Dir: "/srv"},
		Flow: run.FlowRef{Name: "f", Version: "2", Digest: "def"}, Principal: "agent:ana", Metadata: map[string]string{"ticket": "T-1"},
		ContinueBy: call.ByDaemon, NextTryAt: moment(1), Status: run.Waiting, StepCount: 1, Failures: 2, Repeats: 3, LastDigest: "last",
		Usage: run.Usage{ModelCalls: 4, Tokens: 5, Cost: 6}, Active: 7 * time.Microsecond, ApprovalID: id.New(id.Approval), ApprovalN: 1,
		Fence: 8, Epoch: 9, CreatedAt: moment(0), Version: 1,
	}
	r.Limits.MaxActiveTime, r.Limits.MaxEstimatedCost, r.Limits.GrantTTL = time.Hour, 1_500_000, time.Minute
	r.Current = run.Step{
		ID: id.New(id.Step), RunID: r.ID, Index: 1, Status: run.AwaitingApproval, Kind: run.CallTool, Tool: "refund", Args: ` {"amount": 1} `, ArgsDigest: "args",
		Said: "because", Raw: "\x00raw\xff", Node: "n", Ruling: run.Ruling{Outcome: "require_approval", Reason: "asks", Kind: "payment"},
		ApprovalID: r.ApprovalID, StartedAt: moment(2),
	}
	return r
}

// runExamples together set every field of a run.
func runExamples() []run.Run {
	waiting, working, ended, plain := waitingRun(), waitingRun(), waitingRun(), waitingRun()
	working.Status, working.LeaseUntil, working.LeaseOwner, working.ActiveSince = run.Running, moment(30), "host 1", moment(3)
	working.Current.Status, working.Current.ApprovalID = run.Deciding, ""
	ended.Status, ended.Reason, ended.Detail, ended.Result, ended.FinishedAt = run.Failed, run.GoalFailed, "no way", `{"r":1}`, moment(9)
	ended.Current.Status, ended.Current.Observation, ended.Current.Message, ended.Current.FinishedAt = run.StepFailed, run.ToolError, "no", moment(8)
	plain.Agent, plain.Flow, plain.Principal, plain.Metadata, plain.Limits = run.AgentRef{}, run.FlowRef{}, "", nil, run.DefaultLimits()
	plain.Status, plain.ApprovalID, plain.ApprovalN, plain.Current, plain.StepCount, plain.NextTryAt = run.Running, "", 0, run.Step{}, 0, time.Time{}
	plain.LeaseUntil, plain.Usage = moment(40), run.Usage{}
	return []run.Run{waiting, working, ended, plain}
}

func made(r run.Run) event.Event {
	return event.New(event.RunCreated, r.ID, "tester", map[string]string{"run_id": r.ID})
}

// insertRun writes a run and the event of its creation.
func (w *world) insertRun(r run.Run) run.Run {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.InsertRun(run.Change{Next: r, Events: []event.Event{made(r)}}) })
	return w.run(r.ID)
}

func (w *world) run(id string) run.Run {
	w.Helper()
	return read(w, func(tx store.Tx) (run.Run, error) { return tx.Run(id) })
}

// put writes next in place of prev.
func put(prev, next run.Run, es ...event.Event) func(tx store.Tx) error {
	return func(tx store.Tx) error { return tx.PutRun(prev, run.Change{Next: next, Events: es}) }
}

func runReadBack(w *world) {
	rs := runExamples()
	whole(w, append(rs, run.Run{Head: event.Head{Seq: 1}})...)
	var steps []run.Step
	for _, r := range rs {
		steps = append(steps, r.Current)
	}
	whole(w, append(steps, run.Step{CallID: "c", Result: "r"})...) // those of a call: hosted calls
	for _, r := range rs {
		got := w.insertRun(r)
		if got.Head.Stream != r.Stream() || got.Head.Seq != 1 || len(got.Head.Hash) != 32 {
			w.Errorf("the head is %s", got.Head)
		}
		w.same([]run.Run{got}, read(w, func(tx store.Tx) ([]run.Run, error) { return tx.Runs(run.Query{Space: r.Space, Prefix: r.ID}) }))
		got.Head = event.Head{}
		w.same(r, got)
	}
}

func runTexts(w *world) {
	for _, s := range hard {
		r := waitingRun()
		r.Goal, r.Detail, r.Principal, r.LeaseOwner, r.Metadata = s, s, s, s, map[string]string{s: s}
		r.Agent = run.AgentRef{Name: s, Argv: []string{s}, Dir: s}
		r.Flow = run.FlowRef{Name: s, Version: s, Digest: s}
		c := &r.Current
		c.Tool, c.Said, c.Node, c.Message, c.Ruling = s, s, s, s, run.Ruling{Outcome: "allow", Reason: s, Kind: s}
		got := w.insertRun(r)
		got.Head = event.Head{}
		w.same(r, got)
	}
}

func runBytes(w *world) {
	for name, b := range blobs() {
		r := waitingRun()
		r.Current.Args, r.Current.Raw = string(b), string(b)
		r.Result = string(b)
		if got := w.insertRun(r); got.Current.Args != string(b) || got.Current.Raw != string(b) || got.Result != string(b) {
			w.Errorf("%s came back as other bytes", name)
		}
	}
}

func runNotFound(w *world) {
	r := w.insertRun(waitingRun())
	for _, id := range []string{"run_none", "", r.ID + " ", r.ID[:len(r.ID)-1]} {
		w.refused(decision.ErrNotFound, func(tx store.Tx) error { _, err := tx.Run(id); return err })
	}
	if ss := read(w, func(tx store.Tx) ([]run.Step, error) { return tx.Steps("run_none", 0, 10) }); len(ss) != 0 {
		w.Errorf("steps of no run: %v", ss)
	}
}

func runIDsUnique(w *world) {
	r := w.insertRun(waitingRun())
	again := waitingRun()
	again.ID, again.Current.RunID, again.Goal = r.ID, r.ID, "another"
	w.refused(run.ErrRunState, func(tx store.Tx) error {
		return tx.InsertRun(run.Change{Next: again, Events: []event.Event{made(again)}})
	})
}

func runGuards(w *world) {
	r := w.insertRun(runExamples()[1])
	for name, stale := range map[string]func(*run.Run){
		"version":       func(r *run.Run) { r.Version-- },
		"later version": func(r *run.Run) { r.Version++ },
		"status":        func(r *run.Run) { r.Status = run.Waiting },
		"fence":         func(r *run.Run) { r.Fence-- },
		"later fence":   func(r *run.Run) { r.Fence++ },
		"step":          func(r *run.Run) { r.Current.Status = run.Executing },
	} {
		prev, next := r, r
		stale(&prev)
		next.Detail, next.Current.Message = "written by the loser", "the same"
		w.Log(name)
		w.refused(decision.ErrMoved, put(prev, next, event.New(event.RunResumed, r.ID, "tester", struct{}{})))
	}
	w.refused(nil, put(waitingRun(), waitingRun()))
	next := r
	next.Detail = "written"
	w.write(put(r, next))
	if got := w.run(r.ID); got.Detail != "written" || got.Version != r.Version+1 {
		w.Errorf("got %q in version %d", got.Detail, got.Version)
	}
	w.refused(decision.ErrMoved, put(r, next))
}

// runFixed: what a run is about never changes.
func runFixed(w *world) {
	r := w.insertRun(waitingRun())
	next := r
	next.Space, next.Goal, next.Limits, next.Agent, next.Flow = "other", "other", run.Limits{MaxSteps: 1}, run.AgentRef{}, run.FlowRef{}
	next.Principal, next.Metadata, next.ContinueBy, next.CreatedAt = "other", nil, call.ByCaller, moment(99)
	next.Detail = "changed"
	w.write(put(r, next))
	want := r
	want.Detail, want.Version = "changed", r.Version+1
	w.same(want, w.run(r.ID))
}

// runSteps: the last step goes with its run; a new one ends the one before.
func runSteps(w *world) {
	r := w.insertRun(runExamples()[3]) // no step yet
	step := func(n int64) run.Step {
		return run.Step{ID: id.New(id.Step), RunID: r.ID, Index: n, Status: run.Deciding, StartedAt: moment(n)}
	}
	next := r
	next.StepCount, next.Current = 1, step(1)
	w.write(put(r, next))
	first := w.run(r.ID)
	w.same(next.Current, first.Current)
	ended, next := first.Current, first
	ended.Status, ended.Observation, ended.FinishedAt = run.Done, run.ToolResult, moment(5)
	next.StepCount, next.Current = 2, step(2)
	w.write(func(tx store.Tx) error { return tx.PutRun(first, run.Change{Next: next, Ended: &ended}) })
	w.same([]run.Step{ended, next.Current}, read(w, func(tx store.Tx) ([]run.Step, error) { return tx.Steps(r.ID, 0, 0) }))
	for id, want := range map[string]string{ended.ID: ended.CallID, next.Current.ID: next.Current.CallID, "step_none": ""} {
		if got := read(w, func(tx store.Tx) (string, error) { return tx.StepCall(r.ID, id) }); got != want {
			w.Errorf("the call of step %s is %q, want %q", id, got, want)
		}
	}
	w.same(next.Current, w.run(r.ID).Current)
	// Another process's idea of what comes next is refused with all that it brings.
	again := first
	again.StepCount, again.Current = 2, step(2)
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutRun(first, run.Change{Next: again, Ended: &ended}) })
}

// longRun has n steps.
func (w *world) longRun(n int64) run.Run {
	w.Helper()
	r := w.insertRun(runExamples()[3])
	for i := int64(1); i <= n; i++ {
		next := r
		next.StepCount, next.Current = i, run.Step{ID: id.New(id.Step), RunID: r.ID, Index: i, Status: run.Interrupted, StartedAt: moment(i)}
		ch := run.Change{Next: next}
		if i > 1 {
			ch.Ended = &r.Current
		}
		w.write(func(tx store.Tx) error { return tx.PutRun(r, ch) })
		r = w.run(r.ID)
	}
	return r
}

func runStepPages(w *world) {
	r := w.longRun(25)
	w.longRun(3)
	var got []int64
	for after := int64(0); ; {
		page := read(w, func(tx store.Tx) ([]run.Step, error) { return tx.Steps(r.ID, after, 10) })
		if len(page) == 0 {
			break
		}
		if len(page) > 10 || len(got) > 25 {
			w.Fatalf("a page of %d steps behind %d", len(page), len(got))
		}
		for _, s := range page {
			got, after = append(got, s.Index), s.Index
		}
	}
	for i, n := range got {
		if n != int64(i+1) {
			w.Fatalf("the pages list %v", got)
		}
	}
	if len(got) != 25 {
		w.Errorf("the pages list %d steps", len(got))
	}
}

func (w *world) runIDs(q run.Query) (ids []string) {
	w.Helper()
	for _, r := range read(w, func(tx store.Tx) ([]run.Run, error) { return tx.Runs(q) }) {
		ids = append(ids, r.ID)
	}
	return ids
}

func runFilters(w *world) {
	var all []string
	byStatus := map[run.Status]string{}
	for _, r := range runExamples()[:3] {
		all = append([]string{w.insertRun(r).ID}, all...)
		byStatus[r.Status] = r.ID
	}
	elsewhere := waitingRun()
	elsewhere.Space = "other"
	w.insertRun(elsewhere)
	w.same(all, w.runIDs(run.Query{Space: event.MainSpace}))
	w.same([]string{elsewhere.ID}, w.runIDs(run.Query{Space: "other"}))
	w.same([]string(nil), w.runIDs(run.Query{Space: "none"}))
	for status, want := range byStatus {
		w.same([]string{want}, w.runIDs(run.Query{Space: event.MainSpace, Status: status}))
	}
	w.same([]string(nil), w.runIDs(run.Query{Space: event.MainSpace, Status: run.Cancelled}))
	w.same(all[:1], w.runIDs(run.Query{Space: event.MainSpace, Prefix: all[0]}))
	w.same([]string(nil), w.runIDs(run.Query{Space: event.MainSpace, Prefix: "run_%"}))
	w.same([]string(nil), w.runIDs(run.Query{Space: event.MainSpace, Prefix: elsewhere.ID}))
}

func runPages(w *world) {
	var want []string
	for range 25 {
		want = append([]string{w.insertRun(waitingRun()).ID}, want...)
	}
	var got []string
	for after := ""; ; {
		page := w.runIDs(run.Query{Space: event.MainSpace, After: after, Limit: 10})
		if len(page) == 0 {
			break
		}
		if len(got) > len(want) {
			w.Fatal("the pages do not end")
		}
		got, after = append(got, page...), page[len(page)-1]
		w.insertRun(waitingRun())
	}
	w.same(want, got)
}

// runRenewal: a lease is extended by who holds it while it lasts, and by nobody else.
func runRenewal(w *world) {
	r := runExamples()[1]
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	r.LeaseUntil = now.Add(time.Hour)
	r = w.insertRun(r)
	renew := func(fence int64, until time.Time) (held bool) {
		w.write(func(tx store.Tx) (err error) { held, err = tx.RenewRun(r.ID, fence, until); return err })
		return held
	}
	until := now.Add(2 * time.Hour)
	if !renew(r.Fence, until) {
		w.Error("it was not renewed")
	}
	if got := w.run(r.ID); !got.LeaseUntil.Equal(until) || got.Version != r.Version {
		w.Errorf("until %s in version %d, want %s in %d", got.LeaseUntil, got.Version, until, r.Version)
	}
	next := r // read before the renewal, which is no other writer
	next.Detail = "written"
	w.write(put(r, next))
	if renew(r.Fence-1, until) || renew(r.Fence+1, until) {
		w.Error("another fence renewed it")
	}
	r = w.run(r.ID)
	next = r
	next.LeaseUntil = now.Add(-time.Hour)
	w.write(put(r, next))
	if renew(r.Fence, until) {
		w.Error("a lease that had ended came back")
	}
	r = w.run(r.ID)
	next = r
	next.LeaseUntil, next.LeaseOwner = time.Time{}, ""
	w.write(put(r, next))
	if renew(r.Fence, until) {
		w.Error("a lease that was given back came back")
	}
	waiting := w.insertRun(waitingRun())
	r = waiting
	if renew(waiting.Fence, until) {
		w.Error("a waiting run has a lease")
	}
}

// runAdrift lists what nobody works on any more.
func runAdrift(w *world) {
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	epoch := read(w, func(tx store.Tx) (int64, error) { return tx.Epoch(), nil })
	in := func(change func(*run.Run)) string {
		r := runExamples()[1]
		r.Epoch, r.LeaseUntil = epoch, now.Add(time.Hour)
		change(&r)
		return w.insertRun(r).ID
	}
	in(func(*run.Run) {})
	lost := in(func(r *run.Run) { r.LeaseUntil = now.Add(-time.Hour) })
	given := in(func(r *run.Run) { r.LeaseUntil = time.Time{} })
	older := in(func(r *run.Run) { r.Epoch = epoch - 1 })
	in(func(r *run.Run) { r.Space, r.LeaseUntil = "other", time.Time{} })
	w.insertRun(runExamples()[0])
	w.insertRun(runExamples()[2])
	want := []string{lost, given, older}
	slices.Sort(want)
	var got []string
	for after := ""; ; {
		page := read(w, func(tx store.Tx) ([]run.Run, error) { return tx.Adrift(event.MainSpace, now, after, 2) })
		if len(page) == 0 {
			break
		}
		if len(page) > 2 {
			w.Fatalf("a page of %d", len(page))
		}
		for _, r := range page {
			got, after = append(got, r.ID), r.ID
		}
	}
	w.same(want, got)
}

func runImpossible(w *world) {
	for name, spoil := range map[string]func(*run.Run){
		"unknown status":         func(r *run.Run) { r.Status = "DONE" },
		"ended without an end":   func(r *run.Run) { r.Status, r.Reason = run.Failed, run.GoalFailed },
		"ended without a reason": func(r *run.Run) { r.Status, r.FinishedAt = run.Failed, moment(1) },
		"waiting for nothing":    func(r *run.Run) { r.ApprovalID = "" },
		"waiting and leased":     func(r *run.Run) { r.LeaseUntil = moment(1) },
		"no fence":               func(r *run.Run) { r.Fence = 0 },
		"continued by anybody":   func(r *run.Run) { r.ContinueBy = "anybody" },
		"unknown step status":    func(r *run.Run) { r.Current.Status = "thinking" },
		"step of no number":      func(r *run.Run) { r.Current.Index = 0 },
		"step done without end":  func(r *run.Run) { r.Current.Status, r.Current.FinishedAt = run.Done, time.Time{} },
		"awaits nothing":         func(r *run.Run) { r.Current.ApprovalID = "" },
		"a call that is not":     func(r *run.Run) { r.Current.CallID = "call_none" },
	} {
		r := waitingRun()
		spoil(&r)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertRun(run.Change{Next: r, Events: []event.Event{made(r)}}) })
	}
}

// runHead: a run's row has its stream's head, whoever appends.
func runHead(w *world) {
	r := w.insertRun(waitingRun())
	w.write(func(tx store.Tx) error {
		return tx.Append(r.Stream(), event.New(event.ResumeRefused, r.ID, "tester", struct{}{}))
	})
	got := w.run(r.ID)
	if got.Head.Seq != 2 || got.Version == r.Version {
		w.Errorf("head %d, version %d after an event", got.Head.Seq, got.Version)
	}
	w.refused(decision.ErrMoved, put(r, r)) // read before that event
	w.write(put(got, got, event.New(event.RunResumed, r.ID, "tester", struct{}{})))
	last := read(w, func(tx store.Tx) (event.Head, error) { return tx.Head(r.Stream()) })
	if got := w.run(r.ID); last.Seq != 3 || got.Head.Seq != 3 {
		w.Errorf("the head is %d, the row says %d", last.Seq, got.Head.Seq)
	}
}

// runStaleHead: who locks a run as it was and appends to what was its end is told that
// it moved, also where a reading in between wrote the event early.
func runStaleHead(w *world) {
	r := w.insertRun(waitingRun())
	w.write(func(tx store.Tx) error {
		return tx.Append(r.Stream(), event.New(event.ResumeRefused, r.ID, "tester", struct{}{}))
	})
	for _, early := range []bool{false, true} {
		w.refused(decision.ErrMoved, func(tx store.Tx) error {
			if err := tx.LockRun(r); err != nil {
				return err
			}
			if err := tx.Append(r.Stream(), event.New(event.RunResumed, r.ID, "tester", struct{}{})); err != nil {
				return err
			}
			if early {
				if _, err := tx.Runs(run.Query{Space: r.Space}); err != nil {
					return err
				}
			}
			return tx.PutRun(r, run.Change{Next: r})
		})
	}
}

// runHostedCalls: a call below a step is written beside its run, whose stream tells of it.
func runHostedCalls(w *world) {
	r := w.insertRun(runExamples()[1])
	c := examples()[1]
	c.RunID, c.StepID, c.OwnRun, c.ExternalID, c.LeaseUntil = r.ID, r.Current.ID, false, "", moment(1)
	next := r
	next.Current.CallID, next.Current.Status = c.ID, run.Executing
	w.write(func(tx store.Tx) error {
		if err := tx.InsertCall(c, event.New(event.StepToolStarted, c.StepID, "tester", struct{}{})); err != nil {
			return err
		}
		return tx.PutRun(r, run.Change{Next: next})
	})
	got := w.call(c.ID)
	if got.Head.Seq != 0 || got.Head.Hash != nil {
		w.Errorf("the call has the head %s", got.Head)
	}
	want := c
	got.Head = event.Head{}
	w.same(want, got)
	if r = w.run(r.ID); r.Head.Seq != 2 {
		w.Errorf("the run's head is %d", r.Head.Seq)
	}
	if lost := read(w, func(tx store.Tx) ([]call.Call, error) { return tx.LeaseEnded(c.Space, moment(1<<40), "", 10) }); len(lost) != 0 {
		w.Errorf("it is swept as its own root: %v", lost)
	}
	done := w.call(c.ID)
	ended := done
	ended.Status, ended.LeaseUntil, ended.LeaseOwner, ended.EndedAt, ended.Result = call.Succeeded, time.Time{}, "", moment(2), []byte(`"r"`)
	w.write(func(tx store.Tx) error {
		return tx.PutCall(done, ended, event.New(event.StepToolFinished, c.StepID, "tester", struct{}{}))
	})
	r = w.run(r.ID)
	if r.Head.Seq != 3 || r.Current.Result != `"r"` {
		w.Errorf("the run's head is %d, its step's result %s", r.Head.Seq, r.Current.Result)
	}
	steps := read(w, func(tx store.Tx) ([]run.Step, error) { return tx.Steps(r.ID, 0, 10) })
	w.same([]run.Step{r.Current}, steps)
	if got := read(w, func(tx store.Tx) (string, error) { return tx.StepCall(r.ID, c.StepID) }); got != c.ID {
		w.Errorf("the step's call is %q, want %s", got, c.ID)
	}
}

// goal is a run that a story tells.
type goal struct {
	*play
	id string
	d  *run.Driver
}

// pursue makes a driver whose agent jots something down and refunds twice.
func (p *play) pursue() *goal {
	return &goal{p, id.New(id.Run), run.NewDriver(run.Config{
		Store: p.s, Tools: p.tools, ApprovalTTL: time.Hour, GrantTTL: 2 * time.Hour, Agent: run.AgentFunc(propose),
	})}
}

func propose(_ context.Context, in run.StepInput) (run.Proposal, error) {
	n := 0
	for _, s := range in.Steps {
		if s.Observation != run.WasInterrupted {
			n++
		}
	}
	if n > 2 {
		return run.Proposal{Kind: run.Complete, Result: []byte(`"done"`)}, nil
	}
	return run.Proposal{Kind: run.CallTool, Tool: []string{jot, refund, refund}[n], Args: fmt.Appendf(nil, `{"amount": %d}`, n)}, nil
}

// goesOn starts the run or goes on with it, until it waits or has ended.
func (g *goal) goesOn(what string) run.Run {
	g.Helper()
	g.stepLoosely(what, func(ctx context.Context) error {
		var err error
		if _, known := try(g.world, func(tx store.Tx) (run.Run, error) { return tx.Run(g.id) }); known != nil {
			_, err = g.d.StartWithID(ctx, g.id, "refund", run.DefaultLimits())
		} else {
			_, err = g.d.Resume(ctx, g.id)
		}
		return notWritten(ctx, err)
	})
	return g.world.run(g.id)
}

// answered decides what the run waits on.
func (g *goal) answered(what string, answer func(ctx context.Context, r run.Run, d decision.Decision) error) {
	g.Helper()
	r := g.world.run(g.id)
	if r.Status != run.Waiting {
		g.Fatalf("the run is %s (%s)", r.Status, r.Detail)
	}
	d := g.decision(r.ApprovalID)
	g.step(what, func(ctx context.Context) error { return answer(ctx, r, d) })
}

func (g *goal) yes(ctx context.Context, r run.Run, d decision.Decision) error {
	return g.op.ApproveShown(ctx, r.ID, d.ID, d.Digest, "Ana", "fine")
}

func (g *goal) stands(want run.Reason) {
	g.Helper()
	if r := g.world.run(g.id); r.Reason != want {
		g.Errorf("the run is %s %s: %s; want %s", r.Status, r.Reason, r.Detail, want)
	}
}

func tellRun(p *play) {
	g := p.pursue()
	for range 2 {
		g.goesOn("go on")
		g.answered("approve", g.yes)
	}
	g.goesOn("finish")
	g.stands(run.GoalCompleted)
}

func tellRunRejected(p *play) {
	g := p.pursue()
	g.goesOn("start")
	g.answered("reject", func(ctx context.Context, r run.Run, d decision.Decision) error {
		return g.op.RejectShown(ctx, r.ID, d.ID, d.Digest, "Bo", "not today")
	})
	g.stands(run.ApprovalRejected)
}

func tellRunCancelled(p *play) {
	g := p.pursue()
	g.goesOn("start")
	g.answered("cancel", func(ctx context.Context, r run.Run, _ decision.Decision) error {
		return g.op.Cancel(ctx, r.ID, "Bo", "never mind")
	})
	g.stands(run.OperatorCancelled)
}

// notWritten is err, or that nothing more was written where its caller gave up.
func notWritten(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, txn.ErrUnknown) {
		return txn.ErrNotCommitted.Because(err)
	}
	return err
}
