package process

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// Group is a started program together with what it started itself, as far as that
// stayed in its process group. Methods are safe for concurrent use.
//
// Call [Group.Wait] exactly once; until then the program's process id stays taken,
// so a signal never reaches a stranger.
type Group struct {
	cmd     *exec.Cmd
	exited  chan struct{}
	collect func() (*os.ProcessState, error) // set before exited is closed

	mu   sync.Mutex
	gone bool // collected: its id may be given again
}

// Start starts cmd as the leader of a new process group. cmd must not have been
// made with a context: the group is stopped as a whole, with [Group.Stop].
func Start(cmd *exec.Cmd) (*Group, error) {
	lead(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &Group{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(g.exited)
		g.collect = awaitExit(g.cmd)
	}()
	return g, nil
}

// PID is the process id of the leader, and the id of the group.
func (g *Group) PID() int { return g.cmd.Process.Pid }

// Exited is closed when the leader ended. What it started may still run.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// Signal sends sig to every process of the group. It does nothing after Wait.
func (g *Group) Signal(sig os.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		signalGroup(g.cmd.Process, sig)
	}
}

// Stop asks the group to end, and after grace, or as soon as done is closed and the
// leader has ended, kills what is left of it. It returns then; Wait is still to be called.
func (g *Group) Stop(grace time.Duration, done <-chan struct{}) {
	g.Signal(interruptSignal)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for exited := g.exited; exited != nil || done != nil; {
		select {
		case <-exited:
			exited = nil
		case <-done:
			done = nil
		case <-timer.C:
			exited, done = nil, nil
		}
	}
	g.Signal(os.Kill)
}

// Wait waits for the leader to end and returns its state. The error is about the
// waiting, not about how the program ended.
func (g *Group) Wait() (*os.ProcessState, error) {
	<-g.exited
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	return g.collect()
}
