package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// conn is one connection, the statements that are prepared on it, and what is to be
// sent next. Statements are sent together and answered together: one that fails ends
// the rest of its group.
type conn struct {
	held *pgxpool.Conn // the pool's; nil: our own
	pg   *pgconn.PgConn
	*session

	queue []request
	out   []byte // the messages of queue
	arena []byte // values of the statement that is being sent
	vals  [][]byte
	forms []int16
}

// session is what is known of a connection for as long as it lasts.
type session struct {
	pid    int64           // of the server's process, unless pooled
	pooled bool            // a pooler is in between: the next transaction may have another process
	names  map[text]string // of prepared statements
	made   int             // names ever
	place  identity
	crash  int64  // when the server last began anew after one
	slot   int64  // of counters
	max    int64  // connections that the server takes
	sync   string // for what the server lets a COMMIT wait, where it is not told otherwise
	warned error  // by the server, lately
	broken bool   // it is of no use any more
}

// request is one statement that was sent.
type request struct {
	sql    string
	parsed bool // it is to be prepared on the way
	each   func(sqlrows.Row) error
	write  *sqlrows.Write
	count  *int64 // takes the number of rows that were changed
}

// errDead is what is left to say on a connection that is gone.
var errDead = errors.New("the connection to PostgreSQL is gone")

// send puts a statement behind those that were not sent yet.
func (c *conn) send(r request, args []any) error {
	t := r.text()
	if err := c.bind(args); err != nil {
		return &statementError{r.sql, err}
	}
	name, known := c.names[t]
	out, err := c.out, error(nil)
	if !known {
		if !c.pooled {
			c.made++
			name = "p" + strconv.Itoa(c.made)
		}
		out, err = (&pgproto3.Parse{Name: name, Query: native(t)}).Encode(out)
	}
	if err == nil {
		out, err = (&pgproto3.Bind{PreparedStatement: name, ParameterFormatCodes: c.forms, Parameters: c.vals, ResultFormatCodes: binaryResults}).Encode(out)
	}
	if err == nil {
		out, err = (&pgproto3.Execute{}).Encode(out)
	}
	if err != nil { // it is too large for a message
		return &statementError{r.sql, err}
	}
	if r.parsed = !known; r.parsed && !c.pooled {
		c.names[t] = name
	}
	c.out, c.queue = out, append(c.queue, r)
	return nil
}

func (r *request) text() text { return text{r.sql, r.write != nil && r.write.Lost != nil} }

// discard takes back what was not sent yet.
func (c *conn) discard() {
	c.forget(c.queue)
	clear(c.queue)
	c.out, c.queue = c.out[:0], c.queue[:0]
}

var binaryResults = []int16{1}

// bind writes the arguments as they are sent: numbers and bytes in their binary form,
// texts as they are.
func (c *conn) bind(args []any) error {
	need := 8 * len(args)
	if cap(c.arena) < need {
		c.arena = make([]byte, 0, 2*need)
	}
	c.arena, c.vals, c.forms = c.arena[:0], c.vals[:0], c.forms[:0]
	for i, a := range args {
		var v []byte
		form := int16(1)
		switch a := a.(type) {
		case nil:
		case int64:
			v = c.number(a)
		case int:
			v = c.number(int64(a))
		case string:
			v, form = []byte(a), 0
		case []byte:
			v = a
		case bool:
			n := int64(0)
			if a {
				n = 1
			}
			v = c.number(n)
		case time.Time:
			if !a.IsZero() {
				v = c.number(a.UnixMicro())
			}
		default:
			return fmt.Errorf("argument %d: a %T cannot be stored; give nil, int, int64, string, []byte, bool or time.Time", i+1, a)
		}
		c.vals, c.forms = append(c.vals, v), append(c.forms, form)
	}
	return nil
}

func (c *conn) number(n int64) []byte {
	at := len(c.arena)
	c.arena = binary.BigEndian.AppendUint64(c.arena, uint64(n))
	return c.arena[at:]
}

