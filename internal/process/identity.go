package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Identity names one process for ever, also after it ended and its id was given to another.
type Identity struct {
	Boot  string // this boot of this kernel; on systems without one, the host's name
	Space string // the pid namespace in which PID counts; "0" where there are none
	PID   int    // above 0
	Start uint64 // when it started, in the system's own count; 0 where it cannot be read
}

// Sight is what can be seen of a process from here.
type Sight string

// What [Look] may answer.
const (
	Running Sight = "running" // it runs
	Gone    Sight = "gone"    // it ended, or ended and was not collected yet
	Hidden  Sight = "hidden"  // it lives or lived where we cannot look: another host, boot or namespace
)

// Self is the identity of this process.
func Self() Identity { return self() }

var self = sync.OnceValue(func() Identity {
	pid := os.Getpid()
	start, _ := startTime(pid)
	return Identity{Boot: bootID(), Space: pidSpace(), PID: pid, Start: start}
})

// Of is the identity of the process that has this id now. The error matches
// os.ErrProcessDone if there is none.
func Of(pid int) (Identity, error) {
	start, err := startTime(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: bootID(), Space: pidSpace(), PID: pid, Start: start}, nil
}

// SameHost reports whether id is of a process that can be looked for from here.
func (id Identity) SameHost() bool { return id.PID > 0 && id.Beside(Self()) }

// Beside reports whether both are of one boot and one pid namespace, so that each can be
// looked for from where the other is.
func (id Identity) Beside(other Identity) bool {
	return id.Boot == other.Boot && id.Space == other.Space
}

// Look says what became of the process. It answers Gone only when that is sure.
func Look(id Identity) Sight {
	if !id.SameHost() {
		return Hidden
	}
	return look(id)
}

// Alive reports whether the process is seen to run. false also means that it
// cannot be seen from here; where that matters use [Look].
func Alive(id Identity) bool { return Look(id) == Running }

// String is the form that [Parse] reads: v1:boot:space:pid:start.
func (id Identity) String() string {
	return fmt.Sprintf("v1:%s:%s:%d:%d", id.Boot, id.Space, id.PID, id.Start)
}

// Parse reads what [Identity.String] wrote.
func Parse(s string) (Identity, error) {
	f := strings.Split(s, ":")
	if len(f) != 5 || f[0] != "v1" || f[1] == "" || f[2] == "" {
		return Identity{}, fmt.Errorf("process identity %q is not of the form v1:boot:space:pid:start", s)
	}
	pid, err := strconv.ParseInt(f[3], 10, 32)
	if err != nil || pid < 1 {
		return Identity{}, fmt.Errorf("process identity %q has no valid process id", s)
	}
	start, err := strconv.ParseUint(f[4], 10, 64)
	if err != nil {
		return Identity{}, fmt.Errorf("process identity %q has no valid start time", s)
	}
	id := Identity{Boot: f[1], Space: f[2], PID: int(pid), Start: start}
	if id.String() != s {
		return Identity{}, fmt.Errorf("process identity %q is not written as Placet writes it", s)
	}
	return id, nil
}

// hostName stands in for a boot id where the system has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if r == ':' || r <= ' ' {
			return '_'
		}
		return r
	}, name)
}
