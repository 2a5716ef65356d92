package postgres_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// snapshot copies the files of a server that is down; the function it returns puts
// them back, while the server is down again.
func snapshot(t testing.TB, srv *pgtest.Server, dir string) (putBack func(signal string)) {
	t.Helper()
	kept := dir + ".kept"
	shell(t, `cp -a "$0" "$1"`, dir, kept)
	t.Cleanup(func() { _ = os.RemoveAll(kept) })
	return func(signal string) {
		t.Helper()
		shell(t, `rm -rf "$0" && cp -a "$1" "$0"`, dir, kept)
		if signal != "" {
			if err := os.WriteFile(filepath.Join(dir, signal), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func shell(t testing.TB, script string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(patient(t), "/bin/sh", append([]string{"-c", script}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func dataFolder(t testing.TB, at string) (dir string) {
	t.Helper()
	c := rawSQL(t, at)
	if err := c.QueryRow(patient(t), "SHOW data_directory").Scan(&dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A standby without the last commits takes over behind a pooler, whose clients keep their
// connections. What ran already must not run again before somebody has accepted it.
func TestTakeoverBehindPooler(t *testing.T) {
	t.Parallel()
	srv := server(t)
	direct := srv.URL("postgres")
	pooled := pgtest.Via(direct, pgtest.Pooler(t, srv))
	dir := dataFolder(t, direct)
	p := openShop(t, open(t, pooled, postgres.Options{Conns: 3}))
	granted := p.mustGrant()
	console := rawSQL(t, strings.Replace(pooled, "/postgres?", "/pgbouncer?", 1))
	run(t, console, "PAUSE") // as operators do who switch over; it ends connections to the server only
	if err := srv.Down(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	standby := snapshot(t, srv, dir) // what an asynchronous standby has
	if err := srv.Start(p.ctx); err != nil {
		t.Fatal(err)
	}
	goOn(t, console, pooled)
	if _, err := p.Resume(p.ctx, granted.ApprovalID, nil); err != nil {
		t.Fatalf("the first time: %v", err)
	}
	run(t, console, "PAUSE")
	if err := srv.Down(pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	standby("standby.signal")
	if err := srv.Start(p.ctx); err != nil {
		t.Fatal(err)
	}
	run(t, rawSQL(t, direct), "SELECT pg_promote()")
	goOn(t, console, pooled)
	_, err := p.Resume(p.ctx, granted.ApprovalID, nil)
	if !errors.Is(err, txn.ErrRestored) {
		t.Errorf("after the takeover: %v", err)
	}
	if n := p.times(granted.CallID); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// goOn lets a pooler serve again, and waits until it does: it refuses everybody for a while
// after each time that its server was not there.
func goOn(t testing.TB, console *pgx.Conn, pooled string) {
	t.Helper()
	run(t, console, "RESUME")
	for ctx := patient(t); ; {
		c, err := pgx.Connect(ctx, pooled)
		if err == nil {
			err = errors.Join(c.Ping(ctx), c.Close(ctx))
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the pooler does not serve again: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A snapshot of the server's disk is put back.
func TestDiskPutBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	at := srv.URL("postgres")
	dir := dataFolder(t, at)
	p := openShop(t, open(t, at, postgres.Options{}))
	granted := p.mustGrant()
	if err := srv.Down(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	back := snapshot(t, srv, dir)
	if err := srv.Start(p.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Resume(p.ctx, granted.ApprovalID, nil); err != nil {
		t.Fatalf("the first time: %v", err)
	}
	if err := srv.Down(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	back("")
	if err := srv.Start(p.ctx); err != nil {
		t.Fatal(err)
	}
	_, err := p.Resume(p.ctx, granted.ApprovalID, nil)
	if !errors.Is(err, txn.ErrRestored) {
		t.Errorf("after the disk was put back: %v", err)
	}
	if n := p.times(granted.CallID); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// A COMMIT that waits for a synchronous standby is under way. Whoever asks after the
// statistics of the server were reset must not be told that nothing came of it.
func TestStatisticsReset(t *testing.T) {
	t.Parallel()
	srv := server(t)
	at := srv.URL("postgres")
	ctx := patient(t)
	direct := open(t, at, postgres.Options{})
	if _, err := put(ctx, direct); err != nil {
		t.Fatal(err)
	}
	if err := srv.Config(ctx, "synchronous_standby_names = 'nobody'"); err != nil {
		t.Fatal(err)
	}
	s := open(t, at, postgres.Options{Conns: 1, Hooks: impatient()})
	if _, err := there(ctx, s, "tok_none"); err != nil { // so that a connection is there
		t.Fatal(err)
	}
	run(t, rawSQL(t, at), "SELECT pg_stat_reset_shared('bgwriter')") // as monitoring does
	name, err := put(ctx, s)
	if err := srv.Config(ctx, "synchronous_standby_names = ''"); err != nil {
		t.Fatal(err)
	}
	is, e := false, error(nil)
	for end := time.Now().Add(3 * time.Second); !is && e == nil && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		is, e = there(ctx, direct, name)
	}
	t.Logf("the row is there: %v (%v), told: %v", is, e, err)
	if is && errors.Is(err, txn.ErrNotCommitted) {
		t.Error("it was told that nothing was changed")
	}
}

// An administrator cancels the wait for a synchronous standby that is gone: the server
// commits here only, warns, and says COMMIT. That is no commit to start a tool on.
func TestCancelledSync(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		t.Run(how, func(t *testing.T) {
			srv := server(t)
			at := srv.URL("postgres")
			ctx := patient(t)
			if _, err := put(ctx, open(t, at, postgres.Options{})); err != nil {
				t.Fatal(err)
			}
			if err := srv.Config(ctx, "synchronous_standby_names = 'nobody'"); err != nil {
				t.Fatal(err)
			}
			s := open(t, at, postgres.Options{Conns: 3})
			told := make(chan error, 1)
			go func() { _, err := put(ctx, s); told <- err }()
			waitSync(t, at)
			run(t, rawSQL(t, at), "SELECT "+how+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			if err := await(t, "the answer", told); !errors.Is(err, txn.ErrUnknown) {
				t.Errorf("told: %v, and no standby has it", err)
			}
		})
	}
}

func waitSync(t testing.TB, at string) {
	t.Helper()
	c := rawSQL(t, at)
	for n, end := 0, time.Now().Add(patience); n == 0; time.Sleep(10 * time.Millisecond) {
		if err := c.QueryRow(patient(t), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("nobody waits")
		}
	}
}

// Nothing that is printed has a password in it.
func TestRedacted(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://placet:s3cr@t-w0rd@db/placet",
		"postgres://placet:s3cr/t-w0rd@db/placet",
		"postgres://placet:s3cr@t-w0rd@db:5432/placet?sslmode=disable",
		"postgres://placet:x@db/placet?password=t-w0rd",
		"postgres://db/placet?pass%77ord=t-w0rd",
		"postgres://db/placet?user=x;password=t-w0rd",
		"postgres://placet@db/placet#?password=t-w0rd",
		"postgres://placet:?t-w0rd@db/placet",
		"postgres://placet:?a=t-w0rd@db/placet",
		"postgres://placet:#t-w0rd@db/placet",
	} {
		if got := postgres.Redacted(url); strings.Contains(got, "t-w0rd") {
			t.Errorf("%s is shown as %s", url, got)
		}
		_, err := postgres.Check(patient(t), strings.Replace(strings.Replace(url, "@db", "@127.0.0.1:1", 1), "//db", "//127.0.0.1:1", 1))
		if err != nil && strings.Contains(err.Error(), "t-w0rd") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// accept-restore that has to wait, and is ended, keeps nobody out.
func TestQueuedLock(t *testing.T) {
	t.Parallel()
	at := pgtest.Schema(t)
	ctx := patient(t)
	s := open(t, at, postgres.Options{Conns: 3})
	name, err := put(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	run(t, sql(t, at), "UPDATE meta SET timeline = timeline + 1")
	dump := sql(t, at) // as a pg_dump, or an open psql, does
	tx := begin(t, dump)
	if _, err := tx.Exec(ctx, "SELECT 1 FROM meta"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = postgres.AcceptRestore(ctx, at)
	t.Logf("accept-restore: %v after %s", err, time.Since(began))
	if err == nil { // it came back while the dump still holds its lock
		t.Error("accept-restore was done under another's lock")
	}
	if _, err := there(ctx, s, name); err != nil {
		t.Errorf("a read, once accept-restore has given up: %v", err)
	}
	commit(t, tx)
}

// A role's client_encoding changes what is stored.
func TestEncoding(t *testing.T) {
	t.Parallel()
	at := pgtest.Schema(t)
	a := openShop(t, open(t, at, postgres.Options{}))
	b := openShop(t, open(t, at+"&client_encoding=LATIN1", postgres.Options{}))
	asked, err := b.ask(`{"an":"Zoë"}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.op.ApproveShown(b.ctx, asked.RunID, asked.ApprovalID, asked.Digest, "Zoë", "für"); err != nil {
		t.Fatal(err)
	}
	got, err := a.op.Show(a.ctx, asked.ApprovalID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Decision.DecidedBy != "Zoë" {
		t.Errorf("another daemon shows %q", got.Decision.DecidedBy)
	}
}

// No standby has a COMMIT for longer than an answer is waited for: that is not known, and
// stays so. Giving up the wait must not end the server's.
func TestSyncStandbyGone(t *testing.T) {
	t.Parallel()
	srv := server(t)
	at := srv.URL("postgres")
	ctx := patient(t)
	p := openShop(t, open(t, at, postgres.Options{Conns: 3, Hooks: impatient()}))
	granted := p.mustGrant()
	if err := srv.Config(ctx, "synchronous_standby_names = 'nobody'"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	res, err := p.Resume(p.ctx, granted.ApprovalID, nil)
	t.Logf("after %s: %s, %v; the tool ran %d times", time.Since(began), res.Status, err, p.times(granted.CallID))
	if p.times(granted.CallID) > 0 {
		t.Errorf("the tool ran, and no standby knows of its start")
	}
}

// The same where the connection is cut while the COMMIT waits for the standby.
func TestSyncCut(t *testing.T) {
	t.Parallel()
	srv := server(t)
	at := srv.URL("postgres")
	proxy := pgtest.NewProxy(t, at)
	ctx := patient(t)
	if _, err := put(ctx, open(t, at, postgres.Options{})); err != nil {
		t.Fatal(err)
	}
	if err := srv.Config(ctx, "synchronous_standby_names = 'nobody'"); err != nil {
		t.Fatal(err)
	}
	s := open(t, proxy.URL(at), postgres.Options{Conns: 1})
	told := make(chan error, 1)
	go func() { _, err := put(ctx, s); told <- err }()
	waitSync(t, at)
	proxy.Cut()
	if err := await(t, "the answer", told); !errors.Is(err, txn.ErrUnknown) {
		t.Errorf("told: %v, and no standby has it", err)
	}
}
