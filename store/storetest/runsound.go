package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
)

// run checks that a run, its steps, what it waits for and its log agree.
func (k *checker) run(r run.Run) {
	es := k.streams[r.Stream()]
	if len(es) == 0 || es[0].Type != event.RunCreated {
		k.fault(r.ID, "its stream does not begin with its creation")
		return
	}
	if int64(len(es)) != r.Head.Seq {
		k.fault(r.ID, "the head is %d, and there are %d events", r.Head.Seq, len(es))
	}
	k.steps(r)
	k.asked(r)
	k.rests(r)
	if r.Status == run.Waiting {
		k.waits(r)
	}
}

// rests checks what a run's status says of its lease, its end and its last step.
func (k *checker) rests(r run.Run) {
	over, open := r.Status.Terminal(), isOpen(r.Current)
	switch {
	case over != !r.FinishedAt.IsZero() || over != (r.Reason != ""):
		k.fault(r.ID, "it is %s (%s), finished at %s", r.Status, r.Reason, r.FinishedAt)
	case over && open:
		k.fault(r.ID, "it is %s, and its step %d is %s", r.Status, r.Current.Index, r.Current.Status)
	case r.Status != run.Running && (!r.LeaseUntil.IsZero() || !r.ActiveSince.IsZero()):
		k.fault(r.ID, "it is %s, and its lease ends at %s", r.Status, r.LeaseUntil)
	case r.Status == run.Running && r.LeaseUntil.IsZero() && open:
		k.fault(r.ID, "nobody works on it, and its step %d is %s", r.Current.Index, r.Current.Status)
	case (r.Status == run.Waiting) != (r.Current.Status == run.AwaitingApproval):
		k.fault(r.ID, "it is %s, and its step %d is %s", r.Status, r.Current.Index, r.Current.Status)
	}
	ends := k.having(r.ID, event.RunFinished)
	if over != (len(ends) == 1) || len(ends) > 1 {
		k.fault(r.ID, "it is %s, and its log has %d ends", r.Status, len(ends))
		return
	}
	if !over || ends[0].Redacted {
		return
	}
	var told struct{ Status, Reason string }
	if err := json.Unmarshal(ends[0].Payload, &told); err != nil || told.Status != string(r.Status) || told.Reason != string(r.Reason) {
		k.fault(r.ID, "it is %s (%s), its log says %+v", r.Status, r.Reason, told)
	}
}

func isOpen(s run.Step) bool {
	return s.Status == run.Deciding || s.Status == run.AwaitingApproval || s.Status == run.Executing
}

// steps checks that a run's steps are numbered without a gap, that only the last is
// open, and that the run counts them and their failures.
func (k *checker) steps(r run.Run) {
	steps := k.Steps[r.ID]
	if int64(len(steps)) != r.StepCount || r.Usage.ModelCalls < r.StepCount {
		k.fault(r.ID, "%d steps are stored, the run says %d and %d model calls", len(steps), r.StepCount, r.Usage.ModelCalls)
		return
	}
	failures := int64(0)
	for i, s := range steps {
		of := fmt.Sprintf("step %d of %s", s.Index, r.ID)
		last := i == len(steps)-1
		if s.Index != int64(i+1) || s.RunID != r.ID || isOpen(s) && !last {
			k.fault(of, "it stands at %d and is %s", i+1, s.Status)
		}
		if last && s.ID != r.Current.ID {
			k.fault(r.ID, "its last step is %s, it says %s", s.ID, r.Current.ID)
		}
		failures = streak(failures, s)
		k.count(s.ID, 1, event.StepStarted)
		if n := len(k.having(s.ID, event.StepDecided)); (n == 1) != (s.Kind != "") {
			k.fault(of, "it was decided %d times, and proposes %q", n, s.Kind)
		}
		k.step(of, s)
	}
	if !r.Status.Terminal() && r.Failures != failures {
		k.fault(r.ID, "it counts %d failures in a row, its steps have %d", r.Failures, failures)
	}
}

func streak(n int64, s run.Step) int64 {
	switch s.Observation {
	case run.ToolResult:
		return 0
	case run.ToolError, run.PolicyDenied:
		return n + 1
	}
	return n
}

// carried is how a step's call may stand.
var carried = map[run.StepStatus][]call.Status{
	run.Deciding:         {""},
	run.AwaitingApproval: {"", call.Pending, call.Unknown, call.Succeeded, call.Failed},
	run.Executing:        {call.Running, call.Succeeded, call.Failed},
	run.Done:             {"", call.Succeeded},
}

