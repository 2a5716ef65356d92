package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store/postgres"
)

// Through a pooler in transaction mode everything works that works without, and what does
// not arrive through it is noticed.
func TestPooler(t *testing.T) {
	t.Parallel()
	srv := pgtest.Shared(t)
	direct := pgtest.Schema(t)
	pooled := pgtest.Via(direct, pgtest.Pooler(t, srv))
	log, logger := newRecords()
	a := openShop(t, open(t, pooled, postgres.Options{Logger: logger}))
	b := openShop(t, open(t, pooled, postgres.Options{}))
	together(8, func(i int) {
		p := []*shop{a, b}[i%2]
		for range 10 {
			if err := p.cycle(`{"amount":1}`); err != nil {
				t.Errorf("a cycle: %v", err)
			}
		}
	})
	for log.count("notifications do not arrive") == 0 {
		await(t, "the warning", log.came)
	}
	asked := a.mustAsk()
	waited := a.waitFor(asked)
	if err := b.approve(asked); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the one who waits", waited.told); err != nil { // who looks every second
		t.Error(err)
	}
	if n := log.count("notifications do not arrive"); n != 1 || log.count("level=WARN") != 1 {
		t.Errorf("warned %d times: %s", n, log.lines.String())
	}
}

// A pooler's sessions belong to others as well: nothing that is set in one stays.
func TestPoolerIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	srv := pgtest.Shared(t)
	direct := srv.Database(t)
	pooled := pgtest.Via(direct, pgtest.Pooler(t, srv))
	p := openShop(t, open(t, pooled, postgres.Options{Conns: 4}))
	together(4, func(int) {
		if err := p.cycle(`{}`); err != nil {
			t.Error(err)
		}
	})
	if _, err := event.Read(p.ctx, p.s, "", "", 10); err != nil {
		t.Fatal(err)
	}
	for range 10 { // of any of the sessions
		var path, messages, left string
		var prepared int
		c := rawSQL(t, pooled)
		err := c.QueryRow(p.ctx, `SELECT current_setting('search_path'), current_setting('client_min_messages'), current_setting('statement_timeout'),
			(SELECT count(*) FROM pg_prepared_statements)`).Scan(&path, &messages, &left, &prepared)
		if err != nil || prepared > 0 || strings.Contains(path, "placet") || messages != "notice" || left != "0" {
			t.Errorf("search_path %s, client_min_messages %s, statement_timeout %s, %d prepared statements, %v", path, messages, left, prepared, err)
		}
	}
}

// Where the URL names the server besides the pooler, notifications arrive.
func TestListenBesidePooler(t *testing.T) {
	t.Parallel()
	srv := pgtest.Shared(t)
	direct := pgtest.Schema(t)
	u, err := url.Parse(pgtest.Via(direct, pgtest.Pooler(t, srv)))
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("placet_listen", server.Host)
	u.RawQuery = q.Encode()
	log, logger := newRecords()
	s := open(t, u.String(), postgres.Options{Logger: logger, Hooks: &postgres.Hooks{Blind: true}})
	p := openShop(t, open(t, u.String(), postgres.Options{}))
	for range 3 {
		a := p.mustAsk()
		told, stop := s.Watch("call:" + a.CallID)
		if err := p.approve(a); err != nil {
			t.Fatal(err)
		}
		await(t, "a notification", told)
		stop()
	}
	if log.count("WARN") > 0 {
		t.Error(log.lines.String())
	}
}

// rawSQL is a connection of its own, as any program makes one.
func rawSQL(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(patient(t), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}
