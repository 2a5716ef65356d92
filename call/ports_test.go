package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Ports that answer at once store the approval and the answer with the start, so no
// tool that needs approval runs without a grant (spec 2.1).

func TestAutoApprove(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.ex = w.executor(w.st, func(c *call.Config) {
		c.Approval = call.AutoApprove()
		c.GrantTTL = time.Minute
		c.ApprovalTTL = time.Minute
	})
	before := w.number(`SELECT count(*) FROM event`)
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		// Everything stands before the tool begins.
		d := w.number(`SELECT count(*) FROM decision WHERE status = 'consumed' AND choice = 'approve' AND decided_by = 'auto-approve'`)
		a := w.number(`SELECT count(*) FROM attempt WHERE outcome IS NULL AND approval_id IS NOT NULL`)
		if d != 1 || a != 1 {
			t.Errorf("%d grants and %d attempts while the tool runs", d, a)
		}
		return json.RawMessage(`1`), nil
	})
	res, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(` {"n":1}`))
	if err != nil || res.Status != call.Succeeded || res.Edited {
		t.Fatalf("got %+v, %v", res, err)
	}
	d := w.decision(res.ApprovalID)
	if d.Status != decision.Consumed || d.DecidedBy != "auto-approve" || d.Verified || d.ConsumedBy != 1 {
		t.Errorf("approval %+v", d)
	}
	if got := w.types(res.CallID); got != "call.created approval.requested approval.decided call.started call.finished" || before != 0 {
		t.Errorf("events: %s", got)
	}
	// A repeat is refused like any other, and a queue's is answered with the result.
	_, err = w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
	w.refused(err, "already_decided")
	res, err = w.ex.Handle(w.ctx, []byte(`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1}}`))
	if err != nil || res.Status != call.Succeeded || string(res.Value) != `1` {
		t.Errorf("got %+v, %v", res, err)
	}
	w.ran(` {"n":1}`)
}

// A process that answers at once may be lost as well: the question then waits for
// one whose port keeps rows.
func TestAutoApproveLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	auto := w.executor(w.st, func(c *call.Config) { c.Approval = call.AutoApprove() })
	run := func() (call.Result, error) { return auto.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) }
	w.stallCall(run)
	q := w.parked(run())
	_, err := run()
	w.refused(err, "usage")
	w.ran(`{"n":1}`)
	w.approve(q.ApprovalID)
	_, err = run()
	w.refused(err, "usage")
	w.resumed(q.ApprovalID, call.Succeeded)
	w.ran(`{"n":1} {"n":1}`)
}

