package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// The inbox has all that waits, however much, what expires soonest first; what never does
// comes last, oldest first.
func TestInboxIsWholeAndInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.show(w.park().ApprovalID)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	var never, soon, late []string
	if err := txn.Update(t.Context(), w.store, func(tx store.Tx) error {
		never, soon, late = []string{first.ID}, nil, nil
		for n := range int64(1100) { // more than are read at a time
			d := first.Clone()
			d.ID, d.N = id.New(id.Approval), n+2
			switch n % 3 {
			case 0:
				never = append(never, d.ID)
			case 1:
				d.ExpiresAt, late = at.Add(time.Minute), append(late, d.ID)
			case 2:
				d.ExpiresAt, soon = at, append(soon, d.ID)
			}
			if err := tx.InsertDecision(d, d.Requested()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	out, errs, code := w.run("--json", "inbox")
	if code != 0 {
		t.Fatal(errs)
	}
	var got []string
	for line := range strings.Lines(out) {
		var o struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		got = append(got, o.ID)
	}
	if want := slices.Concat(soon, late, never); !slices.Equal(got, want) {
		t.Errorf("%d lines are not the %d in their order: %.2000s", len(got), len(want), out)
	}
}
