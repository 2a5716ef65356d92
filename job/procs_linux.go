package job

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
)

// proc is a process as /proc shows it.
type proc struct {
	pid, parent, group, session int
	start                       uint64 // in clock ticks since boot
	state                       byte
}

// startField counts from the state, which is field 3 of /proc/PID/stat.
const startField = 22 - 3

// processes are all that can be seen.
func processes() map[int]proc {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	all := map[int]proc{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) <= startField || len(f[0]) != 1 {
			continue
		}
		p := proc{pid: pid, state: f[0][0]}
		p.parent, _ = strconv.Atoi(f[1])
		p.group, _ = strconv.Atoi(f[2])
		p.session, _ = strconv.Atoi(f[3])
		p.start, _ = strconv.ParseUint(f[startField], 10, 64)
		all[pid] = p
	}
	return all
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (p proc) ended() bool { return p.state == 'Z' || p.state == 'X' }

// descendants are the processes below this one. As their reaper it is the parent of
// those whose own have ended.
func descendants() []proc {
	all := processes()
	me := os.Getpid()
	var below []proc
	for _, p := range all {
		for at, n := p, 0; n < len(all); n++ {
			if at.parent == me {
				below = append(below, p)
				break
			}
			next, ok := all[at.parent]
			if !ok {
				break
			}
			at = next
		}
	}
	return below
}

// reap makes this process the parent of what the command leaves behind.
func becomeReaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// collect forgets children that have ended, but for the leader: its state is still
// to be read.
func collect(ps []proc, leader int) (left int) {
	me := os.Getpid()
	for _, p := range ps {
		switch {
		case !p.ended():
			left++
		case p.pid != leader && p.parent == me:
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
	return left
}

// signalAll signals all that the command started and says how many still run.
func signalAll(leader int, sig syscall.Signal) int {
	_ = unix.Kill(-leader, sig)
	ps := descendants()
	for _, p := range ps {
		if p.group != leader && !p.ended() {
			_ = unix.Kill(p.pid, sig)
		}
	}
	return collect(ps, leader)
}

// remaining says how many of what the command started still run.
func remaining(leader int) int { return collect(descendants(), leader) }

// boundToUs lets the command die with its runner. The thread that starts it has to
// live as long as the runner.
func boundToUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// killLeftovers kills what a lost runner left: what is in the runner's session,
// processes that carry the launch's mark, and what shares a session with one of these.
// It reports how many there were.
func killLeftovers(id identity) int {
	all := processes()
	sessions := map[int]bool{}
	hit := map[int]bool{}
	for pid := range all {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && hasMark(env, id.Mark) {
			hit[pid] = true
			sessions[all[pid].session] = true
		}
	}
	own := all[os.Getpid()].session
	if leader, ok := id.session(); ok && leader.PID != own && !recycled(all, leader) {
		for pid, p := range all {
			hit[pid] = hit[pid] || p.session == leader.PID && p.start >= leader.Start
		}
	}
	n := 0
	for pid, p := range all {
		if pid == os.Getpid() || p.ended() || !hit[pid] && (!sessions[p.session] || p.session == own) {
			continue
		}
		n++
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return n
}

// session is the leader of the runner's session, where its processes can be looked for
// from here: on this boot, in this pid namespace.
func (id identity) session() (leader process.Identity, ok bool) {
	text := id.Session
	if text == "" { // written by a release that did not note it: a runner leads its session
		text = id.Runner
	}
	leader, err := process.Parse(text)
	return leader, err == nil && leader.SameHost()
}

// recycled reports whether the number of a session was given to a stranger. That cannot
// be as long as a process of the session lives.
func recycled(all map[int]proc, leader process.Identity) bool {
	p, there := all[leader.PID]
	return there && p.start != leader.Start
}

func hasMark(environ []byte, mark string) bool {
	for _, v := range bytes.Split(environ, []byte{0}) {
		if string(v) == markName+"="+mark {
			return true
		}
	}
	return false
}