func TestCallback(t *testing.T) {
	t.Parallel()
	type answer = decision.Answer
	tests := []struct {
		name   string
		answer answer
		err    error
		rule   policy.Ruling
		want   string // a status, or the reason of an error
		ran    string
	}{
		{"yes", answer{Approved: true, By: "ana", Note: "fine"}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "succeeded", `{"n":1}`},
		{"no", answer{By: "ana", Note: "too much"}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "denied", ""},
		{"edit", answer{Approved: true, By: "ana", EditedArgs: []byte(` {"n":2}`)}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "succeeded", ` {"n":2}`},
		{"edit to nothing", answer{Approved: true, By: "ana", EditedArgs: []byte(`{}`)}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "succeeded", `{}`},
		{"edit that does not fit", answer{Approved: true, By: "ana", EditedArgs: []byte(`{"amount":-1}`)}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "invalid_arguments", ""},
		{"edit where none is allowed", answer{Approved: true, By: "ana", EditedArgs: []byte(`{"n":2}`)}, nil, policy.Ruling{Outcome: policy.RequireApproval, ForbidEdits: true}, "usage", ""},
		{"edit of a no", answer{By: "ana", EditedArgs: []byte(`{"n":2}`)}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "usage", ""},
		{"nobody", answer{Approved: true}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "usage", ""},
		{"nothing at all", answer{}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "usage", ""},
		{"to something else", answer{Approved: true, By: "ana", Shown: "sha256-placet1:0"}, nil, policy.Ruling{Outcome: policy.RequireApproval}, "approval_changed", ""},
		{"an error", answer{Approved: true, By: "ana"}, errors.New("the terminal was closed"), policy.Ruling{Outcome: policy.RequireApproval}, "the terminal was closed", ""},
		{"not asked", answer{}, errors.New("asked"), policy.Ruling{Outcome: policy.Allow}, "succeeded", `{"n":1}`},
		{"denied by the policy", answer{}, errors.New("asked"), policy.Ruling{Outcome: policy.Deny}, "denied", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.policy.always(tt.rule)
			var shown decision.Decision
			w.ex = w.executor(w.st, func(c *call.Config) {
				c.Approval = call.Callback(func(_ context.Context, d decision.Decision) (answer, error) {
					shown = d
					return tt.answer, tt.err
				})
			})
			res, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":1}`), call.As("ana")) // who asks may answer: they are there
			got := string(res.Status)
			switch {
			case err != nil:
				got = reason(err)
			case res.Kind == call.KindInvalidArguments:
				got = string(res.Kind)
			}
			if got != tt.want {
				t.Errorf("got %s: %+v, %v; want %s", got, res, err, tt.want)
			}
			w.ran(tt.ran)
			stored := w.number(`SELECT count(*) FROM call`)
			if (stored == 1) != (got == "succeeded" || got == "denied") {
				t.Errorf("%d calls are stored", stored)
			}
			if stored == 0 || tt.rule.Outcome != policy.RequireApproval {
				return
			}
			d := w.decision(res.ApprovalID)
			if d.Status != decision.Consumed || d.DecidedBy != "ana" || d.Note != tt.answer.Note || d.Digest != shown.Digest || string(d.Request) != string(shown.Request) {
				t.Errorf("approval %+v", d)
			}
			if got == "denied" && (res.Kind != call.KindApprovalDenied || !strings.Contains(res.Message, "too much")) {
				t.Errorf("result %+v", res)
			}
			if edited := tt.answer.EditedArgs != nil; res.Edited != edited || edited && (string(res.Args) != tt.ran || res.EffectiveDigest != d.EffectiveDigest) {
				t.Errorf("result %+v", res)
			}
		})
	}
}

// What a callback, a policy or a caller does to what it was given changes nothing.
func TestForeignCodeGetsCopies(t *testing.T) {
	t.Parallel()
	w := setup(t)
	scribble := func(bs ...[]byte) {
		for _, b := range bs {
			for i := range b {
				b[i] = '!'
			}
		}
	}
	args, meta := []byte(`{"n":1}`), map[string]string{"k": "v"}
	w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
		ru, err := policy.Default().Evaluate(ctx, r, v)
		scribble(r.Args, r.Tool.InputSchema, args)
		v.Metadata["k"] = "!"
		return ru, err
	})
	edit := []byte(`{"n":2}`)
	w.ex = w.executor(w.st, func(c *call.Config) {
		c.Approval = call.Callback(func(_ context.Context, d decision.Decision) (decision.Answer, error) {
			scribble(d.Request, d.Capability, d.Presentation)
			d.Metadata["k"] = "!"
			return decision.Answer{Approved: true, By: "ana", EditedArgs: edit}, nil
		})
	})
	w.spy.then(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		seen := append([]byte(nil), c.Args...)
		scribble(c.Args, edit)
		return json.RawMessage(`{"ran":` + string(seen) + `}`), nil
	})
	res, err := w.ex.Call(w.ctx, "refund", args, call.WithMetadata(meta))
	if err != nil || string(res.Value) != `{"ran":{"n":2}}` || string(res.Args) != `{"n":2}` {
		t.Fatalf("got %+v %s, %v", res, res.Value, err)
	}
	c, d := w.call(res.CallID), w.decision(res.ApprovalID)
	if string(c.Args) != `{"n":1}` || c.Metadata["k"] != "v" || d.Metadata["k"] != "v" || d.Intact() != nil || d.EditIntact() != nil {
		t.Errorf("stored %+v\n%+v", c, d)
	}
}

