package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/token"
)

// durable is a server that keeps what doctor looks for: commits reach its disk.
var durable = sync.OnceValues(func() (*pgtest.Server, error) {
	return pgtest.Start(context.Background(), pgtest.Options{Durable: true})
})

var durableAsked atomic.Bool // for that server

// withServers are the package's tests, after which no server is left.
type withServers struct{ pgtest.Tests }

func (w withServers) Run() int {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; what tests start would ignore it, too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	defer func() {
		if durableAsked.Load() {
			if s, err := durable(); err == nil {
				_ = s.Stop()
			}
		}
	}()
	return w.Tests.Run()
}

// postgresURL is an empty place that is the test's own.
func postgresURL(t *testing.T) string {
	t.Helper()
	durableAsked.Store(true)
	s, err := durable()
	if err != nil {
		t.Fatal(err)
	}
	return s.Schema(t)
}

// pgSecret stands as the password in every URL here: a server for tests trusts everybody.
const pgSecret = "S3cret-of-the-database"

// pgWorld is a folder with tools, a configuration and a store in PostgreSQL.
type pgWorld struct {
	*world
	url string
}

func newPGWorld(t *testing.T) *pgWorld {
	t.Helper()
	u, err := url.Parse(postgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), pgSecret)
	w := &pgWorld{world: &world{t: t, dir: t.TempDir()}, url: u.String()}
	if err := copyWorld(w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// in is a command of a user whose home is that one.
func (w *pgWorld) in(home string, args ...string) *exec.Cmd {
	w.t.Helper()
	c := w.command(args...)
	c.Env = append(c.Env, "PLACET_DB="+w.url, "PLACET_HOME="+filepath.Join(w.dir, home))
	return c
}

// runIn runs a command to its end. One that shows the password fails the test.
func (w *pgWorld) runIn(home string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	c := w.in(home, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if strings.Contains(out.String()+errs.String(), pgSecret) {
		w.t.Errorf("placet %q shows the password:\n%s%s", args, &out, &errs)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// must is runIn with an exit code that has to be.
func (w *pgWorld) must(code int, home string, args ...string) string {
	w.t.Helper()
	out, errs, got := w.runIn(home, args...)
	if got != code {
		w.t.Fatalf("placet %q: exit code %d, want %d\n%s%s", args, got, code, out, errs)
	}
	return out + errs
}

// serveIn starts a daemon in a home. Its own commands go to that home.
func (w *pgWorld) serveIn(home string) *served {
	w.t.Helper()
	s := &served{world: w.world, err: &bytes.Buffer{}}
	s.cmd = w.in(home, "--json", "serve", "--listen", "127.0.0.1:0")
	s.cmd.Stderr = s.err
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err == nil {
		err = json.NewDecoder(out).Decode(&s.at)
	}
	if err != nil {
		w.t.Fatalf("it does not serve: %v %s", err, s.err)
	}
	w.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	secret, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		w.t.Fatal(err)
	}
	s.home = httpapi.NewSocketClient(s.at.Socket, strings.TrimSpace(string(secret)))
	w.t.Cleanup(s.stopJobs)
	return s
}

// TestScriptsOnPostgres runs the stories that are not about a file on a store in PostgreSQL.
func TestScriptsOnPostgres(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range all {
		switch filepath.Base(f) {
		case "nothing.txt", "database.txt", "doctor.txt", "places.txt": // about files
		default:
			files = append(files, f)
		}
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("USER", "tester")
			e.Setenv("PLACET_DB", postgresURL(t))
			return copyWorld(e.WorkDir)
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": code, "get": get, "keys": keys, "same": same},
		RequireExplicitExec: true,
	})
}

// A call is parked, decided and run by three processes.
func TestCycleOnPostgres(t *testing.T) {
	t.Parallel()
	w := newPGWorld(t)
	var parked struct {
		ApprovalID string `json:"approval_id"`
	}
	out, errs, code := w.runIn("home", "--json", "call", "refund", "--args", `{"order_id":"o-1","amount":60}`)
	if err := json.Unmarshal([]byte(out), &parked); err != nil || code != 4 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	mustContain(t, w.must(0, "home", "approve", parked.ApprovalID, "--yes"), "placet resume")
	w.must(0, "home", "resume", parked.ApprovalID)
	w.must(1, "home", "resume", parked.ApprovalID)
	w.must(0, "home", "verify")
}

// One home has one daemon, and one database any number: what one of them was asked,
// another may carry out. Commands find the daemon of their own home.
func TestDaemonsOnOnePostgres(t *testing.T) {
	t.Parallel()
	w := newPGWorld(t)
	one, two := w.serveIn("one"), w.serveIn("two")
	mustContain(t, w.must(1, "one", "serve", "--listen", "127.0.0.1:0"), "Another placet serve has the store", one.at.URL, "PLACET_HOME")
	for home, s := range map[string]*served{"one": one, "two": two} {
		if dir := filepath.Join(w.dir, home); !strings.HasPrefix(s.at.Socket, dir) || !strings.HasPrefix(s.at.TokenFile, dir) {
			t.Errorf("home %s has %+v", home, s.at)
		}
		mustContain(t, w.must(0, home, "doctor"), "It is ready")
		mustContain(t, strings.Join(s.at.Warnings, "\n"), "standby")
	}
	mustContain(t, w.must(1, "three", "job", "list"), "No daemon serves this store", "three")
	out, _, _ := w.runIn("one", "--json", "token", "create", "--scope", "agent", "--name", "bot")
	var k token.Object
	if err := json.Unmarshal([]byte(out), &k); err != nil {
		t.Fatal(err)
	}
	agent := httpapi.NewClient(two.at.URL, k.Secret) // good at every daemon on the store
	p := two.parkOver(agent)
	w.must(0, "one", "approve", p.ApprovalID, "--yes")
	two.ended(agent, p.CallID, call.Succeeded)
	for _, s := range []*served{one, two} {
		s.end(syscall.SIGTERM)
	}
}

func TestDBOnPostgres(t *testing.T) {
	t.Parallel()
	w := newPGWorld(t)
	mustContain(t, w.must(1, "home", "approvals"), "migrate") // looking makes no store
	var made struct {
		URL    string
		Schema int64
		Epoch  int64
	}
	out, errs, _ := w.runIn("home", "--json", "db", "migrate")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Schema == 0 || made.Epoch != 1 || !strings.HasPrefix(made.URL, "postgres") {
		t.Fatalf("%v %s%s", err, out, errs)
	}
	w.must(0, "home", "db", "migrate") // again
	mustContain(t, w.must(0, "home", "db", "check"), "is sound", "identity", "agrees", "PostgreSQL", "Worth knowing", "standby")
	mustContain(t, w.must(1, "home", "db", "accept-restore"), "nothing to accept")
	mustContain(t, w.must(1, "home", "db", "backup", "b.db"), "pg_dump")
	mustContain(t, w.must(1, "home", "db", "restore", "b.db"), "pg_restore")
	var checked map[string]any
	out, _, _ = w.runIn("home", "--json", "db", "check")
	if err := json.Unmarshal([]byte(out), &checked); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ok", "problems", "warnings", "url", "schema", "epoch", "store_id", "server", "database", "schema_name", "role", "identity", "settings", "bytes"} {
		if _, ok := checked[key]; !ok {
			t.Errorf("%s is not in %s", key, out)
		}
	}
}

func TestDoctorOnPostgres(t *testing.T) {
	t.Parallel()
	w := newPGWorld(t)
	w.must(0, "home", "db", "migrate")
	out := w.must(0, "home", "doctor")
	mustContain(t, out, "ok         server", "ok         identity", "ok         schema", "note       server", "standby", "note       owner")
	for _, not := range []string{"permissions", "password", "transport"} {
		if strings.Contains(out, "attention  "+not) || strings.Contains(out, "ok         "+not) {
			t.Errorf("%s is looked at:\n%s", not, out)
		}
	}
	c := w.in("home", "--db", w.url, "doctor")
	shown, _ := c.CombinedOutput() // its exit code is that of what needs attention
	mustContain(t, string(shown), "attention  password")
	if strings.Contains(string(shown), pgSecret) {
		t.Errorf("it shows the password:\n%s", shown)
	}
}

// A store goes from a file to PostgreSQL and back, and is refused while a daemon has it.
func TestCopyToPostgresAndBack(t *testing.T) {
	t.Parallel()
	from := newWorld(t)
	p := from.park()
	if err := (decision.Operator{Store: from.store}).ApproveShown(t.Context(), p.RunID, p.ApprovalID, p.Digest, "ana", ""); err != nil {
		t.Fatal(err)
	}
	from.store.Close()
	w := newPGWorld(t)
	giveBack, err := daemon.Hold(place.File(from.db()))
	if err != nil {
		t.Fatal(err)
	}
	mustContain(t, w.must(1, "home", "db", "copy", from.db(), w.url, "--yes"), "Another placet serve")
	giveBack()
	out, errs, code := w.runIn("home", "--json", "db", "copy", from.db(), w.url, "--yes")
	var copied struct {
		StoreID string `json:"store_id"`
		Epoch   int64
		Rows    int64
		Tables  []struct {
			Table string
			Rows  int64
		}
	}
	if err := json.Unmarshal([]byte(out), &copied); err != nil || code != 0 || copied.Epoch != 2 || copied.Rows == 0 || len(copied.Tables) == 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	d := w.serveIn("elsewhere") // which this home does not know
	mustContain(t, w.must(1, "home", "db", "copy", w.url, filepath.Join(w.dir, "no.db"), "--yes"), "is open elsewhere: process "+strconv.Itoa(d.cmd.Process.Pid)+" on ")
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // what it exits with is another test's
	w.must(0, "home", "verify")
	w.must(4, "home", "resume", p.ApprovalID) // a yes of the earlier life needs a new one
	mustContain(t, w.must(1, "home", "db", "copy", from.db(), w.url, "--yes"), "Nothing was")
	back := filepath.Join(w.dir, "back.db")
	mustContain(t, w.must(0, "home", "db", "copy", w.url, back, "--yes"), "was copied to "+back, "epoch 3")
	w.must(0, "home", "--db", back, "verify")
	w.must(0, "home", "--db", back, "show", p.ApprovalID)
}
