package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
)

// daemonsWork is what a daemon asks for again and again: what it is to go on with.
func daemonsWork(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"calls":         continuableCalls,
		"pages":         continuablePages,
		"limits":        continuableLimits,
		"runs":          continuableRuns,
		"pages of runs": continuableRunPages,
		"calls' lives":  continuableLives,
	})
}

// thisMoment is the time of these tests, behind which nothing is to be tried yet.
var thisMoment = moment(100)

// granted is d as a person's yes leaves it.
func granted(d decision.Decision) decision.Decision {
	d = yes(d).Next
	d.GrantExpiresAt = moment(1000)
	return d
}

// closedGrant is a yes that came to nothing.
func closedGrant(d decision.Decision, to decision.Status) decision.Decision {
	d = granted(d)
	d.Status, d.Open = to, false
	return d
}

func rejected(d decision.Decision) decision.Decision {
	d = yes(d).Next
	d.Status, d.Choice, d.Open = decision.Rejected, decision.ChoiceReject, false
	return d
}

// ended is d as it ends without an answer.
func ended(to decision.Status) func(decision.Decision) decision.Decision {
	return func(d decision.Decision) decision.Decision {
		d.Status, d.Open, d.SettledAt = to, false, moment(5)
		return d
	}
}

// work is a call that a daemon may or may not go on with.
type work struct {
	change  func(c *call.Call)
	asked   []func(decision.Decision) decision.Decision // its approvals, the oldest first; the last is its own
	nobody  bool                                        // it names no approval, whatever was asked
	isFound bool
}

func unknown(c *call.Call) {
	c.Status, c.Kind, c.Attempts, c.Fence = call.Unknown, call.KindUnknownOutcome, 1, 1
}

func both(fs ...func(c *call.Call)) func(c *call.Call) {
	return func(c *call.Call) {
		for _, f := range fs {
			f(c)
		}
	}
}

// works are calls by what there is about them.
func works() map[string]work {
	asIs, pending := func(*call.Call) {}, func(d decision.Decision) decision.Decision { return d }
	of := func(fs ...func(decision.Decision) decision.Decision) []func(decision.Decision) decision.Decision {
		return fs
	}
	noGrant := func(d decision.Decision) decision.Decision { // a denial that was returned
		d = rejected(d)
		d.Status, d.ConsumedAt = decision.Consumed, moment(6)
		return d
	}
	spent := spentDecision
	tooOld := func(d decision.Decision) decision.Decision { return closedGrant(d, decision.Expired) }
	replaced := func(d decision.Decision) decision.Decision { return closedGrant(d, decision.Superseded) }
	callers := func(c *call.Call) { c.ContinueBy = call.ByCaller }
	elsewhere := func(c *call.Call) { c.Space = "other" }
	laterOn := func(c *call.Call) { c.NextTryAt = thisMoment.Add(time.Microsecond) }
	now := func(c *call.Call) { c.NextTryAt = thisMoment }
	anyTime := func(c *call.Call) { c.NextTryAt = time.Time{} }
	running := func(c *call.Call) {
		c.Status, c.Attempts, c.Fence, c.LeaseUntil = call.Running, 1, 1, moment(1)
	}
	over := func(status call.Status) func(c *call.Call) {
		return func(c *call.Call) { c.Status, c.EndedAt = status, moment(9) }
	}
	return map[string]work{
		"granted":                               {asIs, of(granted), false, true},
		"granted, to be tried now":              {now, of(granted), false, true},
		"granted, to be tried at any time":      {anyTime, of(granted), false, true},
		"granted after one that was replaced":   {asIs, of(ended(decision.Superseded), granted), false, true},
		"unknown, and nobody was ever asked":    {unknown, nil, true, true},
		"unknown, and nobody is asked":          {unknown, of(spent), true, true},
		"unknown under a spent yes":             {unknown, of(spent), false, true},
		"unknown, and a new run of it granted":  {unknown, of(spent, granted), false, true},
		"unknown again under a second yes":      {unknown, of(spent, spent), false, true},
		"pending":                               {asIs, of(pending), false, false},
		"rejected":                              {asIs, of(rejected), false, false},
		"granted for somebody who resumes":      {callers, of(granted), false, false},
		"unknown for somebody who resumes":      {both(unknown, callers), of(spent), false, false},
		"granted in another space":              {elsewhere, of(granted), false, false},
		"unknown in another space":              {both(unknown, elsewhere), of(spent), false, false},
		"granted, and not to be tried yet":      {laterOn, of(granted), false, false},
		"unknown, and not to be tried yet":      {both(unknown, laterOn), of(spent), false, false},
		"granted before, and asked anew":        {asIs, of(granted, pending), false, false},
		"unknown, and a person is asked":        {unknown, of(spent, pending), false, false},
		"unknown, and the new yes grew too old": {unknown, of(spent, tooOld), false, false},
		"unknown, and the new yes was replaced": {unknown, of(spent, replaced), false, false},
		"unknown, and a person said no":         {unknown, of(spent, rejected), false, false},
		"unknown, and the no was returned":      {unknown, of(spent, noGrant), false, false},
		"unknown, and nobody answered in time":  {unknown, of(spent, ended(decision.Expired)), false, false},
		"unknown, and the question was dropped": {unknown, of(spent, ended(decision.Withdrawn)), false, false},
		"running under a yes":                   {running, of(spent), false, false},
		"running although granted":              {running, of(granted), false, false},
		"succeeded, and granted still":          {over(call.Succeeded), of(granted), false, false},
		"cancelled beside a yes":                {over(call.Cancelled), of(granted), false, false},
		"expired":                               {over(call.Expired), of(ended(decision.Expired)), false, false},
	}
}

