package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// roles are the two that docs/guide/postgres.md describes, with a schema that is empty.
type roles struct {
	admin         *pgx.Conn // of a superuser
	schema        string
	owner, daemon string // URLs
	daemonName    string
}

func twoRoles(t testing.TB) roles {
	t.Helper()
	var salt [4]byte
	rand.Read(salt[:])
	owner, daemon := "owner_"+hex.EncodeToString(salt[:]), "daemon_"+hex.EncodeToString(salt[:])
	t.Cleanup(func() { // after the schema has gone
		c := rawSQL(t, pgtest.Shared(t).URL("postgres"))
		for _, role := range []string{daemon, owner} {
			run(t, c, "DROP OWNED BY "+role)
			run(t, c, "DROP ROLE "+role)
		}
	})
	at := pgtest.Schema(t)
	plain, schema, err := pgtest.SplitSchema(at)
	if err != nil {
		t.Fatal(err)
	}
	r := roles{admin: rawSQL(t, plain), schema: schema, owner: asRole(t, at, owner), daemon: asRole(t, at, daemon), daemonName: daemon}
	for _, s := range []string{
		"CREATE ROLE " + owner + " LOGIN", "CREATE ROLE " + daemon + " LOGIN",
		"CREATE SCHEMA " + schema + " AUTHORIZATION " + owner,
		"GRANT USAGE ON SCHEMA " + schema + " TO " + daemon,
		"ALTER DEFAULT PRIVILEGES FOR ROLE " + owner + " IN SCHEMA " + schema + " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO " + daemon,
		"ALTER DEFAULT PRIVILEGES FOR ROLE " + owner + " IN SCHEMA " + schema + " GRANT USAGE ON SEQUENCES TO " + daemon,
	} {
		run(t, r.admin, s)
	}
	return r
}

func asRole(t testing.TB, at, role string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// A daemon's role does what a daemon does, and can neither make nor change nor drop a table.
func TestDaemonsRole(t *testing.T) {
	t.Parallel()
	r := twoRoles(t)
	ctx := patient(t)
	if _, err := postgres.Open(ctx, r.daemon, nil); err == nil || !strings.Contains(err.Error(), "may not make") {
		t.Errorf("it made the tables: %v", err)
	}
	if err := postgres.Migrate(ctx, r.owner); err != nil {
		t.Fatal(err)
	}
	p := openShop(t, open(t, r.daemon, postgres.Options{}))
	p.oneOfEach()
	together(2, func(int) {
		for range 3 {
			if err := p.cycle(`{}`); err != nil {
				t.Error(err)
			}
		}
	})
	if page, err := event.Read(ctx, p.s, "", "", 100); err != nil || len(page.Events) == 0 {
		t.Errorf("%d events, %v", len(page.Events), err)
	}
	if report, err := event.Verify(ctx, p.s, nil); err != nil || report.Break != nil {
		t.Errorf("verify: %v, %v", report.Break, err)
	}
	if report, err := postgres.Check(ctx, r.daemon); err != nil || !report.OK() && !onlyFsync(report.Problems) {
		t.Errorf("check: %q, %v", report.Problems, err)
	}
	c := sql(t, r.daemon)
	for _, s := range []string{
		"CREATE TABLE x(n int)", "ALTER TABLE call ADD COLUMN x int", "DROP TABLE vote", "TRUNCATE event",
		"ALTER TABLE event DISABLE TRIGGER event_update", "CREATE SCHEMA x_" + r.schema, "DROP SCHEMA " + r.schema + " CASCADE",
	} {
		if _, err := c.Exec(ctx, s); codeOf(err) != "42501" {
			t.Errorf("%s: %v", s, err)
		}
	}
	if _, err := c.Exec(ctx, "UPDATE event SET type = 'x'"); err == nil {
		t.Error("it changed an event")
	}
	if _, err := c.Exec(ctx, "DELETE FROM event"); err == nil {
		t.Error("it deleted an event")
	}
}

// onlyFsync: the server of the tests outlives no power cut.
func onlyFsync(problems []string) bool {
	return len(problems) == 1 && strings.Contains(problems[0], "fsync")
}

func codeOf(err error) string {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// oneOfEach writes, changes and deletes rows as daemons do beside calls: a home, a job, a
// target, what is delivered to it, a token, counters.
func (p *shop) oneOfEach() {
	p.Helper()
	ctx := context.WithoutCancel(p.ctx)
	if name, err := put(ctx, p.s); err != nil {
		p.Error(err)
	} else {
		p.do(func(tx store.Tx) error { _, err := tx.RevokeToken(name, tx.Now()); return err })
	}
	p.do(func(tx store.Tx) error {
		h := job.Home{ID: "hom_a", Host: "a", Dir: "/a", Process: "p", Since: tx.Now(), LeaseUntil: tx.Now().Add(time.Minute), Epoch: 1}
		return tx.PutHome(job.Home{}, h)
	})
	p.do(func(tx store.Tx) error {
		return tx.InsertTarget(delivery.Target{
			ID: id.New(id.Target), Space: event.MainSpace, Kind: delivery.KindWebhook, Name: "all", Events: []string{string(event.JobQueued)}, Principal: "user:ana", URL: "http://127.0.0.1:1/x",
			MaxAttempts: 3, RetryDelay: time.Second, Timeout: time.Second, MaxAge: time.Hour, CreatedAt: tx.Now(), Version: 1,
		})
	})
	j := job.Job{
		ID: id.New(id.Job), Space: event.MainSpace, Home: "hom_a", Spec: job.Spec{Command: []string{"true"}, Cwd: "/"}, Principal: "user:ana",
		Request: "r", Status: job.Queued, ExitCode: -1, Epoch: 1, Version: 1,
	}
	p.do(func(tx store.Tx) error {
		j.CreatedAt = tx.Now()
		return tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, j.ID, "tester", nil)}})
	})
	waits := 0
	p.view(func(tx store.Tx) error {
		counts, err := tx.CountDeliveries(event.MainSpace)
		waits = 0
		for _, n := range counts {
			waits += int(n)
		}
		return err
	})
	if waits == 0 {
		p.Error("nothing is delivered")
	}
}

