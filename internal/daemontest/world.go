package daemontest

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/tidy"
	"github.com/placet-dev/placet/token"
)

// patience bounds waits that end by a signal; only a failing test meets it.
const patience = 5 * time.Minute

//go:embed world
var files embed.FS

// Options are what a test's world has besides the usual.
type Options struct {
	Flags []string          // of placet serve
	Files map[string]string // in the folder, by name; they take the place of the usual ones
	DB    string            // URL of a PostgreSQL database. Default: a SQLite file in the folder
}

// World is a folder, a store and a daemon.
type World struct {
	Dir string // with the configuration and the tools
	URL string // of the daemon, without a slash at its end; it stays the same

	// Clients with tokens of their own. Admin has the home's.
	Agent, Reviewer, Operator, Admin *httpapi.Client

	tb     testing.TB
	o      Options
	listen string // address; a port is chosen the first time
	daemon *daemon
	log    logs
}

// Start makes a world and serves it. Methods end the test where something is wrong: they
// are for its own goroutine.
func Start(tb testing.TB, o Options) *World {
	tb.Helper()
	w := &World{tb: tb, o: o, Dir: tidy.Folder(tb, "world"), listen: "127.0.0.1:0"}
	if err := w.fill(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.end)
	w.serve()
	w.Admin = httpapi.NewClient(w.URL, w.daemon.secret)
	w.Agent, w.Reviewer, w.Operator = w.Client(token.Agent, "bot"), w.Client(token.Reviewer, "ana"), w.Client(token.Operator, "otto")
	return w
}

// fill puts the files into the folder.
func (w *World) fill() error {
	for _, dir := range []string{"home", "tmp"} {
		if err := os.Mkdir(w.path(dir), 0o700); err != nil {
			return err
		}
	}
	all := map[string]string{}
	entries, err := fs.ReadDir(files, "world")
	for _, e := range entries {
		b, rerr := files.ReadFile("world/" + e.Name())
		err = errors.Join(err, rerr)
		all[e.Name()] = string(b)
	}
	for name, text := range w.o.Files {
		all[name] = text
	}
	for name, text := range all {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(w.path(name)), 0o700), tidy.WriteProgram(w.path(name), text))
	}
	return err
}

func (w *World) path(name string) string { return filepath.Join(w.Dir, name) }

// DB is what --db says: the path of a file, or a URL.
func (w *World) DB() string {
	if w.o.DB != "" {
		return w.o.DB
	}
	return w.path("placet.db")
}

// Command is a placet process in the world, as its user would start it. It does not find a
// token in its environment; --db and --config are said there.
func (w *World) Command(args ...string) *exec.Cmd {
	w.tb.Helper()
	program, err := Program()
	if err != nil {
		w.tb.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Dir = w.Dir
	// Nothing else of ours: what it leaves running is found by the folder's name.
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.path("home"), "TMPDIR=" + w.path("tmp"), "USER=tester", "LANG=C.UTF-8", "TZ=UTC",
		"PLACET_HOME=" + w.path("home/.placet"), "PLACET_DB=" + w.DB(), "PLACET_CONFIG=" + w.path("placet.yaml"),
	}
	return c
}

// Run runs placet to its end, with what it reads from standard input.
func (w *World) Run(stdin string, args ...string) (stdout, stderr string, code int) {
	w.tb.Helper()
	c := w.Command(args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		w.tb.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// Client speaks to the daemon with a new token, which proves its name.
func (w *World) Client(scope token.Scope, name string) *httpapi.Client {
	w.tb.Helper()
	t, err := w.Admin.CreateToken(w.tb.Context(), httpapi.NewToken{Scope: scope, Name: name})
	if err != nil {
		w.tb.Fatal(err)
	}
	return httpapi.NewClient(w.URL, t.Secret)
}

// Effects are the tools that ran, in their order: a name and the arguments as given.
func (w *World) Effects() []string {
	w.tb.Helper()
	b, err := os.ReadFile(w.path("effects"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
