package process

import (
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the leader ended, with what collects it. Until then its
// process id, and with it the group's, is not given to another.
func awaitExit(cmd *exec.Cmd) (collect func() (*os.ProcessState, error)) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return func() (*os.ProcessState, error) { return waited(cmd) }
		}
	}
}
