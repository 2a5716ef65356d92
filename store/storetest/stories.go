package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// stories are what people and engines do to calls, each from the parking to some
// end. Told without a fault, a story ends as its last line says.
func stories() map[string]func(*play) {
	return map[string]func(*play){
		"yes":              tellYes,
		"no":               tellNo,
		"withdrawn":        tellWithdrawn,
		"expired":          tellExpired,
		"grant expired":    tellGrantExpired,
		"grant too old":    tellGrantTooOld,
		"superseded":       tellSuperseded,
		"allowed":          tellAllowed,
		"denied by policy": tellDenied,
		"broken":           tellBroken,
		"late":             tellLate,
		"late beside yes":  tellLateBesideYes,
		"lost":             tellLost,
		"lost, then no":    tellLostThenNo,
		"repeated by key":  tellRepeated,
		"redacted":         tellRedacted,
		"answered at once": tellAnsweredAtOnce,
		"renewed":          tellRenewed,
		"run":              tellRun,
		"run rejected":     tellRunRejected,
		"run cancelled":    tellRunCancelled,
	}
}

// play is one telling of a story through a handle on which a statement may fail.
// Its world looks through another, sound one.
type play struct {
	*shop
	s       txn.Store   // what the engines are given
	start   int64       // the last pos before it
	mayFail func() bool // the statement that fails is still to come
	cancel  context.CancelFunc
	broken  bool              // a caller gave up: the story may end otherwise
	later   decision.Operator // to whom everything is overdue
	endSlow func()
	home    string   // of the supervisor
	held    *os.File // the lock of a launch
}

// park is the first step of most stories.
func (p *play) park(toolName string) (a *call.PendingError) {
	p.step("park", func(ctx context.Context) (err error) {
		a, err = p.parkCall(ctx, toolName)
		return err
	})
	return a
}

// grant parks a call and says yes to it.
func (p *play) grant(toolName string) *call.PendingError {
	a := p.park(toolName)
	p.yes(a)
	return a
}

func (p *play) yes(a *call.PendingError) {
	if a == nil {
		return
	}
	p.step("approve", func(ctx context.Context) error { return p.approve(ctx, a) })
	if d := p.decision(a.ApprovalID); d.Choice != decision.ChoiceApprove || d.DecidedBy != "Ana" {
		p.Errorf("a yes that was acknowledged is %q by %q", d.Choice, d.DecidedBy)
	}
}

// resume resumes and wants that status.
func (p *play) resume(e *call.Executor, approvalID string, want call.Status) (res call.Result) {
	p.step("resume", func(ctx context.Context) (err error) {
		if res, err = e.Resume(ctx, approvalID, nil); err == nil && res.Status != want && !p.broken {
			err = fmt.Errorf("resumed: %s %s: %s", res.Status, res.Kind, res.Message)
		}
		return err
	})
	if got := p.call(res.CallID); got.Status != res.Status {
		p.Errorf("told %s, stored %s", res.Status, got.Status)
	}
	return res
}

// ends is a story's last line.
func (p *play) ends(callID string, ran int, want call.Status, ds ...decision.Status) {
	if p.broken {
		return
	}
	p.stands(callID, want, ds...)
	if n := p.ran.times(callID); n != ran {
		p.Errorf("the tool ran %d times, want %d", n, ran)
	}
}

func tellYes(p *play) {
	a := p.grant(refund)
	p.resume(p.Executor, a.ApprovalID, call.Succeeded)
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed)
}

func tellNo(p *play) {
	a := p.park(refund)
	p.step("reject", func(ctx context.Context) error {
		return p.op.RejectShown(ctx, a.RunID, a.ApprovalID, a.Digest, "Bo", "not today")
	})
	p.stands(a.CallID, call.Denied, decision.Rejected)
	p.resume(p.Executor, a.ApprovalID, call.Denied)
	p.ends(a.CallID, 0, call.Denied, decision.Consumed)
}

func tellWithdrawn(p *play) {
	a := p.park(refund)
	p.step("withdraw", func(ctx context.Context) error {
		asker := decision.Operator{Store: p.s}
		_, err := asker.Withdraw(ctx, a.ApprovalID, "agent", "not needed")
		return err
	})
	p.stands(a.CallID, call.Cancelled, decision.Withdrawn)
}

