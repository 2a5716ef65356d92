package job_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// task is what another process of a test does: it starts a job and looks after it,
// until it is killed.
type task struct {
	DB, Dir string
	Spec    job.Spec
	// DieLaunching kills it between the claim and the runner; DieBegun before it can
	// note that the command has begun.
	DieLaunching, DieBegun bool
}

func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// dying is a store whose process is killed at its second write.
type dying struct {
	txn.Store
	writes atomic.Int64
}

func (d *dying) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if d.writes.Add(1) == 2 {
		die()
	}
	return d.Store.Update(ctx, fn)
}

func supervise(args []string) {
	var k task
	if err := json.Unmarshal([]byte(args[0]), &k); err != nil {
		panic(err)
	}
	ctx := context.Background()
	st, err := sqlite.Open(ctx, k.DB, nil)
	if err != nil {
		panic(err)
	}
	c := job.Config{Store: st, Dir: k.Dir, Program: []string{os.Args[0]}, Log: slog.New(slog.DiscardHandler)}
	if k.DieLaunching {
		c.Environ = func(context.Context, job.Job) (map[string]string, error) { die(); return nil, nil }
	}
	if k.DieBegun {
		c.Store = &dying{Store: st}
	}
	s := job.NewSupervisor(c)
	j, err := s.Start(ctx, job.Starting{Spec: k.Spec})
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString(j.ID + "\n"); err != nil {
		panic(err)
	}
	panic(s.Loop(ctx))
}

// remote is another process that supervises.
type remote struct {
	cmd *exec.Cmd
	id  string // of the job that it started; empty: it was killed before it could say
}

func (w *world) remote(k task) remote {
	w.Helper()
	k.DB, k.Dir = w.db, w.dir
	b, err := json.Marshal(k)
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "helper", "supervise", string(b))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	r := remote{cmd, strings.TrimSpace(line)}
	w.Cleanup(r.kill)
	return r
}

func (r remote) kill() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}

// below are the processes below pid.
func below(pid int) []int {
	parents := map[int]int{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		child, _ := strconv.Atoi(strings.Split(name, "/")[2])
		parents[child], _ = strconv.Atoi(f[1])
	}
	var list []int
	for child := range parents {
		for at := parents[child]; at > 1; at = parents[at] {
			if at == pid {
				list = append(list, child)
				break
			}
		}
	}
	return list
}

// sleeping counts the sleeps below pid.
func sleeping(pid int) (n int) {
	for _, child := range below(pid) {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/comm"); err == nil && string(b) == "sleep\n" {
			n++
		}
	}
	return n
}

// runner is the process of a running job's runner.
func (w *world) runner(j job.Job) process.Identity {
	w.Helper()
	id, err := process.Parse(j.Runner)
	if err != nil {
		w.Fatalf("job %s has no runner: %v", j.ID, err)
	}
	return id
}

// identities are of the runner and of all below it.
func (w *world) identities(j job.Job) []process.Identity {
	w.Helper()
	all := []process.Identity{w.runner(j)}
	for _, pid := range below(all[0].PID) {
		if id, err := process.Of(pid); err == nil {
			all = append(all, id)
		}
	}
	return all
}

func (w *world) gone(all []process.Identity) {
	w.Helper()
	for _, id := range all {
		if process.Alive(id) {
			w.Errorf("process %d still runs", id.PID)
		}
	}
}

func (w *world) killRunner(j job.Job) {
	w.Helper()
	if err := unix.Kill(w.runner(j).PID, unix.SIGKILL); err != nil {
		w.Fatal(err)
	}
}

// A runner that is killed leaves nothing running, and its job is orphaned, with or
// without a loop.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	for name, looping := range map[string]bool{"with a loop": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			if looping {
				w.loop(w.s)
			}
			j := w.start(command("family"))
			w.until(j.ID, "ready")
			all := w.identities(j)
			if len(all) < 6 {
				t.Fatalf("only %d processes", len(all))
			}
			asked, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
			if err != nil {
				t.Fatal(err)
			}
			w.killRunner(j)
			if j = w.end(j.ID); j.Status != job.Orphaned || j.Pending != 0 {
				t.Errorf("%+v", j)
			}
			w.gone(all)
			if got := types(w.events(j.ID)); got != "queued started decision_requested decision_withdrawn orphaned" {
				t.Errorf("events: %s", got)
			}
			if _, err := w.op.Resolve(w.ctx, j.ID, asked.ID, decision.Answering{Choice: "approve", By: "ana"}); err == nil {
				t.Error("the question was answered")
			}
		})
	}
}

// Whatever the command starts dies with it: in its group, in another session, left to
// others.
func TestFamilyEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("family"))
	w.until(j.ID, "ready")
	all := w.identities(j)
	got, err := w.s.Stop(w.ctx, j.ID, "ana", 0)
	if err != nil || got.Status != job.Cancelled {
		t.Fatalf("%+v, %v", got, err)
	}
	w.gone(all[1:])
	j = w.start(shell(`setsid sleep 3600 & sleep 3600 & echo ready; read x`))
	w.until(j.ID, "ready")
	all = w.identities(j)
	if err := w.s.Send(w.ctx, j.ID, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	if j = w.end(j.ID); j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
	w.gone(all[1:])
}

