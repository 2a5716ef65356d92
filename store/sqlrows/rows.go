// Package sqlrows is the rows of every noun in SQL: what a backend needs besides a
// connection, a schema and a few differences of its database's dialect. The schemas
// of the backends have the same tables and columns.
//
// Statements are written for SQLite, with ? for an argument; a backend for another
// database translates them, each once. Truth values are stored as 0 and 1, times as
// microseconds.
package sqlrows

import (
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// Conn is one transaction of a backend.
type Conn interface {
	txn.Tx
	StoreID() string
	Epoch() int64
	RestoredTo() time.Time
	Latest() time.Time
	Touch(stream string)

	// Query runs a statement and calls each for every row; each must not use the connection.
	Query(sql string, args []any, each func(Row) error) error
	// Exec runs a writing statement and says how many rows it changed.
	Exec(sql string, args ...any) (changed int64, err error)
	// Write is Exec for a statement of which nobody needs the answer: it may be run
	// later, before the transaction is committed, and its error may come then. The
	// arguments are copied.
	Write(w Write) error
	// Lock runs a SELECT that locks rows, where the transaction writes and does not
	// hold the only lock there is. Now is read after it. each, which may be nil, is
	// called for the rows by the time that the next question is answered.
	Lock(each func(Row) error, sql string, args ...any) error
	// LockName locks a name for the rest of a transaction that writes: a row that is
	// not there cannot be locked.
	LockName(name string) error

	// Count is how large a counter is. A transaction that writes and gives a limit above 0 is
	// only told whether there is room: a figure below limit may be too low, and what it adds is
	// held against the limit again where it is written.
	Count(space, name string, limit int64) (int64, error)
	// Add changes a counter, which must not fall below zero.
	Add(space, name string, n int64) error

	// Number gives new events their numbers, unless the database does. Arrange gives
	// those that have come a place in the public order, where that is not their number.
	Number(es []event.Event) error
	Arrange() error
	// Hearing is what is kept in memory of the wake targets, read anew where it is not
	// as of now. TargetsMove says that they change.
	Hearing(read func() (*Hearing, error)) (*Hearing, error)
	TargetsMove(stream string) error

	Dialect() *Dialect
}

// Write is a statement that changes one row.
type Write struct {
	SQL   string
	Args  []any
	Lost  func() error // the error if no row was as expected; nil: that is fine
	Taken func() error // the error if the key is in use; nil: the database's own
}

// Dialect is in what a database differs from SQLite.
type Dialect struct {
	// OwnPos: events have their public order in a column of its own, and are numbered
	// by the database.
	OwnPos bool
	// HasTag is true for a job with the tag that is its only argument.
	HasTag string
	// Holds is true where a column of bytes, written {}, holds those of an argument, which
	// has no large letters of ASCII: those of the column count as small ones.
	Holds string
	// NextTargets finds, behind an id, up to so many targets of which something pushed
	// may be due, and when. Empty: they are looked for one by one.
	NextTargets string
	// Sorts counts what waits in a space, the only argument: type, kind of owner, kind and
	// tool of each sort in any order, and how many there are. Empty: sorts are looked for one
	// by one.
	Sorts string
	// Locking is added to a SELECT in a transaction that writes, so that it locks what
	// it finds; Claiming also leaves out what others have locked.
	Locking, Claiming string
}

// Row is one row of a result. Columns are counted from 0. It is valid until the
// function it was given to returns; what the accessors return stays valid. Each
// returns its zero value for NULL. Reading a column as what it is not makes the query
// fail.
type Row interface {
	Null(i int) bool
	Str(i int) string
	Int(i int) int64
	Bool(i int) bool
	// Bytes is nil for NULL, and only for NULL.
	Bytes(i int) []byte
	// Time is a time in UTC.
	Time(i int) time.Time
}

// Rows is one transaction's rows: a statement each, nothing judged.
type Rows struct {
	Conn
	ahead *ahead
}

// ahead is what came with a lock, and will be asked for.
type ahead struct{ call call.Call }

// Of is the rows of a transaction.
func Of(c Conn) Rows { return Rows{c, &ahead{}} }

var _ store.Rows = Rows{}

// queryRow runs sql and calls scan for its first row; found is false if it has none.
func (x Rows) queryRow(sql string, args []any, scan func(r Row) error) (found bool, err error) {
	err = x.Query(sql, args, func(r Row) error {
		if found {
			return nil
		}
		found = true
		return scan(r)
	})
	return found, err
}

// one runs a guarded statement: true if it changed exactly its row.
func (x Rows) one(sql string, args ...any) (bool, error) {
	n, err := x.Exec(sql, args...)
	return n == 1, err
}

// write runs a statement that nothing has to be as expected for.
func (x Rows) write(sql string, args ...any) error { return x.Write(Write{SQL: sql, Args: args}) }

// forChange ends a SELECT that is only run to lock.
const forChange = ` FOR NO KEY UPDATE`

func (x Rows) locking(sql string) string { return sql + x.Dialect().Locking }

func (x Rows) claiming(sql string) string { return sql + x.Dialect().Claiming }

// text is NULL for an empty text, in columns where nothing is not a value.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// pageSize is a list's limit: from 1 to most, usual where none is given. Statements say
// LIMIT +? for it: SQLite looks at the value of one without the sign for its plan, and so
// prepares the statement again each time that it is bound.
func pageSize(n, usual, most int) int {
	if n <= 0 {
		return usual
	}
	return min(n, most)
}
