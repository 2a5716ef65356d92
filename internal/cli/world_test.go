package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
)

// patience bounds waits that end by a signal; only a failing test meets it.
const patience = 5 * time.Minute

// world is a folder with tools, a configuration and a store.
type world struct {
	t     *testing.T
	dir   string
	store *store.Store
	ex    *call.Executor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, call.Config{})
}

// newWorldWith takes what the executor should have besides the world's own.
func newWorldWith(t *testing.T, c call.Config) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	if err := copyWorld(w.dir); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(filepath.Join(w.dir, "placet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = sqlite.Open(t.Context(), w.db(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	c.Store, c.Tools, c.Policy, c.Guards = w.store, conf.Tools, conf.Policy, conf.Guards
	w.ex = call.NewExecutor(c)
	return w
}

func (w *world) db() string { return filepath.Join(w.dir, "p.db") }

// park makes a call that waits.
func (w *world) park() *call.PendingError {
	w.t.Helper()
	_, err := w.ex.Call(w.t.Context(), "refund", []byte(`{"order_id":"o-7","amount":500}`))
	var parked *call.PendingError
	if !errors.As(err, &parked) {
		w.t.Fatalf("not parked: %v", err)
	}
	return parked
}

func (w *world) show(id string) decision.Decision {
	w.t.Helper()
	s, err := decision.Operator{Store: w.store}.Show(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Decision
}

// command is a placet process in the world's folder.
func (w *world) command(args ...string) *exec.Cmd {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(stop)
	c := exec.CommandContext(ctx, "placet", args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "PLACET_DB="+w.db(), "PLACET_CONFIG="+filepath.Join(w.dir, "placet.yaml"))
	return c
}

// run runs a command to its end and returns its exit code.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	c := w.command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func mustContain(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
