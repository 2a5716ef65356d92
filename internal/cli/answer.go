package cli

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// answer prints what a call came to and says with which code the command ends.
func (a *app) answer(ctx context.Context, st *store.Store, name string, conf *config.Config, res call.Result, err error) error {
	var parked *call.PendingError
	if errors.As(err, &parked) {
		a.tellParked(ctx, st, parked)
		return exitCode(exitParked)
	}
	if err != nil {
		return err
	}
	var schema []byte
	t, missing := conf.Tools.Lookup(name)
	if missing == nil {
		schema = t.InputSchema
	}
	m := a.newMask(schema, res.Args)
	switch {
	case res.Status == call.Invalid && missing != nil:
		a.tellResult(name, "was not called: there is no such tool.", withAdvice(res, conf, missing), m)
	case res.Status == call.Unknown:
		a.tellUnknown(name, res, m, a.wayOn(ctx, st, t, res))
	default:
		a.tellResult(name, inWords(res), res, m)
	}
	if res.CallID != "" {
		a.sayWhere(thisProcess, "")
	}
	if res.Failed() {
		return exitCode(exitFailed)
	}
	return nil
}

// withAdvice says in a result what to do about a tool that is not there.
func withAdvice(res call.Result, conf *config.Config, missing error) call.Result {
	f := faultOf(noTool(conf, missing))
	res.Message = f.Message + " " + f.Advice
	return res
}

func (a *app) tellParked(ctx context.Context, st *store.Store, p *call.PendingError) {
	if a.json {
		o := pendingObject{
			Status: call.Pending, ApprovalID: p.ApprovalID, CallID: p.CallID, RunID: p.RunID, Digest: p.Digest, ExpiresAt: stamp(p.ExpiresAt), Where: thisProcess,
		}
		if p.MayHaveRun {
			o.Kind = decision.KindInterrupted
		}
		a.emit(o)
		return
	}
	defer a.sayWhere(thisProcess, "")
	if p.MayHaveRun {
		a.say("%s may have run already; running it again waits for a person.", own(p.Tool))
	} else {
		a.say("%s has not run: it waits for a person.", own(p.Tool))
	}
	a.say("  approval   %s", own(p.ApprovalID))
	if s, err := readApproval(context.WithoutCancel(ctx), st, p.ApprovalID); err == nil && replacedWords(s) != "" {
		a.say("  replaces   %s", own(replacedWords(s)))
	}
	a.say("  call       %s", own(p.CallID))
	if !id.Has(id.Run, p.RunID) { // nobody chose that one, and it groups nothing but this call
		a.say("  run        %s", own(p.RunID))
	}
	a.say("  digest     %s", own(p.Digest))
	a.say("  expires    %s", own(orNever(p.ExpiresAt)))
	a.say("")
	a.say("Look at it:  %s", own(a.withGlobals("show", p.ApprovalID)))
	a.say("Agree:       %s", own(a.withGlobals("approve", p.ApprovalID)))
	if p.MayHaveRun {
		a.say("Run again:   %s", own(a.withGlobals("resume", p.ApprovalID)))
		return
	}
	a.say("Run it:      %s", own(a.withGlobals("resume", p.ApprovalID)))
}

// wayOn is how a call of unknown outcome goes on.
type wayOn struct {
	open     string // the approval that a person can decide, or that a resume uses
	asksTool bool   // its tool can tell what became of it
	repeats  bool   // its tool can be called again without another effect
	refused  bool   // nobody agreed to run it again
}

func (a *app) wayOn(ctx context.Context, st *store.Store, t *tool.Tool, res call.Result) wayOn {
	w := wayOn{asksTool: t != nil && t.Probe != nil, repeats: t != nil && t.Idempotent}
	if res.ApprovalID == "" {
		return w
	}
	s, err := readApproval(context.WithoutCancel(ctx), st, res.ApprovalID)
	switch {
	case err != nil:
	case s.Status == decision.Pending || s.Status == decision.Approved:
		w.open = s.ID
	default:
		w.refused = notAgain(s.Decision)
	}
	return w
}

// notAgain reports whether the last word on running a call again was a no, or none in time.
func notAgain(d decision.Decision) bool {
	switch d.Status {
	case decision.Rejected, decision.Expired, decision.Withdrawn:
		return true
	case decision.Consumed:
		return d.Choice == decision.ChoiceReject
	}
	return false
}

func (a *app) tellUnknown(name string, res call.Result, m *display.Mask, w wayOn) {
	if a.json {
		a.emit(unknownObject{Status: res.Status, ApprovalID: w.open, CallID: res.CallID, RunID: res.RunID, Kind: res.Kind, Message: m.Text(res.Message), editedObject: editedOf(res, m), Where: thisProcess})
		return
	}
	words := "was started, and it is not known whether it had its effect."
	switch {
	case w.refused:
		words += " Nobody agreed to run it again, so it is not run again."
	case !w.asksTool && !w.repeats:
		words += " It is not run again without a new yes."
	}
	a.sayResult(name, words, res, m)
	switch {
	case w.open != "":
		a.say("")
		a.say("Settle it:   %s", own(a.withGlobals("show", w.open)))
		a.say("             %s", own(a.withGlobals("approve", w.open)))
		a.say("             %s", own(a.withGlobals("resume", w.open)))
	case w.asksTool || !w.refused:
		a.say("Ask again what became of it:  %s", own(a.withGlobals("resume", res.CallID)))
	}
}

func (a *app) tellResult(name, words string, res call.Result, m *display.Mask) {
	switch {
	case a.json && res.Status == call.Succeeded:
		a.emit(succeededObject{Status: res.Status, CallID: res.CallID, RunID: res.RunID, Result: jsonOrNone(m.Scrub, res.Value), editedObject: editedOf(res, m), Where: thisProcess})
	case a.json:
		a.emit(failedObject{Status: res.Status, CallID: res.CallID, Kind: res.Kind, Message: m.Text(res.Message), editedObject: editedOf(res, m), Where: thisProcess})
	default:
		a.sayResult(name, words, res, m)
	}
}

func (a *app) sayResult(name, words string, res call.Result, m *display.Mask) {
	a.say("%s %s", own(name), safe(words))
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
		a.say("  edited     it ran with a reviewer's arguments: %s", safe(m.Brief(res.Args)))
	}
	if res.Status == call.Succeeded {
		a.say("  result     %s", safe(m.Value(m.Scrub(res.Value))))
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
	case call.Denied:
		return "did not run: it was denied."
	case call.Expired:
		return "did not run: the time to agree, or to act on it, is over."
	case call.Cancelled:
		return "did not run: it was cancelled."
	case call.Invalid:
		return "was not called: its arguments do not fit."
	case call.Pending:
		return "did not run, and its approval is not used up."
	}
	return "is " + string(res.Status) + "."
}

// remaining is how much of a wait is left.
func remaining(until time.Time) time.Duration { return max(0, time.Until(until)) }
