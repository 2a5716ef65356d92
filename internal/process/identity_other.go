//go:build !unix

package process

import (
	"fmt"
	"os"
)

func bootID() string   { return hostName() }
func pidSpace() string { return "0" }

// startTime is not read on these systems: 0 for a process that exists.
func startTime(pid int) (uint64, error) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return 0, p.Release()
}

// look cannot tell a process from a later one with its id, so it says Running of both.
func look(id Identity) Sight {
	if _, err := startTime(id.PID); err != nil {
		return Gone
	}
	return Running
}