// flush sends what is queued, and reads the answers. patience bounds the wait for
// each of them. An error that is not the server's word leaves the connection unusable.
func (c *conn) flush(patience time.Duration) error {
	if len(c.queue) == 0 {
		return nil
	}
	queue := c.queue
	c.queue = c.queue[:0]
	if err := c.write(patience); err != nil {
		return err
	}
	var failed error
	for i := range queue {
		err := c.answer(&queue[i])
		if failed == nil {
			failed = err
		}
		if err == nil || isOurs(err) {
			continue // the server goes on
		}
		c.forget(queue[i:])
		if errors.Is(err, errDead) {
			return err
		}
		c.broken = c.broken || isStale(err) // nor may the session be what it was
		break
	}
	err := c.ready(failed)
	clear(queue)
	return err
}

// write sends what is queued.
func (c *conn) write(patience time.Duration) error {
	out, err := (&pgproto3.Sync{}).Encode(c.out)
	c.out = out[:0]
	if cap(out) > outMax {
		c.out = nil // a large value is not kept room for
	}
	if err == nil {
		err = c.pg.Conn().SetDeadline(time.Now().Add(patience))
	}
	if err == nil {
		_, err = c.pg.Conn().Write(out)
	}
	if err != nil {
		return c.lost(err)
	}
	return nil
}

// answer reads what came of one statement.
func (c *conn) answer(r *request) error {
	var own error // the caller's, or that a row is not as expected: the rest is read all the same
	for {
		msg, err := c.receive()
		if err != nil {
			return err
		}
		switch msg := msg.(type) {
		case *pgproto3.ParseComplete:
			r.parsed = false
		case *pgproto3.BindComplete:
		case *pgproto3.DataRow:
			if own == nil && r.each != nil {
				v := row{vals: msg.Values}
				if own = r.each(&v); own == nil && v.err != nil {
					own = &statementError{r.sql, v.err}
				}
			}
		case *pgproto3.CommandComplete:
			if own == nil {
				own = r.done(msg.CommandTag)
			}
			return own
		case *pgproto3.EmptyQueryResponse:
			return own
		case *pgproto3.ErrorResponse:
			return r.failed(pgconn.ErrorResponseToPgError(msg))
		default:
			return c.lost(fmt.Errorf("an answer of the kind %T was not expected", msg))
		}
	}
}

// lostGuard is the error of a write that another writer was quicker than.
type lostGuard struct {
	error
	ours bool // the server knows of nothing, and goes on
}

func (e lostGuard) Unwrap() error { return e.error }

func isOurs(err error) bool {
	lost := lostGuard{}
	return errors.As(err, &lost) && lost.ours
}

// errRolledBack: a transaction that had failed before was told to commit.
var errRolledBack = txn.ErrNotCommitted.Say("The server rolled the transaction back; nothing was changed.")

func (r *request) done(tag []byte) error {
	n := changed(tag)
	if r.sql == commitSQL && string(tag) != commitSQL {
		return errRolledBack
	}
	if r.count != nil {
		*r.count = n
	}
	if r.write != nil && r.write.Lost != nil && n != 1 {
		return lostGuard{r.write.Lost(), true}
	}
	return nil
}

func (r *request) failed(err *pgconn.PgError) error {
	if r.write != nil && r.write.Taken != nil && err.Code == uniqueViolation {
		return lostGuard{r.write.Taken(), false}
	}
	return &statementError{r.sql, err}
}

// changed is how many rows a command tag says: its last word.
func changed(tag []byte) (n int64) {
	s := string(tag)
	n, _ = strconv.ParseInt(s[strings.LastIndexByte(s, ' ')+1:], 10, 64)
	return n
}

// cancelWith has the server end what it does when one of the contexts ends. calm stops
// that, and reports whether neither has ended yet.
func (c *conn) cancelWith(ctxs ...context.Context) (calm func() bool) {
	answered := make(chan struct{})
	var busy sync.WaitGroup
	var stops [2]func() bool
	for i, ctx := range ctxs {
		busy.Add(1)
		stops[i] = context.AfterFunc(ctx, func() {
			defer busy.Done()
			c.cancelUntil(answered)
		})
	}
	return func() bool {
		close(answered)
		calm := true
		for _, stop := range stops[:len(ctxs)] {
			if stop() {
				busy.Done()
			} else {
				calm = false
			}
		}
		busy.Wait()
		return calm
	}
}

