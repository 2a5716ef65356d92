package run

import (
	"fmt"
	"math"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
)

// Change is what the transaction must write, all of it or none.
type Change struct {
	Next   Run
	Ended  *Step // the step before Next.Current, where that one is new
	Events []event.Event
}

// Then applies a further command to what ch makes of the run.
func (ch Change) Then(cmd Command, now time.Time) (Change, error) {
	next, err := ch.Next.Step(cmd, now)
	if err != nil {
		return Change{}, err
	}
	next.Events = append(ch.Events[:len(ch.Events):len(ch.Events)], next.Events...)
	switch {
	case next.Ended == nil:
		next.Ended = ch.Ended
	case ch.Ended != nil: // our bug: the first of them would be lost
		panic("run: one change ends two steps")
	}
	return next, nil
}

// Step judges a command. It is pure: the same run, command and time give the same
// answer. An error means that there is nothing to write. The transitions stand below
// in the order of spec 1.1 to 1.7.
func (r Run) Step(cmd Command, now time.Time) (Change, error) {
	switch cmd := cmd.(type) {
	case Create:
		return r.create(cmd, now)
	case Advance:
		return r.advance(cmd, now)
	case Record:
		return r.record(cmd)
	case Judged:
		return r.judged(cmd)
	case Execute:
		return r.execute(cmd, now)
	case Observe:
		return r.observe(cmd, now)
	case End:
		return r.end(cmd, now)
	case Pause:
		return r.pause(cmd, now)
	case Answered:
		return r.answered(cmd, now)
	case Cancel:
		return r.cancel(cmd, now)
	case Resume:
		return r.resume(cmd, now)
	case TakeOver:
		return r.takeOver(cmd, now)
	case Interrupt:
		return r.interrupt(cmd, now)
	case Release:
		return r.release(cmd, now)
	case Charge:
		return r.charge(cmd)
	}
	panic(fmt.Sprintf("run: unknown command %T", cmd))
}

// held is the guard of everything that the loop writes: the run is running, its
// lease was not given back, and nobody has taken it since. What is written extends
// the lease, unless it has ended: then it never comes back.
func (r *Run) held(h Hold) error {
	switch {
	case r.Status != Running:
		return r.errState()
	case r.Fence != h.Fence || r.Epoch != h.Epoch || r.LeaseUntil.IsZero():
		return r.errLost()
	}
	if !h.At.After(r.LeaseUntil) {
		r.LeaseUntil = h.Until
	}
	return nil
}

// leased is held while the lease lasts: whoever let it end begins nothing more.
func (r *Run) leased(h Hold) error {
	if r.Status == Running && h.At.After(r.LeaseUntil) {
		return r.errLost()
	}
	return r.held(h)
}

// begun is held for a step of the given status.
func (r *Run) begun(h Hold, is ...StepStatus) error {
	if err := r.held(h); err != nil {
		return err
	}
	return r.at(is...)
}

// at is nil where the step has one of the statuses.
func (r Run) at(is ...StepStatus) error {
	for _, s := range is {
		if r.Current.Status == s {
			return nil
		}
	}
	return ErrRunState.Say("Step %d of run %s is %s.", r.Current.Index, r.ID, r.Current.word())
}

func (s Step) word() string {
	if s.ID == "" {
		return "not there"
	}
	return string(s.Status)
}

// create begins a run, which is running from its first moment (spec 1.1).
func (r Run) create(cmd Create, now time.Time) (Change, error) {
	if r.Status != "" {
		return Change{}, r.errState()
	}
	r.Status, r.CreatedAt = Running, now
	r.take(cmd.Take, now)
	return Change{Next: r, Events: []event.Event{
		r.event(event.RunCreated, r.actor(), createdPayload{r.ID, r.Flow.Name, r.Flow.Version}),
		r.event(event.RunStarted, r.actor(), startedPayload{r.ID, r.LeaseOwner}),
	}}, nil
}

// take is the one door to the lease. Its fence is a new one.
func (r *Run) take(t Take, now time.Time) {
	r.Fence++
	r.LeaseUntil, r.LeaseOwner, r.Epoch = t.Until, t.Owner, t.Epoch
	r.ActiveSince = now
}

// rest ends the work on the run.
func (r *Run) rest(now time.Time) {
	r.Active, r.ActiveSince = r.ActiveAt(now), time.Time{}
	r.LeaseUntil, r.LeaseOwner = time.Time{}, ""
}

