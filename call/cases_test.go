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
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// The fifteen cases of spec 2.8, those that one process can show. The others are in
// process_test.go and race_test.go.

func yes(by string) *decision.Answer { return &decision.Answer{Approved: true, By: by} }

func no(by string) *decision.Answer { return &decision.Answer{By: by, Note: "nein, danke\n(日本)"} }

// 1: park.
func TestPark(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(` {"order":"o-7", "amount": 500} `, call.As("bot"), call.WithMetadata(map[string]string{"why": "late"}))
	w.status(p, call.Pending, decision.Pending)
	w.ran("")
	if got, want := p.Error(), "refund waits for approval "+p.ApprovalID+"."; got != want {
		t.Errorf("a model reads %q, want %q", got, want)
	}
	if !strings.Contains(p.Help(), "placet resume "+p.ApprovalID) {
		t.Errorf("help does not say how to go on: %s", p.Help())
	}
	d, c := w.decision(p.ApprovalID), w.call(p.CallID)
	if d.RunID != p.RunID || d.CallID != p.CallID || d.Tool != "refund" || d.Digest != p.Digest || d.ArgsDigest != c.ArgsDigest ||
		d.RequestedBy != "bot" || d.Metadata["why"] != "late" || !d.Open || d.N != 1 {
		t.Errorf("the record: %+v", d)
	}
	if string(c.Args) != ` {"order":"o-7", "amount": 500} ` || !strings.Contains(string(d.Request), `"args": {"order":"o-7", "amount": 500} }`) {
		t.Errorf("the arguments are not as given: %q in %q", c.Args, d.Request)
	}
	if err := d.Intact(); err != nil {
		t.Error(err)
	}
	if got := w.types(p.CallID); got != "call.created approval.requested" {
		t.Errorf("events: %s", got)
	}
}

// 3 and 4: it runs once, with exactly the recorded bytes, and never by itself.
// Case 107: not a digit is lost.
func TestResumeOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	args := "\n{\"n\": 9007199254740993 ,\"order\":\"<&>\u2028\"}\t"
	p := w.park(args)
	_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "usage")
	w.status(p, call.Pending, decision.Pending)
	w.ran("")

	w.approve(p.ApprovalID)
	w.ran("")
	res := w.resumed(p.ApprovalID, call.Succeeded)
	w.ran(args)
	if c := w.spy.calls()[0]; c.CallID != p.CallID || c.RunID != p.RunID || c.Attempt != 1 {
		t.Errorf("the tool was told %+v", c)
	}
	if res.Edited || res.EffectiveDigest != "" || string(res.Args) != args || res.Failed() || res.ApprovalID != p.ApprovalID {
		t.Errorf("result %+v", res)
	}
	for _, again := range []*decision.Answer{nil, yes("ana"), no("ana"), {Approved: true, By: "ana", EditedArgs: []byte(`{"n":1}`)}} { // case 005
		_, err := w.ex.Resume(w.ctx, p.ApprovalID, again)
		w.refused(err, "already_decided")
		if st, ok := decision.StandingOf(err); !ok || st.Status != decision.Consumed || st.By != "ana" {
			t.Errorf("the refusal carries %+v", st)
		}
	}
	_, err = w.op.Decide(w.ctx, p.ApprovalID, *yes("bo"))
	w.refused(err, "not_pending")
	w.ran(args)
	w.status(p, call.Succeeded, decision.Consumed)
	if got := w.types(p.CallID); got != "call.created approval.requested approval.decided call.started call.finished" {
		t.Errorf("events: %s", got)
	}
	if a := w.attempts(p.CallID)[0]; a.Args != nil || a.GrantDigest != p.Digest || a.ApprovalID != p.ApprovalID || a.Outcome != call.Succeeded {
		t.Errorf("attempt %+v", a)
	}
}

