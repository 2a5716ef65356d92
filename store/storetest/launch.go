package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// A runner of these tests is a supervisor's child only for as long as it takes to say
// that the command has begun; what a runner does then, the test does in its place.

// beginning takes its order, says who it is in the launch's directory, as
// [job.Layout] has it, and that the command has begun.
const beginning = `read -r order; read -r claim <"$2/claim"
printf '{"v":1,"claim":"%s","runner":"nobody","mark":"none","started_at":"2026-01-01T12:00:00Z"}' "$claim" >"$2/identity"
echo >&3`

// supervise makes a supervisor with a home of its own.
func (p *play) supervise() *job.Supervisor {
	p.home = p.TempDir()
	return job.NewSupervisor(job.Config{
		Store: p.s, Dir: p.home, Program: []string{"/bin/sh", "-c", beginning, "runner"}, Log: slog.New(slog.DiscardHandler),
	})
}

func (p *play) launchDir(j job.Job, file string) string {
	return filepath.Join(p.home, j.ID, "1", file)
}

// launch starts a job. Where it is not known whether it was, no command is begun.
func (p *play) launch(s *job.Supervisor) (j job.Job) {
	defer func() {
		if v := recover(); v != nil {
			if begun, _ := filepath.Glob(filepath.Join(p.home, "*", "*", "identity")); len(begun) > 0 && v == (stopped{}) {
				p.Error("a command was begun, although its job's start was not acknowledged")
			}
			panic(v)
		}
	}()
	key := id.New("key_")
	p.stepLoosely("start", func(ctx context.Context) (err error) {
		j, err = s.Start(ctx, job.Starting{Spec: job.Spec{Shell: "train", Cwd: "/"}, IdempotencyKey: key, Principal: "agent:ana"})
		return notWritten(ctx, err)
	})
	p.holdLaunch(j)
	return j
}

// holdLaunch has the launch's lock for the rest of the story, as its runner has.
func (p *play) holdLaunch(j job.Job) {
	f, err := os.OpenFile(p.launchDir(j, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		p.Fatalf("lock the launch: %v", err)
	}
	p.held = f
}

// bringIn has the supervisor look after its jobs until one of them stands as it is to.
// What fails on the way is its own to log and to try again; whatever it has written
// then holds.
func (p *play) bringIn(s *job.Supervisor, what, jobID string, done func(job.Job) bool) {
	p.Helper()
	p.stepLoosely(what, func(ctx context.Context) error {
		err := notWritten(ctx, s.Pass(ctx))
		k := checker{image: p.lookBehind(p.start), t: p.T}
		k.all()
		if j := p.job(jobID); err == nil && !done(j) {
			err = txn.ErrNotCommitted.Say("The job is %s.", j.Status)
		}
		return err
	})
}

// runnerPrints appends n events of output to what the runner leaves.
func (p *play) runnerPrints(j job.Job, n int) {
	p.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"output","output":{"type":"progress","data":{"n":%d}}}`+"\n", i)
	}
	f, err := os.OpenFile(p.launchDir(j, "events"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(b.Bytes())
		f.Close()
	}
	if err != nil {
		p.Fatal(err)
	}
}

// runnerEnds leaves the last that a runner writes.
func (p *play) runnerEnds(j job.Job) {
	p.Helper()
	b, err := json.Marshal(map[string]any{
		"v": job.Layout, "claim": j.Claim, "runner": j.Runner, "status": job.Completed, "exit_code": 0, "started_at": j.StartedAt, "ended_at": j.StartedAt.Add(time.Minute),
	})
	if err == nil {
		err = os.WriteFile(p.launchDir(j, "status.new"), b, 0o600)
	}
	if err == nil {
		err = os.Rename(p.launchDir(j, "status.new"), p.launchDir(j, "status"))
	}
	if err != nil {
		p.Fatal(err)
	}
}
