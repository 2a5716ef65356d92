package call

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/txn"
)

// once carries out a fresh call whose client named an idempotency key: the
// first request with it makes the call, every repeat is answered with that one.
func (e *Executor) once(ctx context.Context, s subject, o options) (Result, error) {
	if err := checkID("idempotency key", o.key); err != nil {
		return Result{}, err
	}
	k := IdempotencyKey{Space: e.conf.Space, Principal: o.principal, Route: o.route, Key: o.key, Request: s.fingerprint(o)}
	earlier, err := e.byKey(ctx, k)
	if err != nil {
		return Result{}, err
	}
	if earlier == nil {
		s.key = &k
		res, err := e.carryOut(ctx, s)
		if !errors.Is(err, errKeyTaken) {
			return res, err
		}
		if earlier, err = e.byKey(ctx, k); err != nil {
			return Result{}, err
		}
		if earlier == nil {
			return Result{}, ErrRunState.Say("The idempotency key %q came and went while the call was made; nothing was started.", k.Key)
		}
	}
	return earlier.repeat()
}

// errKeyTaken: another request with this key was stored first; nothing was written.
var errKeyTaken = errors.New("the idempotency key is taken")

// fingerprint is what a key stands for: tool, arguments and the run it names.
func (s subject) fingerprint(o options) string {
	b, _ := canon.AppendString([]byte(`{"tool":`), s.tool.Name)
	b, _ = canon.AppendString(append(b, `,"args_digest":`...), s.argsDigest)
	b, err := canon.AppendString(append(b, `,"run_id":`...), o.runID)
	if err != nil {
		return ""
	}
	d, err := canon.Digest("placet/idempotency/v1", append(b, '}'))
	if err != nil {
		return ""
	}
	return d
}

func (e *Executor) byKey(ctx context.Context, k IdempotencyKey) (*subject, error) {
	var s *subject
	err := txn.View(ctx, e.conf.Store, func(tx Tx) error {
		s = nil
		got, found, err := tx.FindIdempotent(k)
		if err != nil || !found {
			return err
		}
		if got.Request != k.Request {
			return ErrCallConflict.Say("The idempotency key %q was used for another request.", k.Key).Hint("Use a new key for a new request.")
		}
		c, err := tx.Call(got.CallID)
		if err != nil {
			return err
		}
		s = &subject{call: c, life: e.lifeOf(tx)}
		return s.readRecord(tx)
	})
	return s, err
}

// repeat answers with what became of the first request. It starts nothing.
func (s subject) repeat() (Result, error) {
	if s.call.Status == Running {
		return Result{}, s.call.ErrStillRunning()
	}
	if !s.call.Status.Terminal() && s.grant != nil && s.grant.Open {
		return Result{}, pendingError(*s.grant, s.doubtful())
	}
	res := resultOf(s.call)
	if s.attempt != nil {
		res.edited(*s.attempt)
	}
	return res, nil
}
