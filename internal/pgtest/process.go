package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
)

// process is a program that does not outlive ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// launch starts cmd as the user that servers run as, in a process group of its own,
// so that an interrupt at the terminal is for us alone to answer. lastWord is the
// signal that it gets when we die.
//
// That signal is sent when the thread that started the program ends, not when the
// process does: so a thread is kept for it as long as the program runs.
func launch(cmd *exec.Cmd, lastWord syscall.Signal) (*process, error) {
	uid, gid, err := serverUser()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = attributes(lastWord)
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal does nothing when the program has ended.
func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

// serverUser is who servers run as. PostgreSQL and pgbouncer refuse root, so root
// lends them the account that their packages make; anybody else (uid -1) runs them
// as themselves.
func serverUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return -1, -1, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return -1, -1, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user postgres to run it as: %w", err)
	}
	uid, err = strconv.Atoi(account.Uid)
	if err != nil {
		return -1, -1, err
	}
	gid, err = strconv.Atoi(account.Gid)
	return uid, gid, err
}
