package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test's own binary be the example: see world.run.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_EXAMPLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// world is a working folder.
type world struct {
	t   *testing.T
	dir string
}

func setup(t *testing.T) world {
	t.Helper()
	w := world{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(w.dir, "drafts"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) draft(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "drafts", name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run is one process of the example; ok is whether it succeeded.
func (w world) run(args ...string) (out string, ok bool) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "RUN_EXAMPLE=1")
	cmd.Dir = w.dir
	b, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(b)), err == nil
}

func (w world) mustRun(args ...string) string {
	w.t.Helper()
	out, ok := w.run(args...)
	if !ok {
		w.t.Fatalf("%v: %s", args, out)
	}
	return out
}

func (w world) mustRefuse(why string, args ...string) {
	w.t.Helper()
	if out, ok := w.run(args...); ok || !strings.Contains(out, why) {
		w.t.Errorf("%v: %s", args, out)
	}
}

func (w world) published() string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "public", "*"))
	all := ""
	for _, name := range names {
		text, readErr := os.ReadFile(name)
		if readErr != nil {
			err = readErr
		}
		all += filepath.Base(name) + ": " + string(text)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestPublishInThreeProcesses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.draft("a.md", "One.\n")
	w.draft("b.md", "Two.\n")
	id := w.mustRun("start")
	w.mustRefuse("which is pending", "resume", id)
	if shown := w.mustRun("approve", id); !strings.Contains(shown, `"name":"b.md"`) || !strings.Contains(shown, "Everybody can read") {
		t.Errorf("a person is shown %s", shown)
	}
	w.draft("c.md", "Came later.\n")
	if w.published() != "" {
		t.Error("it was published before it was gone on with")
	}
	if got := w.mustRun("resume", id); got != `"published 2"` {
		t.Errorf("it says %q", got)
	}
	w.mustRefuse("COMPLETED", "resume", id)
	if got := w.published(); got != "a.md: One.\nb.md: Two.\n" {
		t.Errorf("published:\n%s", got)
	}
}

func TestChangedDraft(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.draft("a.md", "One.\n")
	id := w.mustRun("start")
	w.mustRun("approve", id)
	w.draft("a.md", "Something else.\n")
	w.mustRefuse("a.md is not what was approved", "resume", id)
	if got := w.published(); got != "" {
		t.Errorf("published:\n%s", got)
	}
}

func TestNoDrafts(t *testing.T) {
	t.Parallel()
	if got := setup(t).mustRun("start"); got != `"nothing to publish"` {
		t.Errorf("it says %q", got)
	}
}
