package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
)

func homes(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back": homeReadBack,
		"guard":     homeGuard,
		"list":      homeList,
		"jobs":      homeJobs,
		"judged":    homeJudged,
	})
}

func someHome() job.Home {
	return job.Home{
		ID: id.New(id.Home), Host: "alpha", Dir: "/home/é/jobs", URL: "https://alpha:7420", Version: "v1", Process: "p",
		Since: moment(1), LeaseUntil: moment(31), Epoch: 1,
	}
}

func (w *world) insertHome(change func(*job.Home)) job.Home {
	w.Helper()
	h := someHome()
	change(&h)
	w.write(func(tx store.Tx) error { return tx.PutHome(job.Home{}, h) })
	return h
}

func (w *world) home(id string) job.Home {
	w.Helper()
	return read(w, func(tx store.Tx) (job.Home, error) { return tx.Home(id) })
}

func homeReadBack(w *world) {
	h := w.insertHome(func(*job.Home) {})
	whole(w, h)
	w.same(h, w.home(h.ID))
	next := job.Home{ID: h.ID, Host: "b", Dir: "/b", URL: "", Version: "", Process: "q", Since: moment(40), LeaseUntil: moment(70), Epoch: 2}
	w.write(func(tx store.Tx) error { return tx.PutHome(h, next) })
	w.same(next, w.home(h.ID))
	w.write(func(tx store.Tx) error { return tx.DropHome(next) })
	if _, err := try(w, func(tx store.Tx) (job.Home, error) { return tx.Home(h.ID) }); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("of one that was dropped: %v", err)
	}
	backwards := someHome()
	backwards.LeaseUntil = moment(0)
	if err := w.update(func(tx store.Tx) error { return tx.PutHome(job.Home{}, backwards) }); err == nil {
		w.Error("one whose lease ended before it began is stored")
	}
}

// homeGuard: whoever judged on another process's hold, or on another lease, writes nothing.
func homeGuard(w *world) {
	h := w.insertHome(func(*job.Home) {})
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutHome(job.Home{}, h) })
	for name, change := range map[string]func(*job.Home){
		"process": func(h *job.Home) { h.Process = "q" }, "lease": func(h *job.Home) { h.LeaseUntil = moment(32) },
	} {
		prev := h
		change(&prev)
		w.Log(name)
		w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutHome(prev, h) })
		w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.DropHome(prev) })
	}
}

func homeList(w *world) {
	a := w.insertHome(func(h *job.Home) { h.LeaseUntil = moment(31) })
	b := w.insertHome(func(h *job.Home) { h.LeaseUntil = moment(61) })
	c := w.insertHome(func(h *job.Home) { h.LeaseUntil = moment(1) })
	for name, tt := range map[string]struct {
		q    job.HomeQuery
		want []job.Home
	}{
		"all":            {job.HomeQuery{}, []job.Home{a, b, c}},
		"a page":         {job.HomeQuery{After: a.ID, Limit: 1}, []job.Home{b}},
		"ended":          {job.HomeQuery{EndedBefore: moment(32)}, []job.Home{a, c}},
		"the end itself": {job.HomeQuery{EndedBefore: moment(31)}, []job.Home{c}},
	} {
		w.Log(name)
		w.same(tt.want, read(w, func(tx store.Tx) ([]job.Home, error) { return tx.Homes(tt.q) }))
	}
}

// homeJobs: the jobs of one home go over to another, so many at once, and are its own
// then. What is written of them meanwhile stays.
func homeJobs(w *world) {
	running, ended := w.insertJob(runningJob()), w.insertJob(endedJob())
	other := queuedJob()
	other.Home = "/home/b"
	other = w.insertJob(other)
	move := func(want int) {
		w.Helper()
		var n int
		w.write(func(tx store.Tx) (err error) {
			n, err = tx.MoveJobs("/home/a", "hom_a", 1)
			return err
		})
		w.same(want, n)
	}
	move(1)
	next := running.Clone()
	next.Failure = "written meanwhile"
	w.write(func(tx store.Tx) error { return tx.PutJob(running, job.Change{Next: next}) })
	move(1)
	move(0)
	for _, j := range []job.Job{running, ended} {
		w.same("hom_a", w.job(j.ID).Home)
	}
	w.same("/home/b", w.job(other.ID).Home)
	active := read(w, func(tx store.Tx) ([]job.Job, error) { return tx.ActiveJobs("hom_a", "", 9) })
	w.same(1, len(active))
	w.same("written meanwhile", active[0].Failure)
}

// homeJudged: a home that comes back and a judge of it exclude each other. Either the job
// was orphaned when the home came back, or it is not.
func homeJudged(w *world) {
	judge := job.Home{ID: "hom_judge", Since: moment(0), LeaseUntil: moment(1 << 30)}
	for range rounds(100) {
		h := w.insertHome(func(*job.Home) {})
		j := queuedJob()
		j.Home = h.ID
		j = w.insertJob(j)
		var seen job.Status
		errs := make([]error, 2)
		together(2, func(i int) {
			if i == 1 {
				errs[1] = w.update(func(tx store.Tx) error { return judgeJob(tx, judge, j.ID) })
				return
			}
			if errs[0] = w.update(func(tx store.Tx) error { return comeBack(tx, h.ID) }); errs[0] == nil {
				seen = w.job(j.ID).Status
			}
		})
		if err := errors.Join(errs...); err != nil {
			w.Fatal(err)
		}
		if got := w.job(j.ID).Status; got != seen {
			w.Fatalf("the home was back while its job was %s; now that is %s", seen, got)
		}
	}
}

func comeBack(tx store.Tx, home string) error {
	was, err := tx.Home(home)
	if err != nil {
		return err
	}
	next := was
	next.LeaseUntil = moment(1 << 30)
	return tx.PutHome(was, next)
}

// judgeJob locks the home behind the job, as every judge does.
func judgeJob(tx store.Tx, judge job.Home, id string) error {
	now, err := tx.Job(id)
	if err != nil {
		return err
	}
	h, err := tx.Home(now.Home)
	if err != nil || !h.LostTo(judge, time.Microsecond, moment(1<<20)) {
		return err
	}
	ch, err := now.Step(job.Orphan{Failure: "lost"}, moment(1<<20))
	if err != nil {
		return err
	}
	return tx.PutJob(now, ch)
}
