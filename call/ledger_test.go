package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// stalled is a process that was held in the middle of a tool until its lease ended.
type stalled struct {
	*gate
	res chan call.Result
	err chan error
}

// stall resumes an approved record, holds the tool, and lets the lease end.
func (w *world) stall(approvalID string) *stalled {
	w.t.Helper()
	return w.stallCall(func() (call.Result, error) { return w.ex.Resume(w.ctx, approvalID, nil) })
}

func (w *world) stallCall(do func() (call.Result, error)) *stalled {
	w.t.Helper()
	s := &stalled{newGate(), make(chan call.Result, 1), make(chan error, 1)}
	w.spy.then(s.hold)
	go func() {
		res, err := do()
		s.res <- res
		s.err <- err
	}()
	select {
	case <-s.began:
	case err := <-s.err:
		w.t.Fatalf("the tool did not start: %v", err)
	}
	w.spy.then(nil)
	w.clock.advance(call.DefaultLease + time.Microsecond)
	w.t.Cleanup(func() {
		select {
		case <-s.open:
		default:
			s.goOn()
		}
	})
	return s
}

// goOn lets the stalled process end, and returns what its caller was told.
func (s *stalled) goOn() (call.Result, error) {
	close(s.open)
	return <-s.res, <-s.err
}

// A lost process leaves unknown and, where only a person can settle it, a question:
// in one transaction (cases 017, 078, 080). Old ids lead to the new one.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
	w.approve(p.ApprovalID)
	s := w.stall(p.ApprovalID)

	// No reading marks it.
	if c := w.call(p.CallID); c.Status != call.Running {
		t.Errorf("status %s", c.Status)
	}
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	d := w.decision(q.ApprovalID)
	if d.Kind != decision.KindInterrupted || q.ApprovalID == p.ApprovalID || q.CallID != p.CallID || d.SpentDigest != p.Digest || !d.ForbidEdits {
		t.Errorf("asked %+v", d)
	}
	for _, want := range []string{`"tool":"refund"`, `"args":{"n":1}`, `"side_effect":"remote_mutation"`, "Attempt 1 started at 2026-03-01T12:00:00Z", "outcome is unknown"} {
		if !strings.Contains(string(d.Presentation), want) {
			t.Errorf("%s is not in %s", want, d.Presentation)
		}
	}
	w.status(q, call.Unknown, decision.Pending)
	if got := w.types(p.CallID); got != "call.created approval.requested approval.decided call.started call.unknown approval.requested" {
		t.Errorf("events: %s", got)
	}
	_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	if reason(err) != "already_decided" || !strings.Contains(err.Error(), q.ApprovalID) {
		t.Errorf("the old id leads nowhere: %v", err)
	}
	same := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
	if same.ApprovalID != q.ApprovalID {
		t.Errorf("asked twice: %v", same)
	}
	if n, err := w.ex.Sweep(w.ctx, 10); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	_, err = w.op.Decide(w.ctx, q.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{}`)})
	w.refused(err, "usage")
	w.ran(`{"n":1}`)

	w.approve(q.ApprovalID)
	res := w.resumed(q.ApprovalID, call.Succeeded)
	if res.Edited || string(res.Args) != `{"n":1}` {
		t.Errorf("result %+v", res)
	}
	w.ran(`{"n":1} {"n":1}`)
	if runs := w.spy.calls(); runs[1].CallID != runs[0].CallID || runs[1].Attempt != 2 {
		t.Errorf("the second attempt was told %+v", runs[1])
	}
	// The first process wakes up: its outcome is noted and changes nothing.
	before := w.call(p.CallID)
	if res, err := s.goOn(); err != nil || res.Status != call.Succeeded {
		t.Errorf("the stalled process: %+v, %v", res, err)
	}
	after := w.call(p.CallID)
	if string(after.Result) != string(before.Result) || after.Status != before.Status || !after.EndedAt.Equal(before.EndedAt) {
		t.Errorf("the late outcome changed the call: %+v", after)
	}
	if a := w.attempts(p.CallID)[0]; a.Outcome != call.Succeeded || !a.Late {
		t.Errorf("attempt %+v", a)
	}
}

func TestSweepMarksLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	if n, err := w.ex.Sweep(w.ctx, 10); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	d := w.latest(p.CallID)
	if c := w.call(p.CallID); c.Status != call.Unknown || d.Kind != decision.KindInterrupted || d.Status != decision.Pending {
		t.Errorf("call %+v asks %+v", c, d)
	}
	for range 3 { // case 047: a sweep of what was swept does nothing
		if n, err := w.ex.Sweep(w.ctx, 10); n != 0 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
	}
	w.ran(`{"n":1}`)
}

// A no to running it again, its expiry or its withdrawal leaves unknown: nothing runs.
func TestInterruptedNotAgain(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"reject", "expire", "withdraw"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := setup(t, func(c *call.Config) { c.ApprovalTTL = time.Hour })
			p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
			w.approve(p.ApprovalID)
			w.stall(p.ApprovalID)
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			switch end {
			case "reject":
				w.reject(q.ApprovalID)
				res, err := w.ex.Resume(w.ctx, q.ApprovalID, nil)
				if err != nil || res.Status != call.Unknown || res.Kind != call.KindUnknownOutcome || !strings.Contains(res.Message, "Rejected by ana: not now") {
					t.Errorf("got %+v, %v", res, err)
				}
			case "expire":
				w.clock.advance(time.Hour + time.Microsecond)
				_, err := w.ex.Resume(w.ctx, q.ApprovalID, yes("ana"))
				w.refused(err, "approval_expired")
			case "withdraw":
				if _, err := w.op.Withdraw(w.ctx, q.ApprovalID, "bot", ""); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				res, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
				if err != nil || res.Status != call.Unknown || res.Kind != call.KindUnknownOutcome {
					t.Errorf("got %+v, %v", res, err)
				}
			}
			for _, id := range []string{p.ApprovalID, q.ApprovalID} {
				if _, err := w.ex.Resume(w.ctx, id, nil); !errors.Is(err, decision.ErrNotPending) {
					t.Errorf("resume: %v", err)
				}
			}
			w.ran(`{"n":1}`)
			if c := w.call(p.CallID); c.Status != call.Unknown || c.ApprovalN != 2 {
				t.Errorf("call %+v", c)
			}
		})
	}
}

type probeFunc = func(ctx context.Context, c tool.Call) (tool.ProbeResult, error)

// What a probe says settles an unknown call; not_found and anything else do not.
func TestProbe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		probe probeFunc
		want  call.Status
		value string
	}{
		{"succeeded", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`{"id":7}`)}, nil
		}, call.Succeeded, `{"id":7}`},
		{"failed", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: tool.ProbeFailed, Message: "no funds"}, nil
		}, call.Failed, ""},
		{"not found, and the process may live", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: tool.ProbeNotFound}, nil
		}, call.Unknown, ""},
		{"an error", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{}, errors.New("no network")
		}, call.Unknown, ""},
		{"a panic", func(context.Context, tool.Call) (tool.ProbeResult, error) { panic("oh") }, call.Unknown, ""},
		{"another word", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: "done"}, nil
		}, call.Unknown, ""},
		{"success without a result", func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: tool.ProbeSucceeded}, nil
		}, call.Unknown, ""},
	}
	for _, tt := range tests {
		for _, by := range []string{"resume", "runcall", "sweep"} {
			t.Run(tt.name+" by "+by, func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				var asked tool.Call
				w.register(func(rt *tool.Tool) {
					rt.Probe = tool.ProberFunc(func(ctx context.Context, c tool.Call) (tool.ProbeResult, error) {
						asked = c
						return tt.probe(ctx, c)
					})
				})
				p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
				w.approve(p.ApprovalID)
				s := w.stall(p.ApprovalID)
				var res call.Result
				var err error
				switch by {
				case "resume":
					res, err = w.ex.Resume(w.ctx, p.ApprovalID, nil)
				case "runcall":
					res, err = w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
				case "sweep":
					_, err = w.ex.Sweep(w.ctx, 10)
					c := w.call(p.CallID)
					res = call.Result{Status: c.Status, Value: c.Result}
				}
				if err != nil || res.Status != tt.want || string(res.Value) != tt.value {
					t.Errorf("got %+v, %v", res, err)
				}
				if asked.CallID != p.CallID || asked.RunID != "r" || asked.Attempt != 1 || string(asked.Args) != `{"n":1}` {
					t.Errorf("the probe was asked about %+v", asked)
				}
				c := w.call(p.CallID)
				if c.Status != tt.want || c.ApprovalID != p.ApprovalID {
					t.Errorf("call %+v", c)
				}
				w.ran(`{"n":1}`)
				// The owner's own word comes last: it settles what the probe left open.
				if res, err := s.goOn(); err != nil || res.Status != call.Succeeded && tt.want != call.Failed {
					t.Errorf("the stalled process: %+v, %v", res, err)
				}
				want, value := tt.want, tt.value
				if want == call.Unknown {
					want, value = call.Succeeded, `"held"`
				}
				if c := w.call(p.CallID); c.Status != want || string(c.Result) != value {
					t.Errorf("in the end %+v", c)
				}
			})
		}
	}
}

// not_found counts once twice the lease has passed and the process is gone; then a
// person is asked, and only their yes runs it again.
func TestProbeNotFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(func(rt *tool.Tool) {
		rt.Probe = tool.ProberFunc(func(context.Context, tool.Call) (tool.ProbeResult, error) {
			return tool.ProbeResult{Outcome: tool.ProbeNotFound}, nil
		})
	})
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	w.resumed(p.ApprovalID, call.Unknown) // marked, not yet twice the lease
	w.clock.advance(call.DefaultLease)
	w.resumed(p.ApprovalID, call.Unknown) // twice the lease, but this process lives
	w.raw(`UPDATE attempt SET owner = 'v1:otherboot:0:1:1'`)
	w.altered = false
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	w.ran(`{"n":1}`)
	w.status(q, call.Unknown, decision.Pending)
	w.approve(q.ApprovalID)
	w.resumed(q.ApprovalID, call.Succeeded)
	w.ran(`{"n":1} {"n":1}`)
}

// A probe that broke once and cannot say is asked again by the next resume; a yes
// that a person gave meanwhile does not overrule what the probe then says.
func TestProbeAfterYes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	w.approve(q.ApprovalID)
	answer := tool.ProbeResult{}
	w.register(func(rt *tool.Tool) {
		rt.Probe = tool.ProberFunc(func(context.Context, tool.Call) (tool.ProbeResult, error) { return answer, nil })
	})
	w.resumed(q.ApprovalID, call.Unknown)
	w.status(q, call.Unknown, decision.Approved)
	answer = tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`1`)}
	w.resumed(q.ApprovalID, call.Succeeded)
	w.status(q, call.Succeeded, decision.Superseded)
	w.ran(`{"n":1}`)
}

// The tool's own key lets it run again without a person, from unknown only, under
// the same call id (case 080).
func TestKeyRunsAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(func(rt *tool.Tool) { rt.Idempotent = true })
	p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	if n, err := w.ex.Sweep(w.ctx, 10); n != 1 || err != nil { // starts no tool
		t.Errorf("swept %d, %v", n, err)
	}
	w.ran(`{"n":1}`)
	w.status(p, call.Unknown, decision.Consumed)

	w.stallCall(func() (call.Result, error) { return w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) })
	res := w.resumed(p.ApprovalID, call.Succeeded) // and lost again, and once more
	if res.Edited {
		t.Errorf("result %+v", res)
	}
	w.ran(`{"n":1} {"n":1} {"n":1}`)
	for i, c := range w.spy.calls() {
		if c.CallID != p.CallID || c.Attempt != i+1 {
			t.Errorf("attempt %d was told %+v", i+1, c)
		}
	}
	for _, a := range w.attempts(p.CallID) {
		if a.ApprovalID != p.ApprovalID || a.GrantDigest != p.Digest {
			t.Errorf("attempt %+v", a)
		}
	}
	_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "already_decided")
	w.ran(`{"n":1} {"n":1} {"n":1}`)
}

// The key counts only if the tool had it when the attempt started, and is still the same tool.
func TestKeyOfAnotherTool(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ before, after func(*tool.Tool) }{
		"declared later": {func(rt *tool.Tool) {}, func(rt *tool.Tool) { rt.Idempotent = true }},
		"declared no more": {func(rt *tool.Tool) { rt.Idempotent = true }, func(rt *tool.Tool) {
		}},
		"another implementation": {func(rt *tool.Tool) { rt.Idempotent = true }, func(rt *tool.Tool) { rt.Idempotent, rt.Implementation = true, "v2" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.register(change.before)
			p := w.park(`{"n":1}`)
			w.approve(p.ApprovalID)
			w.stall(p.ApprovalID)
			w.register(change.after)
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			if d := w.decision(q.ApprovalID); d.Kind != decision.KindInterrupted {
				t.Errorf("asked %+v", d)
			}
			w.ran(`{"n":1}`)
		})
	}
}

// Before a repeat under the key the policy is asked like the first time.
func TestKeyAndPolicy(t *testing.T) {
	t.Parallel()
	lose := func(t *testing.T) (*world, *call.PendingError) {
		w := setup(t)
		w.register(func(rt *tool.Tool) { rt.Idempotent = true })
		p := w.park(`{"n":1}`)
		w.approve(p.ApprovalID)
		w.stall(p.ApprovalID)
		return w, p
	}
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		w, p := lose(t)
		w.policy.always(policy.Ruling{Outcome: policy.Deny, Reason: "not any more"})
		res := w.resumed(p.ApprovalID, call.Unknown)
		if res.Kind != call.KindPolicyDenied || res.Message != "not any more" {
			t.Errorf("got %+v", res)
		}
		w.ran(`{"n":1}`)
		w.policy.set(nil)
		w.resumed(p.ApprovalID, call.Succeeded)
	})
	t.Run("asked otherwise", func(t *testing.T) {
		t.Parallel()
		w, p := lose(t)
		w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "again"})
		q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
		d := w.decision(q.ApprovalID)
		if d.Kind != "again" || !strings.Contains(string(d.Presentation), "may already have run") || !d.ForbidEdits {
			t.Errorf("asked %+v", d)
		}
		w.status(q, call.Unknown, decision.Pending)
		w.ran(`{"n":1}`)
		w.approve(q.ApprovalID)
		w.resumed(q.ApprovalID, call.Succeeded)
		w.ran(`{"n":1} {"n":1}`)
	})
	t.Run("a policy error", func(t *testing.T) {
		t.Parallel()
		w, p := lose(t)
		w.policy.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{}, errors.New("no rules")
		})
		_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
		w.refused(err, "policy_failed")
		w.ran(`{"n":1}`)
	})
}

// What ends without telling is unknown for a tool with effects, and a failure for one
// that promises to be harmless (spec 1.1, case 078). Nothing runs twice.
func TestUnsureOutcomes(t *testing.T) {
	t.Parallel()
	type ending struct {
		name string
		do   func(w *world, s *stalled) func(context.Context, tool.Call) (json.RawMessage, error)
		kind call.Kind // where the tool is harmless
	}
	hold := func(w *world, s *stalled) func(context.Context, tool.Call) (json.RawMessage, error) { return s.hold }
	endings := []ending{
		{"time-out", hold, call.KindToolTimeout},
		{"panic", func(*world, *stalled) func(context.Context, tool.Call) (json.RawMessage, error) {
			return func(context.Context, tool.Call) (json.RawMessage, error) { panic("oh") }
		}, call.KindToolPanic},
		{"says it does not know", func(*world, *stalled) func(context.Context, tool.Call) (json.RawMessage, error) {
			return func(context.Context, tool.Call) (json.RawMessage, error) {
				return nil, tool.ErrOutcomeUnknown.Say("connection lost")
			}
		}, call.KindToolError},
		{"no result", func(*world, *stalled) func(context.Context, tool.Call) (json.RawMessage, error) {
			return func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`}`), nil }
		}, call.KindToolError},
		{"cancelled caller", hold, call.KindToolError},
	}
	harmless := map[string]func(*tool.Tool){
		"with effects": nil,
		"cancel_safe":  func(rt *tool.Tool) { rt.CancelSafe = true },
		"read_only":    func(rt *tool.Tool) { rt.SideEffect = tool.ReadOnly },
	}
	for _, e := range endings {
		for how, change := range harmless {
			if how == "cancel_safe" && e.kind == call.KindToolError && e.name != "cancelled caller" {
				continue // whether the promise covers a tool that ended by itself is package tool's matter
			}
			t.Run(e.name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "k", Capability: json.RawMessage(`{}`), Presentation: json.RawMessage(`{}`)})
				s := &stalled{gate: newGate()}
				w.spy.then(e.do(w, s))
				w.register(func(rt *tool.Tool) {
					if e.name == "time-out" {
						rt.TimeoutMS = 20
					}
					if change != nil {
						change(rt)
					}
				})
				p := w.park(`{"n":1}`)
				w.approve(p.ApprovalID)
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				if e.name == "cancelled caller" {
					go func() { <-s.began; cancel() }()
				}
				res, err := w.ex.Resume(ctx, p.ApprovalID, nil)
				if err != nil {
					t.Fatal(err)
				}
				c := w.call(p.CallID)
				if change != nil {
					if res.Status != call.Failed || res.Kind != e.kind || c.Status != call.Failed {
						t.Errorf("got %+v; stored %+v", res, c)
					}
				} else {
					d := w.decision(res.ApprovalID)
					if res.Status != call.Unknown || res.Kind != call.KindUnknownOutcome || c.Status != call.Unknown {
						t.Errorf("got %+v; stored %+v", res, c)
					}
					if d.Kind != decision.KindInterrupted || d.Status != decision.Pending || d.SpentDigest != p.Digest || !strings.Contains(d.Reason, "Attempt 1 started") {
						t.Errorf("asked %+v", d)
					}
				}
				if _, err := w.ex.Resume(w.ctx, p.ApprovalID, nil); reason(err) != "already_decided" {
					t.Errorf("resumed again: %v", err)
				}
				w.ran(`{"n":1}`)
				close(s.open)
				if e.kind == call.KindToolTimeout || e.name == "cancelled caller" {
					w.finished(p.CallID) // late, where the tool has effects
				}
			})
		}
	}
}

// A late outcome settles an unknown call and answers the question; in every other
// state it is only noted (spec 2.3).
func TestLateOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		between  func(w *world, p *call.PendingError) (question string)
		want     call.Status
		question decision.Status
		settles  bool // by the late outcome
	}{
		{"still running, lease ended", func(w *world, p *call.PendingError) string { return p.ApprovalID }, call.Succeeded, decision.Consumed, true},
		{"asked", func(w *world, p *call.PendingError) string {
			return w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil)).ApprovalID
		}, call.Succeeded, decision.Withdrawn, true},
		{"agreed to run again", func(w *world, p *call.PendingError) string {
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			w.approve(q.ApprovalID)
			return q.ApprovalID
		}, call.Succeeded, decision.Superseded, true},
		{"refused to run again", func(w *world, p *call.PendingError) string {
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			w.reject(q.ApprovalID)
			return q.ApprovalID
		}, call.Succeeded, decision.Rejected, true},
		{"ran again and failed", func(w *world, p *call.PendingError) string {
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			w.approve(q.ApprovalID)
			w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("no") })
			w.resumed(q.ApprovalID, call.Failed)
			return q.ApprovalID
		}, call.Failed, decision.Consumed, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			p := w.park(`{"n":1}`)
			w.approve(p.ApprovalID)
			s := w.stall(p.ApprovalID)
			id := tt.between(w, p)
			runs := len(w.spy.calls())
			if _, err := s.goOn(); err != nil {
				t.Errorf("the stalled process: %v", err)
			}
			c, d, a := w.call(p.CallID), w.decision(id), w.attempts(p.CallID)[0]
			if c.Status != tt.want || d.Status != tt.question || d.Open || a.Outcome != call.Succeeded || !a.Late {
				t.Errorf("call %s, question %s, attempt %+v", c.Status, d.Status, a)
			}
			if settled := string(c.Result) == `"held"`; settled != tt.settles {
				t.Errorf("result %s", c.Result)
			}
			last := w.last(p.CallID)
			if last.Type != event.CallFinished && tt.question != decision.Withdrawn && tt.question != decision.Superseded || !strings.Contains(w.payloads(p.CallID), `"late":true`) {
				t.Errorf("last event %+v", last)
			}
			if tt.settles {
				_, err := w.ex.Resume(w.ctx, id, nil)
				if err == nil && tt.question != decision.Rejected {
					t.Error("resumed once more")
				}
			}
			if got := len(w.spy.calls()); got != runs {
				t.Errorf("the tool ran %d times after %d", got, runs)
			}
		})
	}
}

func (w *world) last(callID string) event.Event {
	page, err := event.Read(w.ctx, w.st, "call:"+callID, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Events[len(page.Events)-1]
}

// lateFinish waits for an end that is marked late.
func (w *world) lateFinish(callID string) {
	w.t.Helper()
	after := event.Cursor("")
	for {
		got, err := event.Wait(w.ctx, w.st, event.Waiting{Stream: "call:" + callID, After: after, Types: []event.Type{event.CallFinished}})
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(string(got.Event.Payload), `"late":true`) {
			return
		}
		after = got.Cursor
	}
}

// finished waits for the event of a call's end, late or not.
func (w *world) finished(callID string) {
	w.t.Helper()
	if _, err := event.Wait(w.ctx, w.st, event.Waiting{Stream: "call:" + callID, Types: []event.Type{event.CallFinished}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) payloads(callID string) string {
	page, err := event.Read(w.ctx, w.st, "call:"+callID, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		all = append(all, string(e.Payload))
	}
	return strings.Join(all, "\n")
}

// A tool that outlived its time limit: the question is opened at once, and the late
// outcome answers it.
func TestLateAfterTimeout(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(func(rt *tool.Tool) { rt.TimeoutMS = 20 })
	g := newGate()
	w.spy.then(g.hold)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	res := w.resumed(p.ApprovalID, call.Unknown)
	w.approve(res.ApprovalID)
	waiting, cancel := context.WithCancel(w.ctx)
	cancel()
	if err := w.ex.Wait(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for a tool that is still at work: %v", err)
	}
	close(g.open)
	if err := w.ex.Wait(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.finished(p.CallID)
	c := w.call(p.CallID)
	if c.Status != call.Succeeded || w.decision(res.ApprovalID).Status != decision.Superseded {
		t.Errorf("call %s, question %s", c.Status, w.decision(res.ApprovalID).Status)
	}
	_, err := w.ex.Resume(w.ctx, res.ApprovalID, nil)
	w.refused(err, "already_decided")
	w.ran(`{"n":1}`)
}

// A stalled owner never takes its lease back and never writes over its successor (case 075).
func TestStalledOwner(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	s := w.stall(p.ApprovalID)
	first := w.attempts(p.CallID)[0]
	renew := func(a call.Attempt) error {
		return txn.Update(w.ctx, w.st, func(tx store.Tx) error { return call.Renew(tx, a.CallID, a.Fence, a.Epoch, call.DefaultLease) })
	}
	w.refused(renew(first), "lease_lost") // it ended, although nobody took over yet
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	w.refused(renew(first), "lease_lost")
	w.approve(q.ApprovalID)
	s2 := &stalled{newGate(), make(chan call.Result, 1), make(chan error, 1)}
	w.spy.then(s2.hold)
	go func() {
		res, err := w.ex.Resume(w.ctx, q.ApprovalID, nil)
		s2.res <- res
		s2.err <- err
	}()
	<-s2.began
	until := w.call(p.CallID).LeaseUntil
	w.refused(renew(first), "lease_lost")
	if _, err := s.goOn(); err != nil {
		t.Errorf("the stalled process: %v", err)
	}
	c := w.call(p.CallID)
	if c.Status != call.Running || !c.LeaseUntil.Equal(until) || c.Fence != 2 {
		t.Errorf("its successor was disturbed: %+v", c)
	}
	second := w.attempts(p.CallID)[1]
	w.clock.advance(time.Second)
	if err := renew(second); err != nil {
		t.Errorf("the owner may not renew: %v", err)
	}
	if got := w.call(p.CallID).LeaseUntil; !got.Equal(until.Add(time.Second)) {
		t.Errorf("renewed until %v", got)
	}
	w.clock.set(w.call(p.CallID).LeaseUntil) // at the instant the lease still holds
	if err := renew(second); err != nil {
		t.Errorf("at the instant: %v", err)
	}
	w.clock.set(w.call(p.CallID).LeaseUntil.Add(time.Microsecond))
	w.refused(renew(second), "lease_lost")
	if res, err := s2.goOn(); err != nil || res.Status != call.Succeeded {
		t.Errorf("the owner: %+v, %v", res, err)
	}
}

// One yes after an interruption (spec 1.11 p): it also meets a policy, or confirm,
// that asks for what was granted before; anything else is asked anew.
func TestInterruptedAndPolicy(t *testing.T) {
	t.Parallel()
	ask := func(kind, capability string) policy.Ruling {
		return policy.Ruling{Outcome: policy.RequireApproval, Kind: kind, Capability: json.RawMessage(capability), Presentation: json.RawMessage(`{"t":1}`)}
	}
	tests := []struct {
		name        string
		first, then policy.Ruling
		confirm     bool
		want        string
	}{
		{"the same ruling", ask("pay", `{}`), ask("pay", `{}`), false, "succeeded"},
		{"the defaults", policy.Ruling{Outcome: policy.RequireApproval}, policy.Ruling{Outcome: policy.RequireApproval}, false, "succeeded"},
		{"allowed by now", ask("pay", `{}`), policy.Ruling{Outcome: policy.Allow}, false, "succeeded"},
		{"confirm", policy.Ruling{Outcome: policy.Allow}, policy.Ruling{Outcome: policy.Allow}, true, "succeeded"},
		{"another kind", ask("pay", `{}`), ask("pay more", `{}`), false, "asked"},
		{"another capability", ask("pay", `{}`), ask("pay", `{"x":1}`), false, "asked"},
		{"denied by now", ask("pay", `{}`), policy.Ruling{Outcome: policy.Deny}, false, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.register(func(rt *tool.Tool) { rt.Confirm = tt.confirm })
			w.policy.always(tt.first)
			p := w.park(`{"n":1}`)
			w.approve(p.ApprovalID)
			w.stall(p.ApprovalID)
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			w.approve(q.ApprovalID)
			w.policy.always(tt.then)
			res, err := w.ex.Resume(w.ctx, q.ApprovalID, nil)
			switch tt.want {
			case "succeeded":
				if err != nil || res.Status != call.Succeeded {
					t.Fatalf("got %+v, %v", res, err)
				}
				w.ran(`{"n":1} {"n":1}`)
				return
			case "refused":
				if err != nil || res.Status != call.Unknown || res.Kind != call.KindPolicyDenied {
					t.Fatalf("got %+v, %v", res, err)
				}
				w.status(q, call.Unknown, decision.Approved)
				w.ran(`{"n":1}`)
				return
			}
			r := w.parked(res, err)
			w.status(q, call.Unknown, decision.Superseded)
			d := w.decision(r.ApprovalID)
			if d.Kind != tt.then.Kind || !strings.Contains(string(d.Presentation), `"notice":"Attempt 1 started at`) || !strings.Contains(string(d.Presentation), `"presentation":{"t":1}`) || !d.ForbidEdits {
				t.Errorf("asked %+v: %s", d, d.Presentation)
			}
			w.ran(`{"n":1}`)
			w.approve(r.ApprovalID)
			w.resumed(r.ApprovalID, call.Succeeded) // the same ruling gives the same digest, notice included
			w.ran(`{"n":1} {"n":1}`)
		})
	}
	t.Run("interrupted twice", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		p := w.park(`{"n":1}`)
		w.approve(p.ApprovalID)
		w.stall(p.ApprovalID)
		q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
		w.approve(q.ApprovalID)
		w.stall(q.ApprovalID)
		r := w.parked(w.ex.Resume(w.ctx, q.ApprovalID, nil))
		if d := w.decision(r.ApprovalID); d.SpentDigest != q.Digest || !strings.Contains(d.Reason, "Attempt 2") {
			t.Errorf("asked %+v", d)
		}
		w.approve(r.ApprovalID)
		w.resumed(r.ApprovalID, call.Succeeded)
		w.ran(`{"n":1} {"n":1} {"n":1}`)
	})
	t.Run("ran without a yes", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.policy.always(policy.Ruling{Outcome: policy.Allow})
		w.stallCall(func() (call.Result, error) { return w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) })
		q := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
		w.approve(q.ApprovalID)
		w.policy.set(nil) // asks now, and nobody ever said yes to that
		r := w.parked(w.ex.Resume(w.ctx, q.ApprovalID, nil))
		if d := w.decision(r.ApprovalID); d.Kind != "remote_mutation" || !strings.Contains(string(d.Presentation), "may already have run") {
			t.Errorf("asked %+v", d)
		}
		w.approve(r.ApprovalID)
		w.resumed(r.ApprovalID, call.Succeeded)
		w.ran(`{"n":1} {"n":1}`)
	})
}

