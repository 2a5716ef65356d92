package pgtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributes(lastWord syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: lastWord}
}

// killChildren kills what p started, and returns when it is dead: a server does not
// start while one of an earlier server's processes still holds its memory.
//
// PostgreSQL gives each of its processes a session, so signalling the group of the
// first reaches none of them. The first is halted before they are looked for: it can
// then neither start new ones nor collect dead ones, so every number means what it
// meant when it was found.
func killChildren(p *process) {
	pid := p.cmd.Process.Pid
	p.signal(syscall.SIGSTOP)
	_ = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) // or it has ended
	pids := children(pid)
	for _, child := range pids {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may be dead already
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for _, child := range pids {
		for _, state := stat(child); state != 0 && state != 'Z' && state != 'X'; _, state = stat(child) {
			<-ticker.C
		}
	}
}

// children asks every process for its parent: not every kernel keeps lists of
// children.
func children(pid int) (found []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, _ := stat(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// stat is a process's parent and state, or zero where there is no such process.
func stat(pid int) (parent int, state byte) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name in parentheses may hold anything, so fields count from its end.
	fields := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
	if len(fields) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0][0]
}
