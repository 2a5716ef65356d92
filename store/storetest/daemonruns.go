package storetest

import (
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
)

// goingOn is a run that a daemon may or may not go on with.
type goingOn struct {
	change   func(r *run.Run)
	doubt    bool // its approval asks about an interrupted call
	become   func(decision.Decision) decision.Decision
	older    func(decision.Decision) decision.Decision // of an approval before; nil: none
	outcome  call.Status                               // of its step's call; empty: it has none
	isFound  bool
	inflight bool // it is running, not waiting
}

func goings(epoch int64) map[string]goingOn {
	asIs, pending := func(*run.Run) {}, func(d decision.Decision) decision.Decision { return d }
	withdrawn, superseded := ended(decision.Withdrawn), ended(decision.Superseded)
	leased := func(until time.Time, epoch int64) func(r *run.Run) {
		return func(r *run.Run) { r.LeaseUntil, r.Epoch = until, epoch }
	}
	later := thisMoment.Add(time.Hour)
	and := func(fs ...func(r *run.Run)) func(r *run.Run) {
		return func(r *run.Run) {
			for _, f := range fs {
				f(r)
			}
		}
	}
	callers := func(r *run.Run) { r.ContinueBy = call.ByCaller }
	elsewhere := func(r *run.Run) { r.Space = "other" }
	notYet := func(r *run.Run) { r.NextTryAt = thisMoment.Add(time.Microsecond) }
	over := func(r *run.Run) {
		r.Status, r.Reason, r.FinishedAt = run.Cancelled, run.OperatorCancelled, moment(9)
		r.Current.Status, r.Current.FinishedAt, r.LeaseUntil, r.ActiveSince, r.LeaseOwner = run.Interrupted, moment(9), time.Time{}, time.Time{}, ""
	}
	return map[string]goingOn{
		"granted":                        {change: asIs, become: granted, isFound: true},
		"granted, to be tried now":       {change: func(r *run.Run) { r.NextTryAt = thisMoment }, become: granted, isFound: true},
		"granted to run it again":        {change: asIs, doubt: true, become: granted, outcome: call.Unknown, isFound: true},
		"doubt that a success took away": {change: asIs, doubt: true, become: withdrawn, outcome: call.Succeeded, isFound: true},
		"doubt that a failure took away": {change: asIs, doubt: true, become: withdrawn, outcome: call.Failed, isFound: true},
		"yes that an outcome replaced":   {change: asIs, doubt: true, become: superseded, outcome: call.Succeeded, isFound: true},
		"running without a lease":        {change: leased(time.Time{}, epoch), inflight: true, isFound: true},
		"running, its lease has ended":   {change: leased(thisMoment.Add(-time.Microsecond), epoch), inflight: true, isFound: true},
		"running in an earlier life":     {change: leased(later, epoch-1), inflight: true, isFound: true},

		"running, its lease lasts":        {change: leased(later, epoch), inflight: true},
		"running, its lease ends now":     {change: leased(thisMoment, epoch), inflight: true},
		"running for somebody":            {change: and(leased(time.Time{}, epoch), callers), inflight: true},
		"running elsewhere":               {change: and(leased(time.Time{}, epoch), elsewhere), inflight: true},
		"running, not to be tried yet":    {change: and(leased(time.Time{}, epoch), notYet), inflight: true},
		"pending":                         {change: asIs, become: pending},
		"rejected":                        {change: asIs, become: rejected},
		"granted for somebody":            {change: callers, become: granted},
		"granted elsewhere":               {change: elsewhere, become: granted},
		"granted, not to be tried yet":    {change: notYet, become: granted},
		"granted before, and asked anew":  {change: asIs, older: granted, become: pending},
		"ended, and granted still":        {change: over, become: granted},
		"ended, its doubt taken away":     {change: over, doubt: true, become: withdrawn, outcome: call.Succeeded},
		"doubt dropped without a word":    {change: asIs, doubt: true, become: withdrawn, outcome: call.Unknown},
		"yes replaced without a word":     {change: asIs, doubt: true, become: superseded, outcome: call.Unknown},
		"another question dropped":        {change: asIs, become: withdrawn},
		"in doubt":                        {change: asIs, doubt: true, become: pending, outcome: call.Unknown},
		"a success for somebody":          {change: callers, doubt: true, become: withdrawn, outcome: call.Succeeded},
		"a success elsewhere":             {change: elsewhere, doubt: true, become: withdrawn, outcome: call.Succeeded},
		"a success, not to be tried yet":  {change: notYet, doubt: true, become: withdrawn, outcome: call.Succeeded},
		"an older doubt that was dropped": {change: asIs, older: withdrawn, doubt: true, become: pending, outcome: call.Unknown},
	}
}