// An edited attempt that was interrupted: the question holds the edited arguments,
// and exactly those run again.
func TestInterruptedEdited(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"lost", "timed out", "key"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.register(func(rt *tool.Tool) {
				rt.Idempotent = how == "key"
				if how == "timed out" {
					rt.TimeoutMS = 20
				}
			})
			p := w.park(`{"n":1}`)
			const edited = `{ "n" : 2.0 }`
			w.decide(p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(edited)})
			var id string
			switch how {
			case "timed out":
				g := newGate()
				w.spy.then(g.hold)
				id = w.resumed(p.ApprovalID, call.Unknown).ApprovalID
				w.spy.then(nil)
				defer func() { // its late outcome is that of an earlier attempt by then
					close(g.open)
					w.lateFinish(p.CallID)
				}()
			case "lost":
				w.stall(p.ApprovalID)
				id = w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil)).ApprovalID
			case "key":
				w.stall(p.ApprovalID)
				res := w.resumed(p.ApprovalID, call.Succeeded)
				if !res.Edited || string(res.Args) != edited || res.EffectiveDigest != w.decision(p.ApprovalID).EffectiveDigest {
					t.Errorf("result %+v", res)
				}
				w.ran(edited + " " + edited)
				return
			}
			d := w.decision(id)
			req, err := request.Decode(d.Request)
			if err != nil || string(req.Args) != edited || d.ArgsDigest != w.call(p.CallID).ArgsDigest || d.SpentDigest != p.Digest {
				t.Errorf("asked %+v", d)
			}
			if !strings.Contains(string(d.Presentation), edited) {
				t.Errorf("shown %s", d.Presentation)
			}
			w.approve(id)
			res := w.resumed(id, call.Succeeded)
			w.ran(edited + " " + edited)
			a := w.attempts(p.CallID)[1]
			digest, _ := request.ArgsDigest([]byte(edited))
			want, _ := request.EffectiveDigest(d.Digest, digest)
			if !res.Edited || string(res.Args) != edited || res.EffectiveDigest != want || a.EffectiveDigest != want {
				t.Errorf("result %+v, attempt %+v", res, a)
			}
		})
	}
}