// A second call with the same arguments never resumes: it asks again (case 184).
func TestCallAgainAsksAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.park(`{"n":1}`)
	w.approve(first.ApprovalID)
	second := w.park(`{"n":1}`)
	if first.ApprovalID == second.ApprovalID || first.CallID == second.CallID || first.RunID == second.RunID {
		t.Errorf("the second call is the first: %+v", second)
	}
	w.status(second, call.Pending, decision.Pending)
	w.resumed(first.ApprovalID, call.Succeeded)
	w.status(second, call.Pending, decision.Pending)
	w.ran(`{"n":1}`)
}

// 5, 6 and 7: stored decision, reviewer required, contradiction.
func TestResumeWithAnswer(t *testing.T) {
	t.Parallel()
	edited := func(args string) *decision.Answer {
		return &decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(args)}
	}
	shown := func(d string) *decision.Answer { return &decision.Answer{Approved: true, By: "ana", Shown: d} }
	tests := []struct {
		name   string
		before *decision.Answer // decided beforehand
		answer *decision.Answer
		want   string // a status, or the reason of an error
	}{
		{"no answer, pending", nil, nil, "usage"},
		{"no answer, approved", yes("bo"), nil, "succeeded"},
		{"no answer, rejected", no("bo"), nil, "denied"},
		{"no answer, edited", edited(`{"n":2}`), nil, "succeeded"},
		{"yes, pending", nil, yes("ana"), "succeeded"},
		{"no, pending", nil, no("ana"), "denied"},
		{"edit, pending", nil, edited(`{"n":2}`), "succeeded"},
		{"yes without a reviewer", nil, &decision.Answer{Approved: true}, "usage"},
		{"no without a reviewer", nil, &decision.Answer{}, "usage"},
		{"a name that is too long", nil, yes(strings.Repeat("ä", 201)), "usage"},
		{"a name that is no text", nil, yes("a\xff"), "usage"},
		{"a note with NUL", nil, &decision.Answer{Approved: true, By: "ana", Note: "a\x00b"}, "usage"},
		{"a no with edits", nil, &decision.Answer{By: "ana", EditedArgs: []byte(`{}`)}, "usage"},
		{"an edit that does not fit", nil, edited(`{"amount":-1}`), "invalid_arguments"},
		{"shown another digest", nil, shown("sha256-placet1:0"), "approval_changed"},
		{"the same yes by another", yes("bo"), yes("ana"), "succeeded"},
		{"the same no by another", no("bo"), no("ana"), "denied"},
		{"yes after no", no("bo"), yes("ana"), "already_decided"},
		{"no after yes", yes("bo"), no("ana"), "already_decided"},
		{"the same edit, spelt otherwise", edited(`{"n":2}`), edited(`{ "\u006e": 2.0 }`), "succeeded"},
		{"another edit", edited(`{"n":2}`), edited(`{"n":3}`), "already_decided"},
		{"an edit after a plain yes", yes("bo"), edited(`{"n":1}`), "already_decided"},
		{"a plain yes after an edit", edited(`{"n":2}`), yes("ana"), "already_decided"},
		{"an empty edit after an edit", edited(`{"n":2}`), edited(`{}`), "already_decided"},
		{"yes to something else", yes("bo"), shown("sha256-placet1:0"), "already_decided"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			p := w.park(`{"n":1}`)
			if tt.before != nil {
				w.decide(p.ApprovalID, *tt.before)
			}
			before := w.decision(p.ApprovalID)
			res, err := w.ex.Resume(w.ctx, p.ApprovalID, tt.answer)
			got := string(res.Status)
			if err != nil {
				got = reason(err)
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
			after := w.decision(p.ApprovalID)
			if err != nil && after.Version != before.Version {
				t.Errorf("a refused resume changed the record to %+v", after)
			}
			if tt.before != nil && after.DecidedBy != before.DecidedBy {
				t.Errorf("the first reviewer %s became %s", before.DecidedBy, after.DecidedBy)
			}
			want := ""
			if got == "succeeded" {
				want = `{"n":1}`
				if after.EditedArgs != nil {
					want = string(after.EditedArgs)
				}
			}
			w.ran(want)
		})
	}
}

