package process

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSelf(t *testing.T) {
	t.Parallel()
	me := Self()
	if me.PID != os.Getpid() || me.Boot == "" || me.Space == "" {
		t.Errorf("Self = %+v", me)
	}
	if Look(me) != Running || !Alive(me) || !me.SameHost() {
		t.Errorf("this process is %s", Look(me))
	}
	again, err := Of(os.Getpid())
	if err != nil || again != me {
		t.Errorf("Of = %+v, %v; want %+v", again, err, me)
	}
}

func TestIdentityText(t *testing.T) {
	t.Parallel()
	for _, id := range []Identity{Self(), {Boot: "b", Space: "0", PID: 1}, {Boot: "a-b", Space: "4026531836", PID: math.MaxInt32, Start: math.MaxUint64}} {
		got, err := Parse(id.String())
		if err != nil || got != id {
			t.Errorf("Parse(%q) = %+v, %v", id, got, err)
		}
	}
	for _, s := range []string{
		"", "v1", "v1:b:0:1", "v1:b:0:1:2:3", "v2:b:0:1:2", "v1::0:1:2", "v1:b::1:2", "v1:b:0:0:2", "v1:b:0:-1:2",
		"v1:b:0:x:2", "v1:b:0:1:x", "v1:b:0:1:-1", "v1:b:0:01:2", "v1:b:0:+1:2", "v1:b:0:1:02", "v1:b:0:2147483648:1",
		" v1:b:0:1:2", "v1:b:0:1:2\n",
	} {
		if id, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %+v", s, id)
		}
	}
}

func TestLookElsewhere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Identity){
		"another boot":      func(id *Identity) { id.Boot += "x" },
		"another namespace": func(id *Identity) { id.Space += "1" },
		"no process":        func(id *Identity) { id.PID = 0 },
		"nothing":           func(id *Identity) { *id = Identity{} },
	} {
		id := Self()
		change(&id)
		if got := Look(id); got != Hidden || Alive(id) || id.SameHost() {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLookOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	g, out := startHelper(t, "hang")
	readLine(t, out)
	id, err := Of(g.PID())
	if err != nil {
		t.Fatal(err)
	}
	if Look(id) != Running {
		t.Errorf("while it runs: %s", Look(id))
	}
	g.Signal(os.Kill)
	<-g.Exited()
	// It has ended and was not collected: it does nothing any more.
	if got := Look(id); got != Gone {
		t.Errorf("ended, not collected: %s", got)
	}
	if _, err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := Look(id); got != Gone || Alive(id) {
		t.Errorf("collected: %s", got)
	}
	if _, err := Of(id.PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Of: %v", err)
	}
}

// The id of a process that ended may be given to another; its start time tells.
func TestLookOfAnotherWithTheSameID(t *testing.T) {
	t.Parallel()
	id := Self()
	if id.Start == 0 {
		t.Skip("start times are not read here")
	}
	id.Start--
	if got := Look(id); got != Gone {
		t.Errorf("an earlier process with our id: %s", got)
	}
}

func TestSelfFromAnotherProcess(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(exe, "helper", "self").Output()
	if err != nil {
		t.Fatal(err)
	}
	id, err := Parse(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if !id.SameHost() || id.PID == os.Getpid() || Look(id) != Gone {
		t.Errorf("%+v is %s", id, Look(id))
	}
}