// Between the yes and the resume the world changed (spec 1.10, 2.2, case 189).
func TestChangedBeforeResume(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) (*world, *call.PendingError) {
		w := setup(t)
		p := w.park(`{"n":1}`)
		w.approve(p.ApprovalID)
		return w, p
	}
	for name, deny := range map[call.Kind]policy.Ruling{
		call.KindPolicyDenied: {Outcome: policy.Deny, Reason: "revoked"},
		call.KindPolicyAbort:  {Outcome: policy.Abort, Reason: "revoked"},
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			w, p := ready(t)
			w.policy.always(deny)
			for range 2 {
				res := w.resumed(p.ApprovalID, call.Pending)
				if res.Kind != name || res.Message != "revoked" || res.ApprovalID != p.ApprovalID {
					t.Errorf("got %+v", res)
				}
			}
			w.status(p, call.Pending, decision.Approved)
			w.ran("")
			w.policy.set(nil)
			w.resumed(p.ApprovalID, call.Succeeded)
		})
	}
	for name, rule := range map[string]policy.Func{
		"an error": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.Allow}, errors.New("no")
		},
		"a panic": func(context.Context, request.Request, policy.View) (policy.Ruling, error) { panic("no") },
		"an unknown outcome": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: "ok"}, nil
		},
		"no outcome": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{}, nil
		},
		"the runtime's own kind": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.RequireApproval, Kind: decision.KindInterrupted}, nil
		},
		"a presentation that is none": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.Allow, Presentation: json.RawMessage(`[`)}, nil
		},
		"a reason that is no text": func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.Allow, Reason: "\xff"}, nil
		},
	} {
		t.Run("policy: "+name, func(t *testing.T) {
			t.Parallel()
			w, p := ready(t)
			w.policy.set(rule)
			_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
			w.matches(err, policy.ErrRuling)
			_, err = w.ex.Call(w.ctx, "refund", []byte(`{"n":2}`))
			w.matches(err, policy.ErrRuling)
			w.status(p, call.Pending, decision.Approved)
			w.ran("")
			if n := w.number(`SELECT count(*) FROM call`); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
	changes := map[string]struct {
		change func(*tool.Tool)
		want   string
	}{
		"description":     {func(rt *tool.Tool) { rt.Description = "Refund an order." }, "asked"},
		"implementation":  {func(rt *tool.Tool) { rt.Implementation = "exec /bin/other" }, "asked"},
		"side effect":     {func(rt *tool.Tool) { rt.SideEffect = tool.LocalMutation }, "succeeded"}, // which the policy allows
		"time limit":      {func(rt *tool.Tool) { rt.TimeoutMS = 5000 }, "asked"},
		"schema, same":    {func(rt *tool.Tool) { rt.InputSchema = json.RawMessage(strings.ReplaceAll(schema, ",", " , ")) }, "succeeded"},
		"schema, wider":   {func(rt *tool.Tool) { rt.InputSchema = json.RawMessage(`{"type":"object"}`) }, "asked"},
		"schema, tighter": {func(rt *tool.Tool) { rt.InputSchema = json.RawMessage(`{"type":"object","required":["order"]}`) }, "invalid_arguments"},
		"denied class":    {func(rt *tool.Tool) { rt.SideEffect = tool.Destructive }, "policy_denied"},
		"confirm":         {func(rt *tool.Tool) { rt.Confirm = true }, "succeeded"}, // it asks for what was granted
		"probe and key":   {func(rt *tool.Tool) { rt.Idempotent = true }, "succeeded"},
	}
	for name, tt := range changes {
		t.Run("tool: "+name, func(t *testing.T) {
			t.Parallel()
			w, p := ready(t)
			w.register(tt.change)
			res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
			switch tt.want {
			case "succeeded":
				if err != nil || res.Status != call.Succeeded {
					t.Errorf("got %+v, %v", res, err)
				}
				w.ran(`{"n":1}`)
				return
			case "asked":
				q := w.parked(res, err)
				w.status(p, call.Pending, decision.Superseded)
				w.status(q, call.Pending, decision.Pending)
				w.ran("")
				w.approve(q.ApprovalID)
				w.resumed(q.ApprovalID, call.Succeeded)
				w.ran(`{"n":1}`)
				return
			}
			if err != nil || res.Status != call.Pending || string(res.Kind) != tt.want {
				t.Errorf("got %+v, %v", res, err)
			}
			w.status(p, call.Pending, decision.Approved)
			w.ran("")
			w.register(nil)
			w.resumed(p.ApprovalID, call.Succeeded)
		})
	}
	t.Run("no such tool", func(t *testing.T) {
		t.Parallel()
		w, p := ready(t)
		other := w.executor(w.st, func(c *call.Config) { c.Tools = &tool.Registry{} })
		_, err := other.Resume(w.ctx, p.ApprovalID, nil)
		w.refused(err, "unknown_tool")
		w.status(p, call.Pending, decision.Approved)
		w.resumed(p.ApprovalID, call.Succeeded)
	})
}

// Rules or tools that move between the judging and the start: judged again, three
// times at most; then nothing was started and the grant is unspent (design §4, rule 1).
func TestMovingUnderJudgement(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"policy", "tool"} {
		for moves, want := range map[int]string{1: "succeeded", 2: "succeeded", 3: "run_state", 100: "run_state"} {
			t.Run(fmt.Sprintf("%s moves %d times", what, moves), func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				p := w.park(`{"n":1}`)
				w.approve(p.ApprovalID)
				n := 0
				w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
					if n++; n <= moves {
						if what == "policy" {
							w.policy.mu.Lock()
							w.policy.version += "x"
							w.policy.mu.Unlock()
						} else {
							w.register(nil) // the same spec, and yet another tool
						}
					}
					return policy.Default().Evaluate(ctx, r, v)
				})
				res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
				if want == "run_state" {
					w.refused(err, "run_state")
					w.status(p, call.Pending, decision.Approved)
					w.ran("")
					if n != 3 {
						t.Errorf("judged %d times", n)
					}
					n = 1000
					w.resumed(p.ApprovalID, call.Succeeded)
					return
				}
				if err != nil || res.Status != call.Succeeded {
					t.Errorf("got %+v, %v", res, err)
				}
				w.ran(`{"n":1}`)
			})
		}
	}
	t.Run("a fresh call whose schema tightens", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
			w.register(func(rt *tool.Tool) { rt.InputSchema = json.RawMessage(`{"type":"object","required":["order"]}`) })
			return policy.Ruling{Outcome: policy.Allow}, nil
		})
		res, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":1}`))
		if err != nil || res.Status != call.Invalid || res.CallID != "" {
			t.Errorf("got %+v, %v", res, err)
		}
		w.ran("")
	})
}