// A job survives the process that supervises it: a question asked before is answered
// after, and nothing is told twice.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.remote(task{Spec: shell(`echo 'AGENT_EVENT {"type":"a"}'; read x; echo 'AGENT_EVENT {"type":"b"}'`)})
	if got, err := w.s.Wait(w.ctx, job.Waiting{JobID: r.id, Types: []string{"output:a"}}); err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v, %v", got, err)
	}
	asked, err := w.op.Ask(w.ctx, "main", r.id, decision.Asking{Prompt: "Go on?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	r.kill()
	if j := w.get(r.id); j.Status != job.Running || j.Pending != 1 {
		t.Fatalf("%+v", j)
	}
	if _, err := w.op.Resolve(w.ctx, r.id, asked.ID, decision.Answering{Choice: "approve", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, r.id, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	if j := w.end(r.id); j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
	const want = "queued started job.output decision_requested decision_resolved job.output completed"
	if got := types(w.events(r.id)); got != want {
		t.Errorf("events: %s", got)
	}
}

// Both are killed while a question waits; what was printed before is not lost.
func TestBothKilled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.remote(task{Spec: command("print", "250", "10")})
	w.end(r.id)
	r = w.remote(task{Spec: shell(`for i in 1 2 3; do echo "AGENT_EVENT {\"type\":\"n$i\"}"; done; echo ready; sleep 3600`)})
	w.until(r.id, "ready")
	if _, err := w.op.Ask(w.ctx, "main", r.id, decision.Asking{Prompt: "Go on?", By: "bot"}); err != nil {
		t.Fatal(err)
	}
	all := w.identities(w.get(r.id))
	r.kill()
	w.killRunner(w.get(r.id))
	if j := w.end(r.id); j.Status != job.Orphaned || j.Outputs != 3 {
		t.Errorf("%+v", j)
	}
	w.gone(all)
	es := w.events(r.id)
	if n := strings.Count(types(es), "job.output"); n != 3 || !strings.HasSuffix(types(es), "decision_withdrawn orphaned") {
		t.Errorf("events: %s", types(es))
	}
}

// A supervisor that dies between its claim and its runner leaves a job that the next
// one launches; one that dies right after leaves a running one. It runs once.
func TestLauncherKilled(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]task{"before the runner": {DieLaunching: true}, "after it": {DieBegun: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			witness := filepath.Join(t.TempDir(), "witness")
			k.Spec = shell(`echo once >> ` + witness + `; read x`)
			r := w.remote(k)
			r.kill()
			js, err := w.s.List(w.ctx, job.Query{})
			if err != nil || len(js) != 1 {
				t.Fatalf("%d jobs, %v", len(js), err)
			}
			got, err := w.s.Wait(w.ctx, job.Waiting{JobID: js[0].ID, Types: []string{"started"}})
			if err != nil || got.Result != job.GotEvent {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := w.s.Send(w.ctx, js[0].ID, nil, true); err != nil {
				t.Fatal(err)
			}
			w.end(js[0].ID)
			if b, err := os.ReadFile(witness); err != nil || string(b) != "once\n" {
				t.Errorf("it ran otherwise than once: %q, %v", b, err)
			}
			if got := types(w.events(js[0].ID)); got != "queued started failed" && got != "queued started completed" {
				t.Errorf("events: %s", got)
			}
		})
	}
}

// A runner has a session of its own and does not heed what a terminal sends; told to
// end by its machine, it ends the command first.
func TestRunnerIsDetached(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	pid := w.runner(j).PID
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("it is in session %d, %v", sid, err)
	}
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT} {
		if err := unix.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.s.Send(w.ctx, j.ID, []byte("still there\n"), false); err != nil {
		t.Fatal(err)
	}
	w.until(j.ID, "got still there")
	all := w.identities(j)
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if j = w.end(j.ID); j.Status != job.Failed || !strings.Contains(j.Failure, "told to end") {
		t.Errorf("%+v", j)
	}
	w.gone(all[1:])
}

// A job whose directory was deleted by hand is ended: nobody could hear from it.
func TestDirectoryDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("family"))
	w.until(j.ID, "ready")
	all := w.identities(j)
	w.vanish(filepath.Join(w.dir, j.ID))
	if j = w.end(j.ID); j.Status != job.Orphaned {
		t.Errorf("%+v", j)
	}
	w.s.Wait4Runners()
	w.gone(all[:1])
}

// A process that emptied its environment and stayed in the session dies with a runner
// that is killed.
func TestRunnerKilledWithUnmarkedChild(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(shell(`env -i sleep 3600 & echo $!; wait`))
	line := w.until(j.ID, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	all := append(w.identities(j), child)
	w.killRunner(j)
	if j = w.end(j.ID); j.Status != job.Orphaned {
		t.Errorf("%+v", j)
	}
	awaitGone(t, all)
}

// A command that ends by the input that it is sent has been sent it: whoever sent it is
// told so, however soon the runner is gone.
func TestSendThatEndsTheCommand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for range 20 {
		j := w.start(shell("read line"))
		if err := w.s.Send(w.ctx, j.ID, []byte("x\n"), false); err != nil {
			t.Fatal(err)
		}
		w.end(j.ID)
	}
}
