package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// elsewhere puts a running job of another machine into the store. Its daemon is there, or
// has been away for so long.
func (w *world) elsewhere(host string, away time.Duration) (jobID, home string) {
	w.t.Helper()
	jobID, home = id.New(id.Job), id.New(id.Home)
	err := txn.Update(w.t.Context(), w.store, func(tx job.Tx) error {
		now := tx.Now()
		h := job.Home{ID: home, Host: host, Dir: "/jobs", Process: "p", Since: now.Add(-time.Hour), LeaseUntil: now.Add(time.Hour), Epoch: 1}
		if away > 0 {
			h.LeaseUntil = now.Add(-away)
		}
		if err := tx.PutHome(job.Home{}, h); err != nil {
			return err
		}
		j := job.Job{ID: jobID, Space: event.MainSpace, Home: home, Spec: job.Spec{Shell: "true", Name: "train"}}
		for _, cmd := range []job.Command{job.Create{Epoch: 1}, job.Claim{Token: "t", Launcher: "p", Epoch: 1}, job.Began{Token: "t", Runner: "p", At: now}} {
			ch, err := j.Step(cmd, now)
			if err != nil {
				return err
			}
			j = ch.Next
		}
		return tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, jobID, event.System, map[string]string{"job_id": jobID})}})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return jobID, home
}

// A job of another machine is shown with where it is, and what needs its files says whom
// to ask. doctor tells of machines that are away with jobs that have not ended.
func TestJobsOfOtherMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	there, home := w.elsewhere("alpha", 0)
	lost, _ := w.elsewhere("gamma", time.Second)
	s := w.serve("--orphan-after", "1h")
	w.ok("job", "start", "--", "true")
	out, _ := w.ok("job", "list")
	mustContain(t, out, "host", "alpha", "gamma", "here")
	for _, line := range [][]string{{"job", "show", there}, {"show", there}} {
		out, _ = w.ok(line...)
		mustContain(t, out, "belongs to", "alpha (home "+home+")")
	}
	for _, line := range [][]string{{"job", "tail", there}, {"job", "send", there, "x"}} {
		mustContain(t, w.refused(1, line...), "belongs to alpha", "placet serve --advertise URL")
	}
	mustContain(t, w.refused(1, "job", "tail", lost), "belongs to gamma", "is away since", "Start placet serve there")
	out, _, code := w.run("doctor")
	if code != 1 {
		t.Errorf("doctor finds nothing: %s", out)
	}
	mustContain(t, out, "alpha has a daemon on this store", "gamma is away since", "with jobs that have not ended")
	if o := object[struct {
		Where string `json:"host"`
		Home  string `json:"home_id"`
	}](w, "job", "show", there); o.Where != "alpha" || o.Home != home {
		t.Errorf("%+v", o)
	}
	w.refused(2, "serve", "--orphan-after", "0")
	mustContain(t, w.refused(1, "--db", w.dir+"/q.db", "serve", "--advertise", "alpha:7420"), "no address that other daemons can be told")
	s.end(syscall.SIGKILL) // no other: a stop of what runs on another machine waits for that
}
