package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// patience bounds every wait of a test. It is long: it only ends what hangs.
const patience = 5 * time.Minute

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a handle as another process would. It logs nothing unless o says so.
func open(t testing.TB, url string, o postgres.Options) *store.Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := postgres.Open(patient(t), url, &o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// impatient waits only a moment for answers that do not come.
func impatient() *postgres.Hooks { return &postgres.Hooks{UpdateLimit: 5 * time.Second} }

// shop is the real engine over one handle, with a tool that counts how often it ran.
type shop struct {
	testing.TB
	*call.Executor
	ctx context.Context
	s   *store.Store
	op  decision.Operator

	mu  sync.Mutex
	ran map[string]int // by call
}

const refund = "refund" // a person is asked

func openShop(t testing.TB, s *store.Store) *shop {
	t.Helper()
	p := &shop{TB: t, ctx: patient(t), s: s, op: decision.Operator{Store: s, Principal: "user:ana"}, ran: map[string]int{}}
	tools, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: refund, InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation, TimeoutMS: 30_000},
		Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ran[c.CallID]++
			return json.RawMessage(`{"args":` + string(c.Args) + `}`), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Executor = call.NewExecutor(call.Config{Store: s, Tools: tools})
	return p
}

func (p *shop) times(callID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ran[callID]
}

// ask parks a call.
func (p *shop) ask(args string) (*call.PendingError, error) {
	_, err := p.Call(p.ctx, refund, []byte(args))
	var asked *call.PendingError
	if errors.As(err, &asked) {
		return asked, nil
	}
	if err == nil {
		err = errors.New("nobody was asked")
	}
	return nil, err
}

func (p *shop) mustAsk() *call.PendingError {
	p.Helper()
	a, err := p.ask(`{"amount":10}`)
	if err != nil {
		p.Fatalf("ask: %v", err)
	}
	return a
}

func (p *shop) approve(a *call.PendingError) error {
	return p.op.ApproveShown(p.ctx, a.RunID, a.ApprovalID, a.Digest, "Ana", "fine")
}

func (p *shop) mustGrant() *call.PendingError {
	p.Helper()
	a := p.mustAsk()
	if err := p.approve(a); err != nil {
		p.Fatalf("approve: %v", err)
	}
	return a
}

// cycle asks, approves and carries out.
func (p *shop) cycle(args string) error {
	a, err := p.ask(args)
	if err != nil {
		return err
	}
	if err := p.approve(a); err != nil {
		return err
	}
	res, err := p.Resume(p.ctx, a.ApprovalID, nil)
	if err == nil && (res.Status != call.Succeeded || p.times(a.CallID) != 1) {
		p.Errorf("call %s ended as %s and ran %d times", a.CallID, res.Status, p.times(a.CallID))
	}
	return err
}

// attempts are what the store says of a call's.
func (p *shop) attempts(callID string) (as []call.Attempt) {
	p.Helper()
	p.view(func(tx store.Tx) (err error) { as, err = tx.Attempts(callID); return err })
	return as
}

func (p *shop) view(fn func(tx store.Tx) error) {
	p.Helper()
	if err := txn.View(p.ctx, p.s, fn); err != nil {
		p.Fatalf("view: %v", err)
	}
}

// put writes a row that nothing else has to do with, and returns its id.
func put(ctx context.Context, s *store.Store) (string, error) {
	name := id.New(id.Token)
	return name, txn.Update(ctx, s, func(tx store.Tx) error { return putNamed(tx, name) })
}

func putNamed(tx store.Tx, name string) error {
	return tx.InsertToken(token.Token{
		ID: name, Space: event.MainSpace, Scope: token.Agent, Name: name, Principal: "agent:a", Hash: bytes.Repeat([]byte{1}, 32), CreatedAt: tx.Now(),
	})
}

// there reports whether the row is.
func there(ctx context.Context, s *store.Store, name string) (there bool, err error) {
	err = txn.View(ctx, s, func(tx store.Tx) error {
		_, err := tx.Token(name)
		if there = err == nil; errors.Is(err, token.ErrNotFound) {
			return nil
		}
		return err
	})
	return there, err
}

// stands fails unless a row is there as it should be.
func stands(t testing.TB, s *store.Store, name string, want bool) {
	t.Helper()
	got, err := there(patient(t), s, name)
	if err != nil || got != want {
		t.Errorf("the row is there: %v (%v), want %v", got, err, want)
	}
}

// sql is a connection of its own, whose statements find the store's tables.
func sql(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	plain, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(patient(t), plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if schema == "" {
		schema = "placet"
	}
	run(t, c, "SET search_path = "+schema)
	return c
}

func run(t testing.TB, c *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := c.Exec(patient(t), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// records takes what is logged.
type records struct {
	mu    sync.Mutex
	lines bytes.Buffer
	came  chan struct{} // filled with every line
}

func newRecords() (*records, *slog.Logger) {
	r := &records{came: make(chan struct{}, 1)}
	return r, slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	store.Hint(r.came)
	return r.lines.Write(line)
}

func (r *records) count(fragment string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.lines.String(), fragment)
}

// await waits for a signal.
func await[T any](t testing.TB, what string, signal <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-signal:
	case <-time.After(patience):
		t.Fatalf("waiting for %s took too long", what)
	}
	return v
}

// together runs fn(0) to fn(n-1) at one moment and returns when all have ended.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	all.Wait()
}
