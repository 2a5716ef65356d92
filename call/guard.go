package call

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Guards bound what calls may add up to (spec 4.7). They are checked before the
// policy is asked and counted in the transaction that starts the tool, so that
// of two starts at the limit one is refused. Zero means off.
type Guards struct {
	CallsPerRun    int64 // calls started under one run id
	CallsPerMinute int64 // calls started in a minute, per tool and principal
	Repeats        int64 // starts of the same tool with the same arguments under one run id
	Cost           int64 // sum of the tools' declared costs under one run id
}

// The guards' names, as placet.yaml and refusals have them.
const (
	guardCallsPerRun    = "calls_per_run"
	guardCallsPerMinute = "calls_per_minute"
	guardRepeats        = "repeats"
	guardCost           = "cost"
)

const guardWindow = time.Minute

// counted is one guard as it concerns one start.
type counted struct {
	Guard
	limit, add int64
	overTime   bool
}

// concerns lists the guards that are on. again: a further attempt at a call
// that was counted already.
func (g Guards) concerns(s subject, again bool, argsDigest string) []counted {
	var cs []counted
	one := func(name, run, key string, limit, add int64, overTime bool) {
		if limit > 0 {
			cs = append(cs, counted{Guard{Space: s.call.Space, Name: name, RunID: run, Key: key}, limit, add, overTime})
		}
	}
	if !again {
		one(guardCallsPerRun, s.call.RunID, "", g.CallsPerRun, 1, false)
		one(guardRepeats, s.call.RunID, s.call.Tool+" "+argsDigest, g.Repeats, 1, false)
		one(guardCost, s.call.RunID, "", g.Cost, s.tool.Cost, false)
	}
	one(guardCallsPerMinute, "", s.call.Tool+" "+s.call.Principal, g.CallsPerMinute, 1, true)
	return cs
}

// peekGuards looks at the guards before the policy is asked. It counts nothing;
// the start's transaction does, and decides.
func (e *Executor) peekGuards(ctx context.Context, s subject) (*refusal, error) {
	if e.conf.Guards == (Guards{}) {
		return nil, nil
	}
	return e.viewGuards(ctx, s)
}

func (e *Executor) viewGuards(ctx context.Context, s subject) (*refusal, error) {
	var r *refusal
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		r, err = e.weigh(tx, s, s.call.Attempts > 0, s.argsDigest, false)
		return err
	})
	return r, err
}

// countGuards reserves a start at every guard, or refuses it.
func (e *Executor) countGuards(tx Tx, s subject, again bool, args []byte) (*refusal, error) {
	if e.conf.Guards == (Guards{}) {
		return nil, nil
	}
	digest := s.argsDigest
	if !bytes.Equal(args, s.call.Args) {
		var err error
		if digest, err = request.ArgsDigest(args); err != nil {
			return nil, err
		}
	}
	return e.weigh(tx, s, again, digest, true)
}

func (e *Executor) weigh(tx Tx, s subject, again bool, argsDigest string, reserve bool) (*refusal, error) {
	now := tx.Now()
	for _, c := range e.conf.Guards.concerns(s, again, argsDigest) {
		g, err := tx.GuardCount(c.Guard)
		if err != nil {
			return nil, err
		}
		if c.overTime && now.Sub(g.Since) >= guardWindow {
			g.N, g.Since = 0, now
		}
		if c.add > c.limit-g.N { // their sum may not fit
			return &refusal{KindGuardRefused, fmt.Sprintf("The guard %s is at %d of %d; this call would add %d.", c.Name, g.N, c.limit, c.add)}, nil
		}
		if g.N += c.add; reserve {
			if err := tx.PutGuard(g); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// freeGuards forgets the counts of a run that was made for one call, once it ended.
func (e *Executor) freeGuards(tx Tx, s subject, c Call) error {
	if !c.OwnRun || !c.Status.Terminal() || e.conf.Guards.CallsPerRun == 0 && e.conf.Guards.Repeats == 0 && e.conf.Guards.Cost == 0 {
		return nil
	}
	for _, g := range e.conf.Guards.concerns(s, false, s.argsDigest) {
		if g.RunID == "" {
			continue
		}
		g.N = g.add // a counter that others added to is theirs too
		if err := tx.DropGuard(g.Guard); err != nil {
			return err
		}
	}
	return nil
}
