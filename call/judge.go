package call

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// verdict is what the judging came to and what it was judged on. The
// transaction that acts on it compares the latter (design §4, rule 1).
type verdict struct {
	refuse *refusal           // nothing starts and nothing is asked
	ask    *decision.Decision // what to ask a person; nil: start
	answer *decision.Answer   // to ask, where the port answers at once
	ttl    time.Duration      // how long ask may stay pending; 0: no limit
	args   []byte             // what runs
	edited bool               // and it is not what was first asked for

	ruling        policy.Ruling // on the request as it was asked for; empty where a gate before the policy refused
	policyVersion string
	specDigest    string
}

// refusal says why a gate stopped the request.
type refusal struct {
	kind    Kind
	message string
}

// judge is the gates: guards, policy, approval port. It runs foreign code, so it
// holds no transaction; everything it is given is a copy.
func (e *Executor) judge(ctx context.Context, s subject) (verdict, error) {
	v := verdict{policyVersion: policy.VersionOf(e.conf.Policy), specDigest: s.tool.SpecDigest(), args: s.call.Args}
	if s.grant != nil {
		return e.judgeGrant(ctx, s, v)
	}
	if s.attempt != nil {
		return e.judgeRepeat(ctx, s, v)
	}
	if r, err := e.peekGuards(ctx, s); r != nil || err != nil {
		v.refuse = r
		return v, err
	}
	return e.judgeFresh(ctx, s, v)
}

func (e *Executor) judgeFresh(ctx context.Context, s subject, v verdict) (verdict, error) {
	ru, err := e.rule(ctx, s, s.call.Args)
	if err != nil {
		return v, err
	}
	v.ruling = ru
	if v.refuse = denies(ru); v.refuse != nil || ru.Outcome == policy.Allow {
		return v, nil
	}
	if v, err = e.askFor(s, v, s.call.Args, ru, nil); err != nil {
		return v, err
	}
	if v.answer, err = e.conf.Approval.answer(ctx, *v.ask); err != nil || v.answer == nil {
		return v, err
	}
	if v.answer.Approved && v.answer.EditedArgs != nil {
		return e.judgeEdited(ctx, s, v)
	}
	return v, nil
}

// judgeEdited looks at arguments that a port's answer changed on the spot.
func (e *Executor) judgeEdited(ctx context.Context, s subject, v verdict) (verdict, error) {
	v.args, v.edited = v.answer.EditedArgs, true
	if err := s.tool.CheckArgs(v.args); err != nil {
		v.refuse = &refusal{KindInvalidArguments, err.Error()}
		return v, nil
	}
	ru, err := e.rule(ctx, s, v.args)
	if err != nil {
		return v, err
	}
	if v.refuse = denies(ru); v.refuse == nil && ru.Outcome != policy.Allow && !sameAuthority(*v.ask, s, ru, v.args) {
		v.refuse = &refusal{KindPolicyDenied, "The edited arguments need another approval than the one that was given. Make the call with them instead."}
	}
	return v, nil
}

// judgeGrant is the gates on the way to spending a yes (spec 2.2). Anything but
// going on leaves the grant unspent.
func (e *Executor) judgeGrant(ctx context.Context, s subject, v verdict) (verdict, error) {
	g := s.grant
	asked, edited, err := s.recorded(*g)
	if err != nil {
		return v, err
	}
	v.args, v.edited = asked, edited
	if g.EditedArgs != nil {
		v.args, v.edited = g.EditedArgs, true
	}
	if g.Kind == decision.KindInterrupted && g.SpecDigest != s.tool.SpecDigest() {
		// The runtime asked, not the policy: no ruling stands in for a yes to another tool.
		return e.doubtAnew(s, v)
	}
	if r, err := e.gate(ctx, s, asked, v.args); r != nil || err != nil {
		v.refuse = r
		return v, err
	}
	ru, err := e.rule(ctx, s, asked)
	if err != nil {
		return v, err
	}
	v.ruling = ru
	if v.refuse = denies(ru); v.refuse != nil {
		return v, nil
	}
	if ru.Outcome == policy.RequireApproval {
		met, err := e.meets(s, asked, ru)
		if forbidden := g.EditedArgs != nil && ru.ForbidEdits; err != nil || !met || forbidden {
			return e.askFor(s, v, asked, ru, err)
		}
	}
	if g.EditedArgs == nil {
		return v, nil
	}
	if ru, err = e.rule(ctx, s, g.EditedArgs); err != nil {
		return v, err
	}
	if v.refuse = denies(ru); v.refuse != nil || ru.Outcome == policy.Allow || sameAuthority(*g, s, ru, g.EditedArgs) {
		return v, nil
	}
	return e.askFor(s, v, g.EditedArgs, ru, nil)
}

// recorded is the arguments that a record asked about: the call's own bytes, or
// others, where they were edited before it was asked.
func (s subject) recorded(d decision.Decision) (args []byte, edited bool, err error) {
	req, err := request.Decode(d.Request)
	if err != nil {
		return nil, false, err
	}
	// The request holds them without the white space around them.
	if bytes.Equal(req.Args, bytes.Trim(s.call.Args, " \t\r\n")) {
		return s.call.Args, false, nil
	}
	return req.Args, true, nil
}

// granted is the arguments that a yes to d lets run.
func (s subject) granted(d decision.Decision) (args []byte, edited bool, err error) {
	if d.EditedArgs != nil {
		return d.EditedArgs, true, nil
	}
	return s.recorded(d)
}