// 10: a denial is a result with the reviewer's words, never an error of the tool
// (cases 045, 049); it spends the record.
func TestDenial(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	d := w.decide(p.ApprovalID, *no("Zoë"))
	w.status(p, call.Denied, decision.Rejected)
	w.policy.always(policy.Ruling{Outcome: policy.Allow}) // a stored no stands, also when the policy would allow it now

	other := w.executor(w.open())
	res, err := other.Resume(w.ctx, p.ApprovalID, nil)
	if err != nil || res.Status != call.Denied || res.Kind != call.KindApprovalDenied || res.Message != "Rejected by Zoë: nein, danke\n(日本)" || res.ApprovalID != d.ID || !res.Failed() {
		t.Errorf("got %+v, %v", res, err)
	}
	w.status(p, call.Denied, decision.Consumed)
	_, err = other.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "already_decided")
	if got := w.types(p.CallID); got != "call.created approval.requested approval.decided call.finished approval.consumed" {
		t.Errorf("events: %s", got)
	}
	w.ran("")
}

// 11: edits, valid and invalid (cases 042, 043, 111).
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ edit, want string }{
		{`{"amount":20}`, ""},
		{`{}`, ""},      // an edit to an empty object is an edit (case 040)
		{`{"n":0}`, ""}, // and so is one to nothing much
		{` {"amount" : 1.0}`, ""},
		{`{"amount":1e3}`, ""},
		{`{"n":92233720368547758079223372036854775807}`, ""}, // beyond 64 bits, exactly as sent
		{`{"amount":1.5}`, "/amount"},
		{`{"amount":-1}`, "/amount"},
		{`{"amount":null}`, "/amount"},
		{`{"amount":"20"}`, "/amount"},
		{`{"amuont":20}`, "amuont"},
		{`{"amount":20,"amount":21}`, "duplicate"},
		{`{"amount":7E29999999}`, ""}, // refused for its exponent, quickly (case 110)
		{`[]`, "object"},
		{`null`, "object"},
		{``, "JSON"},
		{`{"amount":20} {}`, "JSON"},
	} {
		t.Run(tt.edit, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			p := w.park(`{"amount":80}`)
			_, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(tt.edit)})
			if tt.want != "" || strings.Contains(tt.edit, "7E") {
				if !errors.Is(err, tool.ErrInvalidArguments) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want one that names %s", err, tt.want)
				}
				w.status(p, call.Pending, decision.Pending)
				w.ran("")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			res := w.resumed(p.ApprovalID, call.Succeeded)
			w.ran(tt.edit)
			c, d, a := w.call(p.CallID), w.decision(p.ApprovalID), w.attempts(p.CallID)[0]
			if !res.Edited || string(res.Args) != tt.edit || res.EffectiveDigest != d.EffectiveDigest || res.EffectiveDigest == "" {
				t.Errorf("the asker is told %+v", res)
			}
			if string(c.Args) != `{"amount":80}` || c.ArgsDigest != d.ArgsDigest || c.EffectiveDigest != d.EffectiveDigest {
				t.Errorf("the original changed: %+v", c)
			}
			if string(a.Args) != tt.edit || a.EffectiveDigest != d.EffectiveDigest {
				t.Errorf("the attempt: %+v", a)
			}
		})
	}
}

