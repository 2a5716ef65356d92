package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// insertEvents writes events as they stand in the table, and tells nobody.
func insertEvents(t testing.TB, tx interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, stream, kind string, after, n int,
) {
	t.Helper()
	rows, err := tx.Query(patient(t), `INSERT INTO event(space, stream, stream_seq, id, v, at, type, subject, body_hash, prev_hash, hash)
		SELECT 'main', $1, n, $1 || n, 1, 1, $2, 's', '', '', decode(md5($1 || n) || md5(n::text), 'hex')
		FROM generate_series($3::bigint + 1, $3::bigint + $4::bigint) AS n`, stream, kind, after, n)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, c *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := c.Begin(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(patient(t)); err != nil {
		t.Fatal(err)
	}
}

// hears waits for an approval's decision: it has read what is stored when it returns.
func (p *shop) hears(a *call.PendingError) (told chan error) {
	p.Helper()
	told = make(chan error, 1)
	w := event.Waiting{Stream: "call:" + a.CallID, Types: []event.Type{event.ApprovalDecided}}
	if _, err := event.Await(p.ctx, p.s, w, func(_ event.Waited, err error) { told <- err }); err != nil {
		p.Fatal(err)
	}
	return told
}

// An answer of which nobody tells is noticed by those who wait for it (case 092).
func TestUntold(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	quiet := openShop(t, open(t, url, postgres.Options{Hooks: &postgres.Hooks{Quiet: true}}))
	a := p.mustAsk()
	waited := p.hears(a)
	if err := quiet.approve(a); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the one who waits", waited); err != nil {
		t.Error(err)
	}
	b := p.mustAsk()
	waited = p.hears(b)
	insertEvents(t, sql(t, url), "call:"+b.CallID, string(event.ApprovalDecided), 2, 1)
	if err := await(t, "the one who waits for what was inserted by hand", waited); err != nil {
		t.Error(err)
	}
}

// A writer that is slow, so that others' later numbers are committed before its own, is
// not stepped over by those who wait, whatever lies between.
func TestSlowWriterIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]int{"few": 3, "thousands": 6000, "more than can be remembered": 12_000} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %v", name, late), func(t *testing.T) {
				t.Parallel()
				url := pgtest.Schema(t)
				p := openShop(t, open(t, url, postgres.Options{}))
				a := p.mustAsk()
				var waited <-chan error
				if !late {
					waited = p.hears(a)
				}
				var others []*call.PendingError
				var looked []<-chan error
				for range 3 {
					b := p.mustAsk()
					others, looked = append(others, b), append(looked, p.hears(b))
				}
				slow := begin(t, sql(t, url))
				run(t, slow.Conn(), "SELECT pg_current_xact_id()")
				insertEvents(t, slow, "call:"+a.CallID, string(event.ApprovalDecided), 2, 1)
				quick := sql(t, url)
				insertEvents(t, quick, "between", "x", 0, between)
				if late {
					waited = p.hears(a)
				}
				for i, b := range others { // so that what came between was looked at
					insertEvents(t, quick, "call:"+b.CallID, string(event.ApprovalDecided), 2, 1)
					if err := await(t, "a later one", looked[i]); err != nil {
						t.Fatal(err)
					}
				}
				commit(t, slow)
				if err := await(t, "the slow one", waited); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Nor is it by those who read all events in their order: it gets a later place.
func TestSlowWriterGetsALaterPlace(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	s := open(t, url, postgres.Options{})
	slow, quick, ctx := sql(t, url), sql(t, url), patient(t)
	cursor, last := event.Cursor(""), int64(0)
	follow := func(want ...string) {
		t.Helper()
		page, err := event.Read(ctx, s, "", cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range page.Events {
			if last++; e.Pos != last {
				t.Fatalf("pos %d behind %d", e.Pos, last-1)
			}
			got = append(got, e.Stream)
		}
		if cursor = page.Cursor; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the follower sees %v, want %v", got, want)
		}
	}
	for n := range 200 {
		tx := begin(t, slow)
		insertEvents(t, tx, "slow", "x", n, 1)
		insertEvents(t, quick, "quick", "x", 2*n, 2)
		follow("quick", "quick")
		commit(t, tx)
		follow("slow")
	}
}

// However many streams a transaction touches, it is committed, and all are told (case 091).
func TestManyStreams(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	hears := open(t, url, postgres.Options{Hooks: &postgres.Hooks{Blind: true}})
	streams := make([]string, 400)
	together(4, func(i int) {
		for k := i; k < len(streams); k += 4 {
			streams[k] = "call:" + p.mustAsk().CallID
		}
	})
	told := make([]<-chan struct{}, len(streams))
	for i, stream := range streams {
		woken, stop := hears.Watch(stream)
		defer stop()
		told[i] = woken
	}
	err := txn.Update(p.ctx, p.s, func(tx store.Tx) error {
		for _, stream := range streams {
			if _, err := tx.Head(stream); err != nil { // all locks before the clock
				return err
			}
		}
		for _, stream := range streams {
			if err := tx.Append(stream, event.New("x", "s", "tester", nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range told {
		await(t, streams[i], told[i])
	}
}

// Large arguments never stand in a notification (case 091).
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	other := openShop(t, open(t, url, postgres.Options{}))
	for _, letter := range []string{"a", "\U0001F642"} {
		for _, size := range []int{7_900, 8_000, 9_000, 1_000_000} {
			a, err := p.ask(`{"s":"` + strings.Repeat(letter, size/len(letter)) + `"}`)
			if err != nil {
				t.Errorf("%d bytes of %s: ask: %v", size, letter, err)
				continue
			}
			waited := p.hears(a)
			if err := other.approve(a); err != nil {
				t.Errorf("%d bytes of %s: approve: %v", size, letter, err)
				continue
			}
			if err := await(t, "the answer", waited); err != nil {
				t.Error(err)
			}
			if _, err := p.Resume(p.ctx, a.ApprovalID, nil); err != nil || p.times(a.CallID) != 1 {
				t.Errorf("%d bytes of %s: resume: %v, and it ran %d times", size, letter, err, p.times(a.CallID))
			}
		}
	}
}
