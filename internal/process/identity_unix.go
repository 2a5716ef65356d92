//go:build unix && !linux

package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func bootID() string   { return hostName() }
func pidSpace() string { return "0" }

// startTime is not read on these systems: 0 for a process that exists.
func startTime(pid int) (uint64, error) {
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return 0, nil
}

// look cannot tell a process from a later one with its id, so it says Running of both.
func look(id Identity) Sight {
	if err := unix.Kill(id.PID, 0); errors.Is(err, unix.ESRCH) {
		return Gone
	}
	return Running
}