// The policy is asked twice about an edit: on what was asked and on what would run.
func TestEditsAndPolicy(t *testing.T) {
	t.Parallel()
	type rule = func(args string) policy.Ruling
	ask := policy.Ruling{Outcome: policy.RequireApproval, Presentation: json.RawMessage(`{"title":"same"}`)}
	allow := policy.Ruling{Outcome: policy.Allow}
	deny := policy.Ruling{Outcome: policy.Deny, Reason: "because"}
	with := func(kind, capability string) policy.Ruling {
		ru := ask
		ru.Kind, ru.Capability = kind, json.RawMessage(capability)
		return ru
	}
	forbid := ask
	forbid.ForbidEdits = true
	const original, edited = `{"n":1}`, `{"n":2}`
	on := func(o, e policy.Ruling) rule {
		return func(args string) policy.Ruling {
			if args == edited {
				return e
			}
			return o
		}
	}
	tests := []struct {
		name string
		ask  policy.Ruling // when it is parked
		rule rule          // at resume
		want string
	}{
		{"both as before", ask, on(ask, ask), "succeeded"},
		{"allowed by now", ask, on(allow, allow), "succeeded"},
		{"the edited one is allowed", ask, on(ask, allow), "succeeded"},
		{"the original is denied", ask, on(deny, allow), "policy_denied"},
		{"the edited one is denied", ask, on(ask, deny), "policy_denied"},
		{"the edited one is aborted", ask, on(allow, policy.Ruling{Outcome: policy.Abort}), "policy_abort"},
		{"a capability of its own, the same", with("pay", `{"max":10}`), on(with("pay", `{"max":10}`), with("pay", `{ "max": 1e1 }`)), "succeeded"},
		{"another capability", with("pay", `{"max":10}`), on(with("pay", `{"max":10}`), with("pay", `{"max":20}`)), "asked for the edit"},
		{"another kind", with("pay", `{"max":10}`), on(with("pay", `{"max":10}`), with("pay more", `{"max":10}`)), "asked for the edit"},
		{"the original needs another yes", ask, on(with("pay", `{"max":10}`), allow), "asked for the original"},
		{"edits are forbidden by now", ask, on(forbid, ask), "asked for the original"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.policy.always(tt.ask)
			p := w.park(original)
			w.decide(p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(edited)})
			w.policy.set(func(_ context.Context, r request.Request, _ policy.View) (policy.Ruling, error) {
				return tt.rule(string(r.Args)), nil
			})
			res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
			switch tt.want {
			case "succeeded":
				if err != nil || res.Status != call.Succeeded {
					t.Fatalf("got %+v, %v", res, err)
				}
				w.ran(edited)
				return
			case "policy_denied", "policy_abort":
				if err != nil || res.Status != call.Pending || string(res.Kind) != tt.want {
					t.Fatalf("got %+v, %v", res, err)
				}
				w.ran("")
				w.status(p, call.Pending, decision.Approved) // the grant is not spent
				w.policy.always(tt.ask)
				w.resumed(p.ApprovalID, call.Succeeded)
				w.ran(edited)
				return
			}
			q := w.parked(res, err)
			w.ran("")
			old, d := w.decision(p.ApprovalID), w.decision(q.ApprovalID)
			if old.Status != decision.Superseded || d.Status != decision.Pending || q.CallID != p.CallID || d.N != 2 || d.ArgsDigest != old.ArgsDigest {
				t.Errorf("old %+v\nnew %+v", old, d)
			}
			req, err := request.Decode(d.Request)
			want := edited
			if tt.want == "asked for the original" {
				want = original
			}
			if err != nil || string(req.Args) != want {
				t.Errorf("asked for %s, want %s", req.Args, want)
			}
			_, err = w.ex.Resume(w.ctx, p.ApprovalID, nil)
			w.refused(err, "already_decided")
			w.approve(q.ApprovalID)
			res = w.resumed(q.ApprovalID, call.Succeeded)
			w.ran(want)
			if edits := want == edited; res.Edited != edits || (res.EffectiveDigest != "") != edits {
				t.Errorf("result %+v", res)
			}
		})
	}
}

