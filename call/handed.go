package call

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Handed is an attempt that somebody outside this process carries out: its start is
// committed, and they own the lease until it ends.
type Handed struct {
	Call    Call
	Attempt Attempt
	Args    []byte // to run with; a reviewer may have edited them
	// Again: it was handed over before, to a request with the same idempotency key. It
	// is carried out only by who has not begun to.
	Again bool
}

// outside opens the owner of an attempt that was handed out. It is no process of ours.
const outside = "outside:"

func (s subject) carriedOutBy() string {
	if s.handed == nil {
		return self()
	}
	return outside + s.holder
}

// handedOut reports whether somebody outside carries the attempt out.
func (a Attempt) handedOut() bool { return strings.HasPrefix(a.Owner, outside) }

// Reserve is [Server.Call] for an executor outside this process: where the call may
// start, its start is committed and the attempt handed over in place of calling the
// tool. What is parked is the executor's to go on with, by [Server.ReserveAgain]. A
// repeat with the same idempotency key is handed the attempt that the first one
// started, while that is the one that runs.
func (s Server) Reserve(ctx context.Context, principal, toolName string, args []byte, opts ...Option) (Handed, Result, error) {
	var h Handed
	hand := func(o *options) { o.handed = &h }
	res, err := s.e.fresh(ctx, toolName, args, "", append(s.through(principal, ByCaller, opts), hand))
	return h, res, err
}

// ReserveAgain hands over an attempt at a parked call of the principal's, once a
// person has agreed, or again where the tool declares that a repeat is harmless. Of the
// options it takes [WithIdempotencyKey]: the key is stored with the attempt, and a
// repeat with it is handed the same one.
func (s Server) ReserveAgain(ctx context.Context, principal, callID string, opts ...Option) (Handed, Result, error) {
	var h Handed
	sub, err := s.theirs(ctx, principal, callID)
	if err != nil {
		return h, Result{}, err
	}
	if sub.call.ContinueBy != ByCaller {
		return h, Result{}, ErrUsage.Say("Call %s is the daemon's to carry out.", callID).Hint("Follow it: GET /v1/calls/%s?wait=30s.", callID)
	}
	o, err := s.e.options(append(opts[:len(opts):len(opts)], As(principal)))
	if err != nil {
		return h, Result{}, err
	}
	sub.handed, sub.holder = &h, principal
	if o.key == "" {
		res, err := s.reserveStored(ctx, sub)
		return h, res, err
	}
	request, err := sub.reservation()
	if err != nil {
		return h, Result{}, err
	}
	res, err := s.e.onceFor(ctx, sub, s.e.keyOf(o, request), s.reserveStored)
	return h, res, err
}

// reserveStored starts an attempt at a stored call that may be started.
func (s Server) reserveStored(ctx context.Context, sub subject) (Result, error) {
	if sub.call.Status == Running && !sub.interrupted() {
		return Result{}, sub.call.ErrStillRunning()
	}
	if sub.grant != nil && sub.grant.Open && sub.call.ApprovalID == sub.grant.ID && sub.grant.Choice == "" {
		return Result{}, pendingError(*sub.grant, sub.doubtful())
	}
	return s.e.goOnOrRecover(ctx, sub)
}

// theirs is a call of the principal's that came through this door. To everybody else
// it is not there, but to who may act for all.
func (s Server) theirs(ctx context.Context, principal, callID string) (subject, error) {
	return s.find(ctx, callID, func(c Call) error {
		switch {
		case c.Principal != principal && !s.all:
			return ErrNotFound.Say("There is no call %s.", callID)
		case c.Hosted():
			return c.unhosted()
		case c.Metadata["origin"] != s.origin:
			return ErrNotFound.Say("There is no call %s.", callID)
		}
		return nil
	})
}

// Renew extends the lease of an attempt that was handed over: [ErrLeaseLost].
func (s Server) Renew(ctx context.Context, principal, callID string, fence int64) (until time.Time, err error) {
	if _, err := s.theirs(ctx, principal, callID); err != nil {
		return until, err
	}
	err = txn.Update(ctx, s.e.conf.Store, func(tx Tx) error {
		if _, err := handedOut(tx, callID, fence); err != nil {
			return err
		}
		if err := Renew(tx, callID, fence, tx.Epoch(), s.e.conf.Lease); err != nil {
			return err
		}
		until = tx.Now().Add(s.e.conf.Lease)
		return nil
	})
	return until, err
}

// Confirm records how an attempt went that was handed over. One that comes late is
// taken as the ledger takes any other (spec 2.3). The same outcome again is fine.
func (s Server) Confirm(ctx context.Context, principal, callID string, fence int64, out Outcome) (Call, error) {
	if err := out.check(); err != nil {
		return Call{}, err
	}
	sub, err := s.theirs(ctx, principal, callID)
	if err != nil {
		return Call{}, err
	}
	if sub.tool, err = s.e.conf.Tools.Lookup(sub.call.Tool); err != nil {
		return Call{}, err
	}
	var next Call
	err = event.Update(ctx, s.e.conf.Store, s.e.conf.Observer, func(tx Tx) error {
		c, err := tx.Call(callID)
		if err != nil {
			return err
		}
		a, err := handedOut(tx, callID, fence)
		if err != nil {
			return err
		}
		if a.Outcome != "" && a.Outcome != Unknown && (a.Outcome != out.Status || c.Fence == fence && (!bytes.Equal(c.Result, out.Result) || out.Message != a.Message)) {
			return ErrRunState.Say("The attempt with fence %d at call %s is recorded as %s already.", fence, callID, a.Outcome)
		}
		next, _, err = s.e.end(tx, sub, c, a, End{Outcome: out})
		return err
	})
	return next, err
}

// handedOut is the attempt of that fence, if it was handed over.
func handedOut(tx Tx, callID string, fence int64) (Attempt, error) {
	as, err := tx.Attempts(callID)
	for _, a := range as {
		if a.Fence == fence && a.handedOut() {
			return a, err
		}
	}
	if err == nil {
		err = ErrLeaseLost.Say("Nobody outside holds an attempt with fence %d at call %s.", fence, callID)
	}
	return Attempt{}, err
}

// check refuses an outcome that no tool of ours could have.
func (o *Outcome) check() error {
	switch o.Status {
	case Succeeded:
		if len(o.Result) > tool.MaxResult {
			return ErrUsage.Say("The result has %d bytes; the limit is %d.", len(o.Result), tool.MaxResult)
		}
		if err := canon.Valid(o.Result); err != nil {
			return ErrUsage.Say("The result is not one JSON value.").Because(err)
		}
		if o.Message != "" {
			return ErrUsage.Say("An attempt that succeeded has a result and no message.")
		}
		return nil
	case Failed:
		o.Kind = KindToolError
	case Unknown:
		o.Kind = KindUnknownOutcome
	default:
		return ErrUsage.Say("%q is no outcome.", string(o.Status)).Hint("Write succeeded, failed or unknown.")
	}
	if o.Result != nil || !txn.IsText(o.Message) || len(o.Message) > maxOutcomeMessage {
		return ErrUsage.Say("An attempt that is %s has a message of at most %d bytes and no result.", o.Status, maxOutcomeMessage)
	}
	return nil
}

const maxOutcomeMessage = 64 << 10