func (p *shop) do(fn func(tx store.Tx) error) {
	p.Helper()
	if err := txn.Update(p.ctx, p.s, fn); err != nil {
		p.Error(err)
	}
}

// What is told where a right is missing says which.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	r := twoRoles(t)
	ctx := patient(t)
	if err := postgres.Migrate(ctx, r.owner); err != nil {
		t.Fatal(err)
	}
	p := openShop(t, open(t, r.daemon, postgres.Options{}))
	granted := p.mustGrant()
	for _, c := range []struct{ right, says string }{
		{"INSERT ON attempt", "table attempt"}, {"UPDATE ON decision", "table decision"}, {"USAGE ON SEQUENCE event_seq", "sequence event_seq"},
	} {
		what, on, _ := strings.Cut(c.right, " ON ")
		object := strings.TrimPrefix(on, "SEQUENCE ")
		right := what + " ON " + strings.TrimSuffix(on, object) + r.schema + "." + object
		run(t, r.admin, "REVOKE "+right+" FROM "+r.daemonName)
		_, err := p.Resume(ctx, granted.ApprovalID, nil)
		if !errors.Is(err, txn.ErrNotCommitted) || !strings.Contains(err.Error(), c.says) || p.times(granted.CallID) > 0 {
			t.Errorf("without %s: %v; the tool ran %d times", c.right, err, p.times(granted.CallID))
		}
		report, err := postgres.Check(ctx, r.daemon)
		if err != nil || !strings.Contains(strings.Join(report.Problems, " "), object) {
			t.Errorf("check without %s: %q, %v", c.right, report.Problems, err)
		}
		run(t, r.admin, "GRANT "+right+" TO "+r.daemonName)
	}
	run(t, r.admin, "REVOKE SELECT ON "+r.schema+".decision FROM "+r.daemonName)
	if _, err := p.op.Show(ctx, granted.ApprovalID); !errors.Is(err, store.ErrUnreadable) || !strings.Contains(err.Error(), "table decision") {
		t.Errorf("show without the right to read: %v", err)
	}
	run(t, r.admin, "GRANT SELECT ON "+r.schema+".decision TO "+r.daemonName)
	if res, err := p.Resume(ctx, granted.ApprovalID, nil); err != nil || p.times(granted.CallID) != 1 {
		t.Errorf("with all rights: %s, %v", res.Status, err)
	}
	if err := postgres.AcceptRestore(ctx, r.daemon); err == nil {
		t.Error("there was nothing to accept")
	}
	run(t, r.admin, "REVOKE USAGE ON SCHEMA "+r.schema+" FROM "+r.daemonName)
	if _, err := postgres.Open(ctx, r.daemon, nil); err == nil || !strings.Contains(err.Error(), "USAGE") {
		t.Errorf("open without USAGE: %v", err)
	}
}

// A role that only looks can look, through a handle that is opened for nothing else, and
// also where others' events have no place yet.
func TestReadersRole(t *testing.T) {
	t.Parallel()
	r := twoRoles(t)
	ctx := patient(t)
	if err := postgres.Migrate(ctx, r.owner); err != nil {
		t.Fatal(err)
	}
	p := openShop(t, open(t, r.owner, postgres.Options{}))
	run(t, r.admin, "REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+r.schema+" FROM "+r.daemonName)
	run(t, r.admin, "REVOKE USAGE ON SEQUENCE "+r.schema+".event_seq FROM "+r.daemonName)
	a := p.mustAsk()
	if _, err := event.Read(ctx, p.s, "", "", 10); err != nil {
		t.Fatal(err)
	}
	b := p.mustAsk()
	for _, readOnly := range []bool{true, false} {
		q := openShop(t, open(t, r.daemon, postgres.Options{ReadOnly: readOnly}))
		if page, err := event.Read(ctx, q.s, "", "", 10); err != nil || len(page.Events) == 0 {
			t.Errorf("it reads %d events: %v", len(page.Events), err)
		}
		if _, err := q.op.Show(ctx, b.ApprovalID); err != nil {
			t.Error(err)
		}
		if err := q.approve(a); !errors.Is(err, txn.ErrNotCommitted) {
			t.Errorf("approve: %v", err)
		}
	}
}
