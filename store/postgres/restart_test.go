package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// server starts one that a test may break.
func server(t testing.TB, config ...string) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(patient(t), pgtest.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// Whatever ends the server, everybody is told how it stands, what was told is so, and
// work goes on by itself once the server is back.
func TestRestart(t *testing.T) {
	t.Parallel()
	srv := server(t)
	url := srv.URL("postgres")
	w := startWork(t, url, open(t, url, postgres.Options{}), open(t, url, postgres.Options{}))
	ways := []struct {
		name string
		do   func() error
	}{
		{"fast", func() error { return srv.Restart(w.ctx, pgtest.Fast) }},
		{"immediate", func() error { return srv.Restart(w.ctx, pgtest.Immediate) }},
		{"kill", func() error { return errors.Join(srv.Kill(), srv.Start(w.ctx)) }},
	}
	for _, way := range ways {
		p := openShop(t, w.handles[0])
		waited := p.waitFor(p.mustAsk())
		w.goesOn(way.name + ", before")
		if err := way.do(); err != nil {
			t.Fatal(err)
		}
		w.goesOn(way.name + ", after")
		if err := openShop(t, w.handles[1]).approve(waited.asked); err != nil {
			t.Errorf("%s: approve: %v", way.name, err)
		}
		if err := await(t, "the one who waited all along", waited.told); err != nil {
			t.Errorf("%s: who waited was told %v", way.name, err)
		}
	}
	w.stop()
}

// work is several goroutines that write rows, each of which is told how that ended.
type work struct {
	testing.TB
	ctx     context.Context
	url     string
	handles []*store.Store
	quit    chan struct{}
	all     sync.WaitGroup
	done    []atomic.Int64 // by goroutine: told nil
	came    chan struct{}

	mu       sync.Mutex
	outcomes map[string]error // by the row's name
}

func startWork(t testing.TB, url string, handles ...*store.Store) *work {
	const each = 4
	w := &work{
		TB: t, ctx: patient(t), url: url, handles: handles, quit: make(chan struct{}), done: make([]atomic.Int64, each*len(handles)),
		came: make(chan struct{}, 1), outcomes: map[string]error{},
	}
	for i := range w.done {
		w.all.Go(func() { w.work(i) })
	}
	return w
}

func (w *work) work(i int) {
	for {
		select {
		case <-w.quit:
			return
		default:
		}
		name, err := put(w.ctx, w.handles[i%len(w.handles)])
		w.mu.Lock()
		w.outcomes[name] = err
		w.mu.Unlock()
		switch {
		case err == nil:
			w.done[i].Add(1)
			store.Hint(w.came)
		case !errors.Is(err, txn.ErrNotCommitted) && !errors.Is(err, txn.ErrUnknown):
			w.Errorf("told: %v", err)
		default:
			time.Sleep(time.Millisecond) // a server that is down refuses as fast as it is asked
		}
	}
}

// goesOn waits until everybody has written some more.
func (w *work) goesOn(when string) {
	w.Helper()
	var want []int64
	for i := range w.done {
		want = append(want, w.done[i].Load()+3)
	}
	for i := range w.done {
		for w.done[i].Load() < want[i] {
			await(w, "work to go on "+when, w.came)
		}
	}
}

// stop compares what was told with what is there.
func (w *work) stop() {
	w.Helper()
	close(w.quit)
	w.all.Wait()
	is, unknown := map[string]bool{}, 0
	rows, err := sql(w, w.url).Query(w.ctx, "SELECT id FROM token")
	if err != nil {
		w.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	for _, id := range ids {
		is[id] = true
	}
	for name, err := range w.outcomes {
		switch {
		case errors.Is(err, txn.ErrUnknown):
			unknown++
		case (err == nil) != is[name]:
			w.Errorf("told %v, and the row is there: %v", err, is[name])
		}
	}
	w.Logf("%d writes, of which %d are not known", len(w.outcomes), unknown)
}

// waiter waits for an approval's decision, also while the store cannot be read.
type waiter struct {
	asked *call.PendingError
	told  chan error
}

func (p *shop) waitFor(a *call.PendingError) waiter {
	w := waiter{a, make(chan error, 1)}
	go func() {
		err := txn.Retry(p.ctx, func() error { // whoever comes while the store is away is told so
			_, err := event.Await(p.ctx, p.s, event.Waiting{Stream: "call:" + a.CallID, Types: []event.Type{event.ApprovalDecided}}, w.took)
			if errors.Is(err, store.ErrUnreadable) {
				return txn.ErrNotCommitted
			}
			return err
		})
		if err != nil {
			w.told <- err
		}
	}()
	return w
}

func (w waiter) took(got event.Waited, err error) {
	if err == nil && got.Outcome != event.Matched {
		err = fmt.Errorf("the wait ended with %s", got.Outcome)
	}
	w.told <- err
}

// While the server is down, the answer says so, and what to do.
func TestServerDown(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL("postgres"), postgres.Options{})
	ctx := patient(t)
	if _, err := put(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := srv.Down(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	_, wrote := put(ctx, s)
	_, read := there(ctx, s, "tok_none")
	_, opened := postgres.Open(ctx, srv.URL("postgres"), nil)
	for what, err := range map[string]error{"update": wrote, "view": read, "open": opened} {
		var said *fault.Error
		if !errors.Is(err, txn.ErrNotCommitted) || !errors.As(err, &said) ||
			!strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(said.Advice, "Is the server up") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A server that crashed gives the numbers of transactions that it lost to others: one of
// those that is committed says nothing of ours.
func TestNumberUsedAgain(t *testing.T) {
	t.Parallel()
	srv := server(t, "wal_writer_delay = 10s")
	url := srv.URL("postgres")
	proxy := pgtest.NewProxy(t, url)
	ctx := patient(t)
	s := open(t, proxy.URL(url), postgres.Options{})
	if _, err := put(ctx, s); err != nil {
		t.Fatal(err)
	}
	struck := proxy.CutBeforeCommit()
	proxy.Refuse(true) // so that it is asked about only once the server is back
	var name string
	told := make(chan error, 1)
	go func() {
		var err error
		name, err = put(ctx, s)
		told <- err
	}()
	await(t, "the fault", struck)
	if err := errors.Join(srv.Kill(), srv.Start(ctx)); err != nil {
		t.Fatal(err)
	}
	if _, err := put(ctx, open(t, url, postgres.Options{})); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse(false)
	err := await(t, "the answer", told)
	if !errors.Is(err, txn.ErrNotCommitted) && !errors.Is(err, txn.ErrUnknown) {
		t.Errorf("the answer is %v", err)
	}
	stands(t, s, name, false)
}
