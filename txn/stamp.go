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
