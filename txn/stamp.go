package txn

import "time"

// Stamp is a time as every door writes it: RFC 3339, UTC, microseconds. It is empty
// for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// Clock is now in a store's precision, UTC and whole microseconds, or the time of the
// transaction without one. Ask it once the lock is held (design §4, rule 8).
func Clock(now func() time.Time, tx Tx) time.Time {
	if now == nil {
		return tx.Now()
	}
	return now().UTC().Truncate(time.Microsecond)
}