// advance follows the order of spec 1.1: the limits, then the claim.
func (r Run) advance(cmd Advance, now time.Time) (Change, error) {
	if err := r.leased(cmd.Hold); err != nil {
		return Change{}, err
	}
	if r.Current.Status.open() {
		return Change{}, r.at()
	}
	if s := r.Current; s.Observation == WasInterrupted && s.Kind == CallTool && r.Repeats > 0 {
		r.Repeats-- // it was not carried out to its end: proposing it once more is no loop
	}
	if hit := r.exceeds(now); hit != nil {
		ch := Change{Next: r, Events: []event.Event{r.event(hit.told, event.System, hit.payload)}}
		return ch.Then(End{Hold: cmd.Hold, Status: Failed, Reason: hit.reason, Detail: hit.detail}, now)
	}
	ch := Change{}
	if r.Current.ID != "" {
		ended := r.Current
		ch.Ended = &ended
	}
	r.StepCount++
	if r.Flow == (FlowRef{}) { // a flow asks no model
		r.Usage.ModelCalls++
	}
	r.Current = Step{ID: cmd.StepID, RunID: r.ID, Index: r.StepCount, Status: Deciding, StartedAt: now}
	ch.Next = r
	ch.Events = []event.Event{r.stepEvent(event.StepStarted, r.actor(), stepPayload{StepID: cmd.StepID, Index: r.StepCount})}
	return ch, nil
}

// record keeps the decision verbatim, before validation (spec 1.1). A step is decided
// once.
func (r Run) record(cmd Record) (Change, error) {
	if err := r.begun(cmd.Hold, Deciding); err != nil {
		return Change{}, err
	}
	if r.Current.Kind != "" {
		return Change{}, ErrRunState.Say("Step %d of run %s is decided already.", r.Current.Index, r.ID)
	}
	p, s := cmd.Proposal, &r.Current
	s.Kind, s.Tool, s.Args, s.ArgsDigest = p.Kind, p.Tool, string(p.Args), cmd.ArgsDigest
	s.Said, s.Raw, s.Node = p.Text, string(p.Raw), p.Node
	r.countRepeat(p, cmd.ArgsDigest)
	return Change{Next: r, Events: []event.Event{r.stepEvent(event.StepDecided, r.actor(), stepPayload{
		StepID: s.ID, Kind: string(p.Kind), Tool: p.Tool, ArgsDigest: cmd.ArgsDigest, Node: p.Node,
	})}}, nil
}

// countRepeat counts how often in a row the same tool call was proposed.
func (r *Run) countRepeat(p Proposal, argsDigest string) {
	digest := ""
	if p.Kind == CallTool && argsDigest != "" {
		digest = p.Tool + " " + argsDigest
	}
	switch {
	case digest == "":
		r.Repeats = 0
	case digest == r.LastDigest:
		r.Repeats++
	default:
		r.Repeats = 1
	}
	r.LastDigest = digest
}

// judged notes a ruling (spec 1.1); what follows from it is the next command's.
func (r Run) judged(cmd Judged) (Change, error) {
	if r.Status != Running && r.Status != Waiting {
		return Change{}, r.errState()
	}
	if err := r.at(Deciding, AwaitingApproval, Interrupted); err != nil {
		return Change{}, err
	}
	r.Current.Ruling = cmd.Ruling
	return Change{Next: r, Events: []event.Event{r.stepEvent(event.StepPolicy, event.System, policyPayload{
		StepID: r.Current.ID, Outcome: string(cmd.Ruling.Outcome), Reason: cmd.Ruling.Reason, Kind: cmd.Ruling.Kind,
	})}}, nil
}

// execute is the one door into executing. A tool starts only under a lease that has
// not ended (spec 1.7).
func (r Run) execute(cmd Execute, now time.Time) (Change, error) {
	if err := r.leased(cmd.Hold); err != nil {
		return Change{}, err
	}
	if err := r.at(Deciding, AwaitingApproval, Interrupted); err != nil {
		return Change{}, err
	}
	s := &r.Current
	s.Status, s.CallID, s.FinishedAt = Executing, cmd.CallID, time.Time{}
	s.Observation, s.Message = "", ""
	return Change{Next: r}, nil
}

// observe ends the step and lets the loop go on. Failures and denials in a row are
// counted (spec 1.1); what the agent got wrong, or was interrupted in, leaves the
// count as it is.
func (r Run) observe(cmd Observe, now time.Time) (Change, error) {
	if err := r.begun(cmd.Hold, Deciding, AwaitingApproval, Executing, Interrupted); err != nil {
		return Change{}, err
	}
	byTool := r.Current.CallID != "" && (cmd.Kind == ToolResult || cmd.Kind == ToolError)
	r.close(cmd.Kind, cmd.Message, now)
	r.Current.Result = cmd.Result
	switch cmd.Kind {
	case ToolResult:
		r.Failures = 0
	case ToolError, PolicyDenied:
		r.Failures++
	}
	ch := Change{Next: r}
	if !byTool { // a tool's outcome is told by its call
		ch.Events = append(ch.Events, r.closedEvent(event.System))
	}
	return ch, nil
}

