package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/txn"
)

// regressions has one test for every fault of a backend that was found since this
// suite stands, so that it stays mended. A name says what was wrong.
func regressions(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"told of an earlier failure": toldOfEarlierFailure,
	})
}

// toldOfEarlierFailure: a transaction could not be begun, and who tried again at
// once was told of that same failure, although nothing was in the way any more.
func toldOfEarlierFailure(w *world) {
	w.eachBlow(func(blow Blow) {
		f := &faults{only: func(statement string) bool { return strings.HasPrefix(statement, "BEGIN") }}
		v := w.with(w.open(Options{Once: true, Before: f.before}))
		for range rounds(200) {
			f.arm(1, func() Blow { return blow })
			if err := v.update(park1); !errors.Is(err, txn.ErrNotCommitted) {
				w.Fatalf("with no transaction to be had: %v", err)
			}
			if err := v.update(park1); err != nil {
				w.Fatalf("again: %v", err)
			}
		}
	}, Fail)
}
