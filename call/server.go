package call

import (
	"context"
	"fmt"
	"maps"

	"github.com/placet-dev/placet/txn"
)

// Server is the executor as a door uses it that proves who asks: the HTTP tool
// server. Its calls carry the door's name and the principal, which no caller can set;
// only the same door goes on with them (spec 2.4).
type Server struct {
	e      *Executor
	origin string
	all    bool
}

// Server is the executor for the door of that name.
func (e *Executor) Server(origin string) Server { return Server{e: e, origin: origin} }

// ForAll is the door for somebody who may act on the calls of every principal.
func (s Server) ForAll() Server {
	s.all = true
	return s
}

// through marks a call as the door's.
func (s Server) through(principal string, by ContinueBy, opts []Option) []Option {
	return append(opts[:len(opts):len(opts)], As(principal), ContinuedBy(by), func(o *options) { o.origin = s.origin })
}

// asServers is the metadata with what only the door says of its caller.
func (o options) asServers() map[string]string {
	m := maps.Clone(o.metadata)
	if m == nil {
		m = map[string]string{}
	}
	m["origin"] = o.origin
	if o.principal == "" {
		m["anonymous"] = "true"
	} else {
		m["principal"] = o.principal
	}
	return m
}

// Call is [Executor.Call] for a principal that the door has proved; empty: nobody
// was. What is parked is the daemon's to go on with.
func (s Server) Call(ctx context.Context, principal, toolName string, args []byte, opts ...Option) (Result, error) {
	return s.e.fresh(ctx, toolName, args, "", s.through(principal, ByDaemon, opts))
}

// May reports whether who asked for a call may still ask for it. It looks at nothing
// but the transaction.
type May func(tx txn.Tx, c Call) (bool, error)

// stillMay asks that where the attempt's start is written.
func (s subject) stillMay(tx txn.Tx) (*refusal, error) {
	if s.may == nil {
		return nil, nil
	}
	may, err := s.may(tx, s.call)
	if err != nil || may {
		return nil, err
	}
	return &refusal{KindNotAuthorised, fmt.Sprintf("%q may not ask for this any more.", s.call.Principal)}, nil
}

// Continue goes on with a call that is a daemon's to go on with: with a grant, or
// with an attempt whose outcome is unknown. Of one that came through a door, may is
// asked whether its principal still may, first and again where the attempt starts: if
// not, that is a Result of kind not_authorised, and the grant stays unspent. The other
// answers are those of [Executor.Resume].
func (s Server) Continue(ctx context.Context, callID string, may May) (Result, error) {
	sub, err := s.find(ctx, callID, Call.unhosted)
	if err != nil {
		return Result{}, err
	}
	if sub.call.ContinueBy != ByDaemon {
		return Result{}, ErrUsage.Say("Call %s is its caller's to go on with.", callID).Hint("Resume it: placet resume %s.", callID)
	}
	if origin, ok := sub.call.Metadata["origin"]; ok {
		if origin != s.origin {
			return Result{}, ErrUsage.Say("Call %s came in through %q; only that door goes on with it.", callID, origin)
		}
		sub.may = may
		switch refused, err := s.mayNoMore(ctx, sub); {
		case err != nil:
			return Result{}, err
		case refused != nil:
			return sub.stands(refused), nil
		}
	}
	return s.e.goOnOrRecover(ctx, sub)
}

func (s Server) mayNoMore(ctx context.Context, sub subject) (r *refusal, err error) {
	err = txn.View(ctx, s.e.conf.Store, func(tx Tx) error {
		r, err = sub.stillMay(tx)
		return err
	})
	return r, err
}

func (e *Executor) goOnOrRecover(ctx context.Context, s subject) (Result, error) {
	if s.grant == nil {
		return e.againUnasked(ctx, s)
	}
	return e.goOn(ctx, s)
}

// find reads a call that is its own root, with its latest approval, unless refuse
// says no.
func (s Server) find(ctx context.Context, callID string, refuse func(Call) error) (subject, error) {
	if err := s.e.parks(); err != nil {
		return subject{}, err
	}
	var sub subject
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) error {
		c, err := tx.Call(callID)
		if err != nil {
			return err
		}
		if c.Space != s.e.conf.Space {
			return ErrNotFound.Say("There is no call %s.", callID)
		}
		if err := refuse(c); err != nil {
			return err
		}
		sub = subject{call: c, life: s.e.lifeOf(tx)}
		return sub.readRecord(tx)
	})
	return sub, err
}

// unhosted refuses a call of a run's step.
func (c Call) unhosted() error {
	if !c.Hosted() {
		return nil
	}
	return ErrUsage.Say("Call %s belongs to a step of run %s.", c.ID, c.RunID).Hint("Go on with the run.")
}