// cancelUntil asks again where nothing comes of it: the statement may not have begun.
func (c *conn) cancelUntil(answered <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	for ctx.Err() == nil {
		_ = c.pg.CancelRequest(ctx) // in vain: lock_timeout ends the wait
		timer := time.NewTimer(cancelAgain)
		select {
		case <-timer.C:
		case <-answered:
			timer.Stop()
			return
		}
	}
}

// ready reads on to where the next group begins. A failure of the server's own that
// comes there is the group's.
func (c *conn) ready(failed error) error {
	for {
		msg, err := c.receive()
		if err != nil {
			return errors.Join(err, failed)
		}
		switch msg := msg.(type) {
		case *pgproto3.ReadyForQuery:
			return failed
		case *pgproto3.ErrorResponse:
			if failed == nil {
				failed = pgconn.ErrorResponseToPgError(msg)
			}
		}
	}
}

func (c *conn) receive() (pgproto3.BackendMessage, error) {
	for {
		msg, err := c.pg.ReceiveMessage(context.Background())
		if err != nil {
			return nil, c.lost(err)
		}
		switch msg := msg.(type) {
		case *pgproto3.NoticeResponse:
			if msg.SeverityUnlocalized == "WARNING" {
				c.warned = errors.New(msg.Message)
			}
		case *pgproto3.ParameterStatus, *pgproto3.NotificationResponse:
		default:
			return msg, nil
		}
	}
}

// lost closes a connection of which nobody knows any more what comes next.
func (c *conn) lost(err error) error {
	c.kill()
	return fmt.Errorf("%w: %w", errDead, err)
}

// kill ends the connection without a word.
func (c *conn) kill() {
	c.broken = true
	_ = c.pg.Conn().Close()
}

// forget says that these statements were not prepared.
func (c *conn) forget(rest []request) {
	for _, r := range rest {
		if r.parsed {
			delete(c.names, r.text())
		}
	}
}

// run sends one statement by itself.
func (c *conn) run(sql string, args []any, each func(sqlrows.Row) error) error {
	return c.runFor(updateLimit+answerLimit, sql, args, each)
}

// runFor is run with another patience.
func (c *conn) runFor(patience time.Duration, sql string, args []any, each func(sqlrows.Row) error) error {
	if err := c.send(request{sql: sql, each: each}, args); err != nil {
		return err
	}
	return c.flush(patience)
}

// durable is what synchronous_commit has to be: a COMMIT that waits for no disk, or for
// none of a standby's, may be forgotten, and what it started would run again.
func (c *conn) durable() string {
	switch c.sync {
	case "off", "local", "remote_write":
		return "on"
	}
	return c.sync
}

// tidy makes room for statements, between transactions. A connection that turns out to
// be gone is noticed by whoever uses it.
func (c *conn) tidy() {
	if len(c.names) >= maxStatements {
		clear(c.names)
		_ = c.run(`DEALLOCATE ALL`, nil, nil)
		clear(c.names)
	}
}

// release gives the connection back to where it came from. One that is in a
// transaction, or gone, is not used again.
func (c *conn) release() {
	if c.held == nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
		defer cancel()
		_ = c.pg.Close(ctx)
		return
	}
	if c.broken || c.pg.TxStatus() != 'I' || len(c.queue) > 0 {
		c.kill()
		ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
		defer cancel()
		_ = c.pg.Close(ctx)
	} else {
		_ = c.pg.Conn().SetDeadline(time.Time{})
	}
	c.held.Release()
}

// script runs statements that have no arguments and no rows.
func (c *conn) script(sql string) error {
	if err := c.pg.Conn().SetDeadline(time.Time{}); err != nil { // it may take long
		return c.lost(err)
	}
	return c.pg.Exec(context.Background(), sql).Close()
}
