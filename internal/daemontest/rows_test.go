package daemontest

import (
	"database/sql"
	"slices"
	"testing"
	"time"
)

// While nothing happens nothing changes, whatever the daemon renews; and what happens shows.
func TestRows(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{})
	parked := w.Call("refund", `{"order_id":"o-7","amount":75}`)
	before, lease := w.Rows(), w.lease()
	for end := time.Now().Add(patience); w.lease() == lease; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the daemon does not renew its lease")
		}
	}
	if changed := w.Rows().Changed(before); len(changed) > 0 {
		t.Errorf("nothing happened, and these changed: %q", changed)
	}
	approve(t, w, parked)
	w.Ended(parked.CallID)
	changed := w.Rows().Changed(before)
	for _, table := range []string{"attempt", "call", "decision", "event"} {
		if !slices.Contains(changed, table) {
			t.Errorf("a call was carried out, and only these changed: %q", changed)
		}
	}
	if slices.Contains(changed, "token") || slices.Contains(changed, "home") {
		t.Errorf("these changed: %q", changed)
	}
	if got := (Rows{"a": "1", "b": "1"}).Changed(Rows{"b": "2", "c": "1"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

func (w *World) lease() (until int64) {
	w.tb.Helper()
	err := w.view(func(tx *sql.Tx) error { return tx.QueryRow(`SELECT max(lease_until) FROM home`).Scan(&until) })
	if err != nil {
		w.tb.Fatal(err)
	}
	return until
}
