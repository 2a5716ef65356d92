package review

import (
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/tool"
)

// LongText is how many characters of one text are shown before it has to be opened, and
// ManyNodes how many members of one object or array.
const (
	LongText  = 600
	ManyNodes = 100
)

// IsLong reports whether a document has a value that is shown in part until it is opened.
func IsLong(n display.Node) bool {
	if n.Kind == display.String && cutText(n.Text) || cutText(n.Name) || len(n.Nodes) > ManyNodes {
		return true
	}
	for _, one := range n.Nodes {
		if IsLong(one) {
			return true
		}
	}
	return false
}

func cutText(s string) bool {
	_, _, cut := display.HeadTail(s, LongText)
	return cut > 0
}

// Args is what would run, for display.
func (a Approval) Args() display.Node {
	if a.args == nil {
		return a.Mask.Tree(a.RunArgs())
	}
	return *a.args
}

// Title is what a reviewer is asked.
func (a Approval) Title() string {
	switch {
	case !a.Decidable():
		return "An approval"
	case a.Kind == decision.KindInterrupted:
		return "Run it again?"
	case a.Request.Node != "":
		return "Go on with this plan?"
	}
	return "Approve this call?"
}

// RunsTitle is what is said above the arguments: they will run, did, or never can.
func (a Approval) RunsTitle() string {
	switch {
	case a.Decidable() || a.Granted():
		return "What will run"
	case a.Status == decision.Consumed && a.Choice == decision.ChoiceApprove:
		return "What ran"
	}
	return "What was asked for"
}

// Goal is what the run that asks is for, in the words of whoever started it, and Said why its
// agent wants this step, in a model's. Both are without secrets, and empty for none.
func (a Approval) Goal() string {
	if a.Run == nil || a.unsaid {
		return ""
	}
	return a.Mask.Text(a.Run.Goal)
}

// Said is as [Approval.Goal] says.
func (a Approval) Said() string {
	if a.Step == nil || a.unsaid {
		return ""
	}
	return a.Mask.Text(a.Step.Said)
}

// Then says what a yes will start, before it is given.
func (a Approval) Then() string {
	switch a.Way {
	case ByDaemon:
		return "Once it is approved the daemon carries it out."
	case ByReserver:
		return "Once it is approved the program that asked carries it out."
	case ByStarter:
		return "A yes starts nothing here: whoever started the run goes on with it."
	}
	return "A yes starts nothing here: whoever asked goes on with it."
}

// Subject is what it is about: the tool, or the plan's node.
func (a Approval) Subject() string {
	if a.Tool != "" {
		return a.Tool
	}
	return a.Node
}

// Door is the way that the request came in by.
func (a Approval) Door() string {
	switch origin := a.Metadata["origin"]; {
	case origin == "http":
		return "the HTTP API"
	case origin != "":
		return origin
	}
	switch {
	case a.Run != nil && a.Run.Flow.Name != "":
		return "a plan"
	case a.Run != nil:
		return "an agent's run"
	}
	return "a program on the store itself"
}

// OwnWords reports whether reason and presentation are Placet's and not a policy's.
func (a Approval) OwnWords() bool { return a.Kind == decision.KindInterrupted }

// Standing is where an approval stands, in a word or two.
func (a Approval) Standing() string {
	if a.Status == decision.Pending && a.Moot != nil && !a.Overdue {
		return "no longer needed"
	}
	return StandingOf(a.Decision, a.Overdue)
}

// Standing is where a question stands, in a word or two.
func (q Question) Standing() string {
	switch {
	case q.Status != decision.Pending || q.Overdue:
	case q.Moot != nil:
		return "no longer needed"
	case q.Altered != nil:
		return "cannot be answered"
	}
	return StandingOf(q.Decision, q.Overdue)
}

// StandingOf is where a decision stands, to somebody who does not know the record's words:
// that a yes was spent, or a no passed on, is told by what happened next.
func StandingOf(d decision.Decision, overdue bool) string {
	switch {
	case d.Type == decision.Question && d.Choice != "":
		return "answered"
	case d.Status == decision.Superseded:
		return "replaced"
	case d.Choice == decision.ChoiceApprove:
		return "approved"
	case d.Choice != "":
		return "rejected"
	case d.Status == decision.Pending && overdue:
		return "expired"
	case d.Status == decision.Pending && !d.Open:
		return "no longer needed"
	case d.Status == decision.Pending:
		return waits
	case d.Status == decision.Withdrawn:
		return "taken back"
	}
	return string(d.Status)
}

