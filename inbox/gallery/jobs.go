package gallery

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
)

// aJob is a job that stands so.
func aJob(s job.Status) view.JobObject {
	j := view.JobObject{
		JobID: jobID, Name: "train", Status: s, Command: []string{"python3", "train.py", "--epochs", "40", "--note", "a word or two"}, Cwd: "/srv/models",
		Tags: []string{"gpu", "nightly"}, TimeoutSeconds: 7200, Principal: "shop-bot", CreatedAt: before(50 * time.Minute),
	}
	if s != job.Queued {
		j.StartedAt = before(45 * time.Minute)
	}
	if s == job.Running {
		j.Progress = json.RawMessage(`{"epoch":17,"epochs":40,"loss":0.31}`)
	}
	if s.Terminal() {
		j.EndedAt = before(3 * time.Minute)
	}
	if code := 0; s == job.Completed {
		j.ExitCode = &code
	}
	if code := 1; s == job.Failed {
		j.ExitCode, j.FailureReason = &code, "RuntimeError: the device is out of memory"
	}
	return j
}

func (f Frame) jobs() []State {
	s := f.shell(ana, view.Jobs, "Jobs")
	all := view.JobList{At: now, Statuses: chosen("any status", job.Statuses(), review.StatusWord), Next: "/jobs?after=x", Room: view.NewRoom()}
	for _, status := range job.Statuses() {
		all.Jobs = append(all.Jobs, aJob(status))
	}
	all.Jobs[2].PendingDecisions = 2
	paused, away, strange := aJob(job.Queued), aJob(job.Running), aJob(job.Running)
	paused.Paused = true
	away.HomeID, away.Host = "home_2", "gpu-3.example"
	strange.Name, strange.Tags = odd, []string{odd, long[:200]}
	all.Jobs = append(all.Jobs, paused, away, strange)
	newest := all
	newest.Newest, newest.Back = true, "/jobs?view=newest"
	none := view.JobList{At: now, Statuses: all.Statuses, Room: view.NewRoom()}
	filtered := none
	filtered.Filtered, filtered.Newest, filtered.Name = true, true, "train"
	states := []State{
		{"jobs", view.JobsPage(s, all)}, {"jobs-newest", view.JobsPage(s, newest)}, {"jobs-empty", view.JobsPage(s, none)}, {"jobs-filtered-empty", view.JobsPage(s, filtered)},
	}
	return append(states, f.eachJob()...)
}

func (f Frame) eachJob() []State {
	page := func(name string, j view.JobObject, change ...func(*view.Job)) State {
		v := view.Job{JobObject: j, At: now, Mask: &display.Mask{}, Room: view.NewRoom(), Seq: 9, Recent: recent()}
		v.Out, v.Err = printed(j, job.Stdout, output), printed(j, job.Stderr, "")
		for _, c := range change {
			c(&v)
		}
		return State{"job-" + name, view.JobPage(f.shell(ana, view.Jobs, "A job"), v)}
	}
	silent := func(v *view.Job) { v.Out.Data, v.Out.Size, v.Recent = "", 0, v.Recent[:1] }
	after, paused, away := aJob(job.Queued), aJob(job.Queued), aJob(job.Running)
	after.Trigger = &job.Trigger{JobID: jobID, Status: job.Completed}
	paused.Paused = true
	away.HomeID, away.Host = "home_2", "gpu-3.example"
	strange := aJob(job.Failed)
	strange.Name, strange.Command, strange.FailureReason = odd, []string{"sh", "-c", odd}, odd
	return []State{
		page("queued", aJob(job.Queued), silent),
		page("queued-after-another", after, silent),
		page("paused", paused, silent),
		page("launching", aJob(job.Launching), silent),
		page("running", aJob(job.Running), func(v *view.Job) { v.Charts = charts() }),
		page("asks", aJob(job.Running), asking),
		page("completed", aJob(job.Completed)),
		page("failed", aJob(job.Failed), func(v *view.Job) {
			v.Err = printed(v.JobObject, job.Stderr, "Traceback (most recent call last):\n  File \"train.py\"\n")
		}),
		page("timed-out", aJob(job.TimedOut)),
		page("cancelled", aJob(job.Cancelled), silent),
		page("orphaned", aJob(job.Orphaned)),
		page("elsewhere", away, func(v *view.Job) { v.Out.Missing, v.Err.Missing = elsewhere, elsewhere }),
		page("odd-text", strange, func(v *view.Job) { v.Out = printed(v.JobObject, job.Stdout, odd+"\n"+long+"\n") }),
		f.outputPage(),
	}
}

const elsewhere = "It lies on gpu-3.example. At a terminal: placet job tail " + jobID

var output = strings.Repeat("epoch 17: loss 0.31, accuracy 0.84, 212 s\n", 40)

func printed(j view.JobObject, s job.Stream, text string) view.Output {
	return view.Output{JobID: j.JobID, Stream: s, Data: text, Size: int64(len(text)), Finished: j.Status.Terminal()}
}

func (f Frame) outputPage() State {
	o := printed(aJob(job.Running), job.Stdout, output)
	o.From, o.Size, o.Whole, o.Back, o.Next = 65_536, 400_000, true, "/jobs/x/output", "/jobs/x/output?offset=1"
	return State{"job-output", view.OutputPage(f.shell(ana, view.Jobs, "Output"), aJob(job.Running), o)}
}

func asking(v *view.Job) {
	v.PendingDecisions, v.More = 1, true
	v.Questions = []view.QuestionObject{
		{DecisionID: questionID, Prompt: "Continue past epoch 40? The loss is 0.31 and falling.", Status: "pending"},
		{DecisionID: questionID, Prompt: odd, Status: "resolved", Choice: "continue", By: "Ben"},
		{DecisionID: questionID, Prompt: "Which of the two?", Status: "expired"},
	}
}

func charts() []view.Chart {
	down, up, flat := view.Chart{Name: "loss"}, view.Chart{Name: "done", Unit: " %"}, view.Chart{Name: odd}
	for i := range 40 {
		when := now.Add(time.Duration(i-40) * time.Minute)
		down.Points = append(down.Points, view.Point{At: when, Value: 3*math.Exp(-float64(i)/12) + 0.1*math.Sin(float64(i))})
		up.Points = append(up.Points, view.Point{At: when, Value: float64(i) * 2.5})
		flat.Points = append(flat.Points, view.Point{At: when, Value: 1e-9})
	}
	return []view.Chart{down, up, flat}
}

// happened is an event as a page lists it.
func happened(seq int64, t event.Type, subject, actor, payload string) view.EventRow {
	m := &display.Mask{}
	e := event.Object{
		Stream: "job:" + jobID, StreamSeq: seq, At: before(time.Duration(30-seq) * time.Minute), Type: t, Subject: subject, Actor: actor, Hash: digest,
	}
	if payload != "" {
		m.Learn([]byte(payload))
		e.Payload = m.Scrub([]byte(payload))
	}
	return view.EventRow{Object: e, Mask: m, To: "/jobs/" + jobID}
}

func recent() []view.EventRow {
	return []view.EventRow{
		happened(9, event.JobOutput, jobID, "", `{"type":"progress","message":"epoch 17 of 40","data":{"epoch":17,"epochs":40}}`),
		happened(8, event.JobOutput, jobID, "", `{"type":"`+fmt.Sprintf("%.20s", long)+`","message":"It goes on."}`),
		happened(2, event.JobStarted, jobID, "system", `{"pid":4711}`),
		happened(1, event.JobQueued, jobID, "shop-bot", ""),
	}
}