func TestEditsForbidden(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, ForbidEdits: true})
	p := w.park(`{"n":1}`)
	edit := decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{"n":2}`)}
	_, err := w.op.Decide(w.ctx, p.ApprovalID, edit)
	w.refused(err, "usage")
	_, err = w.ex.Resume(w.ctx, p.ApprovalID, &edit)
	w.refused(err, "usage")
	w.status(p, call.Pending, decision.Pending)
}

// 12: the record answers only for its own run id, call id, tool and arguments; three
// calls parked in one turn never meet (cases 022, 025, 102, 174).
func TestBinding(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if err := w.tools.Register(tool.Tool{Spec: tool.Spec{Name: "pay", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: w.spy}); err != nil {
		t.Fatal(err)
	}
	run := func(runID, callID, name, args string) (call.Result, error) {
		return w.ex.RunCall(w.ctx, runID, callID, name, []byte(args))
	}
	p := w.parked(run("r", "c", "refund", `{"n":1}`))
	same := w.parked(run("r", "c", "refund", ` { "\u006e" : 1.0 } `)) // the same request, spelt otherwise
	if same.ApprovalID != p.ApprovalID {
		t.Errorf("asked twice: %+v", same)
	}
	w.approve(p.ApprovalID)
	for name, try := range map[string][4]string{
		"other arguments":        {"r", "c", "refund", `{"n":2}`},
		"no arguments":           {"r", "c", "refund", `{}`},
		"arguments that are not": {"r", "c", "refund", `{`},
		"another tool":           {"r", "c", "pay", `{"n":1}`},
		"no tool":                {"r", "c", "transfer", `{"n":1}`},
		"our id, other args":     {"r", p.CallID, "refund", `{"n":2}`},
	} {
		_, err := run(try[0], try[1], try[2], try[3])
		if reason(err) != "call_conflict" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := run("other", p.CallID, "refund", `{"n":1}`)
	w.refused(err, "usage") // our own id names a call that exists, in its run
	_, err = run("r", "call_mine", "refund", `{"n":1}`)
	w.refused(err, "usage")
	elsewhere := w.parked(run("other", "c", "refund", `{"n":1}`)) // another call, with an approval of its own
	if elsewhere.ApprovalID == p.ApprovalID {
		t.Error("another run's call has the same approval")
	}
	w.status(p, call.Pending, decision.Approved)
	w.ran("")
	res, err := run("r", p.CallID, "refund", `{"n":1}`)
	if err != nil || res.Status != call.Succeeded {
		t.Errorf("the request itself: %+v, %v", res, err)
	}
	w.ran(`{"n":1}`)
	w.status(elsewhere, call.Pending, decision.Pending)
}

func TestThreeParkedCalls(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var ps [3]*call.PendingError
	for i := range ps {
		ps[i] = w.park(fmt.Sprintf(`{"n":%d}`, i), call.InRun("turn"))
	}
	w.approve(ps[1].ApprovalID)
	w.reject(ps[2].ApprovalID)
	w.resumed(ps[1].ApprovalID, call.Succeeded)
	w.resumed(ps[2].ApprovalID, call.Denied)
	_, err := w.ex.Resume(w.ctx, ps[0].ApprovalID, nil)
	w.refused(err, "usage")
	w.ran(`{"n":1}`)
	w.resumed(w.approve(ps[0].ApprovalID).ID, call.Succeeded)
	_, err = w.ex.Resume(w.ctx, ps[1].ApprovalID, nil)
	w.refused(err, "already_decided")
	w.ran(`{"n":1} {"n":0}`)
}

// 13 and 14: the wrong door, and records that the HTTP tool server parked.
func TestWrongDoor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, mark, want string
	}{
		{"a flow's", `UPDATE decision SET node = 'publish' WHERE id = ?`, "flow.Runner.Resume"},
		{"a run's step", `UPDATE decision SET step_id = 'stp_1' WHERE id = ?`, "run.Driver.Resume"},
		{"a run's", `UPDATE decision SET owner_kind = 'run' WHERE id = ?`, "run.Driver.Resume"},
		{"a question", `UPDATE decision SET type = 'question' WHERE id = ?`, "placet resolve"},
		{"by origin", `UPDATE decision SET metadata = CAST('{"origin":"http"}' AS BLOB) WHERE id = ?`, "POST /v1/approvals/"},
		{"by principal", `UPDATE decision SET metadata = CAST('{"principal":""}' AS BLOB) WHERE id = ?`, "POST /v1/approvals/"},
		{"by anonymous", `UPDATE decision SET metadata = CAST('{"a":"b","anonymous":"true"}' AS BLOB) WHERE id = ?`, "POST /v1/approvals/"},
		{"by the call", `UPDATE call SET metadata = CAST('{"origin":"http"}' AS BLOB) WHERE approval_id = ?`, "POST /v1/approvals/"},
	}
	for _, tt := range tests {
		for _, decided := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, decided %v", tt.name, decided), func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
				if decided {
					w.approve(p.ApprovalID)
				}
				w.raw(tt.mark, p.ApprovalID)
				before := w.decision(p.ApprovalID)
				try := map[string]func() (call.Result, error){
					"resume":     func() (call.Result, error) { return w.ex.Resume(w.ctx, p.ApprovalID, nil) },
					"resume yes": func() (call.Result, error) { return w.ex.Resume(w.ctx, p.ApprovalID, yes("ana")) },
					"envelope": func() (call.Result, error) {
						return w.ex.Handle(w.ctx, []byte(`{"v":1,"approval_id":"`+p.ApprovalID+`"}`))
					},
					"ids":    func() (call.Result, error) { return w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)) },
					"our id": func() (call.Result, error) { return w.ex.RunCall(w.ctx, "r", p.CallID, "refund", []byte(`{"n":1}`)) },
					"envelope of ids": func() (call.Result, error) {
						return w.ex.Handle(w.ctx, []byte(`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1}}`))
					},
				}
				for name, f := range try {
					_, err := f()
					if reason(err) != "usage" || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("%s: %v, want usage naming %s", name, err, tt.want)
					}
				}
				if after := w.decision(p.ApprovalID); after.Version != before.Version {
					t.Errorf("a wrong door changed the record: %+v", after)
				}
				w.ran("")
			})
		}
	}
}

// A call that came in through the server and needed no approval is its own as well.
func TestWrongDoorUnasked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	res, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	w.raw(`UPDATE call SET metadata = ? WHERE id = ?`, []byte(`{"origin":"http"}`), res.CallID)
	_, err = w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
	w.refused(err, "usage")
}

// Nobody but the server writes its marks (case 124).
func TestReservedMetadata(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, key := range []string{"origin", "principal", "anonymous"} {
		_, err := w.ex.Call(w.ctx, "refund", []byte(`{}`), call.WithMetadata(map[string]string{key: "x"}))
		w.refused(err, "usage")
	}
	if n := w.number(`SELECT count(*) FROM call`); n != 0 {
		t.Errorf("%d calls were stored", n)
	}
}

// 15: run identity.
func TestRunIdentity(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`, call.InRun("mine"))
	if p.RunID != "mine" {
		t.Fatalf("run id %s", p.RunID)
	}
	for _, a := range []*decision.Answer{nil, yes("ana")} {
		_, err := w.ex.Resume(w.ctx, p.ApprovalID, a, call.InRun("yours"))
		w.refused(err, "usage")
	}
	w.status(p, call.Pending, decision.Pending)
	for _, f := range []func() error{
		func() error { return w.op.Approve(w.ctx, "yours", p.ApprovalID, "ana", "") },
		func() error { return w.op.ApproveShown(w.ctx, "yours", p.ApprovalID, p.Digest, "ana", "") },
		func() error { return w.op.Reject(w.ctx, "yours", p.ApprovalID, "ana", "") },
		func() error { return w.op.RejectShown(w.ctx, "yours", p.ApprovalID, p.Digest, "ana", "") },
	} {
		w.refused(f(), "not_found")
	}
	w.status(p, call.Pending, decision.Pending)
	if err := w.op.ApproveShown(w.ctx, "mine", p.ApprovalID, p.Digest, "ana", ""); err != nil {
		t.Fatal(err)
	}
	res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil, call.InRun("mine"))
	if err != nil || res.RunID != "mine" || w.spy.calls()[0].RunID != "mine" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestResumeUnknownID(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{}`)
	for _, id := range []string{"", "apr_", p.CallID, p.ApprovalID[:len(p.ApprovalID)-1], p.ApprovalID + "0", strings.ToUpper(p.ApprovalID), "' OR 1=1 --"} {
		_, err := w.ex.Resume(w.ctx, id, yes("ana"))
		if !errors.Is(err, call.ErrApprovalNotFound) || !errors.Is(err, decision.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// Another tenant's record is not there at all.
	other := w.executor(w.st, func(c *call.Config) { c.Space = "other" })
	_, err := other.Resume(w.ctx, p.ApprovalID, yes("ana"))
	w.refused(err, "not_found")
	w.status(p, call.Pending, decision.Pending)
}

// A port that keeps nothing has nothing to resume, and a port over another store
// would park where nobody looks.
func TestPorts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{}`)
	w.approve(p.ApprovalID)
	auto := w.executor(w.st, func(c *call.Config) { c.Approval = call.AutoApprove() })
	_, err := auto.Resume(w.ctx, p.ApprovalID, nil)
	if reason(err) != "usage" || !strings.Contains(err.Error(), "Deferred(store)") {
		t.Errorf("got %v", err)
	}
	elsewhere := w.executor(w.st, func(c *call.Config) { c.Approval = call.Deferred(w.open()) })
	for name, f := range map[string]func() error{
		"call":    func() error { _, err := elsewhere.Call(w.ctx, "refund", []byte(`{}`)); return err },
		"runcall": func() error { _, err := elsewhere.RunCall(w.ctx, "r", "c", "refund", []byte(`{}`)); return err },
		"resume":  func() error { _, err := elsewhere.Resume(w.ctx, p.ApprovalID, nil); return err },
		"handle":  func() error { _, err := elsewhere.Handle(w.ctx, []byte(`{"v":1,"approval_id":"x"}`)); return err },
		"sweep":   func() error { _, err := elsewhere.Sweep(w.ctx, 10); return err },
	} {
		if err := f(); reason(err) != "usage" || !strings.Contains(err.Error(), "same store") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]func(*call.Config){
		"no store":      func(c *call.Config) { c.Store = nil },
		"no tools":      func(c *call.Config) { c.Tools = nil },
		"negative time": func(c *call.Config) { c.GrantTTL = -time.Second },
		"short lease":   func(c *call.Config) { c.Lease = time.Millisecond },
		"no pending":    func(c *call.Config) { d := call.Deferred(w.st); d.MaxPending = 0; c.Approval = d },
		"negative cost": func(c *call.Config) { c.Guards.Cost = -1 },
	} {
		_, err := w.executor(w.st, c).Call(w.ctx, "refund", []byte(`{}`))
		if reason(err) != "usage" {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.status(p, call.Pending, decision.Approved)
	w.ran("")
}

// Store at MaxPending: a loud refusal; nothing pending is ever dropped.
func TestMaxPending(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *call.Config) {})
	port := call.Deferred(w.st)
	port.MaxPending = 2
	w.ex = w.executor(w.st, func(c *call.Config) { c.Approval = port })
	first, second := w.park(`{"n":1}`), w.park(`{"n":2}`)
	_, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":3}`))
	if !errors.Is(err, call.ErrTooManyPending) {
		t.Errorf("got %v", err)
	}
	if n := w.number(`SELECT count(*) FROM call`); n != 2 {
		t.Errorf("%d calls are stored", n)
	}
	w.status(first, call.Pending, decision.Pending)
	w.approve(first.ApprovalID) // an approved one is not pending
	third := w.park(`{"n":3}`)
	w.status(second, call.Pending, decision.Pending)

	// At the limit a changed ruling cannot park anew: the grant stays as it is.
	w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "other"})
	_, err = w.ex.Resume(w.ctx, first.ApprovalID, nil)
	w.refused(err, "too_many_pending")
	w.status(first, call.Pending, decision.Approved)
	w.reject(third.ApprovalID)
	q := w.parked(w.ex.Resume(w.ctx, first.ApprovalID, nil))
	w.status(q, call.Pending, decision.Pending)

	// What answers at once is never pending, so the limit does not concern it.
	w.policy.set(nil)
	auto := w.executor(w.st, func(c *call.Config) { c.Approval = call.AutoApprove() })
	if res, err := auto.Call(w.ctx, "refund", []byte(`{"n":4}`)); err != nil || res.Status != call.Succeeded {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Large arguments are kept to the byte or refused before anything is stored (case 091).
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	w := setup(t)
	args := func(n int, fill string) []byte {
		b := []byte(`{"order":"`)
		for len(b)+len(fill)+2 <= n {
			b = append(b, fill...)
		}
		return append(append(b, strings.Repeat("x", n-len(b)-2)...), `"}`...)
	}
	for _, n := range []int{7_900, 8_000, 9_000, 1_000_000, tool.MaxArgs} {
		for _, fill := range []string{"a", "😀"} {
			a := args(n, fill)
			p := w.park(string(a))
			w.approve(p.ApprovalID)
			res := w.resumed(p.ApprovalID, call.Succeeded)
			runs := w.spy.calls()
			if got := runs[len(runs)-1].Args; string(got) != string(a) || string(res.Args) != string(a) {
				t.Errorf("%d bytes of %s came as %d", n, fill, len(got))
			}
			w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`1`), nil })
		}
	}
	stored := w.number(`SELECT count(*) FROM call`)
	res, err := w.ex.Call(w.ctx, "refund", args(tool.MaxArgs+1, "a"))
	if err != nil || res.Status != call.Invalid || w.number(`SELECT count(*) FROM call`) != stored {
		t.Errorf("got %s, %v", res.Status, err)
	}
}