// close ends the open step.
func (r *Run) close(kind ObservationKind, message string, now time.Time) {
	s := &r.Current
	s.Status, s.Observation, s.Message, s.FinishedAt = StepFailed, kind, message, now
	if kind == ToolResult || kind == "" {
		s.Status = Done
	}
}

// closedEvent tells of a step that ended otherwise than by its tool.
func (r Run) closedEvent(actor string) event.Event {
	t := event.StepFailed
	if r.Current.Status == Done { // a flow's approval: there is no tool that could tell
		t = event.StepToolFinished
	}
	return r.stepEvent(t, actor, stepPayload{StepID: r.Current.ID, Kind: string(r.Current.Observation), Node: r.Current.Node})
}

// end is how the loop ends a run: on what the agent or a limit says, or on a fault.
func (r Run) end(cmd End, now time.Time) (Change, error) {
	if err := r.held(cmd.Hold); err != nil {
		return Change{}, err
	}
	var es []event.Event
	if r.Current.Status.open() {
		r.close(cmd.Kind, cmd.Message, now)
		if cmd.Kind != "" {
			es = append(es, r.closedEvent(event.System))
		}
	}
	r.Result = cmd.Result
	return r.finished(es, cmd.Status, cmd.Reason, cmd.Detail, event.System, now), nil
}

// finished is the one door into the end of a run.
func (r Run) finished(es []event.Event, status Status, reason Reason, detail, actor string, now time.Time) Change {
	r.rest(now)
	r.Status, r.Reason, r.Detail, r.FinishedAt = status, reason, detail, now
	return Change{Next: r, Events: append(es, r.event(event.RunFinished, actor, finishedPayload{r.ID, string(status), string(reason)}))}
}

// pause is the one door into waiting (spec 1.2): the lease goes. A run that waits
// already asks anew.
func (r Run) pause(cmd Pause, now time.Time) (Change, error) {
	switch r.Status {
	case Running:
		if err := r.begun(cmd.Hold, Deciding, Interrupted); err != nil {
			return Change{}, err
		}
	case Waiting:
		if err := r.at(AwaitingApproval); err != nil {
			return Change{}, err
		}
	default:
		return Change{}, r.errState()
	}
	r.Status = Waiting
	r.rest(now)
	r.ApprovalID, r.ApprovalN = cmd.Approval.ID, cmd.Approval.N
	r.NextTryAt = time.Time{} // what was refused before is no reason to wait with this one
	s := &r.Current
	s.Status, s.ApprovalID, s.CallID, s.FinishedAt = AwaitingApproval, cmd.Approval.ID, cmd.CallID, time.Time{}
	s.Observation, s.Message = "", ""
	return Change{Next: r}, nil
}

// answered ends the run where the answer to its approval does: on a no, or on none
// in time (spec 1.3, 1.5). A yes is for resume.
func (r Run) answered(cmd Answered, now time.Time) (Change, error) {
	if r.Status != Waiting {
		return Change{}, r.errState()
	}
	switch d := cmd.Decision; d.Status {
	case decision.Rejected:
		detail := "Approval " + d.ID + " was rejected by " + d.DecidedBy + "."
		if d.Note != "" {
			detail = "Approval " + d.ID + " was rejected by " + d.DecidedBy + ": " + d.Note
		}
		return r.stopped(PolicyDenied, detail, ApprovalRejected, d.DecidedBy, now), nil
	case decision.Expired:
		detail := "Approval " + d.ID + " expired: nobody agreed, or acted on a yes, in time."
		return r.stopped(WasInterrupted, detail, ApprovalExpired, event.System, now), nil
	}
	return Change{}, r.errState() // only these end a run
}

// cancel needs no lease: it is the operator's authority (spec 1.4).
func (r Run) cancel(cmd Cancel, now time.Time) (Change, error) {
	if r.Status != Running && r.Status != Waiting {
		return Change{}, r.errState()
	}
	detail := "Cancelled by " + cmd.By + "."
	if cmd.Note != "" {
		detail = "Cancelled by " + cmd.By + ": " + cmd.Note
	}
	return r.stopped(WasInterrupted, detail, OperatorCancelled, cmd.By, now), nil
}

// stopped cancels the run and closes its step.
func (r Run) stopped(kind ObservationKind, detail string, reason Reason, actor string, now time.Time) Change {
	var es []event.Event
	if r.Current.Status.open() {
		r.close(kind, detail, now)
		es = append(es, r.closedEvent(actor))
	}
	return r.finished(es, Cancelled, reason, detail, actor, now)
}

