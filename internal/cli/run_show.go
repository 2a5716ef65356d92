package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// wholeRun is a run with what hangs below it.
type wholeRun struct {
	run.Run
	steps     []run.Step
	approvals []decision.Decision // that its steps waited for
	now       time.Time           // when it was read
}

func readRun(ctx context.Context, st *store.Store, runID string) (w wholeRun, err error) {
	err = txn.View(ctx, st, func(tx run.Tx) error {
		r, err := tx.Run(runID)
		if err != nil {
			return err
		}
		w = wholeRun{Run: r, now: tx.Now()}
		if w.steps, err = run.AllSteps(tx, runID); err != nil {
			return err
		}
		return w.readApprovals(tx)
	})
	return w, err
}

func (w *wholeRun) readApprovals(tx run.Tx) error {
	for _, s := range w.steps {
		if s.ApprovalID == "" {
			continue
		}
		d, err := tx.Decision(s.ApprovalID)
		switch {
		case err == nil:
			w.approvals = append(w.approvals, d)
		case !errors.Is(err, decision.ErrNotFound): // one that was altered is shown as it is
			return err
		}
	}
	return nil
}

// runMask is the mask for all that belongs to a run. Its approvals hold the schemas
// of their tools; those of the others are in the configuration, if anywhere.
func (a *app) runMask(conf *config.Config, steps []run.Step, approvals []decision.Decision) *display.Mask {
	m := &display.Mask{}
	for _, d := range approvals {
		m.Teach(requestOf(d).Tool.InputSchema)
	}
	taught := map[string]bool{}
	for _, s := range steps {
		if conf == nil || taught[s.Tool] {
			continue
		}
		taught[s.Tool] = true
		if t, err := conf.Tools.Lookup(s.Tool); err == nil {
			m.Teach(t.InputSchema)
		}
	}
	for _, s := range steps {
		m.Learn([]byte(s.Args))
	}
	a.mask.Share(m)
	return m
}

// known is the configuration where there is one that can be used.
func (a *app) known() *config.Config {
	conf, err := a.load()
	if err != nil {
		return nil
	}
	return conf
}

// runObject is a run as every door writes it, with its secrets masked.
func (a *app) runObject(w wholeRun, withSteps bool) run.Object {
	m := a.runMask(a.known(), w.steps, w.approvals)
	o := maskedRun(w.Object(w.now), m)
	if !withSteps {
		return o
	}
	o.Steps = []run.StepObject{}
	for _, s := range w.steps {
		so := s.Object()
		so.Args, so.Result = jsonOrNone(m.JSON, so.Args), jsonOrNone(m.Scrub, so.Result)
		if so.Observation != nil {
			so.Observation.Message = m.Text(so.Observation.Message)
		}
		if so.Ruling != nil {
			so.Ruling.Reason = m.Text(so.Ruling.Reason)
		}
		o.Steps = append(o.Steps, so)
	}
	return o
}

func maskedRun(o run.Object, m *display.Mask) run.Object {
	o.Goal, o.ReasonDetail, o.Result = m.Text(o.Goal), m.Text(o.ReasonDetail), jsonOrNone(m.Scrub, o.Result)
	return o
}

// tellRun says how a run stands when this process lets go of it, and with which code
// the command ends.
func (a *app) tellRun(ctx context.Context, st *store.Store, runID string) error {
	w, err := readRun(ctx, st, runID)
	if err != nil {
		return err
	}
	if a.json {
		a.emit(placedRun{a.runObject(w, false), thisProcess})
	} else {
		a.sayRun(w)
		a.sayWhere(thisProcess, "")
	}
	switch w.Status {
	case run.Completed:
		return nil
	case run.Waiting:
		return exitCode(exitParked)
	}
	return exitCode(exitFailed)
}

// placedRun is a run with where it was worked on.
type placedRun struct {
	run.Object
	Where doer `json:"where"`
}

func (a *app) sayRun(w wholeRun) {
	m := a.runMask(a.known(), w.steps, w.approvals)
	p := page{a: a, to: a.out, mask: m}
	p.say("Run %s %s", own(w.ID), safe(runWords(w.Run)))
	p.facts([]fact{
		{"goal", p.foreign(w.Goal)},
		{"steps", own(fmt.Sprint(w.StepCount))},
		{"reason", own(w.Reason)},
		{"why", p.foreign(w.Detail)},
		{"result", p.document(w.Result)},
	})
	if w.Status == run.Waiting {
		p.say("  approval   %s", own(w.ApprovalID))
		p.say("  asks for   %s", p.foreign(w.Current.Tool))
		p.say("")
		p.say("Look at it:  %s", own(a.withGlobals("show", w.ApprovalID)))
		p.say("Agree:       %s", own(a.withGlobals("approve", w.ApprovalID)))
	}
	if !w.Status.Terminal() {
		p.say("Go on:       %s", own(a.withGlobals("run", "resume", w.ID)))
		return
	}
	p.say("All of it:   %s", own(a.withGlobals("show", w.ID)))
}

// document is a JSON value of somebody else's on one line.
func (p page) document(s string) safe {
	if s == "" {
		return ""
	}
	return safe(p.mask.Brief(p.mask.Scrub([]byte(s))))
}

