//go:build !linux

package job

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
)

// These systems show less of processes: what leaves the command's group is not found.

func becomeReaper() {}

func boundToUs(*exec.Cmd) {}

func signalAll(leader int, sig syscall.Signal) int {
	_ = unix.Kill(-leader, sig)
	return remaining(leader)
}

func remaining(leader int) int {
	if err := unix.Kill(-leader, 0); errors.Is(err, unix.ESRCH) {
		return 0
	}
	return 1
}

// killLeftovers kills the group as long as its leader is the process that was started.
func killLeftovers(id identity) int {
	leader, err := process.Parse(id.Leader)
	if err != nil || !process.Alive(leader) {
		return 0
	}
	_ = unix.Kill(-leader.PID, unix.SIGKILL)
	return 1
}