// judgeRepeat is the gates before an attempt is repeated under the tool's
// declared idempotency key: the policy has to agree as it did the first time.
func (e *Executor) judgeRepeat(ctx context.Context, s subject, v verdict) (verdict, error) {
	if err := s.unaltered(); err != nil {
		return v, err
	}
	v.args, v.edited = s.attempt.ran(s.call), s.attempt.Args != nil
	if r, err := e.gate(ctx, s, v.args); r != nil || err != nil {
		v.refuse = r
		return v, err
	}
	ru, err := e.rule(ctx, s, v.args)
	if err != nil {
		return v, err
	}
	v.ruling = ru
	if v.refuse = denies(ru); v.refuse != nil {
		return v, nil
	}
	if p := s.paid; p != nil && !p.GrantExpiresAt.IsZero() && s.life.clock.After(p.GrantExpiresAt) {
		return e.doubtAnew(s, v) // the yes that it ran on would be too old by now
	}
	if ru.Outcome == policy.Allow {
		return v, nil
	}
	met, err := e.meetsSpent(s, v.args, ru)
	if err != nil || !met {
		return e.askFor(s, v, v.args, ru, err)
	}
	return v, nil
}

// gate holds recorded arguments against the schema registered now, and the guards.
func (e *Executor) gate(ctx context.Context, s subject, args ...[]byte) (*refusal, error) {
	for i, a := range args {
		if i > 0 && bytes.Equal(a, args[i-1]) {
			continue
		}
		if err := s.tool.CheckArgs(a); err != nil {
			return &refusal{KindInvalidArguments, "The recorded arguments do not fit the tool as it is registered now. " + err.Error()}, nil
		}
	}
	return e.peekGuards(ctx, s)
}

// doubtAnew makes v ask the runtime's own question again.
func (e *Executor) doubtAnew(s subject, v verdict) (verdict, error) {
	var err error
	v.ask, v.ttl, err = e.doubtQuestion(s)
	return v, err
}

// askFor makes v ask a person what the ruling wants asked.
func (e *Executor) askFor(s subject, v verdict, args []byte, ru policy.Ruling, err error) (verdict, error) {
	if err != nil {
		return v, err
	}
	v.ttl = decision.Shorter(ru.ApprovalTTL, e.approvalTTL(s))
	v.ask, err = e.approvalUnder(s, args, ru)
	return v, err
}

func denies(ru policy.Ruling) *refusal {
	switch ru.Outcome {
	case policy.Deny:
		return &refusal{KindPolicyDenied, reasonOr(ru.Reason, "The policy does not allow this call.")}
	case policy.Abort: // a call outside a run has nothing to abort
		return &refusal{KindPolicyAbort, reasonOr(ru.Reason, "The policy does not allow this call.")}
	}
	return nil
}

func reasonOr(reason, otherwise string) string {
	if reason == "" {
		return otherwise
	}
	return reason
}

// rule asks the policy about the call with these arguments. A tool marked
// Confirm turns allow into require approval.
func (e *Executor) rule(ctx context.Context, s subject, args []byte) (ru policy.Ruling, err error) {
	req := s.request(bytes.Clone(args))
	view := policy.View{
		Now: e.now(), Principal: s.call.Principal, RunID: s.call.RunID, Metadata: maps.Clone(s.call.Metadata),
		Goal: s.site.Goal, Step: s.site.Index,
	}
	defer func() {
		if p := recover(); p != nil {
			err = policy.ErrFailed.Say("The policy panicked; nothing was run.").Because(fmt.Errorf("panic: %v", p))
		}
	}()
	ru, err = e.conf.Policy.Evaluate(ctx, req, view)
	if err != nil {
		return ru, policy.ErrFailed.Because(err)
	}
	if ru, err = ru.Complete(request.Request{Tool: s.tool.Spec, Args: args}); err != nil {
		return ru, err
	}
	if ru.Outcome == policy.Allow && s.tool.Confirm {
		ru.Outcome = policy.RequireApproval
		ru.Reason = fmt.Sprintf("The tool %q is marked confirm: a person is always asked.", s.tool.Name)
	}
	switch {
	case !txn.IsText(ru.Reason) || !txn.IsText(ru.Kind):
		return ru, policy.ErrRuling.Say("The policy's reason or kind is not valid text; nothing was run.").Hint("Let the policy write both in UTF-8, without NUL.")
	case ru.Kind == decision.KindInterrupted:
		return ru, policy.ErrRuling.Say("The policy answered the kind %q, which is the runtime's own; nothing was run.", ru.Kind)
	}
	return ru, nil
}

func (e *Executor) now() time.Time {
	if e.conf.Now != nil {
		return e.conf.Now().UTC().Truncate(time.Microsecond)
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

func (s subject) request(args []byte) request.Request {
	spec := s.tool.Spec
	spec.InputSchema = bytes.Clone(spec.InputSchema)
	return request.Request{RunID: s.call.RunID, CallID: s.call.approvedAs(), StepID: s.call.StepID, Tool: spec, Args: args}
}

// requestJSON is the request as it is hashed, with the tool's encoding at hand.
func (s subject) requestJSON(args []byte) ([]byte, error) {
	return request.Request{
		RunID: s.call.RunID, CallID: s.call.approvedAs(), StepID: s.call.StepID, Tool: s.tool.Spec, Args: args,
	}.JSONWith(s.tool.SpecJSON())
}
