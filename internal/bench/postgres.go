package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// The targets on PostgreSQL, at sixteen connections.
const (
	pgConns       = 16
	pgCycleTarget = 0.50
	pgNewsTarget  = 50 * time.Millisecond
)

// server is a PostgreSQL server whose commits reach the disk: the one that is named, or
// one of our own.
func (b *bench) server(ctx context.Context) (url func(schema string) string, stop func(), err error) {
	at, stop := os.Getenv(pgtest.Variable), func() {}
	if at == "" {
		s, err := pgtest.Start(ctx, pgtest.Options{Durable: true})
		if err != nil {
			return nil, nil, err
		}
		at, stop = s.URL("postgres"), func() { _ = s.Stop() }
	}
	return func(schema string) string { return at + "&" + pgtest.SchemaParameter + "=" + schema }, stop, nil
}

func openPostgres(ctx context.Context, url string, conns int) (*world, error) {
	st, err := postgres.Open(ctx, url, &postgres.Options{Conns: conns, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return newWorld(st, func(*call.Config) {})
}

// pgFloor writes two plain rows in a transaction that is sent in one piece.
type pgFloor struct {
	pool *pgxpool.Pool
	n    atomic.Int64
}

func openPGFloor(ctx context.Context, url string) (*pgFloor, error) {
	plain, _, err := pgtest.SplitSchema(url)
	if err != nil {
		return nil, err
	}
	conf, err := pgxpool.ParseConfig(plain)
	if err != nil {
		return nil, err
	}
	conf.MaxConns = pgConns
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, `DROP TABLE IF EXISTS floor_a, floor_b; CREATE TABLE floor_a(id bigint PRIMARY KEY, body bytea NOT NULL);
		CREATE TABLE floor_b(id bigint PRIMARY KEY, a bigint NOT NULL, body bytea NOT NULL)`)
	return &pgFloor{pool: pool}, err
}

func (f *pgFloor) once(ctx context.Context) error {
	n := f.n.Add(1)
	var b pgx.Batch
	b.Queue(`BEGIN`)
	b.Queue(`INSERT INTO floor_a(id, body) VALUES ($1, $2)`, n, floorBody)
	b.Queue(`INSERT INTO floor_b(id, a, body) VALUES ($1, $2, $3)`, n, n, floorBody)
	b.Queue(`COMMIT`)
	return f.pool.SendBatch(ctx, &b).Close()
}

// onPostgres compares cycles with the floor, one daemon with three, and measures how soon
// one hears of what another decided.
func onPostgres(ctx context.Context, b *bench) error {
	b.title("postgres: cycles against a quarter of the floor's pipelined transactions, %d connections", pgConns)
	url, stop, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer stop()
	f, err := openPGFloor(ctx, url("bench"))
	if err != nil {
		return err
	}
	defer f.pool.Close()
	w, err := openPostgres(ctx, url("bench"), pgConns)
	if err != nil {
		return err
	}
	defer w.store.Close()
	for _, callers := range []int{1, 16} {
		target := 0.0
		if callers == pgConns {
			target = pgCycleTarget
		}
		got, err := b.turns(ctx, callers, side{"floor", f.once}, side{"cycle", w.cycle})
		if err != nil {
			return err
		}
		b.report(callers, target, cycleTransactions, "cycles", got)
	}
	if err := b.threeDaemons(ctx, w, url); err != nil {
		return err
	}
	return b.pgNews(ctx, w, url)
}

// threeDaemons has as many callers on three stores, each with its own connections, as
// there are on one.
func (b *bench) threeDaemons(ctx context.Context, one *world, url func(string) string) error {
	three := []*world{one}
	for range 2 {
		w, err := openPostgres(ctx, url("bench"), pgConns)
		if err != nil {
			return err
		}
		defer w.store.Close()
		three = append(three, w)
	}
	var turn atomic.Int64
	spread := func(ctx context.Context) error { return three[turn.Add(1)%3].cycle(ctx) }
	got, err := b.turns(ctx, pgConns, side{"one", one.cycle}, side{"three", spread})
	if err != nil {
		return err
	}
	b.line("three daemons: %.0f cycles/s, one %.0f/s, ratio %.2f (target 1.00)", got[1].rate(), got[0].rate(), got[1].ratio(&got[0], 1))
	return nil
}

// pgNews decides at one daemon what a waiter waits for at another.
func (b *bench) pgNews(ctx context.Context, here *world, url func(string) string) error {
	there, err := openPostgres(ctx, url("bench"), pgConns)
	if err != nil {
		return err
	}
	defer there.store.Close()
	var took []time.Duration
	for range 300 {
		d, err := decidedElsewhere(ctx, here, there)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	b.line("decided at one daemon, heard at another: p50 %s, p99 %s (target %s)", micro(took[len(took)/2]), micro(took[len(took)*99/100]), pgNewsTarget)
	return nil
}

func decidedElsewhere(ctx context.Context, here, there *world) (time.Duration, error) {
	p, err := here.park(ctx)
	if err != nil {
		return 0, err
	}
	heard := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		_, err := event.Wait(ctx, toldWhenRead{there.store, began}, event.Waiting{Stream: "call:" + p.CallID, Types: []event.Type{event.ApprovalDecided}})
		heard <- err
	}()
	<-began
	from := time.Now()
	if err := here.op.ApproveShown(ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "fine"); err != nil {
		return 0, err
	}
	err = <-heard
	return time.Since(from), err
}

// historyOnPostgres compares a store of many decided records with an empty one.
func historyOnPostgres(ctx context.Context, b *bench) error {
	b.title("pgrecords: a PostgreSQL store with %d decided records (targets: rate 0.9 of an empty one's, a page of pending ones under 10 ms)", b.records)
	url, stop, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer stop()
	empty, err := openPostgres(ctx, url("bench_empty"), pgConns)
	if err != nil {
		return err
	}
	defer empty.store.Close()
	long, err := openPostgres(ctx, url("bench_long"), pgConns)
	if err != nil {
		return err
	}
	defer long.store.Close()
	if err := long.cycle(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := fillPostgres(ctx, url("bench_long"), b.records); err != nil {
		return err
	}
	b.line("filled in %s", time.Since(began).Round(100*time.Millisecond))
	for _, callers := range []int{1, 16} {
		got, err := b.turns(ctx, callers, side{"empty", empty.cycle}, side{"long", long.cycle})
		if err != nil {
			return err
		}
		b.line("%3d callers: %6.0f cycles/s, in an empty store %6.0f/s, ratio %.2f", callers, got[1].rate(), got[0].rate(), got[1].ratio(&got[0], 1))
	}
	return b.pendingPage(ctx, long)
}

const pgIDBody = `'018' || lpad(to_hex(i / 65536), 5, '0') || '-' || lpad(to_hex(i % 65536), 4, '0') || '-7000-8000-' || lpad(to_hex(i), 12, '0')`

// fillPostgres does what fill does.
func fillPostgres(ctx context.Context, url string, records int64) error {
	plain, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, plain)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SET search_path = `+schema+`; SET synchronous_commit = off; SET session_replication_role = replica`); err != nil {
		return err
	}
	for _, c := range copies {
		rows, err := conn.Query(ctx, `SELECT * FROM `+c.table+` LIMIT 0`)
		if err != nil {
			return err
		}
		var names, values []string
		for _, f := range rows.FieldDescriptions() {
			v := "t." + f.Name
			if d, ok := c.differs[f.Name]; ok {
				v = strings.ReplaceAll(strings.ReplaceAll(d, "X", "x"), "printf", "")
			}
			if f.Name == "pos" {
				v = "NULL::bigint"
			}
			names, values = append(names, f.Name), append(values, v)
		}
		rows.Close()
		sql := fmt.Sprintf(`WITH ids AS (SELECT i, %s AS x FROM generate_series(1, %d) AS i), t AS (SELECT * FROM %s LIMIT 8)
			INSERT INTO %s(%s) SELECT %s FROM ids CROSS JOIN t`, pgIDBody, records, c.table, c.table, strings.Join(names, ", "), strings.Join(values, ", "))
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("fill %s: %w", c.table, err)
		}
	}
	_, err = conn.Exec(ctx, `SELECT setval('event_seq', (SELECT max(seq) FROM event) + 1)`)
	if err == nil {
		_, err = conn.Exec(ctx, `VACUUM ANALYZE`)
	}
	return err
}

// toldWhenRead closes read once a view has ended.
type toldWhenRead struct {
	*store.Store
	read chan struct{}
}

func (s toldWhenRead) View(ctx context.Context, fn func(txn.Tx) error) error {
	defer func() {
		select {
		case <-s.read:
		default:
			close(s.read)
		}
	}()
	return s.Store.View(ctx, fn)
}
