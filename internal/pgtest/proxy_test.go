package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/placet-dev/placet/internal/pgtest"
)

// lane is a schema with a table, reached directly and through a proxy.
type lane struct {
	proxy   *pgtest.Proxy
	direct  *pgx.Conn
	through *pgx.Conn
	got     atomic.Int64 // bytes that came back through the proxy
}

func newLane(t *testing.T, mode pgx.QueryExecMode) *lane {
	t.Helper()
	at, schema, err := pgtest.SplitSchema(pgtest.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	at += "&search_path=" + schema
	l := &lane{proxy: pgtest.NewProxy(t, at), direct: connect(t, at)}
	exec1(t, l.direct, "CREATE SCHEMA "+schema)
	exec1(t, l.direct, "CREATE TABLE kept (n int PRIMARY KEY)")
	config, err := pgx.ParseConfig(l.proxy.URL(at))
	if err != nil {
		t.Fatal(err)
	}
	if mode != 0 {
		config.DefaultQueryExecMode = mode
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &countingConn{c, &l.got}, err
	}
	l.through, err = pgx.ConnectConfig(bounded(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.through.Close(context.WithoutCancel(t.Context())) })
	return l
}

type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// rows waits until the server has done with the connection through the proxy, so
// that nothing changes any more.
func (l *lane) rows(t *testing.T) int {
	t.Helper()
	ctx := bounded(t)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for read[int](t, l.direct, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", l.through.PgConn().PID()) > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("the server still has the connection")
		}
	}
	return read[int](t, l.direct, "SELECT count(*) FROM kept")
}

func struck(t *testing.T, c <-chan pgtest.Strike) pgtest.Strike {
	t.Helper()
	select {
	case s, ok := <-c:
		if !ok {
			t.Fatal("the fault was closed without having struck")
		}
		return s
	case <-bounded(t).Done():
		t.Fatal("the fault did not strike")
		panic("unreachable")
	}
}

// way is how a transaction with one row may reach the server.
type way struct {
	mode pgx.QueryExecMode // of statements that do not say; zero: pgx's own
	run  func(ctx context.Context, c *pgx.Conn, insert string) error
	// whole says that nothing is answered before the COMMIT is sent.
	whole bool
	// failed is the answer to the COMMIT of a transaction whose insert failed.
	failed string
}

var ways = map[string]way{
	"Simple":    {run: inSteps, mode: pgx.QueryExecModeSimpleProtocol, failed: "ROLLBACK"},
	"Extended":  {run: inSteps, mode: pgx.QueryExecModeExec, failed: "ROLLBACK"},
	"Cached":    {run: inSteps, failed: "ROLLBACK"},
	"OneText":   {run: inOneText, whole: true, failed: "ERROR 23505"},
	"Batch":     {run: inBatch, failed: "ERROR 23505"},
	"BatchExec": {run: inBatch, mode: pgx.QueryExecModeExec, whole: true, failed: "ERROR 23505"},
	"BatchText": {run: inBatch, mode: pgx.QueryExecModeSimpleProtocol, whole: true, failed: "ERROR 23505"},
	"Prepared":  {run: prepared, failed: "ERROR 23505"},
	"Pipeline":  {run: pipelined, whole: true, failed: "ERROR 23505"},
}

func inSteps(ctx context.Context, c *pgx.Conn, insert string) (err error) {
	for _, sql := range []string{"begin", insert, "COMMIT"} {
		_, failed := c.Exec(ctx, sql)
		err = errors.Join(err, failed) // after a failed insert the COMMIT is sent all the same
	}
	return err
}

func inOneText(ctx context.Context, c *pgx.Conn, insert string) error {
	_, err := c.PgConn().Exec(ctx, "begin; "+insert+"; select '; commit'; commit").ReadAll()
	return err
}

// inBatch sends all in one go, except for what pgx prepares first by itself.
func inBatch(ctx context.Context, c *pgx.Conn, insert string) error {
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(insert)
	b.Queue("commit")
	return c.SendBatch(ctx, b).Close()
}

func prepared(ctx context.Context, c *pgx.Conn, insert string) error {
	if _, err := c.Prepare(ctx, "finish", "commit"); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(insert)
	b.Queue("finish")
	return c.SendBatch(ctx, b).Close()
}

