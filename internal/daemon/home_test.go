package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/place"
)

// onServer is a home for a database that is never connected to.
func onServer(t *testing.T, home, url string) Home {
	t.Helper()
	h, err := HomeOf(at(t, home, url))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func at(t *testing.T, home, given string) place.Place {
	t.Helper()
	p, err := place.Parse(given, home)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where things lie has not to change: the daemon of another release finds them there.
func TestWhereAHomeLies(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	beside, err := HomeOf(place.File(filepath.Join(dir, "p.db")))
	if err != nil {
		t.Fatal(err)
	}
	p := at(t, dir, "postgres://ana:s3cret@db.internal/placet")
	folder, _ := p.Folder()
	own := onServer(t, dir, "postgres://ana:s3cret@db.internal/placet")
	for begin, h := range map[string]Home{filepath.Join(dir, "p.db."): beside, folder + "/": own} {
		got := []string{h.lockFile(), h.foundFile(), h.Socket(), h.TokenFile(), h.AgentTokenFile(), h.JobsDir()}
		for i, name := range []string{"serve.lock", "serve.json", "sock", "admin-token", "agent-token", "jobs"} {
			if got[i] != begin+name {
				t.Errorf("%s, want %s%s", got[i], begin, name)
			}
		}
	}
	if _, err := os.Stat(folder); err == nil || own.Served() {
		t.Error("who only looks for a daemon made its folder")
	}
	if err := errors.Join(beside.make(), own.make()); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(folder); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v", err)
	}
	if err := os.Chmod(folder, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := own.make(); fault.From(err).Code != fault.Forbidden {
		t.Errorf("a folder that others can write to: %v", err)
	}
}

// One daemon has a home; two homes may be on one database.
func TestOneDaemonInAHome(t *testing.T) {
	t.Parallel()
	const url = "postgres://ana:s3cret@db.internal/placet"
	dir, other := t.TempDir(), t.TempDir()
	h := onServer(t, dir, url)
	if err := h.make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.foundFile(), []byte(`{"url":"http://127.0.0.1:1","pid":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	if f, err := h.Find(); err == nil {
		t.Errorf("what a killed daemon left is believed: %+v", f)
	}
	if err := h.tell(Found{URL: "http://127.0.0.1:7420", PID: 12}); err != nil {
		t.Fatal(err)
	}
	_, err = onServer(t, dir, "postgres://bo@db.internal:5432/placet").lock()
	var f *fault.Error
	if !errors.Is(err, ErrServed) || !errors.As(err, &f) {
		t.Fatalf("a second one: %v", err)
	}
	for _, want := range []string{"Another placet serve has the store postgres://bo@db.internal:5432/placet", dir, "process 12, at http://127.0.0.1:7420", "PLACET_HOME"} {
		if !strings.Contains(f.Message+f.Advice, want) {
			t.Errorf("it does not say %s: %s %s", want, f.Message, f.Advice)
		}
	}
	if strings.Contains(h.served().Error(), "s3cret") {
		t.Error(h.served())
	}
	for _, h := range []Home{onServer(t, other, url), onServer(t, dir, "postgres://db.internal/two")} {
		if err := h.make(); err != nil {
			t.Fatal(err)
		}
		lock, err := h.lock()
		if err != nil {
			t.Fatal(err)
		}
		unlock(lock)
	}
	unlock(lock)
	if h.Served() {
		t.Error("it is served still")
	}
}

// While a store is held no daemon starts on it, and none is believed to be there.
func TestHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, p := range []place.Place{place.File(filepath.Join(dir, "p.db")), at(t, dir, "postgres://db.internal/placet")} {
		h, err := HomeOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.make(); err != nil {
			t.Fatal(err)
		}
		giveBack, err := Hold(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.lock(); !errors.Is(err, ErrServed) {
			t.Errorf("a daemon on %s: %v", p, err)
		}
		if _, err := h.Find(); err == nil {
			t.Errorf("a daemon is found at %s", p)
		}
		giveBack()
		lock, err := h.lock()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Hold(p); !errors.Is(err, ErrServed) {
			t.Errorf("%s is served, and was held: %v", p, err)
		}
		unlock(lock)
	}
	for _, p := range []place.Place{place.File(filepath.Join(dir, "no", "p.db")), at(t, filepath.Join(dir, "none"), "postgres://db.internal/placet")} {
		giveBack, err := Hold(p)
		if err != nil {
			t.Fatal(err)
		}
		giveBack()
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("holding made a home")
	}
}
