package id_test

import (
	"testing"

	"github.com/placet-dev/placet/internal/id"
)

func TestIDsAreDistinctAndTimeOrdered(t *testing.T) {
	t.Parallel()
	last := ""
	for range 10_000 {
		s := id.New(id.Call)
		if !id.Has(id.Call, s) || id.Has(id.Run, s) {
			t.Fatalf("%q is not a call id", s)
		}
		if s <= last {
			t.Fatalf("%q does not sort after %q", s, last)
		}
		last = s
	}
	for _, s := range []string{"", "call_", "call_x", "call_" + last} {
		if id.Has(id.Call, s) {
			t.Errorf("%q passes for an id", s)
		}
	}
}
