package view

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/run"
)

// RunList is a page of runs, newest first.
type RunList struct {
	At         time.Time
	Runs       []run.Object
	Granted    map[string]bool // approvals to which people said yes, and that nobody has gone on with
	Statuses   []Option
	Filtered   bool
	Back, Next string
	Room       *Room
}

// Run is the page of one run, with some of its steps.
type Run struct {
	run.Object
	At         time.Time
	Mask       *display.Mask
	Granted    *Approval // that it waits for although people said yes; nil: none
	Room       *Room
	One        int64 // the index of the one step that is shown; 0: it is a page of several
	Back, Next string
}

// Calls is the page of a run id that only groups calls.
type Calls struct {
	RunID      string
	Calls      []call.Call
	Back, Next string
}

// runTo is a run's page. Its id may be its starter's choice.
func runTo(id string) string { return "/runs/" + url.PathEscape(id) }

func (r Run) stepTo(index int64) string { return fmt.Sprintf("%s?step=%d", runTo(r.RunID), index) }

// standing is where a run stands. One whose step was approved waits for no person any more.
func standing(r run.Object, granted bool) string {
	if granted {
		return "approved"
	}
	return string(r.Status)
}

// stepStanding is where one of its steps stands.
func (r Run) stepStanding(st run.StepObject) string {
	if r.Granted != nil && st.ApprovalID == r.PendingApproval {
		return "approved"
	}
	return string(st.Status)
}

func (r Run) backWord() string {
	if r.One != 0 {
		return "The one before"
	}
	return "First steps"
}

// runBy is what makes a run's decisions.
func runBy(o run.Object) string {
	switch {
	case o.Flow != "":
		return "plan " + o.Flow
	case o.Agent != "":
		return "agent " + o.Agent
	}
	return ""
}

// why is why a run ended, in words.
func why(r run.Reason) string {
	if w, ok := reasons[r]; ok {
		return w
	}
	return capital(review.PlainWord(string(r))) + "."
}

var reasons = map[run.Reason]string{
	run.GoalCompleted: "The agent said that it is done.", run.GoalFailed: "The agent gave up.",
	run.LimitSteps: "It had all the steps that it may take.", run.LimitActiveTime: "It was worked on for as long as it may be.",
	run.LimitElapsedTime: "Its time since the start was over.", run.LimitModelCalls: "The model was asked as often as it may be.",
	run.LimitTokens: "It had all the tokens that it may use.", run.LimitCost: "It cost as much as it may.",
	run.RepeatedFailures: "Too many tools failed in a row.", run.LoopDetected: "The agent wanted the same again and again.",
	run.PolicyAbort: "The policy ended it.", run.ToolAbort: "A tool ended it.",
	run.ApprovalRejected: "A person said no.", run.ApprovalExpired: "Nobody answered in time.", run.OperatorCancelled: "A person ended it.",
	run.ReconcileConflict: "What was recorded of a step and what its tool did do not go together.",
	run.AgentError:        "The agent failed.", run.ModelUnavailable: "The model could not be reached.", run.InternalError: "Something failed inside Placet.",
}

// bound is a limit of a run with how much of it is used.
type bound struct {
	name, used, most, left string
	part                   float64 // of it that is used; below 0: it is not on
}

func (r Run) bounds() []bound {
	l, u := r.Limits, r.Usage
	elapsed := r.At.Sub(at(r.CreatedAt))
	if end := at(r.FinishedAt); !end.IsZero() {
		elapsed = end.Sub(at(r.CreatedAt))
	}
	number := func(n int64) string { return display.Count(int(n)) }
	bs := []bound{
		boundOf("Steps", r.StepCount, l.MaxSteps, number),
		boundOf("Worked on", r.ActiveMS, l.MaxActiveTime.Milliseconds(), inTime),
		boundOf("Since the start", elapsed.Milliseconds(), l.MaxElapsedTime.Milliseconds(), inTime),
		boundOf("Times the model was asked", u.ModelCalls, l.MaxModelCalls, number),
		boundOf("Tokens", u.Tokens, l.MaxTotalTokens, number),
		boundOf("Cost", int64(u.Cost), int64(l.MaxEstimatedCost), func(n int64) string { return run.Cost(n).String() }),
	}
	kept := bs[:0]
	for _, b := range bs {
		if b.part >= 0 || b.used != "0" {
			kept = append(kept, b)
		}
	}
	return kept
}

func boundOf(name string, used, most int64, text func(int64) string) bound {
	b := bound{name: name, used: text(used), part: -1}
	if most > 0 {
		b.most, b.left, b.part = text(most), text(max(0, most-used)), min(1, float64(used)/float64(most))
	}
	return b
}

func inTime(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return review.Span(time.Duration(ms) * time.Millisecond)
}

// rulings are what a policy says of a step.
var rulings = map[string]string{
	"allow": "The policy allowed it.", "require_approval": "The policy asks a person.", "deny": "The policy refused it.", "abort": "The policy ended the run.",
}

func ruling(r *run.Ruling) string {
	if w, ok := rulings[string(r.Outcome)]; ok {
		return w
	}
	return "The policy ruled: " + review.PlainWord(string(r.Outcome)) + "."
}

// toldOf is what the agent is told of a step.
func toldOf(o *run.ObservationObject) string {
	return map[run.ObservationKind]string{
		run.ToolResult: "The agent was given the tool's result.", run.ToolError: "The agent was told that the tool failed.",
		run.PolicyDenied: "The agent was told that the policy refused it.", run.InvalidDecision: "What the agent wanted was no valid step.",
		run.WasInterrupted: "The agent was told that the step was interrupted.",
	}[o.Kind]
}

// version of the facts of a run, and of what is listed of it.
func (r Run) version() string {
	return fmt.Sprint(r.Status, r.StepCount, r.PendingApproval, r.Usage, r.Granted != nil)
}

func (r Run) stepsVersion() string {
	var b strings.Builder
	for _, s := range r.Steps {
		b.WriteString(s.StepID + " ")
	}
	return b.String() + r.Next
}

func (r Run) stepVersion(s run.StepObject) string {
	return fmt.Sprint(r.stepStanding(s), s.ApprovalID, s.CallID, s.FinishedAt, s.Observation != nil)
}

func stepMost(r Run) int {
	if r.One != 0 {
		return byItself
	}
	return besideOthers
}

func wholeStep(r Run, s run.StepObject) string {
	if r.One != 0 {
		return ""
	}
	return r.stepTo(s.Index)
}
