//go:build unix

package cli_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

const slowConfig = `
tools:
  - name: slow
    side_effect: local_mutation
    exec: [sh, slow.sh]
agents:
  patient: {exec: [sh, agent.sh]}
`

// slowRun is a run in a process of its own whose first tool has been started and
// waits to be let go on.
type slowRun struct {
	*world
	cmd    *exec.Cmd
	stderr *bufio.Reader
}

func startSlowRun(t *testing.T) *slowRun {
	t.Helper()
	w := newWorld(t)
	for name, text := range map[string]string{
		"placet.yaml": slowConfig,
		"slow.sh":     "echo x >>effects; echo started >started; cat release >/dev/null; echo '{}'",
		"agent.sh":    `case $(cat) in *'"index":1'*) echo '{"kind":"complete"}' ;; *) echo '{"kind":"tool_call","tool":"slow","args":{}}' ;; esac`,
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, fifo := range []string{"started", "release"} {
		if err := syscall.Mkfifo(filepath.Join(w.dir, fifo), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &slowRun{world: w, cmd: w.command("run", "start", "--goal", "wait", "--agent", "patient")}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stderr = bufio.NewReader(stderr)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(filepath.Join(w.dir, "started")); err != nil { // blocks until the tool writes to it
		t.Fatal(err)
	}
	return s
}

// signal sends a signal and waits until it was heeded.
func (s *slowRun) signal(sig os.Signal, until string) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	for until != "" {
		line, err := s.stderr.ReadString('\n')
		if err != nil {
			s.t.Fatalf("it ended without saying %q: %v", until, err)
		}
		if strings.Contains(line, until) {
			return
		}
	}
}

func (s *slowRun) end() (code int) {
	s.t.Helper()
	_, _ = io.Copy(io.Discard, s.stderr)
	_ = s.cmd.Wait() // the code says it
	return s.cmd.ProcessState.ExitCode()
}

func (s *slowRun) stored() (r run.Run) {
	s.t.Helper()
	err := txn.View(s.t.Context(), s.store, func(tx run.Tx) error {
		rs, err := tx.Runs(run.Query{Space: "main"})
		if len(rs) == 1 {
			r = rs[0]
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// The first signal lets the step end and gives the lease back: another process goes
// on at once, and nothing is repeated.
func TestASignalEndsARunAfterItsStep(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := startSlowRun(t)
			s.signal(sig, "stopping after this step")
			if err := os.WriteFile(filepath.Join(s.dir, "release"), []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
			if code := s.end(); code != 1 {
				t.Errorf("exit code %d", code)
			}
			r := s.stored()
			if r.Status != run.Running || !r.LeaseUntil.IsZero() || r.StepCount != 1 || r.Current.Status != run.Done {
				t.Fatalf("%s, lease until %s, step %d %s", r.Status, r.LeaseUntil, r.StepCount, r.Current.Status)
			}
			out, errs, code := s.run("doctor")
			if code != 1 || !strings.Contains(out, "1 run that nobody works on, such as "+r.ID) {
				t.Errorf("doctor: code %d\n%s%s", code, out, errs)
			}
			out, errs, code = s.run("run", "resume", r.ID)
			if code != 0 {
				t.Errorf("resume: code %d\n%s%s", code, out, errs)
			}
			if b, _ := os.ReadFile(filepath.Join(s.dir, "effects")); string(b) != "x\n" {
				t.Errorf("effects %q", b)
			}
		})
	}
}

// A second signal ends the step as well. What became of its tool is not known, and
// that is what the run waits to be told.
func TestASecondSignalEndsTheStep(t *testing.T) {
	t.Parallel()
	s := startSlowRun(t)
	s.signal(os.Interrupt, "stopping after this step")
	s.signal(os.Interrupt, "")
	if code := s.end(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	r := s.stored()
	if r.Status != run.Waiting || r.Current.Status != run.AwaitingApproval {
		t.Fatalf("%s, step %s", r.Status, r.Current.Status)
	}
	if d := s.show(r.ApprovalID); d.Kind != "interrupted_side_effect" {
		t.Errorf("it waits for a yes to %s", d.Kind)
	}
}