func (k *checker) step(of string, s run.Step) {
	c := k.Calls[s.CallID]
	if s.CallID != "" && (c.StepID != s.ID || c.RunID != s.RunID || c.Tool != s.Tool || c.ArgsDigest != s.ArgsDigest) {
		k.fault(of, "its call %s is of step %s and runs %s", s.CallID, c.StepID, c.Tool)
	}
	if may, limited := carried[s.Status]; limited && !slices.Contains(may, c.Status) {
		k.fault(of, "it is %s, and its call %s is %q", s.Status, s.CallID, c.Status)
	}
	if s.Observation == run.ToolResult && s.CallID != "" && s.Result != string(c.Result) {
		k.fault(of, "its result is %s, its call's %s", s.Result, c.Result)
	}
	if (s.Status == run.Done || s.Status == run.StepFailed) && s.FinishedAt.IsZero() || isOpen(s) && !s.FinishedAt.IsZero() {
		k.fault(of, "it is %s, finished at %s", s.Status, s.FinishedAt)
	}
}

// asked checks that a run and its approvals agree on which is the latest, and that
// only that one can change anything.
func (k *checker) asked(r run.Run) {
	ds := k.below[r.ID]
	if int64(len(ds)) != r.ApprovalN {
		k.fault(r.ID, "%d approvals are stored, the run says %d", len(ds), r.ApprovalN)
		return
	}
	for i, d := range ds {
		if latest := i == len(ds)-1; d.N != int64(i+1) || d.Open && (!latest || r.Status != run.Waiting) {
			k.fault(d.ID, "it is number %d and open %t (%s), %s is %s", d.N, d.Open, d.Status, r.ID, r.Status)
		}
	}
	if len(ds) > 0 && ds[len(ds)-1].ID != r.ApprovalID {
		k.fault(r.ID, "it waits on %s, its latest approval is %s", r.ApprovalID, ds[len(ds)-1].ID)
	}
}

// waits checks that a waiting run can still be answered or gone on with.
func (k *checker) waits(r run.Run) {
	d, c := k.Decisions[r.ApprovalID], k.Calls[r.Current.CallID]
	may := []decision.Status{decision.Pending, decision.Approved}
	if c.Status == call.Succeeded || c.Status == call.Failed { // the outcome answered it
		may = []decision.Status{decision.Withdrawn, decision.Superseded}
	}
	if !slices.Contains(may, d.Status) || r.Current.ApprovalID != d.ID || d.StepID != r.Current.ID && d.Tool != "" {
		k.fault(r.ID, "it waits on %s (%s), its step on %s; the call is %q", d.ID, d.Status, r.Current.ApprovalID, c.Status)
	}
}

// hosted checks a call below a run's step: the run's stream tells of it.
func (k *checker) hosted(c call.Call) {
	if c.Head.Seq != 0 || len(k.streams["call:"+c.ID]) > 0 {
		k.fault(c.ID, "it hangs below %s and has a stream of its own", c.StepID)
	}
	if _, ok := k.Runs[c.RunID]; !ok {
		k.fault(c.ID, "its run %s does not exist", c.RunID)
	}
	k.attempts(c)
	if c.Status.Terminal() == c.EndedAt.IsZero() || (c.Status == call.Running) == c.LeaseUntil.IsZero() {
		k.fault(c.ID, "it is %s, ended at %s, leased until %s", c.Status, c.EndedAt, c.LeaseUntil)
	}
	if c.Attempts > 0 {
		k.hostedEnding(c)
	}
}

func (k *checker) hostedEnding(c call.Call) {
	if as := k.Attempts[c.ID]; int64(len(as)) != c.Attempts || c.Status != call.Running && as[c.Attempts-1].Outcome != c.Status && !as[c.Attempts-1].Late {
		k.fault(c.ID, "it is %s, its attempts %+v", c.Status, as)
	}
	told := call.Running
	for _, e := range k.subjects[c.StepID] {
		f := k.factsOf(e)
		switch {
		case e.Type == event.StepToolStarted:
			told = call.Running
		case e.Type == event.StepInterrupted && told == call.Running && f.Attempt > 0:
			told = call.Unknown
		case e.Type == event.StepToolFinished && f.Attempt > 0:
			told = call.Status(f.Status)
		}
	}
	if told != c.Status {
		k.fault(c.ID, "it is %s, its run's log says %s", c.Status, told)
	}
}

// ofCall lists the events of one type about a step's call.
func (k *checker) ofCall(c call.Call, t event.Type) []event.Event {
	var es []event.Event
	for _, e := range k.having(c.StepID, t) {
		var of struct {
			CallID string `json:"call_id"`
		}
		if e.Redacted || json.Unmarshal(e.Payload, &of) == nil && of.CallID == c.ID {
			es = append(es, e)
		}
	}
	return es
}

// attemptsBelow lists the attempts of everything that a root owns.
func (k *checker) attemptsBelow(root decision.Ref) []call.Attempt {
	if root.Kind == decision.OwnerCall {
		return k.Attempts[root.ID]
	}
	var as []call.Attempt
	for _, s := range k.Steps[root.ID] {
		as = append(as, k.Attempts[s.CallID]...)
	}
	return as
}
