package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// What the server says, by its codes.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	readOnlyTransaction  = "25006"
	noSuchStatement      = "26000"
	duplicateStatement   = "42P05"
	planChanged          = "0A000"
	invalidParameter     = "22023"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	insufficientRights   = "42501"
	invalidSchema        = "3F000"
)

// errConstraint is what UNIQUE, CHECK, NOT NULL, FOREIGN KEY and a trigger fail with.
var errConstraint = errors.New("the database refused the row")

// statementError is a failure of one statement of ours.
type statementError struct {
	sql string
	err error
}

func (e *statementError) Error() string { return brief(e.sql) + ": " + e.err.Error() }
func (e *statementError) Unwrap() error { return e.err }

// Is makes a refused row match errConstraint.
func (e *statementError) Is(target error) bool {
	return target == errConstraint && strings.HasPrefix(code(e.err), "23")
}

func code(err error) string {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isConflict: others were quicker, and the same closure may do better when run again.
func isConflict(err error) bool {
	switch code(err) {
	case serializationFailure, deadlockDetected:
		return true
	}
	return false
}

// isStale: the server does not know a statement any more, or knows it as another.
func isStale(err error) bool {
	switch code(err) {
	case noSuchStatement, duplicateStatement, planChanged:
		return !takesNoWrites(err)
	}
	return false
}

// isStore reports a failure of the store rather than of the statement: the same
// statement may work later, and trying again is safe.
func isStore(err error) bool {
	if errors.Is(err, errDead) {
		return true
	}
	switch c := code(err); {
	case c == "":
		return false
	case c == queryCanceled, c == readOnlyTransaction, c == lockNotAvailable:
		return true
	default:
		// 08 connection, 25 transaction state, 40 rollback, 53 resources, 57 operator, 58 system, XX internal
		return strings.Contains("08 25 40 53 57 58 XX", c[:2])
	}
}

// onlyRead reports that a store is not to be written here, while it can be read.
func onlyRead(err error) bool {
	return errors.Is(err, txn.ErrRestored) || errors.Is(err, store.ErrNewer) || takesNoWrites(err) || code(err) == insufficientRights
}

// takesNoWrites: the server, or the database, only reads. A standby refuses the BEGIN.
func takesNoWrites(err error) bool {
	failed := &statementError{}
	return code(err) == readOnlyTransaction || code(err) == planChanged && errors.As(err, &failed) && failed.sql == beginUpdateSQL
}

// told is a failure as a caller is told it, where nothing can have been written.
func told(err error) error {
	if lost := (lostGuard{}); errors.As(err, &lost) {
		return lost.error
	}
	switch {
	case errors.Is(err, txn.ErrNotCommitted):
		return err
	case code(err) == lockNotAvailable:
		return txn.ErrBusy.Because(err)
	case takesNoWrites(err):
		return txn.ErrNotCommitted.Say("The server takes no writes: it is a standby, or read-only. Nothing was changed.").
			Hint("Connect to the primary (target_session_attrs=read-write in the URL finds it among several hosts).").Because(err)
	case code(err) == insufficientRights:
		return txn.ErrNotCommitted.Say("The database refused: %s. Nothing was changed.", serverSaid(err)).Hint(grantHint).Because(err)
	case isStore(err):
		return txn.ErrNotCommitted.Because(err)
	}
	return err
}

const grantHint = "Grant the right to the role that Placet uses, or do this as the role that owns the tables (docs/guide/postgres.md)."

// serverSaid is the server's own sentence.
func serverSaid(err error) string {
	e := &pgconn.PgError{}
	errors.As(err, &e)
	return e.Message
}

// toldReader is told for a View.
func toldReader(err error) error {
	switch {
	case code(err) == queryCanceled:
		return store.ErrLong.Because(err)
	case code(err) == insufficientRights:
		return store.ErrUnreadable.Say("The database refused: %s.", serverSaid(err)).Hint(grantHint).Because(err)
	case isStore(err):
		return store.ErrUnreadable.Because(err)
	}
	return err
}

// refuse is a sentence about a database that cannot be used as it is.
func refuse(url, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "%s %s.", Redacted(url), fmt.Sprintf(format, args...))
}

// brief is the opening of a statement, for messages.
func brief(sql string) string {
	w := strings.Fields(sql)
	return strings.Join(w[:min(len(w), 4)], " ")
}

// errUnreachable: no connection could be made.
var errUnreachable = fault.Sentinel(fault.Unavailable, "store_unreachable", "The database cannot be reached.", txn.ErrNotCommitted)