// pipelined asks for the answers with a Flush and ends the group when it has them.
func pipelined(ctx context.Context, c *pgx.Conn, insert string) error {
	p := c.PgConn().StartPipeline(ctx)
	for _, sql := range []string{"begin", insert, "commit"} {
		p.SendQueryParams(sql, nil, nil, nil, nil)
	}
	p.SendFlushRequest()
	err := p.Flush()
	for range 3 {
		if err != nil {
			break
		}
		var results any
		if results, err = p.GetResults(); err == nil {
			_, err = results.(*pgconn.ResultReader).Close()
		}
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return errors.Join(p.Sync(), p.Close())
}

func TestCommitFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		arm       func(*pgtest.Proxy, ...string) <-chan pgtest.Strike
		committed bool
		answered  bool
	}{
		"CutBeforeCommit":    {(*pgtest.Proxy).CutBeforeCommit, false, false},
		"DropCommit":         {(*pgtest.Proxy).DropCommit, false, false},
		"CutAfterCommitSent": {(*pgtest.Proxy).CutAfterCommitSent, true, false},
		"CutInCommitAnswer":  {(*pgtest.Proxy).CutInCommitAnswer, true, true},
	}
	for name, fault := range faults {
		for by, way := range ways {
			t.Run(name+"/"+by, func(t *testing.T) {
				t.Parallel()
				l := newLane(t, way.mode)
				before := l.got.Load()
				strikes := fault.arm(l.proxy)
				returned := make(chan error, 1)
				go func() { returned <- way.run(bounded(t), l.through, "insert into kept values (1)") }()
				s := struck(t, strikes)
				if name == "DropCommit" {
					select {
					case err := <-returned:
						t.Errorf("the client did not wait for the answer: %v", err)
					default:
					}
					l.proxy.Cut()
				}
				if err := <-returned; err == nil {
					t.Error("the client knows of no fault")
				}
				if got := l.rows(t) == 1; got != fault.committed {
					t.Errorf("committed: %v", got)
				}
				if s.Committed() != fault.committed || s.Answer == "" == fault.committed {
					t.Errorf("the strike says %+v", s)
				}
				if got := l.got.Load() > before; way.whole && got != fault.answered {
					t.Errorf("the client got an answer: %v", got)
				}
				awaitCount(t, l.proxy.Connections, 0) // pgx may still ask the server to cancel
			})
		}
	}
}

// Without a fault every way works, and a fault that was taken back strikes nothing.
func TestProxyPassesOn(t *testing.T) {
	t.Parallel()
	for by, way := range ways {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, way.mode)
			strikes := l.proxy.CutBeforeCommit()
			l.proxy.Disarm()
			if _, ok := <-strikes; ok {
				t.Error("a fault that was taken back struck")
			}
			for n := range 3 {
				if err := way.run(bounded(t), l.through, fmt.Sprintf("insert into kept values (%d)", n)); err != nil {
					t.Fatal(err)
				}
			}
			big := make([]byte, 3<<20)
			if got := read[int](t, l.through, "SELECT length($1::bytea)", big); got != len(big) {
				t.Errorf("%d bytes arrived", got)
			}
			if got := len(read[[]byte](t, l.through, "SELECT decode(repeat('00', 3000000), 'hex')")); got != 3000000 {
				t.Errorf("%d bytes came back", got)
			}
			l.through.Close(bounded(t))
			if got := l.rows(t); got != 3 {
				t.Errorf("%d rows", got)
			}
		})
	}
}

// What the server answers to the COMMIT of a failed transaction is the strike's answer.
func TestStruckAfterFailure(t *testing.T) {
	t.Parallel()
	for by, way := range ways {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, way.mode)
			exec1(t, l.direct, "INSERT INTO kept VALUES (1)")
			strikes := l.proxy.CutAfterCommitSent()
			if err := way.run(bounded(t), l.through, "insert into kept values (1)"); err == nil {
				t.Error("the client knows of no fault")
			}
			if s := struck(t, strikes); s.Answer != way.failed || s.Committed() {
				t.Errorf("the strike says %+v", s)
			}
		})
	}
}

