package call

import (
	"context"
	"encoding/json"
	"errors"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
)

// ErrEnvelope: a queue message is not one that Handle understands.
var ErrEnvelope = fault.Sentinel(fault.Invalid, "invalid_envelope", "This is not an envelope.")

const envelopeForms = `Write {"v":1,"approval_id":…} or {"v":1,"run_id":…,"call_id":…,"tool":…,"args":…}.`

// maxEnvelope bounds a queue message, in bytes: arguments and a little more.
const maxEnvelope = 2 << 20

// envelope is a queue message (spec 2.6).
type envelope struct {
	V          int             `json:"v"`
	ApprovalID string          `json:"approval_id"`
	RunID      string          `json:"run_id"`
	CallID     string          `json:"call_id"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
}

// Handle is for consumers of a queue that may deliver a message more than once:
// {v:1, approval_id} resumes, {v:1, run_id, call_id, tool, args} runs a call
// whose ids the sender chose. However often a message comes, the tool runs at
// most once: a repeat returns the recorded result, or [ErrRunning] while it runs.
//
// A message that cannot be understood is [ErrEnvelope]; it will not get better.
func (e *Executor) Handle(ctx context.Context, message []byte) (Result, error) {
	env, err := parseEnvelope(message)
	if err != nil {
		return Result{}, err
	}
	if env.ApprovalID != "" {
		return e.handleApproval(ctx, env.ApprovalID)
	}
	res, err := e.RunCall(ctx, env.RunID, env.CallID, env.Tool, env.Args)
	if !errors.Is(err, ErrAlreadyDecided) {
		return res, err
	}
	s, _, ferr := e.find(ctx, env.RunID, env.CallID, env.Tool, env.Args, nil)
	if ferr != nil || s == nil {
		return res, err
	}
	return e.recorded(*s, err)
}

func (e *Executor) handleApproval(ctx context.Context, approvalID string) (Result, error) {
	res, err := e.Resume(ctx, approvalID, nil)
	if !errors.Is(err, ErrAlreadyDecided) {
		return res, err
	}
	s, rerr := e.read(ctx, approvalID)
	if rerr != nil {
		return res, err
	}
	return e.recorded(s, err)
}

// recorded is the result that stands of a call that was carried out before.
func (e *Executor) recorded(s subject, otherwise error) (Result, error) {
	waits := s.grant == nil || s.grant.Status != decision.Consumed || s.grant.ID != s.call.ApprovalID
	switch {
	case s.call.Status == Running:
		return Result{}, s.call.ErrStillRunning()
	case !s.call.Status.Terminal() && waits: // on something else than this message
		return Result{}, otherwise
	}
	return ResultOf(s.call, s.attempt), nil
}

func parseEnvelope(message []byte) (envelope, error) {
	var env envelope
	if len(message) > maxEnvelope {
		return env, ErrEnvelope.Say("The envelope has %d bytes; the limit is %d.", len(message), maxEnvelope)
	}
	if err := canon.Valid(message); err != nil {
		return env, ErrEnvelope.Say("The envelope is not valid JSON: %s.", err)
	}
	// Keys count exactly as they are written: Args beside args must not win.
	if err := jsonv2.Unmarshal(message, &env, jsonv2.RejectUnknownMembers(true)); err != nil {
		return env, ErrEnvelope.Say("The envelope cannot be read: %s.", err).Hint(envelopeForms)
	}
	return env, env.check()
}

func (env envelope) check() error {
	resume := env.ApprovalID != ""
	run := env.RunID != "" && env.CallID != "" && env.Tool != "" && env.Args != nil
	some := env.RunID != "" || env.CallID != "" || env.Tool != "" || env.Args != nil
	switch {
	case env.V != 1:
		return ErrEnvelope.Say("The envelope has version %d; this program understands 1.", env.V)
	case resume && some || !resume && !run:
		return ErrEnvelope.Say("The envelope names neither just an approval nor a whole call.").
			Hint(envelopeForms)
	}
	return nil
}