// Two resumes of a held tool: the second is refused because a live process has it,
// the third because it is done (case 004).
func TestResumeWhileRunning(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.executor(w.open())
	p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
	w.approve(p.ApprovalID)
	g := newGate()
	w.spy.then(g.hold)
	done := make(chan error)
	go func() {
		_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
		done <- err
	}()
	<-g.began
	_, err := other.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "already_decided")
	_, err = other.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
	w.refused(err, "already_decided")
	_, err = other.Handle(w.ctx, []byte(`{"v":1,"approval_id":"`+p.ApprovalID+`"}`))
	w.refused(err, "call_running")
	if n, err := other.Sweep(w.ctx, 10); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	w.clock.set(w.call(p.CallID).LeaseUntil) // to the instant
	if n, err := other.Sweep(w.ctx, 10); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, err = other.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "already_decided")
	w.ran(`{"n":1}`)
}

// Under the key one process judges a repeat while another finds that a person has to
// be asked: then nothing starts beside the open question.
func TestRepeatBesideANewQuestion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(func(rt *tool.Tool) { rt.Idempotent = true })
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	strict := w.executor(w.st, func(c *call.Config) {
		c.Policy = policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.RequireApproval, Kind: "again"}, nil
		})
	})
	var q *call.PendingError
	w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
		if q == nil {
			q = w.parked(strict.Resume(w.ctx, p.ApprovalID, nil))
		}
		return policy.Ruling{Outcome: policy.Allow}, nil
	})
	_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "run_state")
	w.ran(`{"n":1}`)
	w.status(q, call.Unknown, decision.Pending)
}

