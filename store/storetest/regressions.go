package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// regressions has one test for every fault of a backend that was found since this
// suite stands, so that it stays mended. A name says what was wrong.
func regressions(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"told of an earlier failure": toldOfEarlierFailure,
		"put aside twice":            putAsideTwice,
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

// putAsideTwice: of two that claimed what had been tried before one put the earlier attempt
// aside and lost: it failed where the other had put it aside as well, and where the other
// gave the delivery up the attempt stood there twice.
func putAsideTwice(w *world) {
	handles := []*world{w, w.with(w.open(Options{Once: true})), w.with(w.open(Options{Once: true}))}
	t := relay("")
	t.Unordered = true
	_, ds := w.lanes(t, rounds(60))
	for _, d := range ds {
		d = w.does(w.claims(t, d.ID).ID, delivery.Release{Fence: 1})
		cmds := []delivery.Command{
			delivery.Claim{Target: t, Owner: "me", Lease: time.Hour, Epoch: 1},
			delivery.Claim{Target: t, Owner: "you", Lease: time.Hour, Epoch: 1},
			delivery.Drop{Message: "why"},
		}
		var won [3]bool
		together(len(cmds), func(i int) {
			err := handles[i].update(func(tx store.Tx) error {
				ch, err := d.Step(cmds[i], tx.Now())
				if err == nil {
					won[i], err = tx.PutDelivery(d, ch)
				}
				return err
			})
			if err != nil {
				w.Errorf("%T: %v", cmds[i], err)
			}
		})
		if n := len(w.tries(d.ID)); int64(n) != w.delivery(d.ID).Fence || n == 0 {
			w.Errorf("%s has %d attempts and the fence %d; won %v", d.ID, n, w.delivery(d.ID).Fence, won)
		}
	}
}
