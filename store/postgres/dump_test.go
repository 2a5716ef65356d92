package postgres_test

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// dump writes the schema of a store into a file, as an operator does, with the store open
// or not.
func dump(t testing.TB, url string, flags ...string) (file string) {
	t.Helper()
	plain, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	if schema == "" {
		schema = "placet"
	}
	file = filepath.Join(t.TempDir(), "dump")
	program(t, "pg_dump", append(flags, "--schema="+schema, "--file="+file, "--dbname="+plain)...)
	return file
}

// load runs the statements of a file.
func load(t testing.TB, url, file string) {
	t.Helper()
	plain, _, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	program(t, "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--file="+file, "--dbname="+plain)
}

func program(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(patient(t), pgtest.Program(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// keep dumps a store, and puts it back in place of what is there then.
func keep(t testing.TB, url string) (putBack func()) {
	t.Helper()
	file := dump(t, url)
	_, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		run(t, sql(t, url), "DROP SCHEMA "+schema+" CASCADE")
		load(t, url, file)
	}
}

// elsewhere is a database of another server, or another one of the same.
func elsewhere(t testing.TB, srv *pgtest.Server, schema string) string {
	t.Helper()
	u, err := url.Parse(srv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(pgtest.SchemaParameter, schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// A dump that is put into another database, of this server or of another, is a store that
// can be read, and does nothing until that is accepted. Then numbers and places go on far
// behind those that the first store may have given since.
func TestDumpElsewhere(t *testing.T) {
	t.Parallel()
	for _, custom := range []bool{false, true} {
		t.Run(map[bool]string{false: "another database", true: "another server"}[custom], func(t *testing.T) {
			t.Parallel()
			from := pgtest.Schema(t)
			_, schema, _ := pgtest.SplitSchema(from)
			p := openShop(t, open(t, from, postgres.Options{}))
			granted, asked := p.mustGrant(), p.mustAsk()
			if _, err := event.Read(p.ctx, p.s, "", "", 10); err != nil { // what is read has a place
				t.Fatal(err)
			}
			unplaced := p.mustAsk() // and this has none yet
			var to string
			if custom {
				to = elsewhere(t, server(t), schema)
				plain, _, _ := pgtest.SplitSchema(to)
				program(t, "pg_restore", "--exit-on-error", "--dbname="+plain, dump(t, from, "--format=custom"))
			} else {
				to = elsewhere(t, pgtest.Shared(t), schema)
				load(t, to, dump(t, from))
			}
			q := openShop(t, open(t, to, postgres.Options{}))
			q.wentBack(granted, asked)
			if err := postgres.AcceptRestore(q.ctx, to); err != nil {
				t.Fatal(err)
			}
			q.goesOnFarBehind()
			if err := q.approve(unplaced); err != nil {
				t.Errorf("what had no place: %v", err)
			}
			if err := postgres.AcceptRestore(q.ctx, to); err == nil {
				t.Error("it was accepted twice")
			}
			if err := p.approve(asked); err != nil {
				t.Errorf("the first store: %v", err)
			}
		})
	}
}

// A dump that is put back under a process that has the store open is noticed by that process
// too: a yes that it has acted on since must not be there for it a second time.
func TestDumpPutBackUnderAnOpenStore(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{Conns: 4}))
	granted, asked := p.mustGrant(), p.mustAsk()
	putBack := keep(t, url)
	if res, err := p.Resume(p.ctx, granted.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		t.Fatalf("resume: %s, %v", res.Status, err)
	}
	putBack()
	for range 8 { // whichever connection it takes
		if _, err := p.Resume(p.ctx, granted.ApprovalID, nil); !errors.Is(err, txn.ErrRestored) {
			t.Errorf("the yes of before: %v", err)
		}
		if err := p.approve(asked); !errors.Is(err, txn.ErrRestored) {
			t.Errorf("what waits: %v", err)
		}
	}
	if n := p.ran[granted.CallID]; n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// wentBack wants a store that is read, and does nothing.
func (p *shop) wentBack(granted, asked *call.PendingError) {
	p.Helper()
	_, resumed := p.Resume(p.ctx, granted.ApprovalID, nil)
	_, called := p.ask(`{}`)
	for what, err := range map[string]error{"approve": p.approve(asked), "resume": resumed, "ask": called} {
		if !errors.Is(err, txn.ErrRestored) || !strings.Contains(err.Error(), "accept-restore") {
			p.Errorf("%s: %v", what, err)
		}
	}
	if n := p.times(granted.CallID); n > 0 {
		p.Errorf("the tool ran %d times", n)
	}
	if _, err := p.op.Show(p.ctx, asked.ApprovalID); err != nil {
		p.Errorf("show: %v", err)
	}
	if page, err := event.Read(p.ctx, p.s, "", "", 100); err != nil || len(page.Events) == 0 {
		p.Errorf("%d events are read: %v", len(page.Events), err)
	}
	if page, err := event.Read(p.ctx, p.s, "call:"+asked.CallID, "", 100); err != nil || len(page.Events) == 0 {
		p.Errorf("%d events of a call are read: %v", len(page.Events), err)
	}
}

// goesOnFarBehind wants a new life, in which nothing is numbered as in the one before.
func (p *shop) goesOnFarBehind() {
	p.Helper()
	const far = 1 << 32
	before := event.Cursor("")
	if page, err := event.Read(p.ctx, p.s, "", "", 100); err == nil {
		before = page.Cursor
	}
	if err := p.cycle(`{}`); err != nil {
		p.Fatalf("after it was accepted: %v", err)
	}
	page, err := event.Read(p.ctx, p.s, "", before, 100)
	if err != nil || len(page.Events) < 5 {
		p.Fatalf("%d events since: %v", len(page.Events), err)
	}
	for _, e := range page.Events {
		if e.Pos < far || e.Seq < far {
			p.Errorf("an event has the place %d and the number %d", e.Pos, e.Seq)
		}
	}
	p.view(func(tx store.Tx) error {
		if tx.Epoch() != 2 || tx.RestoredTo().IsZero() {
			p.Errorf("epoch %d, restored to %s", tx.Epoch(), tx.RestoredTo())
		}
		return nil
	})
}

// A standby is read. Once it has taken over, nothing is done until that is accepted.
func TestStandby(t *testing.T) {
	t.Parallel()
	srv := server(t)
	at := srv.URL("postgres")
	p := openShop(t, open(t, at, postgres.Options{}))
	granted, asked := p.mustGrant(), p.mustAsk()
	if _, err := event.Read(p.ctx, p.s, "", "", 10); err != nil { // what is read has a place
		t.Fatal(err)
	}
	var dir string
	if err := sql(t, at).QueryRow(p.ctx, "SHOW data_directory").Scan(&dir); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(srv.Down(pgtest.Fast), os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o644), srv.Start(p.ctx))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.approve(asked); !errors.Is(err, txn.ErrNotCommitted) || !strings.Contains(err.Error(), "standby") {
		t.Errorf("approve on a standby: %v", err)
	}
	for what, s := range map[string]*store.Store{"a handle of before": p.s, "a new one": open(t, at, postgres.Options{})} {
		if _, err := event.Read(p.ctx, s, "", "", 10); err != nil {
			t.Errorf("read through %s: %v", what, err)
		}
	}
	if r, err := postgres.Check(p.ctx, at); err != nil || !strings.Contains(strings.Join(r.Problems, " "), "standby") {
		t.Errorf("check: %q, %v", r.Problems, err)
	}
	run(t, rawSQL(t, at), "SELECT pg_promote()")
	p.wentBack(granted, asked)
	if err := postgres.AcceptRestore(p.ctx, at); err != nil {
		t.Fatal(err)
	}
	p.goesOnFarBehind()
}
