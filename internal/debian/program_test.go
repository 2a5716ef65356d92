package debian

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/tidy"
)

// world is a folder that is all of PATH, with an apt-get that obeys script.
type world struct {
	t   *testing.T
	dir string
	env map[string]string
	installer
}

var thing = Program{Name: "Thing", Variable: "PLACET_TEST_THING", Names: []string{"thing-one", "thing-two"}, Packages: []string{"thing", "thing-fonts"}}

func newWorld(t *testing.T, script string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), env: map[string]string{}}
	w.env["PATH"] = w.dir
	w.installer = installer{root: true, lock: w.at("lock"), again: time.Millisecond, env: func(name string) string { return w.env[name] }}
	if script != "" {
		w.write("apt-get", "#!/bin/sh\ncd "+w.dir+"\necho \"$*\" >>log\n"+script)
	}
	return w
}

func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := tidy.WriteProgram(w.at(name), text); err != nil {
		w.t.Fatal(err)
	}
}

// calls are the arguments that apt-get was run with.
func (w *world) calls() []string {
	w.t.Helper()
	b, err := os.ReadFile(w.at("log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// installs is what apt-get has to do for thing-two to be there.
const installs = `case "$*" in *install*) echo '#!/bin/sh' >thing-two.new; chmod +x thing-two.new; mv thing-two.new thing-two ;; esac
`

func TestFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "exit 1")
	w.write("thing-two", "")
	if got, err := w.path(t.Context(), thing); err != nil || got != w.at("thing-two") {
		t.Errorf("%q %v", got, err)
	}
	w.write("thing-one", "")
	if got, err := w.path(t.Context(), thing); err != nil || got != w.at("thing-one") {
		t.Errorf("the first name does not win: %q %v", got, err)
	}
	w.env[thing.Variable] = w.at("apt-get")
	if got, err := w.path(t.Context(), thing); err != nil || got != w.at("apt-get") {
		t.Errorf("the variable does not win: %q %v", got, err)
	}
	w.env[thing.Variable] = w.at("no-such")
	if got, err := w.path(t.Context(), thing); err == nil || !strings.Contains(err.Error(), thing.Variable) {
		t.Errorf("what the variable names is not there: %q %v", got, err)
	}
	if got := w.calls(); got != nil {
		t.Errorf("apt-get was run: %q", got)
	}
}

// Who must not or cannot install is told what to install.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		root   bool
	}{"not root": {installs, false}, "no apt-get": {"", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.script)
			w.root = tt.root
			_, err := w.path(t.Context(), thing)
			if err == nil || !strings.Contains(err.Error(), "Thing is not here") || !strings.Contains(err.Error(), "apt-get install thing thing-fonts") ||
				!strings.Contains(err.Error(), thing.Variable) {
				t.Error(err)
			}
			if got := w.calls(); got != nil {
				t.Errorf("apt-get was run: %q", got)
			}
		})
	}
}

// Many want it at once; it is installed once.
func TestInstalledOnce(t *testing.T) {
	t.Parallel()
	for range 200 {
		w := newWorld(t, installs)
		gate := make(chan struct{})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				<-gate
				if got, err := w.path(t.Context(), thing); err != nil || got != w.at("thing-two") {
					t.Errorf("%q %v", got, err)
				}
			})
		}
		close(gate)
		all.Wait()
		if got := w.calls(); len(got) != 1 || !strings.HasSuffix(got[0], "install -y --no-install-recommends thing thing-fonts") {
			t.Fatalf("apt-get was run so: %q", got)
		}
	}
}

// apt-get asks for news only where what it knows is not enough.
func TestInstallAfterUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `case "$*" in *update*) : >updated ;; esac
[ -e updated ] || exit 100
`+installs)
	if _, err := w.path(t.Context(), thing); err != nil {
		t.Error(err)
	}
	if got := w.calls(); len(got) != 3 || !strings.HasSuffix(got[1], "update") {
		t.Errorf("apt-get was run so: %q", got)
	}
}

func TestInstallFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo no disk; exit 100")
	if _, err := w.path(t.Context(), thing); err == nil || !strings.Contains(err.Error(), "no disk") || !strings.Contains(err.Error(), "Thing") {
		t.Error(err)
	}
	w = newWorld(t, "exit 0")
	if _, err := w.path(t.Context(), thing); err == nil || !strings.Contains(err.Error(), "was installed, and is not in PATH") {
		t.Error(err)
	}
}

func TestTurnEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, installs)
	unlock, err := w.turn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.path(ctx, thing); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	unlock()
	if _, err := w.path(t.Context(), thing); err != nil {
		t.Error(err)
	}
}