// insertWork writes a call and what was asked about it.
func (w *world) insertWork(k work) call.Call {
	w.Helper()
	c := parkedCall()
	c.ApprovalID, c.ApprovalN, c.NextTryAt = "", int64(len(k.asked)), moment(1)
	k.change(&c)
	var ds []decision.Decision
	for n, become := range k.asked {
		d := pendingDecision(c)
		d.N = int64(n + 1)
		if ds = append(ds, become(d)); !k.nobody {
			c.ApprovalID = d.ID
		}
	}
	w.insertCall(c)
	for _, d := range ds {
		w.insertDecision(d)
	}
	return w.call(c.ID)
}

func (w *world) continuable(space string, after string, limit int) (ids []string) {
	w.Helper()
	for _, c := range read(w, func(tx store.Tx) ([]call.Call, error) { return tx.Continuable(space, thisMoment, after, limit) }) {
		ids = append(ids, c.ID)
	}
	return ids
}

func continuableCalls(w *world) {
	names, want := map[string]string{}, []string(nil)
	for name, k := range works() {
		c := w.insertWork(k)
		if names[c.ID] = name; k.isFound {
			want = append(want, c.ID)
		}
	}
	names["step"] = "a granted call below a step"
	w.insertStepsCall()
	w.onlyThese(want, w.continuable(event.MainSpace, "", 0), names)
	w.same(2, len(w.continuable("other", "", 0)))
	w.same(0, len(w.continuable("none", "", 0)))
	for _, c := range read(w, func(tx store.Tx) ([]call.Call, error) { return tx.Continuable(event.MainSpace, thisMoment, "", 0) }) {
		w.same(w.call(c.ID), c)
	}
}

// insertStepsCall writes a call below a run's step that looks like work of its own: its
// run goes on with it, and nobody else.
func (w *world) insertStepsCall() call.Call {
	w.Helper()
	r := w.insertRun(runExamples()[1])
	c := parkedCall()
	c.RunID, c.StepID, c.OwnRun, c.ExternalID = r.ID, r.Current.ID, false, ""
	unknown(&c)
	c.NextTryAt, c.ApprovalID, c.ApprovalN = time.Time{}, "", 0
	next := r
	next.Current.CallID, next.Current.Status = c.ID, run.Executing
	w.write(func(tx store.Tx) error {
		if err := tx.InsertCall(c, event.New(event.StepToolStarted, c.StepID, "tester", struct{}{})); err != nil {
			return err
		}
		return tx.PutRun(r, run.Change{Next: next})
	})
	return w.call(c.ID)
}

