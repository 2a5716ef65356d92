package process

import (
	"errors"
	"os"
	"os/exec"
)

// waited collects cmd. That it failed or was killed is in the state, not an error.
func waited(cmd *exec.Cmd) (*os.ProcessState, error) {
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState, err
}