// resume takes the lease of a run that waits (spec 1.6). Whether its grant is good is
// judged by then.
func (r Run) resume(cmd Resume, now time.Time) (Change, error) {
	if r.Status != Waiting {
		return Change{}, r.errState()
	}
	if err := r.at(AwaitingApproval); err != nil {
		return Change{}, err
	}
	r.Status = Running
	r.take(cmd.Take, now)
	return Change{Next: r, Events: []event.Event{
		r.event(event.RunResumed, r.actor(), resumedPayload{r.ID, r.LeaseOwner, r.ApprovalID}),
	}}, nil
}

// takeOver takes the lease of a run that nobody holds any more, and marks what was
// under way as interrupted (spec 1.7).
func (r Run) takeOver(cmd TakeOver, now time.Time) (Change, error) {
	if r.Status != Running {
		return Change{}, r.errState()
	}
	released := r.LeaseUntil.IsZero()
	if !released && r.Epoch == cmd.Epoch && !cmd.At.After(r.LeaseUntil) {
		return Change{}, r.errLeased()
	}
	before := r.LeaseOwner
	if !released {
		r.Active = r.ActiveAt(now.Add(-r.dead(cmd.At)))
	}
	r.take(cmd.Take, now)
	ch := Change{}
	if released {
		ch.Events = append(ch.Events, r.event(event.RunResumed, r.actor(), resumedPayload{RunID: r.ID, Owner: r.LeaseOwner}))
	} else {
		ch.Events = append(ch.Events, r.event(event.LeaseTakenOver, event.System, takenPayload{r.ID, r.LeaseOwner, before}))
	}
	switch r.Current.Status {
	case Deciding:
		ch.Events = append(ch.Events, r.stepEvent(event.StepInterrupted, event.System, stepPayload{StepID: r.Current.ID}))
		fallthrough
	case Executing: // its call tells
		r.interrupted("The process that worked on this step was lost.", now)
	}
	ch.Next = r
	return ch, nil
}

// dead is how long ago a lease ended. The work of a lost process counts until then:
// nobody knows better, and a run that is lost over and over has to meet its limit.
func (r Run) dead(at time.Time) time.Duration { return max(0, at.Sub(r.LeaseUntil)) }

// interrupt is for a tool that ended in this process with an unknown outcome.
func (r Run) interrupt(cmd Interrupt, now time.Time) (Change, error) {
	if err := r.begun(cmd.Hold, Executing); err != nil {
		return Change{}, err
	}
	r.interrupted(cmd.Message, now)
	return Change{Next: r}, nil // the call tells
}

// interrupted is the one door into that status.
func (r *Run) interrupted(message string, now time.Time) {
	s := &r.Current
	s.Status, s.Observation, s.Message, s.FinishedAt = Interrupted, WasInterrupted, message, now
}

// release gives the lease back at the boundary of a step (spec 1.7).
func (r Run) release(cmd Release, now time.Time) (Change, error) {
	if err := r.held(cmd.Hold); err != nil {
		return Change{}, err
	}
	if r.Current.Status.open() {
		return Change{}, r.at()
	}
	r.rest(now)
	return Change{Next: r}, nil
}

// charge takes a reservation only within the limits; what was spent is noted in any case.
func (r Run) charge(cmd Charge) (Change, error) {
	if err := r.begun(cmd.Hold, Deciding); err != nil {
		return Change{}, err
	}
	u, l := r.Usage, r.Limits
	u.ModelCalls = sum(u.ModelCalls, cmd.Usage.ModelCalls)
	u.Tokens = sum(u.Tokens-cmd.Refund.Tokens, cmd.Usage.Tokens)
	u.Cost = sum(u.Cost-cmd.Refund.Cost, cmd.Usage.Cost)
	over := func(refusal *fault.Error, limit string, value, most any) error {
		return refusal.Say("Asking the model would bring the run to %v; its limit %s is %v.", value, limit, most)
	}
	if !cmd.Corrects {
		switch {
		case l.MaxModelCalls > 0 && u.ModelCalls > l.MaxModelCalls:
			return Change{}, over(errModelCalls, "max_model_calls", u.ModelCalls, l.MaxModelCalls)
		case l.MaxTotalTokens > 0 && u.Tokens > l.MaxTotalTokens:
			return Change{}, over(errTokens, "max_total_tokens", u.Tokens, l.MaxTotalTokens)
		case l.MaxEstimatedCost > 0 && u.Cost > l.MaxEstimatedCost:
			return Change{}, over(errCost, "max_estimated_cost", u.Cost, l.MaxEstimatedCost)
		}
	}
	r.Usage = u
	return Change{Next: r}, nil
}

// sum is a + b, which are not negative; no charge wraps around and is forgotten.
func sum[T ~int64](a, b T) T {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