func tellExpired(p *play) {
	a := p.park(refund)
	p.step("expire", func(ctx context.Context) error {
		_, err := p.later.Expire(ctx, a.ApprovalID)
		return err
	})
	p.stands(a.CallID, call.Expired, decision.Expired)
}

func tellGrantExpired(p *play) {
	a := p.grant(refund)
	p.step("expire", func(ctx context.Context) error {
		n, err := p.later.ExpireDue(ctx, 10)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d were expired", n)
		}
		return err
	})
	p.stands(a.CallID, call.Expired, decision.Expired)
}

func tellGrantTooOld(p *play) {
	a := p.grant(refund)
	old := p.executor(func(c *call.Config) { c.Now = p.later.Now })
	p.stepLoosely("resume", func(ctx context.Context) error {
		if _, err := old.Resume(ctx, a.ApprovalID, nil); !errors.Is(err, decision.ErrApprovalExpired) {
			return err
		}
		return nil
	})
	p.ends(a.CallID, 0, call.Expired, decision.Expired)
}

func tellSuperseded(p *play) {
	a := p.grant(refund)
	changed := p.executor(func(c *call.Config) { c.Policy = otherKind() })
	var b *call.PendingError
	p.step("park anew", func(ctx context.Context) (err error) {
		_, err = changed.Resume(ctx, a.ApprovalID, nil)
		b, err = pending(err)
		return err
	})
	p.stands(a.CallID, call.Pending, decision.Superseded, decision.Pending)
	p.step("approve, edited", func(ctx context.Context) error {
		_, err := p.op.Decide(ctx, b.ApprovalID, decision.Answer{Approved: true, By: "Ana", EditedArgs: []byte(`{"amount": 9}`)})
		return err
	})
	res := p.resume(changed, b.ApprovalID, call.Succeeded)
	if !p.broken && string(res.Value) != `{"args":{"amount": 9}}` {
		p.Errorf("ran %s", res.Value)
	}
	p.ends(a.CallID, 1, call.Succeeded, decision.Superseded, decision.Consumed)
}

func tellAllowed(p *play) {
	guarded := p.executor(func(c *call.Config) {
		c.Guards = call.Guards{CallsPerRun: 5, CallsPerMinute: 1000, Repeats: 5, Cost: 10}
	})
	run, key := id.New(id.Run), id.New("key_")
	var res call.Result
	p.step("call", func(ctx context.Context) (err error) {
		res, err = guarded.Call(ctx, jot, []byte(`{}`), call.InRun(run), call.WithIdempotencyKey("calls", key))
		if err == nil && res.Status != call.Succeeded && !p.broken {
			err = fmt.Errorf("%s %s: %s", res.Status, res.Kind, res.Message)
		}
		return err
	})
	p.step("repeat", func(ctx context.Context) error {
		again, err := guarded.Call(ctx, jot, []byte(`{}`), call.InRun(run), call.WithIdempotencyKey("calls", key))
		if err == nil && again.CallID != res.CallID {
			err = errors.New("the repeat made another call")
		}
		return err
	})
	p.same(int64(2), p.guard(call.Guard{Space: event.MainSpace, Name: "cost", RunID: run}).N)
	p.ends(res.CallID, 1, call.Succeeded)
}

func tellDenied(p *play) {
	var res call.Result
	p.step("call", func(ctx context.Context) (err error) {
		res, err = p.Call(ctx, drop, []byte(`{}`))
		return err
	})
	p.ends(res.CallID, 0, call.Denied)
}

func tellBroken(p *play) {
	a := p.grant(broken)
	p.resume(p.Executor, a.ApprovalID, call.Failed)
	p.ends(a.CallID, 1, call.Failed, decision.Consumed)
}

// giveUp resumes, and gives the tool up once it has begun.
func (p *play) giveUp(a *call.PendingError) (res call.Result) {
	p.step("resume and give up", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		p.ran.tell(func(tool.Call) { cancel() })
		if res, err = p.Resume(ctx, a.ApprovalID, nil); err == nil && res.Status != call.Unknown && !p.broken {
			err = fmt.Errorf("resumed: %s %s: %s", res.Status, res.Kind, res.Message)
		}
		return err
	})
	return res
}

func tellLate(p *play) {
	a := p.grant(slow)
	p.giveUp(a)
	if !p.broken {
		p.stands(a.CallID, call.Unknown, decision.Consumed, decision.Pending)
	}
	p.endSlow()
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed, decision.Withdrawn)
}

