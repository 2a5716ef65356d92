package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the leader ended and leaves it uncollected, so that its
// process id, and with it the group's, is not given to another.
func awaitExit(g *Group) {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func collect(g *Group) (*os.ProcessState, error) {
	return waited(g.cmd)
}
