//go:build !linux

package process

import (
	"os"
	"os/exec"
)

// awaitExit collects the leader at once: these systems have no portable way to see
// its end and leave it there. A signal sent right then could in theory reach a new
// group of the same id.
func awaitExit(cmd *exec.Cmd) (collect func() (*os.ProcessState, error)) {
	state, err := waited(cmd)
	return func() (*os.ProcessState, error) { return state, err }
}