func tellLateBesideYes(p *play) {
	a := p.grant(slow)
	res := p.giveUp(a)
	if !p.broken {
		p.yes(&call.PendingError{ApprovalID: res.ApprovalID, RunID: a.RunID, Digest: p.decision(res.ApprovalID).Digest})
	}
	p.endSlow()
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed, decision.Superseded)
}

// lose is a start whose process is gone, and the sweep that finds it.
func (p *play) lose(toolName string, how call.Recovery) (a *call.PendingError) {
	a = p.grant(toolName)
	p.step("start and die", func(ctx context.Context) error { return p.die(ctx, p.s, a, how, time.Microsecond) })
	p.until(p.call(a.CallID).LeaseUntil)
	return a
}

func (p *play) sweep() {
	p.step("sweep", func(ctx context.Context) error {
		n, err := p.Sweep(ctx, 10)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d were swept", n)
		}
		return err
	})
}

func tellLost(p *play) {
	a := p.lose(refund, call.RecoverByPerson)
	p.sweep()
	p.stands(a.CallID, call.Unknown, decision.Consumed, decision.Pending)
	b := &call.PendingError{RunID: a.RunID, ApprovalID: p.call(a.CallID).ApprovalID}
	b.Digest = p.decision(b.ApprovalID).Digest
	p.yes(b)
	p.resume(p.Executor, b.ApprovalID, call.Succeeded)
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed, decision.Consumed)
}

func tellLostThenNo(p *play) {
	a := p.lose(refund, call.RecoverByPerson)
	var b *call.PendingError
	p.step("find it lost", func(ctx context.Context) (err error) {
		_, err = p.Resume(ctx, a.ApprovalID, nil)
		b, err = pending(err)
		return err
	})
	p.step("reject", func(ctx context.Context) error { return p.op.Reject(ctx, a.RunID, b.ApprovalID, "Bo", "") })
	p.ends(a.CallID, 0, call.Unknown, decision.Consumed, decision.Rejected)
}

func tellRepeated(p *play) {
	a := p.lose(keyed, call.RecoverByKey)
	p.stepLoosely("resume", func(ctx context.Context) error {
		res, err := p.Resume(ctx, a.ApprovalID, nil)
		if err == nil && res.Status != call.Succeeded && !p.broken {
			err = fmt.Errorf("%s %s: %s", res.Status, res.Kind, res.Message)
		}
		return err
	})
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed)
}

func tellRedacted(p *play) {
	a := p.park(refund)
	p.step("redact", func(ctx context.Context) error { return event.Redact(ctx, p.s, "call:"+a.CallID, 2, "Ana", "") })
	p.stands(a.CallID, call.Pending, decision.Pending)
	p.same(true, p.events(event.Query{Stream: "call:" + a.CallID})[1].Redacted)
}

func tellAnsweredAtOnce(p *play) {
	a := p.park(refund)
	p.stepLoosely("decide and resume", func(ctx context.Context) error {
		res, err := p.Resume(ctx, a.ApprovalID, &decision.Answer{Approved: true, By: "Ana"})
		if err == nil && res.Status != call.Succeeded && !p.broken {
			err = fmt.Errorf("%s %s: %s", res.Status, res.Kind, res.Message)
		}
		return err
	})
	p.ends(a.CallID, 1, call.Succeeded, decision.Consumed)
}

func tellRenewed(p *play) {
	var c call.Call
	p.step("start", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) (err error) {
			c = call.Call{
				ID: id.New(id.Call), Space: event.MainSpace, RunID: "run", Tool: jot, SpecDigest: "spec", Args: []byte(`{}`), ArgsDigest: "args",
				ContinueBy: call.ByCaller, CreatedAt: tx.Now(), Epoch: tx.Epoch(),
			}
			ch, err := c.Step(call.Begin{SpecDigest: "spec", Recovery: call.RecoverByPerson, Epoch: tx.Epoch(), Lease: time.Minute}, tx.Now())
			if err != nil {
				return err
			}
			if err := tx.InsertCall(ch.Next, ch.Events...); err != nil {
				return err
			}
			return tx.InsertAttempt(*ch.Attempt)
		})
	})
	before := p.call(c.ID)
	p.step("renew", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) error { return call.Renew(tx, c.ID, 1, tx.Epoch(), time.Hour) })
	})
	if after := p.call(c.ID); !after.LeaseUntil.After(before.LeaseUntil) {
		p.Error("the lease was not renewed")
	}
}