// Next says what becomes of it now, and with which words for placet a person goes on with
// it; nil: somebody else does, or nobody.
func (a Approval) Next() (text string, command []string) {
	if a.Granted() && (a.Call == nil || a.Call.Status != call.Running) {
		return a.goesOn()
	}
	return a.became(), nil
}

func (a Approval) became() string {
	switch {
	case a.Call != nil && a.Call.Status == call.Running:
		return "It is running now."
	case a.Status == decision.Consumed && a.Choice == decision.ChoiceApprove && a.Call != nil:
		return outcome(a.Call.Status)
	case a.Status == decision.Approved && !a.Open:
		return "It was approved, and what waited for it has ended otherwise. It will not run."
	case a.Status == decision.Approved:
		return "The yes is too old to be used. It will not run."
	case a.Choice == decision.ChoiceReject && a.Doubtful:
		return "It will not be run again."
	case a.Choice == decision.ChoiceReject && a.Run != nil:
		return "It will not run, and the run that asked is cancelled."
	case a.Choice == decision.ChoiceReject:
		return "It will not run."
	case a.Status == decision.Superseded:
		return "Another approval took its place. This one can never run."
	case a.Status == decision.Pending && a.Moot != nil:
		return "What waited for it has ended. There is nothing to decide any more."
	}
	return "It will not run."
}

func (a Approval) goesOn() (text string, command []string) {
	began := "Nothing has run yet. "
	if a.Doubtful {
		began = "It may have run already. "
	}
	switch a.Way {
	case ByDaemon:
		return began + "The daemon goes on with it by itself.", nil
	case ByReserver:
		return began + "The program that asked carries it out itself.", nil
	case ByStarter:
		return began + "Whoever started the run goes on with it:", []string{"run", "resume", a.Owner.ID}
	}
	return began + "Whoever asked goes on with it:", []string{"resume", a.ID}
}

func outcome(s call.Status) string {
	switch s {
	case call.Succeeded:
		return "It ran, and succeeded."
	case call.Failed:
		return "It ran, and failed."
	case call.Unknown:
		return "It was started, and nobody knows yet what became of it."
	}
	return "It ended: " + PlainWord(string(s)) + "."
}

// Effect tells what a tool's side effect means.
func Effect(sideEffect string) string {
	return map[string]string{
		"read_only":       "It reads and changes nothing.",
		"local_mutation":  "It changes something on the machine where it runs.",
		"remote_mutation": "It changes something elsewhere, such as another company's records.",
		"destructive":     "It deletes or overwrites something that may not come back.",
	}[sideEffect]
}

// EffectWords is a side effect in a few words.
func EffectWords(sideEffect string) string { return tool.SideEffect(sideEffect).Words() }

// KindWords is an approval's kind in a few words. It is the policy's, and mostly the name of
// the tool's side effect.
func KindWords(kind string) string {
	if kind == decision.KindInterrupted {
		return "to run again"
	}
	return EffectWords(kind)
}

// StatusWord is where a run, step, call or job stands, in the same word for the same state of
// each of them.
func StatusWord(status string) string {
	if w, ok := statusWords[status]; ok {
		return w
	}
	return strings.ToLower(PlainWord(status))
}

var statusWords = map[string]string{
	"pending": waits, "WAITING_FOR_APPROVAL": waits, "awaiting_approval": waits, // of a call, a run and a step
	"deciding": "agent is asked", "executing": "running", "unknown": "outcome unknown",
	"launching": "starting", "timeout": "out of time", "orphaned": "lost", "resolved": "answered",
}

// waits is said of whatever waits for a person.
const waits = "waits"

// PlainWord is one of our words with its underscores as spaces.
func PlainWord(s string) string { return strings.ReplaceAll(s, "_", " ") }

// UTC is an instant in full; never for none.
func UTC(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05") + " UTC"
}

// Until is the time that is left, in words.
func Until(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return "does not expire"
	case left < 0:
		return "its time is over"
	default:
		return "in " + Span(left)
	}
}

// Ago is how long ago something was, in words.
func Ago(at, now time.Time) string {
	if d := now.Sub(at); d >= time.Minute {
		return Span(d) + " ago"
	}
	return "just now"
}

// Span is a time in words: its two largest units, of which the smaller is left out where
// it says little.
func Span(d time.Duration) string {
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of && u.of != time.Second {
			continue
		}
		n := d / u.of
		if i+1 == len(units) {
			return fmt.Sprintf("%d %s", n, u.name)
		}
		rest := (d - n*u.of) / units[i+1].of
		if rest == 0 || i >= 2 && n >= 10 {
			return fmt.Sprintf("%d %s", n, u.name)
		}
		return fmt.Sprintf("%d %s %d %s", n, u.name, rest, units[i+1].name)
	}
	return ""
}
