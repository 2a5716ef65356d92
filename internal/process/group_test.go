//go:build unix

package process

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestGroupExit(t *testing.T) {
	t.Parallel()
	g, _ := startHelper(t, "exit")
	state, err := g.Wait()
	if err != nil || state.ExitCode() != 7 {
		t.Errorf("Wait = %v, %v", state, err)
	}
	g.Signal(os.Kill) // does nothing, and reaches nobody
}

func TestGroupStartFails(t *testing.T) {
	t.Parallel()
	if _, err := Start(exec.Command("/no/such/program")); err == nil {
		t.Error("it started")
	}
}

func TestGroupLeadsItsOwn(t *testing.T) {
	t.Parallel()
	g, out := startHelper(t, "hang")
	readLine(t, out)
	pgid, err := syscall.Getpgid(g.PID())
	if err != nil || pgid != g.PID() || pgid == syscall.Getpgrp() {
		t.Errorf("group %d of process %d, ours is %d: %v", pgid, g.PID(), syscall.Getpgrp(), err)
	}
	g.Signal(syscall.SIGTERM)
	state, err := g.Wait()
	if err != nil || state.ExitCode() != -1 || state.String() != "signal: terminated" {
		t.Errorf("Wait = %v, %v", state, err)
	}
}

func TestGroupStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		role  string
		grace time.Duration
		want  string
	}{
		{"hang", time.Minute, "signal: terminated"},
		{"stubborn", 50 * time.Millisecond, "signal: killed"},
	} {
		t.Run(tt.role, func(t *testing.T) {
			t.Parallel()
			g, out := startHelper(t, tt.role)
			readLine(t, out)
			g.Stop(tt.grace, nil)
			state, err := g.Wait()
			if err != nil || state.String() != tt.want {
				t.Errorf("Wait = %v, %v; want %s", state, err, tt.want)
			}
		})
	}
}

// The leader obeys and its child does not: the child gets the grace too, and is killed.
func TestGroupStopReachesWhatTheLeaderStarted(t *testing.T) {
	t.Parallel()
	g, out := startHelper(t, "parent")
	r := bufio.NewReader(out)
	var child Identity
	for range 2 { // its process id, and that it is ready, in either order
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			if child, err = Of(pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, r)
	}()
	start := time.Now()
	g.Stop(300*time.Millisecond, done)
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("the child was killed after %s, before its grace was over", took)
	}
	<-done // its output ends only when it does
	if _, err := g.Wait(); err != nil {
		t.Error(err)
	}
	for range 1000 {
		if !Alive(child) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the child still runs")
}

func TestGroupConcurrently(t *testing.T) {
	t.Parallel()
	g, out := startHelper(t, "hang")
	readLine(t, out)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { g.Signal(syscall.SIGTERM); <-g.Exited(); g.Signal(os.Kill) })
	}
	if _, err := g.Wait(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