// A yes that is too old by the time of the start, or a decision that moved, never
// starts a tool, however the port answered.
func TestGuards(t *testing.T) {
	t.Parallel()
	type step struct {
		args string
		run  string
		want call.Status
	}
	tests := []struct {
		name   string
		guards call.Guards
		steps  []step
		says   string
	}{
		{"calls per run", call.Guards{CallsPerRun: 2}, []step{
			{`{"n":1}`, "r", call.Succeeded}, {`{"n":2}`, "r", call.Succeeded}, {`{"n":3}`, "r", call.Denied}, {`{"n":3}`, "s", call.Succeeded},
		}, "calls_per_run is at 2 of 2"},
		{"repeats", call.Guards{Repeats: 1}, []step{
			{`{"n":1}`, "r", call.Succeeded}, {`{"n":2}`, "r", call.Succeeded}, {` {"n":1.0}`, "r", call.Denied}, {`{"n":1}`, "s", call.Succeeded},
		}, "repeats is at 1 of 1"},
		{"cost", call.Guards{Cost: 5}, []step{
			{`{"n":1}`, "r", call.Succeeded}, {`{"n":2}`, "r", call.Succeeded}, {`{"n":3}`, "r", call.Denied}, {`{"n":1}`, "s", call.Succeeded},
		}, "cost is at 4 of 5; this call would add 2"},
		{"calls per minute", call.Guards{CallsPerMinute: 1}, []step{
			{`{"n":1}`, "r", call.Succeeded}, {`{"n":2}`, "s", call.Denied},
		}, "calls_per_minute is at 1 of 1"},
		{"own runs never add up", call.Guards{CallsPerRun: 1, Repeats: 1}, []step{
			{`{"n":1}`, "", call.Succeeded}, {`{"n":1}`, "", call.Succeeded},
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.policy.always(policy.Ruling{Outcome: policy.Allow})
			w.register(func(rt *tool.Tool) { rt.Cost = 2 })
			w.ex = w.executor(w.st, func(c *call.Config) { c.Guards = tt.guards })
			for i, s := range tt.steps {
				res, err := w.ex.Call(w.ctx, "refund", []byte(s.args), call.InRun(s.run))
				if err != nil || res.Status != s.want {
					t.Errorf("step %d: %+v, %v", i, res, err)
				}
				if s.want == call.Denied && (res.Kind != call.KindGuardRefused || !strings.Contains(res.Message, tt.says)) {
					t.Errorf("step %d: %+v", i, res)
				}
			}
			if tt.name == "calls per minute" {
				w.clock.advance(time.Minute - time.Microsecond)
				if res, _ := w.ex.Call(w.ctx, "refund", []byte(`{"n":4}`)); res.Status != call.Denied {
					t.Errorf("within the minute: %+v", res)
				}
				w.clock.advance(time.Microsecond)
				if res, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":4}`)); res.Status != call.Succeeded {
					t.Errorf("after the minute: %+v, %v", res, err)
				}
				if res, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":5}`), call.As("bot")); res.Status != call.Succeeded {
					t.Errorf("another principal: %+v, %v", res, err)
				}
			}
			if n := w.number(`SELECT count(*) FROM guard WHERE run_id LIKE 'run_%'`); n != 0 {
				t.Errorf("%d counts of runs that were made for one call are left", n)
			}
		})
	}
}

