package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/request"
)

// Outcome is what a policy decided.
type Outcome string

// The outcomes. Any other word is a policy error: nothing runs.
const (
	Allow           Outcome = "allow"
	RequireApproval Outcome = "require_approval"
	Deny            Outcome = "deny"
	Abort           Outcome = "abort" // ends an agent's run; for a call outside a run it is a denial
)

// MaxDocument bounds a capability or a presentation, in bytes.
const MaxDocument = 64 << 10

// Ruling is a policy's answer about one request.
type Ruling struct {
	Outcome Outcome
	// Reason is the policy's sentence for people. It may carry text a model chose.
	Reason string
	// Kind names the sort of approval. Default: the tool's side-effect class.
	Kind string
	// Capability is what a yes would permit. A JSON object; default {tool, args}.
	Capability json.RawMessage
	// Presentation is what the reviewer is shown. A JSON object that is the same
	// for every evaluation of the same action; default {tool, args}.
	Presentation json.RawMessage
	// ApprovalTTL bounds how long the request may stay pending, GrantTTL how old
	// a yes may be when it is acted on. 0: no limit of the policy's own.
	ApprovalTTL, GrantTTL time.Duration
	// ForbidEdits: a reviewer may not change the arguments.
	ForbidEdits bool
}

// View is what a policy may know besides the request. It is a copy: changing it changes nothing.
type View struct {
	Now       time.Time
	Principal string            // who asks, as proved; empty: not known
	RunID     string            // names the calls that belong together
	Goal      string            // of an agent's run
	Step      int               // index of the step in an agent's run
	Metadata  map[string]string // what the caller attached
}

// Policy judges requests. Evaluate runs outside every transaction and must
// answer the same for the same input: it is asked again at resume. An error means that
// nothing runs.
type Policy interface {
	Evaluate(ctx context.Context, r request.Request, v View) (Ruling, error)
}

// Func lets a function be a Policy.
type Func func(ctx context.Context, r request.Request, v View) (Ruling, error)

// Evaluate calls f.
func (f Func) Evaluate(ctx context.Context, r request.Request, v View) (Ruling, error) {
	return f(ctx, r, v)
}

// Versioned is a policy that can say which rules it holds now. Where a policy
// has it, a ruling is only acted on while the version it was made under still
// stands (design §4, rule 1). Version is asked inside the writing transaction:
// it has to be quick, wait for nothing and not use the store.
type Versioned interface {
	Version() string
}

// VersionOf is p's version, empty where it has none.
func VersionOf(p Policy) string {
	if v, ok := p.(Versioned); ok {
		return v.Version()
	}
	return ""
}

// ErrRuling: a policy answered something that cannot be acted on.
var ErrRuling = fault.Sentinel(fault.Internal, "policy_error", "The policy gave no usable answer; nothing was run.")

// ErrFailed: a policy gave no answer: it returned an error or panicked. Matches [ErrRuling].
var ErrFailed = fault.Sentinel(fault.Internal, "policy_failed", "The policy failed; nothing was run.", ErrRuling)

// Complete fills in what the ruling leaves out and refuses what cannot be acted
// on: an unknown outcome, or a capability or presentation that is not a JSON
// object of at most [MaxDocument] bytes. An error matches [ErrRuling].
func (r Ruling) Complete(req request.Request) (Ruling, error) {
	switch r.Outcome {
	case Allow, Deny, Abort, RequireApproval:
	default:
		return Ruling{}, ErrRuling.Say("The policy answered the unknown outcome %q; nothing was run.", r.Outcome)
	}
	if r.ApprovalTTL < 0 || r.GrantTTL < 0 {
		return Ruling{}, ErrRuling.Say("The policy answered a negative time limit; nothing was run.")
	}
	if r.Kind == "" {
		r.Kind = string(req.Tool.SideEffect)
	}
	if len(r.Capability) == 0 || len(r.Presentation) == 0 {
		plain, err := Plain(req)
		if err != nil {
			return Ruling{}, ErrRuling.Because(err)
		}
		if len(r.Capability) == 0 {
			r.Capability = plain
		}
		if len(r.Presentation) == 0 {
			r.Presentation = plain
		}
	}
	if err := checkDocument("capability", r.Capability, req); err != nil {
		return Ruling{}, err
	}
	if bytes.Equal(r.Presentation, r.Capability) {
		return r, nil // checked under the other name
	}
	if err := checkDocument("presentation", r.Presentation, req); err != nil {
		return Ruling{}, err
	}
	return r, nil
}

// Plain is the document {tool, args} that stands where a ruling leaves its
// capability or presentation out.
func Plain(req request.Request) (json.RawMessage, error) {
	b, err := canon.AppendString([]byte(`{"tool":`), req.Tool.Name)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"args":`...)
	b = append(b, req.Args...)
	return append(b, '}'), nil
}

func checkDocument(name string, doc []byte, req request.Request) error {
	// The plain {tool, args} may be as large as the arguments themselves are allowed to be.
	if limit := MaxDocument + len(req.Args); len(doc) > limit {
		return ErrRuling.Say("The policy's %s has %d bytes; the limit is %d. Nothing was run.", name, len(doc), limit)
	}
	if err := canon.Valid(doc); err != nil {
		return ErrRuling.Say("The policy's %s is not valid JSON; nothing was run.", name).Because(err)
	}
	if bytes.TrimLeft(doc, " \t\r\n")[0] != '{' {
		return ErrRuling.Say("The policy's %s is not a JSON object; nothing was run.", name)
	}
	return nil
}
