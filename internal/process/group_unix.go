//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

var interruptSignal os.Signal = syscall.SIGTERM

func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		// An error means that nobody is left to receive it.
		_ = syscall.Kill(-p.Pid, s)
	}
}