// While a probe was asked, somebody ran the call again: what the probe found was the
// attempt before, and settles nothing of the new one.
func TestProbeOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"running", "unknown"} {
		t.Run(again, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			p := w.park(`{"n":1}`)
			w.approve(p.ApprovalID)
			w.stall(p.ApprovalID)
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			w.approve(q.ApprovalID)
			unprobed, err := w.tools.Lookup("refund")
			if err != nil {
				t.Fatal(err)
			}
			reg, err := tool.NewRegistry(*unprobed)
			if err != nil {
				t.Fatal(err)
			}
			other := w.executor(w.st, func(c *call.Config) { c.Tools = reg })
			g, done := newGate(), make(chan struct{})
			w.register(func(rt *tool.Tool) {
				rt.Probe = tool.ProberFunc(func(context.Context, tool.Call) (tool.ProbeResult, error) {
					if again == "running" {
						w.spy.then(g.hold)
						go func() { defer close(done); other.Resume(w.ctx, q.ApprovalID, nil) }()
						<-g.began
					} else {
						w.spy.then(lost)
						res, err := other.Resume(w.ctx, q.ApprovalID, nil)
						if err != nil || res.Status != call.Unknown {
							t.Errorf("got %+v, %v", res, err)
						}
						close(done)
					}
					return tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`"the first"`)}, nil
				})
			})
			res, err := w.ex.Resume(w.ctx, q.ApprovalID, nil)
			c := w.call(p.CallID)
			if again == "running" {
				w.refused(err, "call_running")
			} else if err != nil || res.Status != call.Unknown {
				t.Errorf("got %+v, %v", res, err)
			}
			if string(c.Status) != again || c.Attempts != 2 || w.attempts(p.CallID)[0].Outcome != call.Unknown {
				t.Errorf("call %+v", c)
			}
			close(g.open)
			<-done
		})
	}
}

// A probe is not asked about what was altered, also after a no.
func TestProbeOfAlteredArguments(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
	w.approve(p.ApprovalID)
	w.stall(p.ApprovalID)
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	w.reject(q.ApprovalID)
	w.resumed(q.ApprovalID, call.Unknown)
	asked := 0
	w.register(func(rt *tool.Tool) {
		rt.Probe = tool.ProberFunc(func(context.Context, tool.Call) (tool.ProbeResult, error) {
			asked++
			return tool.ProbeResult{}, errors.New("no network")
		})
	})
	run := func() (call.Result, error) { return w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) }
	if res, err := run(); err != nil || res.Status != call.Unknown || asked != 1 {
		t.Errorf("got %+v, %v; asked %d times", res, err, asked)
	}
	w.raw(`UPDATE call SET args = CAST('{"n":9}' AS BLOB)`)
	_, err := run()
	w.refused(err, "approval_hash")
	if asked != 1 {
		t.Error("the probe was asked about other arguments")
	}
}
