package sqlite

import (
	"errors"
	"fmt"
	"strings"

	driversqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store"
)

// ErrNewer is [store.ErrNewer].
var ErrNewer = store.ErrNewer

// errConstraint is what UNIQUE, CHECK, NOT NULL, FOREIGN KEY and RAISE(ABORT) fail with.
var errConstraint = errors.New("the database refused the row")

// refuse is a sentence about a file that cannot be used as it is.
func refuse(path, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "%s %s.", path, fmt.Sprintf(format, args...))
}

// statementError is a failure of one statement of ours.
type statementError struct {
	sql string
	err error
}

func (e *statementError) Error() string { return brief(e.sql) + ": " + e.err.Error() }
func (e *statementError) Unwrap() error { return e.err }

// Is makes a refused row match errConstraint.
func (e *statementError) Is(target error) bool {
	return target == errConstraint && primary(e.err) == sqlite3.SQLITE_CONSTRAINT
}

func isConstraint(err error) bool { return primary(err) == sqlite3.SQLITE_CONSTRAINT }

func isUnique(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return true
	}
	return false
}

// isBusy: another process holds SQLite's lock.
func isBusy(err error) bool { return primary(err) == sqlite3.SQLITE_BUSY }

// isStore reports a failure of the store rather than of the statement: the same
// statement may work later, and trying again is safe.
func isStore(err error) bool {
	switch primary(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// isCertain reports, for an error of COMMIT after which the transaction was
// rolled back, that nothing of it can come to light later. A full disk cuts the
// log before its commit record. After an I/O error that record may lie on the
// disk, where a recovery would find it.
func isCertain(err error) bool { return certain(code(err)) }

func certain(code int) bool {
	switch code & 0xff {
	case 0, sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CONSTRAINT,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_AUTH:
		return true
	}
	return false
}

func code(err error) int {
	if e := (*driversqlite.Error)(nil); errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func primary(err error) int { return code(err) & 0xff }

// brief is the opening of a statement, for messages.
func brief(sql string) string {
	w := strings.Fields(sql)
	return strings.Join(w[:min(len(w), 4)], " ")
}