// A guard's refusal leaves the grant unspent, counts nothing, and of two starts at
// the limit one is refused.
func TestGuardLeavesGrant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.ex = w.executor(w.st, func(c *call.Config) { c.Guards = call.Guards{CallsPerRun: 1} })
	p, q := w.park(`{"n":1}`, call.InRun("r")), w.park(`{"n":2}`, call.InRun("r"))
	w.approve(p.ApprovalID)
	w.approve(q.ApprovalID)
	w.resumed(p.ApprovalID, call.Succeeded)
	for range 3 {
		res := w.resumed(q.ApprovalID, call.Pending)
		if res.Kind != call.KindGuardRefused || res.ApprovalID != q.ApprovalID {
			t.Errorf("got %+v", res)
		}
	}
	w.status(q, call.Pending, decision.Approved)
	if n := w.number(`SELECT n FROM guard`); n != 1 {
		t.Errorf("counted %d", n)
	}
	w.ran(`{"n":1}`)
	w.ex = w.executor(w.st, func(c *call.Config) { c.Guards = call.Guards{CallsPerRun: 2} })
	w.resumed(q.ApprovalID, call.Succeeded)
	w.ran(`{"n":1} {"n":2}`)

	w.ex = w.executor(w.st, func(c *call.Config) { c.Guards = call.Guards{CallsPerRun: 1} })
	var ps []*call.PendingError
	for range 8 {
		r := w.park(`{"n":3}`, call.InRun("s"))
		w.approve(r.ApprovalID)
		ps = append(ps, r)
	}
	var wg sync.WaitGroup
	results := make([]call.Result, len(ps))
	for i, r := range ps {
		wg.Go(func() { results[i], _ = w.ex.Resume(w.ctx, r.ApprovalID, nil) })
	}
	wg.Wait()
	n := 0
	for i, r := range results {
		switch {
		case r.Status == call.Succeeded:
			n++
		case r.Status == call.Pending && r.Kind == call.KindGuardRefused:
			w.status(ps[i], call.Pending, decision.Approved)
		default:
			t.Errorf("got %+v", r)
		}
	}
	if n != 1 {
		t.Errorf("%d of 8 ran", n)
	}
}

// A cost that does not fit into the count beside what is there must not pass for a small one.
func TestGuardCostOverflow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	w.ex = w.executor(w.st, func(c *call.Config) { c.Guards = call.Guards{Cost: 1<<63 - 1} })
	cost := func(n int64) call.Result {
		w.register(func(rt *tool.Tool) { rt.Cost = n })
		res, err := w.ex.Call(w.ctx, "refund", []byte(`{}`), call.InRun("r"))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := cost(1); res.Status != call.Succeeded {
		t.Errorf("got %+v", res)
	}
	if res := cost(1<<63 - 1); res.Kind != call.KindGuardRefused {
		t.Errorf("got %+v", res)
	}
}

// The same key and the same request: the same call, whoever is first (cases 176, 179).
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	post := func(principal, route, key, args string) (call.Result, error) {
		return w.ex.Call(w.ctx, "refund", []byte(args), call.As(principal), call.WithIdempotencyKey(route, key))
	}
	p := w.parked(post("bot", "/refund", "k", `{"n":1}`))
	again := w.parked(post("bot", "/refund", "k", ` { "n" : 1.0 }`))
	if again.ApprovalID != p.ApprovalID {
		t.Errorf("asked twice: %+v", again)
	}
	_, err := post("bot", "/refund", "k", `{"n":2}`)
	w.refused(err, "call_conflict")
	_, err = w.ex.Call(w.ctx, "refund", []byte(`{"n":1}`), call.As("bot"), call.InRun("r"), call.WithIdempotencyKey("/refund", "k"))
	w.refused(err, "call_conflict") // in another run it is another request
	for _, other := range [][3]string{{"eve", "/refund", "k"}, {"", "/refund", "k"}, {"bot", "/pay", "k"}, {"bot", "/refund", "K"}} {
		q := w.parked(post(other[0], other[1], other[2], `{"n":1}`))
		if q.CallID == p.CallID {
			t.Errorf("%v is answered with bot's call", other)
		}
	}
	w.approve(p.ApprovalID)
	again = w.parked(post("bot", "/refund", "k", `{"n":1}`)) // approving runs nothing, and neither does asking again
	if again.ApprovalID != p.ApprovalID {
		t.Errorf("got %+v", again)
	}
	w.ran("")
	g := newGate()
	w.spy.then(g.hold)
	done := make(chan struct{})
	go func() { defer close(done); w.ex.Resume(w.ctx, p.ApprovalID, nil) }()
	<-g.began
	_, err = post("bot", "/refund", "k", `{"n":1}`)
	w.refused(err, "call_running")
	close(g.open)
	<-done
	res, err := post("bot", "/refund", "k", `{"n":1}`)
	if err != nil || res.Status != call.Succeeded || res.CallID != p.CallID || string(res.Value) != `"held"` {
		t.Errorf("got %+v, %v", res, err)
	}
	w.clock.advance(call.KeptKeys)
	if res, err := post("bot", "/refund", "k", `{"n":1}`); err != nil || res.CallID != p.CallID {
		t.Errorf("at the last instant: %+v, %v", res, err)
	}
	w.clock.advance(time.Microsecond)
	q := w.parked(post("bot", "/refund", "k", `{"n":2}`)) // forgotten: free for another request
	if q.CallID == p.CallID {
		t.Error("the old call answers for the new request")
	}
	w.ran(`{"n":1}`)
}

