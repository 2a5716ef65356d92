package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func TestCompleteRefuses(t *testing.T) {
	t.Parallel()
	big := json.RawMessage(`{"a":"` + strings.Repeat("x", policy.MaxDocument+100) + `"}`)
	deep := json.RawMessage(`{"a":` + strings.Repeat("[", canon.MaxDepth) + strings.Repeat("]", canon.MaxDepth) + `}`)
	req := requestOf(tool.RemoteMutation)
	withArgs := func(args string) request.Request {
		r := req
		r.Args = []byte(args)
		return r
	}
	ask := policy.Ruling{Outcome: policy.RequireApproval}
	with := func(change func(*policy.Ruling)) policy.Ruling {
		r := ask
		change(&r)
		return r
	}
	tests := []struct {
		name   string
		ruling policy.Ruling
		req    request.Request
		want   string
	}{
		{"no outcome", policy.Ruling{}, req, `unknown outcome ""`},
		{"an unknown outcome", policy.Ruling{Outcome: "approve"}, req, `unknown outcome "approve"`},
		{"an outcome in capitals", policy.Ruling{Outcome: "ALLOW"}, req, `unknown outcome "ALLOW"`},
		{"a negative approval time", with(func(r *policy.Ruling) { r.ApprovalTTL = -time.Second }), req, "negative time limit"},
		{"a negative grant time", with(func(r *policy.Ruling) { r.GrantTTL = -1 }), req, "negative time limit"},
		{"a capability that is no JSON", with(func(r *policy.Ruling) { r.Capability = json.RawMessage(`{"a":`) }), req, "capability is not valid JSON"},
		{"a presentation that is no JSON", with(func(r *policy.Ruling) { r.Presentation = json.RawMessage(`{'a':1}`) }), req, "presentation is not valid JSON"},
		{"a presentation with a key twice", with(func(r *policy.Ruling) { r.Presentation = json.RawMessage(`{"a":1,"\u0061":2}`) }), req, "presentation is not valid JSON"},
		{"a presentation that is too deep", with(func(r *policy.Ruling) { r.Presentation = deep }), req, "presentation is not valid JSON"},
		{"a presentation with invalid UTF-8", with(func(r *policy.Ruling) { r.Presentation = json.RawMessage("{\"a\":\"\xff\"}") }), req, "presentation is not valid JSON"},
		{"a presentation that is a string", with(func(r *policy.Ruling) { r.Presentation = json.RawMessage(`"hello"`) }), req, "presentation is not a JSON object"},
		{"a presentation that is null", with(func(r *policy.Ruling) { r.Presentation = json.RawMessage(`null`) }), req, "presentation is not a JSON object"},
		{"a capability that is a list", with(func(r *policy.Ruling) { r.Capability = json.RawMessage(` [1]`) }), req, "capability is not a JSON object"},
		{"a capability that is too large", with(func(r *policy.Ruling) { r.Capability = big }), req, "capability has 65644 bytes; the limit is"},
		{"a presentation that is too large", with(func(r *policy.Ruling) { r.Presentation = big }), req, "presentation has 65644 bytes; the limit is"},
		{"arguments that are no JSON", ask, withArgs(`{"a":`), "not valid JSON"},
		{"no arguments at all", ask, withArgs(``), "not valid JSON"},
		{"an allow with a bad presentation", policy.Ruling{Outcome: policy.Allow, Presentation: json.RawMessage(`7`)}, req, "not a JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.ruling.Complete(tt.req)
			if !errors.Is(err, policy.ErrRuling) {
				t.Fatalf("error %v does not match ErrRuling", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
			if f := fault.From(err); f.Code != fault.Internal || f.Reason != "policy_error" {
				t.Errorf("code %s, reason %s", f.Code, f.Reason)
			}
			if got.Outcome != "" {
				t.Errorf("the refused ruling still says %q", got.Outcome)
			}
		})
	}
}

func TestCompleteRefusesAToolNameThatIsNoText(t *testing.T) {
	t.Parallel()
	req := requestOf(tool.ReadOnly)
	req.Tool.Name = "a\xff"
	if _, err := (policy.Ruling{Outcome: policy.Allow}).Complete(req); !errors.Is(err, policy.ErrRuling) {
		t.Errorf("error %v does not match ErrRuling", err)
	}
}

func TestCompleteFillsIn(t *testing.T) {
	t.Parallel()
	// The argument bytes stand in the documents as given: number spelling, order and space.
	req := requestOf(tool.RemoteMutation)
	req.Args = []byte(`{"n": 1.0,"big":9007199254740993}`)
	plain := `{"tool":"push","args":{"n": 1.0,"big":9007199254740993}}`
	given := json.RawMessage(`{"title":"Push"}`)
	tests := []struct {
		name                           string
		in                             policy.Ruling
		kind, capability, presentation string
	}{
		{"everything", policy.Ruling{Outcome: policy.RequireApproval}, "remote_mutation", plain, plain},
		{"all but the kind", policy.Ruling{Outcome: policy.RequireApproval, Kind: "money"}, "money", plain, plain},
		{"all but the presentation", policy.Ruling{Outcome: policy.RequireApproval, Presentation: given}, "remote_mutation", plain, string(given)},
		{"all but the capability", policy.Ruling{Outcome: policy.Deny, Capability: given}, "remote_mutation", string(given), plain},
		{"nothing", policy.Ruling{Outcome: policy.Abort, Kind: "k", Capability: given, Presentation: given}, "k", string(given), string(given)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Reason, tt.in.ForbidEdits = "because", true
			tt.in.ApprovalTTL, tt.in.GrantTTL = time.Hour, time.Minute
			got, err := tt.in.Complete(req)
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != tt.kind || string(got.Capability) != tt.capability || string(got.Presentation) != tt.presentation {
				t.Errorf("got kind %s, capability %s, presentation %s", got.Kind, got.Capability, got.Presentation)
			}
			if got.Outcome != tt.in.Outcome || got.Reason != "because" || !got.ForbidEdits || got.ApprovalTTL != time.Hour || got.GrantTTL != time.Minute {
				t.Errorf("what the policy said was changed: %+v", got)
			}
		})
	}
}

func TestCompleteTakesThePlainDocumentOfLargeArguments(t *testing.T) {
	t.Parallel()
	req := requestOf(tool.RemoteMutation)
	req.Args = []byte(`{"text":"` + strings.Repeat("x", 512<<10) + `"}`)
	if _, err := (policy.Ruling{Outcome: policy.RequireApproval}).Complete(req); err != nil {
		t.Error(err)
	}
}

func TestFuncIsAPolicyWithoutAVersion(t *testing.T) {
	t.Parallel()
	p := policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{Outcome: policy.Deny}, nil
	})
	r, err := p.Evaluate(context.Background(), request.Request{}, policy.View{})
	if err != nil || r.Outcome != policy.Deny {
		t.Errorf("%+v, %v", r, err)
	}
	if v := policy.VersionOf(p); v != "" {
		t.Errorf("version %q", v)
	}
}