// The policy judges exactly what will run, at the call and at the resume, in the same
// bytes (cases 101, 102, 188, 192).
func TestPolicySeesWhatRuns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	args := " {\"order\":\"e\u0301 \\u00e9 <b>&\u2028\" , \"n\": 1E2}"
	p := w.park(args)
	w.approve(p.ApprovalID)
	w.resumed(p.ApprovalID, call.Succeeded)
	w.ran(args)
	if len(w.policy.asked) != 2 {
		t.Fatalf("asked %d times", len(w.policy.asked))
	}
	for _, r := range w.policy.asked {
		if string(r.Args) != args || r.CallID != p.CallID || r.RunID != p.RunID || r.Tool.Name != "refund" || string(r.Tool.InputSchema) != schema {
			t.Errorf("the policy was asked about %+v", r)
		}
	}
}

// The same verdict before the approval and at the resume (case 111).
func TestIntegers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for args, valid := range map[string]bool{
		`{"n":999999}`: true, `{"n":1000000}`: true, `{"n":1234567}`: true, `{"n":1e6}`: true, `{"n":1.0}`: true, `{"n":1.5}`: false,
		`{"n":18446744073709551615}`: true, `{"n":1234567890123456789012345678901234567890}`: true, `{"n":9007199254740993}`: true, `{"n":"1"}`: false,
	} {
		res, err := w.ex.Call(w.ctx, "refund", []byte(args))
		if !valid {
			if res.Status != call.Invalid {
				t.Errorf("%s: %+v, %v", args, res, err)
			}
			continue
		}
		p := w.parked(res, err)
		w.approve(p.ApprovalID)
		w.resumed(p.ApprovalID, call.Succeeded)
		runs := w.spy.calls()
		if got := string(runs[len(runs)-1].Args); got != args {
			t.Errorf("%s ran as %s", args, got)
		}
	}
}
