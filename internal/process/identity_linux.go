package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id
	}
	return hostName()
}

// pidSpace is the number of our pid namespace. Two containers on one kernel have
// the same boot id, and their process ids mean different processes.
func pidSpace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "0"
	}
	return strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]")
}

// startTime is when the process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	_, start, err := readStat(pid)
	return start, err
}

// readStat is the state and the start time in /proc/PID/stat.
func readStat(pid int) (state byte, start uint64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return 0, 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	case err != nil:
		return 0, 0, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return parseStat(string(b))
}

// parseStat reads the fields behind the program's name, which may itself have
// spaces and parentheses.
func parseStat(stat string) (state byte, start uint64, err error) {
	const startField = 22 - 3 // counted from the state, which is field 3
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) <= startField || len(f[0]) != 1 {
		return 0, 0, fmt.Errorf("unexpected process state %q", stat)
	}
	start, err = strconv.ParseUint(f[startField], 10, 64)
	return f[0][0], start, err
}

func look(id Identity) Sight {
	state, start, err := readStat(id.PID)
	switch {
	case errors.Is(err, os.ErrProcessDone) && hiddenByMount(id.PID):
		return Running
	case errors.Is(err, os.ErrProcessDone):
		return Gone
	case err != nil:
		return Running // it is there, and we may not look closer
	case start != id.Start && id.Start != 0:
		return Gone // the id was given to another
	case state == 'Z' || state == 'X':
		return Gone
	}
	return Running
}

// hiddenByMount reports whether /proc hides a process that exists (hidepid).
func hiddenByMount(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
