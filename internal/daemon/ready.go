package daemon

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// answersWithin bounds how long the store may take to answer one who asks whether the
// daemon is ready.
const answersWithin = 5 * time.Second

var errNotReady = fault.Sentinel(fault.Unavailable, "not_ready", "The daemon is not ready.")

// ready says why the daemon is not ready: a loop hangs, the store takes no writes, or
// it does not answer.
func (d *daemon) ready(ctx context.Context) error {
	var why []string
	for _, p := range d.pulses {
		if s := p.hangs(); s != "" {
			why = append(why, s)
		}
	}
	if why != nil {
		return errNotReady.Say("Not ready: %s.", strings.Join(why, "; "))
	}
	if err := d.writes.refusal(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if _, err := token.List(ctx, d.st, token.Query{Space: event.MainSpace, Limit: 1}); err != nil {
		return errNotReady.Say("Not ready: the store does not answer.").Because(err)
	}
	return nil
}

// writes knows whether the store lets writes begin. It is tried every so often: a store
// that went back in time, or that another program holds locked, is read from as ever.
type writes struct {
	st   *store.Store
	last atomic.Pointer[error]
}

// try begins a write transaction and writes nothing.
func (w *writes) try(ctx context.Context) error {
	err := txn.Update(ctx, w.st, func(txn.Tx) error { return nil })
	if err == nil || ctx.Err() == nil {
		w.last.Store(&err)
	}
	return err
}

// refusal is why the last try came to nothing; nil: it did not.
func (w *writes) refusal() error {
	last := w.last.Load()
	if last == nil || *last == nil {
		return nil
	}
	f := fault.From(*last)
	no := fault.New(fault.Unavailable, "Not ready: the store takes no writes. %s", f.Message).Because(*last)
	no.Reason, no.Advice = f.Reason, f.Advice
	return no
}

// warning tells whoever starts a daemon on a store that takes no writes.
func (w *writes) warning() string {
	last := w.last.Load()
	if last == nil || *last == nil {
		return ""
	}
	f := fault.From(*last)
	says := "The store takes no writes, so nothing is decided, started or continued: "
	if errors.Is(*last, txn.ErrRestored) {
		says = "The store went back in time, so it is only read; nothing is decided, started or continued: "
	}
	return strings.TrimSpace(says + f.Message + " " + f.Advice)
}