func TestFaultsChooseTransactions(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	second := l.proxy.CutAfterCommitSent("kept", "(2)")
	l.proxy.CutBeforeCommit("never")
	for n := range 2 {
		if err := inBatch(bounded(t), l.through, fmt.Sprintf("insert into kept values (%d)", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := inBatch(bounded(t), l.through, "insert into kept values (2)"); err == nil {
		t.Error("the client knows of no fault")
	}
	s := struck(t, second)
	if want := []string{"begin", "insert into kept values (2)", "commit"}; fmt.Sprint(s.Statements) != fmt.Sprint(want) {
		t.Errorf("struck %q", s.Statements)
	}
	if got := l.rows(t); got != 3 {
		t.Errorf("%d rows", got)
	}
}

// key is of an advisory lock that no other lane uses.
func (l *lane) key() uint32 { return l.direct.PgConn().PID() }

// holding makes commits of the lane wait for a lock that the caller holds.
func (l *lane) holding(t *testing.T) (letGo func()) {
	t.Helper()
	exec1(t, l.direct, fmt.Sprintf(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock(%d); RETURN NULL; END $$`, l.key()))
	exec1(t, l.direct, `CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON kept
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`)
	exec1(t, l.direct, "SELECT pg_advisory_lock($1)", l.key())
	return func() { exec1(t, l.direct, "SELECT pg_advisory_unlock($1)", l.key()) }
}

func (l *lane) awaitWaiter(t *testing.T) {
	t.Helper()
	ctx := bounded(t)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for read[int](t, l.direct, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1", l.key()) == 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("no commit waits")
		}
	}
}

// The server's answer is waited for though the client went away meanwhile.
func TestStruckThoughClientLeft(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	letGo := l.holding(t)
	strikes := l.proxy.CutAfterCommitSent()
	returned := make(chan error, 1)
	go func() { returned <- inBatch(bounded(t), l.through, "insert into kept values (1)") }()
	l.awaitWaiter(t)
	l.proxy.Refuse(true) // pgx would ask the server to cancel
	l.through.PgConn().Conn().Close()
	<-returned
	letGo()
	if s := struck(t, strikes); !s.Committed() {
		t.Errorf("the strike says %+v", s)
	}
	if got := l.rows(t); got != 1 {
		t.Errorf("%d rows", got)
	}
}

// A server that ends before it answers leaves the strike without an answer.
func TestStruckThoughServerLeft(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	letGo := l.holding(t)
	strikes := l.proxy.CutAfterCommitSent()
	returned := make(chan error, 1)
	go func() { returned <- inBatch(bounded(t), l.through, "insert into kept values (1)") }()
	l.awaitWaiter(t)
	exec1(t, l.direct, "SELECT pg_terminate_backend($1)", l.through.PgConn().PID())
	if s := struck(t, strikes); s.Committed() {
		t.Errorf("the strike says %+v", s)
	}
	<-returned
	letGo()
	if got := l.rows(t); got != 0 {
		t.Errorf("%d rows", got)
	}
}

func TestFaultOfAConnectionThatIsCut(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	letGo := l.holding(t)
	defer letGo()
	strikes := l.proxy.CutAfterCommitSent()
	returned := make(chan error, 1)
	go func() { returned <- inBatch(bounded(t), l.through, "insert into kept values (1)") }()
	l.awaitWaiter(t)
	l.proxy.Cut()
	if s, ok := <-strikes; ok {
		t.Errorf("struck: %+v", s)
	}
	<-returned
}

func TestBlackhole(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	idle := connect(t, l.proxy.URL(l.direct.Config().ConnString()))
	l.proxy.Blackhole(true)
	ctx, giveUp := context.WithCancel(bounded(t))
	returned := make(chan error, 2)
	go func() { returned <- l.through.Ping(ctx) }()
	go func() {
		_, err := pgx.Connect(ctx, l.proxy.URL(l.direct.Config().ConnString()))
		returned <- err
	}()
	awaitCount(t, l.proxy.Accepted, 3)
	select {
	case err := <-returned:
		t.Errorf("an answer came out of the hole: %v", err)
	default:
	}
	giveUp()
	for range 2 {
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("in the hole: %v", err)
		}
	}
	if got := read[int](t, l.direct, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", l.through.PgConn().PID()); got != 1 {
		t.Error("the server learned that the client hung up")
	}
	l.proxy.Blackhole(false)
	if err := idle.Ping(bounded(t)); err != nil {
		t.Errorf("a connection that lost nothing: %v", err)
	}
	l.rows(t) // the other's is gone now
	awaitCount(t, l.proxy.Connections, 1)
}

func awaitCount(t *testing.T, count func() int, want int) {
	t.Helper()
	ctx := bounded(t)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for count() != want {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%d connections, not %d", count(), want)
		}
	}
}

func TestRefuseAndCut(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	at := l.proxy.URL(l.direct.Config().ConnString())
	l.proxy.Refuse(true)
	if _, err := pgx.Connect(bounded(t), at); err == nil {
		t.Error("a refused connection was made")
	}
	if err := l.through.Ping(bounded(t)); err != nil {
		t.Errorf("an open connection: %v", err)
	}
	if open, all := l.proxy.Connections(), l.proxy.Accepted(); open != 1 || all != 1 {
		t.Errorf("%d connections of %d", open, all)
	}
	l.proxy.Cut()
	if err := l.through.Ping(bounded(t)); err == nil {
		t.Error("a connection that was cut answers")
	}
	l.proxy.Refuse(false)
	connect(t, at)
}

// A request to cancel comes over a connection of its own.
func TestProxyPassesCancelOn(t *testing.T) {
	t.Parallel()
	l := newLane(t, 0)
	exec1(t, l.direct, "SELECT pg_advisory_lock($1)", l.key())
	returned := make(chan error, 1)
	go func() {
		_, err := l.through.Exec(bounded(t), "SELECT pg_advisory_lock($1)", l.key())
		returned <- err
	}()
	l.awaitWaiter(t)
	if err := l.through.PgConn().CancelRequest(bounded(t)); err != nil {
		t.Fatal(err)
	}
	var refused *pgconn.PgError
	if err := <-returned; !errors.As(err, &refused) || refused.Code != "57014" {
		t.Errorf("a statement that was cancelled: %v", err)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	l := newLane(t, pgx.QueryExecModeExec)
	const up, down = 30 * time.Millisecond, 50 * time.Millisecond
	l.proxy.Delay(up, down)
	begun := time.Now()
	exec1(t, l.through, "SELECT 1")
	if took := time.Since(begun); took < up+down {
		t.Errorf("an answer came after %v", took)
	}
	l.proxy.Cut() // does not wait for what is on its way
}
