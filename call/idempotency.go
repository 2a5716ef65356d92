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
	request, err := s.fingerprint(o)
	if err != nil {
		return Result{}, err
	}
	return e.onceFor(ctx, s, e.keyOf(o, request), e.carryOut)
}

// keyOf is the key that the options name, for a request of that digest.
func (e *Executor) keyOf(o options, request string) IdempotencyKey {
	return IdempotencyKey{Space: e.conf.Space, Principal: o.principal, Route: o.route, Key: o.key, Request: request}
}

// onceFor does it unless a request with the key came to something before: then that is
// the answer.
func (e *Executor) onceFor(ctx context.Context, s subject, k IdempotencyKey, do func(context.Context, subject) (Result, error)) (Result, error) {
	if err := checkID("idempotency key", k.Key); err != nil {
		return Result{}, err
	}
	earlier, err := e.byKey(ctx, k)
	if err != nil {
		return Result{}, err
	}
	if earlier == nil {
		s.key = &k
		res, err := do(ctx, s)
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
	earlier.handed = s.handed
	return earlier.repeat()
}

// errKeyTaken: another request with this key was stored first; nothing was written.
var errKeyTaken = errors.New("the idempotency key is taken")

// fingerprint is what a key stands for: tool, arguments and the run it names.
func (s subject) fingerprint(o options) (string, error) {
	return keyDigest("tool", s.tool.Name, "args_digest", s.argsDigest, "run_id", o.runID)
}

// reservation is what a key stands for that came with the id of a call.
func (s subject) reservation() (string, error) {
	return keyDigest("call_id", s.call.ID)
}

// keyDigest hashes names and their texts. One that is no UTF-8 is an error: a hash of
// nothing would make different requests the same.
func keyDigest(pairs ...string) (string, error) {
	b := []byte{'{'}
	for i, text := range pairs {
		switch {
		case i%2 == 1:
			b = append(b, ':')
		case i > 0:
			b = append(b, ',')
		}
		var err error
		if b, err = canon.AppendString(b, text); err != nil {
			return "", err
		}
	}
	return canon.Digest("placet/idempotency/v1", append(b, '}'))
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
		s = &subject{call: c, life: e.lifeOf(tx), key: &got}
		return s.readRecord(tx)
	})
	return s, err
}

// repeat answers with what became of the first request. It starts nothing.
func (s subject) repeat() (Result, error) {
	if s.handedThen() {
		*s.handed = Handed{Call: s.call, Attempt: *s.attempt, Args: s.attempt.ran(s.call), Again: true}
		return resultOf(s.call), nil
	}
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

// handedThen reports whether the first request was handed the attempt that runs: who
// repeats it may have lost the answer, and needs its fence.
func (s subject) handedThen() bool {
	return s.handed != nil && s.attempt != nil && s.call.Status == Running && s.call.Epoch == s.life.epoch &&
		s.attempt.N == s.key.Attempt && s.attempt.handedOut()
}

// forgetKeys deletes up to limit keys whose time is over. It writes only where there
// are any; one that was used anew in the meantime stays.
func (e *Executor) forgetKeys(ctx context.Context, limit int) (n int, err error) {
	var old []IdempotencyKey
	err = txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		old, err = tx.OldKeys(tx.Now().Add(-KeptKeys), limit)
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	err = txn.Update(ctx, e.conf.Store, func(tx Tx) error {
		n = 0
		for _, k := range old {
			gone, err := tx.DropKey(k)
			if err != nil {
				return err
			}
			if gone {
				n++
			}
		}
		return nil
	})
	return n, err
}
