package cli

import (
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
)

// answer prints what a call came to and says with which code the command ends.
func (a *app) answer(tool string, conf *config.Config, res call.Result, err error) error {
	var parked *call.PendingError
	if errors.As(err, &parked) {
		a.tellParked(parked)
		return exitCode(exitParked)
	}
	if err != nil {
		return err
	}
	var schema []byte
	if t, err := conf.Tools.Lookup(tool); err == nil {
		schema = t.InputSchema
	}
	m := a.newMask(schema, res.Args)
	if res.Status == call.Invalid && conf.Path == "" {
		res.Message += " No configuration was found: run placet init, or give --config FILE."
	}
	a.tellResult(tool, res, m)
	if res.Failed() {
		return exitCode(exitFailed)
	}
	return nil
}

func (a *app) tellParked(p *call.PendingError) {
	if a.json {
		a.emit(pendingObject{
			Status: call.Pending, ApprovalID: p.ApprovalID, CallID: p.CallID, RunID: p.RunID, Digest: p.Digest, ExpiresAt: stamp(p.ExpiresAt),
		})
		return
	}
	a.say("%s has not run: it waits for a person.", own(p.Tool))
	a.say("  approval   %s", own(p.ApprovalID))
	a.say("  call       %s", own(p.CallID))
	a.say("  run        %s", own(p.RunID))
	a.say("  digest     %s", own(p.Digest))
	a.say("  expires    %s", own(orNever(p.ExpiresAt)))
	a.say("")
	a.say("Look at it:  %s", own(a.withGlobals("show", p.ApprovalID)))
	a.say("Agree:       %s", own(a.withGlobals("approve", p.ApprovalID)))
	a.say("Run it:      %s", own(a.withGlobals("resume", p.ApprovalID)))
}

func (a *app) tellResult(tool string, res call.Result, m *display.Mask) {
	switch {
	case a.json && res.Status == call.Succeeded:
		a.emit(succeededObject{Status: res.Status, CallID: res.CallID, RunID: res.RunID, Result: jsonOrNone(m.Scrub, res.Value)})
	case a.json:
		a.emit(failedObject{Status: res.Status, CallID: res.CallID, Kind: res.Kind, Message: m.Text(res.Message)})
	default:
		a.sayResult(tool, res, m)
	}
}

func (a *app) sayResult(tool string, res call.Result, m *display.Mask) {
	a.say("%s %s", own(tool), safe(inWords(res)))
	if res.CallID != "" {
		a.say("  call       %s", own(res.CallID))
	}
	if res.Kind != "" {
		a.say("  kind       %s", own(res.Kind))
	}
	if res.Message != "" {
		a.say("  message    %s", a.excerpt(m.Text(res.Message)))
	}
	if res.Edited {
		a.say("  edited     it ran with a reviewer's arguments")
	}
	if res.Status == call.Succeeded {
		a.say("  result     %s", safe(m.Value(m.Scrub(res.Value))))
	}
	if res.Status == call.Unknown && res.ApprovalID != "" {
		a.say("  approval   %s", own(res.ApprovalID))
	}
}

func inWords(res call.Result) string {
	switch res.Status {
	case call.Succeeded:
		return "ran, and succeeded."
	case call.Failed:
		if res.Kind == call.KindNotStarted {
			return "was not started, so it had no effect."
		}
		return "ran, and failed."
	case call.Unknown:
		return "was started, and it is not known whether it had its effect. It is not run again without a new yes."
	case call.Denied:
		return "did not run: it was denied."
	case call.Expired:
		return "did not run: the time to agree, or to act on it, is over."
	case call.Cancelled:
		return "did not run: it was cancelled."
	case call.Invalid:
		return "was not called: the request cannot be used."
	case call.Pending:
		return "did not run, and its approval is not used up."
	}
	return "is " + string(res.Status) + "."
}

// remaining is how much of a wait is left.
func remaining(until time.Time) time.Duration { return max(0, time.Until(until)) }
