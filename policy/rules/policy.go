package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// Policy judges by rules. It is safe for concurrent use.
type Policy struct {
	rules    []rule
	fallback policy.Policy
	digest   digest
}

var (
	_ policy.Policy    = (*Policy)(nil)
	_ policy.Versioned = (*Policy)(nil)
)

// New compiles rules. The first rule that matches decides; where none does,
// fallback is asked. A nil fallback is [policy.Default].
//
// The error matches [ErrRules]; errors.As finds all that is wrong as [Problems].
func New(rs []Rule, fallback policy.Policy) (*Policy, error) {
	if fallback == nil {
		fallback = policy.Default()
	}
	if len(rs) > MaxRules {
		return nil, ErrRules.Say("There are %d rules; at most %d are allowed.", len(rs), MaxRules)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("prepare the language of the rules: %w", err)
	}
	c := &compiler{env: env, names: map[string]int{}}
	compiled := c.rules(rs)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	p := &Policy{rules: compiled, fallback: fallback}
	p.digest, err = newDigest(rs, policy.VersionOf(fallback))
	return p, err
}

// Evaluate asks the rules in their order. A condition that cannot be evaluated
// means that a person has to decide. An error matches [policy.ErrRuling]: the
// arguments have no canonical form, the context ended, or the presentation or
// capability of the rule that matched cannot be evaluated.
func (p *Policy) Evaluate(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
	if len(p.rules) > 0 {
		ruling, decided, err := p.judge(ctx, r, v)
		if decided || err != nil {
			return ruling, err
		}
	}
	return p.fallback.Evaluate(ctx, r, v)
}

// judge asks the rules alone; decided is false if none matches.
func (p *Policy) judge(ctx context.Context, r request.Request, v policy.View) (_ policy.Ruling, decided bool, _ error) {
	limited, cancel := context.WithTimeout(ctx, TimeLimit)
	defer cancel()
	e := &evaluation{ctx: limited, vars: vars{req: r, view: v}}
	for i := range p.rules {
		rule := &p.rules[i]
		matched, err := e.condition(rule)
		if fatal := e.fatal(ctx); fatal != nil {
			return policy.Ruling{}, false, fatal
		}
		if err != nil {
			return ask(rule, err), true, nil
		}
		if matched {
			ruling, err := e.ruling(rule)
			return ruling, true, err
		}
	}
	return policy.Ruling{}, false, nil
}

// evaluation is one question to the rules.
type evaluation struct {
	ctx  context.Context // with the time limit
	vars vars
	cost uint64 // spent so far
}

// fatal is why no rule's answer counts: the caller gave up, or the arguments are unreadable.
func (e *evaluation) fatal(caller context.Context) error {
	if err := caller.Err(); err != nil {
		return policy.ErrRuling.Say("The policy was interrupted; nothing was run.").Because(err)
	}
	if e.vars.argsErr != nil {
		return policy.ErrRuling.Say("The policy cannot read the arguments; nothing was run.").Because(e.vars.argsErr)
	}
	return nil
}

func (e *evaluation) condition(r *rule) (bool, error) {
	v, err := e.eval(r.when)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is a value of type %s, neither true nor false", v.Type().TypeName())
	}
	return bool(b), nil
}

// eval runs one expression within what is left of time and cost.
func (e *evaluation) eval(p cel.Program) (ref.Val, error) {
	if e.ctx.Err() != nil {
		return nil, errTime
	}
	v, details, err := p.ContextEval(e.ctx, &e.vars)
	if details != nil {
		if c := details.ActualCost(); c != nil {
			e.cost += *c
		}
	}
	switch {
	case e.cost > CostLimit:
		return nil, errCost
	case err != nil && e.ctx.Err() != nil:
		return nil, errTime
	case err == nil && v == nil:
		return nil, errValue
	}
	return v, err
}

var (
	errTime  = fmt.Errorf("the rules took longer than %v", TimeLimit)
	errCost  = fmt.Errorf("the rules cost more than %d operations", CostLimit)
	errValue = errors.New("the expression has no value")
)

// ruling is what follows from a rule that matched.
func (e *evaluation) ruling(r *rule) (policy.Ruling, error) {
	out := policy.Ruling{
		Outcome:     r.Outcome,
		Reason:      r.Reason,
		ApprovalTTL: r.ExpiresIn,
		GrantTTL:    r.GrantExpiresIn,
		ForbidEdits: r.ForbidEdits,
	}
	if out.Reason == "" {
		out.Reason = fmt.Sprintf("The rule %q says %s.", r.Name, strings.ReplaceAll(string(r.Outcome), "_", " "))
	}
	if r.Outcome != policy.RequireApproval {
		return out, nil
	}
	out.Kind = r.Kind
	var err error
	if out.Presentation, err = e.document(r, "presentation", r.presentation); err != nil {
		return policy.Ruling{}, err
	}
	if out.Capability, err = e.document(r, "capability", r.capability); err != nil {
		return policy.Ruling{}, err
	}
	return out, nil
}

// document evaluates the expressions of a presentation or capability; nil if there are none.
func (e *evaluation) document(r *rule, name string, f fields) (json.RawMessage, error) {
	if len(f.keys) == 0 {
		return nil, nil
	}
	values := make([]ref.Val, len(f.keys))
	for i, p := range f.programs {
		v, err := e.eval(p)
		if err != nil {
			return nil, unusable(r, name+"."+f.keys[i], err)
		}
		values[i] = v
	}
	doc, err := document(f.keys, values)
	if err != nil {
		return nil, unusable(r, name, err)
	}
	return doc, nil
}

func unusable(r *rule, field string, err error) error {
	return policy.ErrRuling.Say("The %s of the rule %q cannot be evaluated (%s); nothing was run.", field, r.Name, cause(err)).Because(err)
}

// ask is the ruling of a rule that cannot be evaluated.
func ask(r *rule, err error) policy.Ruling {
	return policy.Ruling{
		Outcome: policy.RequireApproval,
		Reason:  fmt.Sprintf("The rule %q could not be evaluated (%s), so a person has to decide.", r.Name, cause(err)),
	}
}

// cause is an error of an expression as people read it. It may hold argument text.
func cause(err error) string {
	return strings.ToValidUTF8(shorten(err.Error(), 300), "\uFFFD")
}