// insertGoing writes a run, what it waits on, and the call of its step.
func (w *world) insertGoing(g goingOn) run.Run {
	w.Helper()
	var r run.Run
	if r = waitingRun(); g.inflight {
		r = runExamples()[1]
		r.ApprovalID, r.ApprovalN = "", 0
	}
	r.NextTryAt = moment(1)
	g.change(&r)
	var ds []decision.Decision
	for _, become := range []func(decision.Decision) decision.Decision{g.older, g.become} {
		if become == nil {
			continue
		}
		d := pendingDecision(call.Call{Space: r.Space, RunID: r.ID})
		d.Owner, d.N = r.Ref(), int64(len(ds)+1)
		if g.doubt {
			d.Kind = decision.KindInterrupted
		}
		ds = append(ds, become(d))
		r.ApprovalID, r.ApprovalN, r.Current.ApprovalID = d.ID, d.N, d.ID
	}
	w.insertRun(r)
	for _, d := range ds {
		w.insertDecision(d)
	}
	if g.outcome != "" {
		w.insertOutcome(r.ID, g.outcome)
	}
	return w.run(r.ID)
}

// insertOutcome writes the call of a run's step as it ended.
func (w *world) insertOutcome(runID string, status call.Status) {
	w.Helper()
	r := w.run(runID)
	c := examples()[2]
	c.Space, c.RunID, c.StepID, c.OwnRun, c.ExternalID, c.Status, c.ApprovalID, c.ApprovalN = r.Space, r.ID, r.Current.ID, false, "", status, "", 0
	if status == call.Unknown {
		c.EndedAt = time.Time{}
	}
	next := r
	next.Current.CallID = c.ID
	w.write(func(tx store.Tx) error {
		if err := tx.InsertCall(c, event.New(event.StepToolStarted, c.StepID, "tester", struct{}{})); err != nil {
			return err
		}
		return tx.PutRun(r, run.Change{Next: next})
	})
}

func (w *world) continuableRuns(space, after string, limit int) (ids []string) {
	w.Helper()
	for _, r := range read(w, func(tx store.Tx) ([]run.Run, error) { return tx.ContinuableRuns(space, thisMoment, after, limit) }) {
		ids = append(ids, r.ID)
	}
	return ids
}

func (w *world) epoch() int64 {
	w.Helper()
	return read(w, func(tx store.Tx) (int64, error) { return tx.Epoch(), nil })
}

func continuableRuns(w *world) {
	names, want := map[string]string{}, []string(nil)
	for name, g := range goings(w.epoch()) {
		r := w.insertGoing(g)
		if names[r.ID] = name; g.isFound {
			want = append(want, r.ID)
		}
	}
	w.onlyThese(want, w.continuableRuns(event.MainSpace, "", 0), names)
	w.same(3, len(w.continuableRuns("other", "", 0)))
	w.same(0, len(w.continuableRuns("none", "", 0)))
	for _, r := range read(w, func(tx store.Tx) ([]run.Run, error) { return tx.ContinuableRuns(event.MainSpace, thisMoment, "", 0) }) {
		w.same(w.run(r.ID), r)
	}
}

func continuableRunPages(w *world) {
	all, want := goings(w.epoch()), []string(nil)
	for i := range 9 {
		w.insertGoing(all["pending"])
		w.insertGoing(all["running, its lease lasts"])
		r := w.insertGoing(all[[]string{"granted", "running without a lease", "doubt that a success took away"}[i%3]])
		want = append(want, r.ID)
	}
	var got []string
	for after := ""; ; {
		page := w.continuableRuns(event.MainSpace, after, 2)
		if len(page) == 0 {
			break
		}
		if len(page) > 2 || len(got) > len(want) {
			w.Fatalf("a page of %d after %d", len(page), len(got))
		}
		got, after = append(got, page...), page[len(page)-1]
	}
	w.same(want, got)
	w.same(want[:4], w.continuableRuns(event.MainSpace, "", 4))
	w.same(want[4:], w.continuableRuns(event.MainSpace, want[3], 100))
	w.same([]string(nil), w.continuableRuns(event.MainSpace, id.New(id.Run), 100))
}
