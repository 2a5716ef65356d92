package job

import (
	"log/slog"
	"os/exec"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/internal/process"
)

// A process that was given the id of a runner, or of a leader, is not signalled: its
// start time is another, and it carries no mark.
func TestStrangerIsLeftAlone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	stranger, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier := stranger
	earlier.Start--
	d := launchDir(t.TempDir())
	id := identity{V: Layout, Claim: "c", Runner: earlier.String(), Leader: earlier.String(), Mark: randomText()}
	if err := writeJSON(d.file(identityFile), id); err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{conf: Config{Log: slog.New(slog.DiscardHandler)}}
	s.kill(Job{Claim: "c"}, d)
	if n := killLeftovers(id); n != 0 {
		t.Errorf("%d processes were taken for the job's", n)
	}
	if !process.Alive(stranger) {
		t.Error("the stranger was killed")
	}
}

// A launch whose claim was made void does not begin, and a runner that finds the lock
// taken does not either.
func TestVoidClaim(t *testing.T) {
	t.Parallel()
	d := launchDir(t.TempDir())
	if err := d.prepare("one"); err != nil {
		t.Fatal(err)
	}
	if ours, err := d.claimed("one"); err != nil || !ours {
		t.Errorf("%v, %v", ours, err)
	}
	if err := writeWhole(d.file(claimFile), []byte(voidClaim)); err != nil {
		t.Fatal(err)
	}
	if ours, err := d.claimed("one"); err != nil || ours {
		t.Errorf("%v, %v", ours, err)
	}
	held, err := d.lock()
	if err != nil || held == nil {
		t.Fatal(err)
	}
	defer held.Close()
	if again, err := d.lock(); err != nil || again != nil {
		t.Errorf("the lock was taken twice: %v", err)
	}
	if _, found, err := d.status("one"); err != nil || found {
		t.Errorf("a status: %v", err)
	}
}

// A session whose number was given to another process since is not the launch's.
func TestRecycledSessionIsLeftAlone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "3600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	leader, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*process.Identity){
		"start": func(id *process.Identity) { id.Start-- }, "boot": func(id *process.Identity) { id.Boot = "other" },
		"namespace": func(id *process.Identity) { id.Space = "1" },
	} {
		earlier := leader
		change(&earlier)
		if n := killLeftovers(identity{Session: earlier.String(), Mark: randomText()}); n != 0 {
			t.Errorf("another %s: %d processes were taken for the job's", what, n)
		}
	}
	if n := killLeftovers(identity{Session: leader.String(), Mark: randomText()}); n != 1 {
		t.Errorf("%d processes of the session itself", n)
	}
}
