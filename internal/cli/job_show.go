package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// tellJob prints a job as it stands.
func (a *app) tellJob(j httpapi.Job, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		a.emitMasked(a.mask.JSON(encode(j)))
		return nil
	}
	a.sayJob(j)
	return nil
}

func (a *app) sayJob(j httpapi.Job) {
	a.say("Job %s %s", own(j.JobID), own(j.Status))
	p := page{a: a, to: a.out, mask: a.mask}
	exit, limit, paused, trigger, asks := "", "", "", "", ""
	if j.ExitCode != nil {
		exit = fmt.Sprint(*j.ExitCode)
	}
	if j.TimeoutSeconds > 0 {
		limit = wholeSeconds{n: &j.TimeoutSeconds}.String()
	}
	if j.Paused {
		paused = "it does not start until " + a.withGlobals("job", "resume", j.JobID)
	}
	if t := j.Trigger; t != nil {
		trigger = "starts when " + t.JobID + " is " + string(t.Status)
	}
	if j.PendingDecisions > 0 {
		asks = fmt.Sprintf("%d: %s", j.PendingDecisions, a.withGlobals("decisions", "--job", j.JobID))
	}
	p.facts([]fact{
		{"name", p.foreign(j.Name)},
		{"command", p.foreign(commandLine(j))},
		{"in", p.foreign(j.Cwd)},
		{"tags", p.foreign(strings.Join(j.Tags, ", "))},
		{"belongs to", p.foreign(belongsTo(j))},
		{"started by", own(j.Principal)},
		{"created", own(j.CreatedAt)},
		{"paused", own(paused)},
		{"trigger", own(trigger)},
		{"started", own(j.StartedAt)},
		{"ended", own(j.EndedAt)},
		{"time limit", own(limit)},
		{"exit code", own(exit)},
		{"why", p.foreign(j.FailureReason)},
		{"questions", own(asks)},
		{"done", own(bar(j))},
		{"progress", p.document(string(j.Progress))},
	})
}

// belongsTo is the machine that a job belongs to, where that is another than the one that was
// asked.
func belongsTo(j httpapi.Job) string {
	if j.HomeID == "" {
		return ""
	}
	return strings.TrimSpace(j.Host + " (home " + j.HomeID + ")")
}

// commandLine is a job's command as a shell would take it.
func commandLine(j httpapi.Job) string {
	if j.Shell != "" {
		return j.Shell
	}
	words := make([]string, len(j.Command))
	for i, w := range j.Command {
		words[i] = display.ShellWord(w)
	}
	return strings.Join(words, " ")
}

// showJob shows a job from the store. Where no daemon does it, what its runner has left
// is taken in first (spec 3.1).
func (a *app) showJob(ctx context.Context, st *store.Store, jobID string) error {
	if err := a.takeIn(ctx, st, jobID); err != nil {
		return err
	}
	j, err := readJob(ctx, st, jobID)
	if err != nil {
		return err
	}
	o := httpapi.JobObject(j)
	if o.HomeID, o.Host, err = a.placeOf(ctx, st, j); err != nil {
		return err
	}
	return a.tellJob(o, nil)
}

// placeOf is the home of a job that is not this machine's; empty: it is.
func (a *app) placeOf(ctx context.Context, st *store.Store, j job.Job) (home, host string, err error) {
	ours, err := a.ourHome()
	if err != nil || ours == j.Home {
		return "", "", err
	}
	err = txn.View(ctx, st, func(tx job.Tx) error {
		home, host = "", ""
		h, err := tx.Home(j.Home)
		if errors.Is(err, job.ErrNotFound) {
			return nil
		}
		home, host = j.Home, h.Host
		return err
	})
	return home, host, err
}

// ourHome is the id of this machine's home on the store; empty: it has none.
func (a *app) ourHome() (string, error) {
	p, err := a.place()
	if err != nil {
		return "", err
	}
	h, err := daemon.HomeOf(p)
	if err != nil {
		return "", err
	}
	id, err := h.FindID()
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return id, err
}

func readJob(ctx context.Context, st *store.Store, jobID string) (j job.Job, err error) {
	err = txn.View(ctx, st, func(tx job.Tx) error {
		j, err = tx.Job(jobID)
		return err
	})
	return j, err
}

// takeIn brings a running job up to date, unless a daemon serves the store. It starts
// nothing: what a job is started with is the daemon's to give.
func (a *app) takeIn(ctx context.Context, st *store.Store, jobID string) error {
	j, err := readJob(ctx, st, jobID)
	if err != nil || j.Status != job.Running {
		return err
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	h, err := daemon.HomeOf(p)
	if err != nil || h.Served() {
		return err
	}
	home, err := h.FindID()
	if errors.Is(err, fs.ErrNotExist) {
		home, err = h.JobsDir(), nil // so jobs of before homes had ids are known
	}
	if err != nil || home != j.Home && h.JobsDir() != j.Home {
		return err
	}
	mine, err := a.write(ctx)
	if err != nil {
		a.note("What the job's runner left was not taken in: %s", faultOf(err).Message)
		return nil
	}
	defer mine.Close()
	s := job.NewSupervisor(job.Config{Store: mine, Dir: h.JobsDir(), Home: j.Home, Program: []string{program()}, Log: a.logger()})
	_, err = s.Get(ctx, jobID)
	return err
}

// showQuestion shows a question from the store.
func (a *app) showQuestion(ctx context.Context, st *store.Store, decisionID string) error {
	d, err := readQuestion(ctx, st, decisionID)
	if err != nil {
		return err
	}
	q := httpapi.QuestionObject(d)
	if a.json {
		a.emitQuestion(q)
		return nil
	}
	a.say("Question %s %s", own(q.DecisionID), own(q.Status))
	p := page{a: a, to: a.out, mask: questionMask(q)}
	p.facts([]fact{
		{"asks", p.foreign(q.Prompt)},
		{"options", p.foreign(strings.Join(q.Options, ", "))},
		{"form", p.foreign(string(schemaOf(q.Form)(nil)))},
		{"job", own(q.JobID)},
		{"asked", own(q.CreatedAt + by(d.RequestedBy))},
		{"expires", own(q.ExpiresAt)},
		{"choice", p.foreign(string(q.Choice))},
		{"input", p.document(string(q.Input))},
		{"resolved", own(q.ResolvedAt + by(q.By))},
		{"as", own(q.Principal)},
		{"note", p.foreign(q.Note)},
	})
	if d.Status == decision.Pending && d.Open {
		a.say("Answer it:  %s", own(a.answerLine(q)))
	}
	return nil
}

func readQuestion(ctx context.Context, st *store.Store, decisionID string) (d decision.Decision, err error) {
	err = txn.View(ctx, st, func(tx decision.Tx) error {
		d, err = tx.Decision(decisionID)
		if err == nil && d.Type != decision.Question {
			err = decision.ErrNotFound.Say("There is no question %s.", decisionID)
		}
		return err
	})
	return d, err
}