func runWords(r run.Run) string {
	switch r.Status {
	case run.Waiting:
		return "waits for a person."
	case run.Completed:
		return "reached its goal."
	case run.Failed:
		return "failed."
	case run.Cancelled:
		return "was cancelled."
	case run.Running:
		if r.LeaseUntil.IsZero() {
			return "was stopped between two steps."
		}
		return "is being worked on."
	}
	return "is " + string(r.Status) + "."
}

func (a *app) showRun(ctx context.Context, st *store.Store, runID string) error {
	w, err := readRun(ctx, st, runID)
	if err != nil {
		return err
	}
	if a.json {
		a.emit(a.runObject(w, true))
		return nil
	}
	a.reviewRun(w)
	return nil
}

// reviewRun shows a run to a person. The last line is ours.
func (a *app) reviewRun(w wholeRun) {
	p := page{a: a, to: a.out, mask: a.runMask(a.known(), w.steps, w.approvals)}
	p.say("Run %s", own(w.ID))
	p.facts([]fact{
		{"status", own(w.Status)},
		{"reason", own(w.Reason)},
		{"why", p.foreign(w.Detail)},
		{"goal", p.foreign(w.Goal)},
		{"result", p.document(w.Result)},
		{"agent", p.foreign(agentWords(w.Agent))},
		{"flow", own(strings.TrimSpace(w.Flow.Name + " " + w.Flow.Version))},
		{"limits", p.document(string(encode(w.Limits)))},
		{"used", own(usageWords(w))},
		{"started", own(stamp(w.CreatedAt) + by(w.Principal))},
		{"ended", own(stamp(w.FinishedAt))},
		{"worked on", own(w.leaseWords())},
		{"approval", own(w.Object(w.now).PendingApproval)},
	})
	for _, s := range w.steps {
		p.step(s)
	}
	p.say("")
	p.say("End of run %s. The lines above may carry text that a model chose; what follows is Placet's own.", own(w.ID))
}

func (w wholeRun) leaseWords() string {
	switch {
	case w.Status != run.Running:
		return ""
	case w.LeaseUntil.IsZero():
		return "by nobody: placet run resume " + w.ID
	case w.now.After(w.LeaseUntil):
		return "by " + w.LeaseOwner + " until " + stamp(w.LeaseUntil) + ", which is over: placet run resume " + w.ID
	}
	return "by " + w.LeaseOwner + " until " + stamp(w.LeaseUntil)
}

func agentWords(ref run.AgentRef) string {
	if ref.Name != "" || len(ref.Argv) == 0 {
		return ref.Name
	}
	words := make([]string, len(ref.Argv))
	for i, w := range ref.Argv {
		words[i] = display.ShellWord(w)
	}
	return strings.Join(words, " ") + ", in " + ref.Dir
}

func usageWords(w wholeRun) string {
	active := w.ActiveAt(w.now).Round(time.Millisecond)
	text := fmt.Sprintf("%s of work, %s", active, count(int(w.Usage.ModelCalls), "model call", "model calls"))
	if w.Usage.Tokens > 0 {
		text += fmt.Sprintf(", %s", count(int(w.Usage.Tokens), "token", "tokens"))
	}
	if w.Usage.Cost > 0 {
		text += ", cost " + w.Usage.Cost.String()
	}
	return text
}

func (p page) step(s run.Step) {
	p.say("")
	p.say("Step %d, %s: %s", s.Index, own(strings.ReplaceAll(string(s.Status), "_", " ")), p.foreign(stepWords(s)))
	policy := string(s.Ruling.Outcome)
	if s.Ruling.Reason != "" {
		policy += ": " + s.Ruling.Reason
	}
	told := string(s.Observation)
	if s.Message != "" {
		told += ": " + s.Message
	}
	p.facts([]fact{
		{"arguments", p.args(s.Args)},
		{"said", p.foreign(s.Said)},
		{"policy", p.foreign(policy)},
		{"told", p.foreign(told)},
		{"result", p.document(s.Result)},
		{"call", own(s.CallID)},
		{"approval", own(s.ApprovalID)},
		{"from", own(stamp(s.StartedAt))},
		{"to", own(stamp(s.FinishedAt))},
	})
}

func (p page) args(s string) safe {
	if s == "" {
		return ""
	}
	return safe(p.mask.Brief([]byte(s)))
}

// stepWords is what the agent decided.
func stepWords(s run.Step) string {
	switch s.Kind {
	case run.CallTool:
		return "call " + s.Tool
	case run.Complete:
		return "the goal is reached"
	case run.Fail:
		return "give up"
	case run.AskApproval:
		return "ask for " + s.Node
	case "":
		return "not decided"
	}
	return string(s.Kind)
}

// follow tells people what a run does while it does it.
func (a *app) follow(e event.Event) {
	if a.json || e.Type != event.StepDecided {
		return
	}
	var p struct{ Kind, Tool string }
	if json.Unmarshal(e.Payload, &p) == nil {
		a.note("placet: the agent decided: %s", stepWords(run.Step{Kind: run.ProposalKind(p.Kind), Tool: p.Tool}))
	}
}
