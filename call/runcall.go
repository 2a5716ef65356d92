package call

import (
	"context"
	"errors"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// RunCall carries out the call whose ids the caller chose: a new one the first
// time, the same one afterwards. callID is unique within the run; a call's own
// id works too, for a call that exists.
//
// With a decided record it resumes; with a pending one it returns the same
// [*PendingError] and parks nothing. A call whose grant is spent is
// [ErrAlreadyDecided]. One that needed no approval is [ErrRunning] while it
// runs, and afterwards its recorded result. With another tool or other arguments
// it is [ErrCallConflict].
func (e *Executor) RunCall(ctx context.Context, runID, callID, toolName string, args []byte, opts ...Option) (Result, error) {
	s, o, err := e.find(ctx, runID, callID, toolName, args, opts)
	if err != nil {
		return Result{}, err
	}
	if s == nil {
		opts = append(opts[:len(opts):len(opts)], InRun(runID))
		res, err := e.fresh(ctx, toolName, args, callID, opts)
		if !errors.Is(err, ErrCallConflict) {
			return res, err
		}
		// Somebody else inserted these ids first: theirs is the call.
		if s, o, err = e.find(ctx, runID, callID, toolName, args, opts); err != nil {
			return Result{}, err
		}
		if s == nil {
			return Result{}, ErrRunState.Say("Call %s of run %s came and went while it was made.", callID, runID)
		}
	}
	return e.again(ctx, *s, o)
}

// find looks for a call by the ids of its caller, and holds tool and arguments against it.
func (e *Executor) find(ctx context.Context, runID, callID, toolName string, args []byte, opts []Option) (*subject, options, error) {
	o, err := e.options(opts)
	if err != nil {
		return nil, o, err
	}
	if e.misuse != nil {
		return nil, o, e.misuse
	}
	if err := checkCallerIDs(runID, callID, o); err != nil {
		return nil, o, err
	}
	var s *subject
	err = txn.View(ctx, e.conf.Store, func(tx Tx) error {
		s = nil
		c, err := lookup(tx, e.conf.Space, runID, callID)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s = &subject{call: c, life: e.lifeOf(tx)}
		return s.readRecord(tx)
	})
	if err != nil || s == nil {
		return nil, o, err
	}
	return s, o, s.conflicts(toolName, args)
}

func checkCallerIDs(runID, callID string, o options) error {
	if runID == "" || callID == "" {
		return ErrUsage.Say("RunCall needs a run id and a call id.").Hint("Use Call for a call whose ids do not matter.")
	}
	if o.runID != "" && o.runID != runID {
		return ErrUsage.Say("The call belongs to run %s, not to %s.", runID, o.runID)
	}
	if err := checkID("run id", runID); err != nil {
		return err
	}
	return checkID("call id", callID)
}

func lookup(tx Tx, space, runID, callID string) (Call, error) {
	if id.Has(id.Call, callID) {
		c, err := tx.Call(callID)
		if err == nil && c.Space == space && c.RunID == runID {
			return c, nil
		}
		if err == nil || errors.Is(err, ErrNotFound) {
			return Call{}, ErrUsage.Say("Run %s has no call %s.", runID, callID).
				Hint("An id that starts with call_ names a call that exists. Choose another id for a new call.")
		}
		return Call{}, err
	}
	if strings.HasPrefix(callID, id.Call) {
		return Call{}, ErrUsage.Say("The call id %q starts like one of ours.", callID).Hint("Choose an id that does not start with call_.")
	}
	return tx.CallByExternalID(space, runID, callID)
}

// readRecord adds the call's latest approval, if it has one.
func (s *subject) readRecord(tx Tx) error {
	if s.call.ApprovalID != "" {
		d, err := tx.Decision(s.call.ApprovalID)
		if err != nil {
			return err
		}
		s.grant = &d
	}
	s.argsDigest = s.call.ArgsDigest
	return s.readAttempt(tx)
}

func (s subject) conflicts(toolName string, args []byte) error {
	digest, err := request.ArgsDigest(args)
	if err != nil || s.call.Tool != toolName || s.call.ArgsDigest != digest {
		return ErrCallConflict.Say("The ids belong to call %s of tool %q with other arguments or another tool.", s.call.ID, s.call.Tool).
			Hint("Use another call id for another call.")
	}
	return nil
}

// again answers for a call that exists.
func (e *Executor) again(ctx context.Context, s subject, o options) (Result, error) {
	if err := s.checkDoor(o); err != nil {
		return Result{}, err
	}
	switch {
	case s.grant == nil:
		return e.againUnasked(ctx, s)
	case s.call.Status == Unknown && s.notAgain():
		return e.learnOrStay(ctx, s)
	case s.grant.Status == decision.Consumed: // nothing of it is left that a port would have to keep
		return e.goOn(ctx, s)
	case s.call.Status == Running && !s.interrupted():
		return Result{}, s.call.ErrStillRunning()
	}
	if err := e.parks(); err != nil {
		return Result{}, err
	}
	switch {
	case s.grant.Status != decision.Pending:
		return e.goOn(ctx, s)
	case s.grant.Overdue(s.life.clock):
		return Result{}, e.expire(ctx, s.grant.ID)
	}
	return Result{}, pendingError(*s.grant, s.doubtful())
}

// notAgain reports whether nobody agreed to run the call once more: the last word
// was a no, or none in time.
func (s subject) notAgain() bool {
	switch s.grant.Status {
	case decision.Expired, decision.Withdrawn:
		return true
	case decision.Consumed:
		return s.grant.Choice == decision.ChoiceReject
	}
	return false
}

// againUnasked: no approval was ever needed.
func (e *Executor) againUnasked(ctx context.Context, s subject) (Result, error) {
	switch {
	case s.interrupted():
		return e.recover(ctx, s)
	case s.call.Status == Running:
		return Result{}, s.call.ErrStillRunning()
	}
	return ResultOf(s.call, s.attempt), nil
}