func TestConcurrentIdempotencyKeys(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	exs := []*call.Executor{w.ex, w.executor(w.open())}
	for round := range rounds(60) {
		key := strconv.Itoa(round)
		ids := make([]string, 8)
		race(len(ids), func(i int) {
			for {
				res, err := exs[i%2].Call(w.ctx, "refund", []byte(`{"n":1}`), call.WithIdempotencyKey("/", key))
				if errors.Is(err, call.ErrRunning) {
					continue // the first is at work: the same 202 as its own
				}
				if err != nil || res.Status != call.Succeeded {
					t.Errorf("got %+v, %v", res, err)
				}
				ids[i] = res.CallID
				return
			}
		})
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("two calls for one key: %v", ids)
			}
		}
		if n := len(w.spy.calls()); n != round+1 {
			t.Fatalf("the tool ran %d times for %d keys", n, round+1)
		}
	}
}

// Queue messages: however often one comes, the tool runs at most once (spec 2.6).
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	handle := func(msg string) (call.Result, error) { return w.ex.Handle(w.ctx, []byte(msg)) }
	const run = `{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1}}`
	p := w.parked(handle(run))
	if q := w.parked(handle(run)); q.ApprovalID != p.ApprovalID {
		t.Errorf("asked twice: %+v", q)
	}
	resume := `{"v":1,"approval_id":"` + p.ApprovalID + `"}`
	_, err := handle(resume)
	w.refused(err, "usage")
	w.approve(p.ApprovalID)
	for _, msg := range []string{resume, resume, run, resume, run} {
		res, err := handle(msg)
		if err != nil || res.Status != call.Succeeded || string(res.Value) != `{"ran":{"n":1}}` || res.CallID != p.CallID {
			t.Errorf("%s: %+v, %v", msg, res, err)
		}
	}
	w.ran(`{"n":1}`)
	_, err = handle(`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":2}}`)
	w.refused(err, "call_conflict")

	q := w.park(`{"n":3}`)
	w.decide(q.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{"n":4}`)})
	for range 2 { // the repeat tells of the edit as well
		res, err := handle(`{"v":1,"approval_id":"` + q.ApprovalID + `"}`)
		if err != nil || !res.Edited || string(res.Args) != `{"n":4}` || res.EffectiveDigest == "" {
			t.Errorf("got %+v, %v", res, err)
		}
	}
	denied := w.park(`{"n":5}`)
	w.reject(denied.ApprovalID)
	for range 2 {
		res, err := handle(`{"v":1,"approval_id":"` + denied.ApprovalID + `"}`)
		if err != nil || res.Status != call.Denied || res.Kind != call.KindApprovalDenied {
			t.Errorf("got %+v, %v", res, err)
		}
	}
	w.ran(`{"n":1} {"n":4}`)

	// Interrupted, agreed to and done: the first message has its result as well.
	lost := w.park(`{"n":6}`)
	w.approve(lost.ApprovalID)
	w.stall(lost.ApprovalID)
	first := `{"v":1,"approval_id":"` + lost.ApprovalID + `"}`
	again := w.parked(handle(first))
	_, err = handle(first)
	w.refused(err, "already_decided")
	w.approve(again.ApprovalID)
	w.resumed(again.ApprovalID, call.Succeeded)
	if res, err := handle(first); err != nil || res.Status != call.Succeeded {
		t.Errorf("got %+v, %v", res, err)
	}
	w.ran(`{"n":1} {"n":4} {"n":6} {"n":6}`)
}

func TestEnvelopesRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	for _, msg := range []string{
		``, `null`, `[]`, `1`, `{}`, `{"v":1}`, `{"v":2,"approval_id":"ID"}`, `{"v":0,"approval_id":"ID"}`, `{"approval_id":"ID"}`,
		`{"v":"1","approval_id":"ID"}`, `{"v":1.5,"approval_id":"ID"}`, `{"v":1,"approval_id":"ID","approved":true}`,
		`{"v":1,"approval_id":"ID","status":"approved"}`, `{"v":1,"approval_id":"ID","run_id":"r"}`, `{"v":1,"approval_id":"ID","args":{}}`,
		`{"V":1,"approval_id":"ID"}`, `{"v":1,"Approval_ID":"ID"}`, `{"v":1,"approval_id":"ID","approval_id":"ID"}`,
		`{"v":1,"approval_id":"ID"} {}`, `{"v":1,"approval_id":["ID"]}`, `{"v":1,"approval_id":"ID"`, "{\"v\":1,\"approval_id\":\"\xff\"}",
		`{"v":1,"run_id":"r","call_id":"c","tool":"refund"}`, `{"v":1,"run_id":"r","tool":"refund","args":{}}`,
		`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1},"Args":{"n":2}}`,
		`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1},"decided_by":"ana"}`,
		`{"v":1,"pad":"` + strings.Repeat("x", 3<<20) + `"}`,
	} {
		_, err := w.ex.Handle(w.ctx, []byte(strings.ReplaceAll(msg, "ID", p.ApprovalID)))
		if !errors.Is(err, call.ErrEnvelope) {
			t.Errorf("%.80s: %v", msg, err)
		}
	}
	w.status(p, call.Pending, decision.Approved)
	w.ran("")
}

// A fresh call that cannot be stores nothing; a policy's no is stored.
func TestRefusedFresh(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, try := range map[string][2]string{
		"unknown tool": {"transfer", `{}`}, "look-alike": {"rеfund", `{}`}, "no JSON": {"refund", `{`}, "no object": {"refund", `[]`},
		"a key twice": {"refund", `{"n":1,"n":2}`}, "schema": {"refund", `{"amount":-1}`}, "nothing": {"refund", ``},
	} {
		res, err := w.ex.Call(w.ctx, try[0], []byte(try[1]))
		if err != nil || res.Status != call.Invalid || res.Kind != call.KindInvalidArguments || res.CallID != "" || res.Message == "" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if n := w.number(`SELECT count(*) FROM call`) + w.number(`SELECT count(*) FROM event`); n != 0 {
		t.Errorf("%d rows are stored", n)
	}
	w.policy.always(policy.Ruling{Outcome: policy.Deny, Reason: "no <refunds> today"})
	res, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
	if err != nil || res.Status != call.Denied || res.Kind != call.KindPolicyDenied || res.Message != "no <refunds> today" || res.CallID == "" {
		t.Errorf("got %+v, %v", res, err)
	}
	if got := w.types(res.CallID); got != "call.created call.finished" {
		t.Errorf("events: %s", got)
	}
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	again, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) // it ended, and stays so
	if err != nil || again.Status != call.Denied || again.CallID != res.CallID {
		t.Errorf("got %+v, %v", again, err)
	}
	w.ran("")
	for _, opt := range []call.Option{
		call.InRun("a\nb"), call.InRun(strings.Repeat("x", 201)), call.InRun("\xff"), call.As("\xff"), call.As(strings.Repeat("x", 201)),
		call.ContinuedBy("nobody"), call.WithMetadata(map[string]string{"": "x"}), call.WithMetadata(map[string]string{"a": "\x00"}),
		call.WithMetadata(map[string]string{"a": strings.Repeat("x", 4096)}), call.WithIdempotencyKey("/", strings.Repeat("k", 201)),
	} {
		_, err := w.ex.Call(w.ctx, "refund", []byte(`{}`), opt)
		w.refused(err, "usage")
	}
}

// A refund of a call whose caller has left goes on being recorded; one that never
// began leaves nothing.
func TestCancelledBeforeStart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := w.ex.Resume(ctx, p.ApprovalID, nil)
	if !errors.Is(err, txn.ErrNotCommitted) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.status(p, call.Pending, decision.Approved)
	w.ran("")
}