// continuablePages walks pages of three, while some of those seen are gone on with. Pages
// end behind calls of either sort.
func continuablePages(w *world) {
	var want []string
	ready, waits := works()["granted"], works()["pending"]
	inDoubt := works()["unknown under a spent yes"]
	for i := range 9 {
		w.insertWork(waits)
		c := w.insertWork([]work{ready, inDoubt}[i%2])
		want = append(want, c.ID)
	}
	var got []string
	for after := ""; ; {
		page := w.continuable(event.MainSpace, after, 3)
		if len(page) == 0 {
			break
		}
		if len(page) > 3 || len(got) > len(want) {
			w.Fatalf("a page of %d after %d", len(page), len(got))
		}
		got, after = append(got, page...), page[len(page)-1]
		now := w.call(page[0])
		next := now
		next.Status, next.EndedAt = call.Succeeded, moment(200)
		w.write(func(tx store.Tx) error { return tx.PutCall(now, next) })
	}
	w.same(want, got)
	w.same(6, len(w.continuable(event.MainSpace, "", 0))) // one of each page is done
}

func continuableLimits(w *world) {
	w.skipRace()
	w.write(func(tx store.Tx) error {
		for range 1001 {
			c := parkedCall()
			unknown(&c)
			c.ApprovalID, c.ApprovalN = "", 0
			if err := tx.InsertCall(c, born(c)); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000, 1001: 1000} {
		if got := len(w.continuable(event.MainSpace, "", limit)); got != want {
			w.Errorf("limit %d: %d calls, want %d", limit, got, want)
		}
	}
}

// continuableLives follows a call through the engines: it is found while a daemon has
// something to do about it, and not otherwise.
func continuableLives(w *world) {
	p := w.openShop(w.s, nil)
	found := func(what string, want bool, c string) {
		w.Helper()
		cs := read(w, func(tx store.Tx) ([]call.Call, error) { return tx.Continuable(event.MainSpace, tx.Now(), "", 0) })
		if got := slices.ContainsFunc(cs, func(f call.Call) bool { return f.ID == c }); got != want {
			w.Errorf("%s: found %t", what, got)
		}
	}
	var parked [2]*call.PendingError
	for i, toolName := range []string{refund, keyed} {
		_, err := p.Server("daemon").Call(w.ctx, "ana", toolName, []byte(`{}`))
		a, err := pending(err)
		if err != nil {
			w.Fatal(err)
		}
		parked[i] = a
		found("parked", false, a.CallID)
		if err := p.approve(w.ctx, a); err != nil {
			w.Fatal(err)
		}
		found("granted", true, a.CallID)
	}
	for i, how := range []call.Recovery{call.RecoverByPerson, call.RecoverByKey} {
		if err := p.die(w.ctx, w.s, parked[i], how, time.Microsecond); err != nil {
			w.Fatal(err)
		}
		found("running", false, parked[i].CallID)
		w.until(w.call(parked[i].CallID).LeaseUntil)
	}
	if _, err := p.Sweep(w.ctx, 10); err != nil {
		w.Fatal(err)
	}
	found("lost, and a person is asked", false, parked[0].CallID)
	found("lost, and its key protects a repeat", true, parked[1].CallID)
	c := w.call(parked[0].CallID)
	d := w.decision(c.ApprovalID)
	if err := p.op.ApproveShown(w.ctx, c.RunID, d.ID, d.Digest, "Ana", ""); err != nil {
		w.Fatal(err)
	}
	found("lost, and a repeat granted", true, c.ID)
}

// onlyThese checks that what is wanted was found, in the order of the ids, and nothing
// else; names say what each one is.
func (w *world) onlyThese(want, got []string, names map[string]string) {
	w.Helper()
	slices.Sort(want)
	for _, id := range slices.Concat(want, got) {
		if found := slices.Contains(got, id); found != slices.Contains(want, id) {
			w.Errorf("%s (%s): found %t", names[id], id, found)
		}
	}
	w.same(want, got)
}
