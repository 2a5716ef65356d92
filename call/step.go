package call

import (
	"fmt"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// Command is what can happen to a call.
type Command interface{ command() }

// Park makes the call wait for an approval: a new call, one whose ruling
// changed, or one whose outcome is unknown.
type Park struct {
	Approval decision.Decision
	Recovery Recovery // what the tool declares now
}

// Begin starts an attempt. It is committed before the tool is called.
type Begin struct {
	ApprovalID      string // the grant that is spent; empty: none was needed
	GrantDigest     string
	EffectiveDigest string
	Args            []byte // edited arguments; nil: the call's own
	SpecDigest      string
	Recovery        Recovery
	Owner           string
	Epoch           int64
	Lease           time.Duration
	Attempts        int64 // how many there were when this was judged
}

// Refuse denies a call before it ever ran.
type Refuse struct {
	Kind    Kind
	Message string
	Actor   string
}

// Lapse ends a parked call whose approval or grant expired.
type Lapse struct{}

// TakeBack ends a parked call on its asker's word.
type TakeBack struct{ By, Note string }

// End is the outcome of an attempt, from the process that ran it.
type End struct {
	Fence   int64
	Epoch   int64 // life of the store in which the attempt started: fences of another life mean nothing
	Late    bool  // the run that the call hangs below has ended
	Outcome Outcome
}

// Lose notes that a running attempt's lease ended, or that the store went back in time.
// Of a call below a run's step it is the run's lease that counts: TakenOver says
// that it was taken over.
type Lose struct {
	Epoch     int64
	TakenOver bool
}

// Doubt notes that a parked call may have run in an earlier life of the store.
type Doubt struct{ Message string }

// Learn is an unknown outcome learnt from the tool's probe.
type Learn struct{ Outcome Outcome }

func (Park) command()     {}
func (Begin) command()    {}
func (Refuse) command()   {}
func (Lapse) command()    {}
func (TakeBack) command() {}
func (End) command()      {}
func (Lose) command()     {}
func (Doubt) command()    {}
func (Learn) command()    {}

// Outcome is how an attempt went.
type Outcome struct {
	Status  Status // succeeded, failed or unknown
	Kind    Kind
	Message string
	Result  []byte
	Abort   bool // of failed: the tool asks that the agent's run ends
}

// Change is what the transaction must write, all of it or none.
type Change struct {
	Next    Call
	Attempt *Attempt // to insert
	Events  []event.Event
	Late    bool // the outcome came after the lease or the call ended
	Ignored bool // a late outcome that changes nothing but its own attempt
}

// Step judges a command. It is pure: the same call, command and time give the
// same answer. An error means that there is nothing to write.
func (c Call) Step(cmd Command, now time.Time) (Change, error) {
	switch cmd := cmd.(type) {
	case Park:
		return c.park(cmd)
	case Begin:
		return c.begin(cmd, now)
	case Refuse:
		return c.refuse(cmd, now)
	case Lapse:
		return c.lapse(now)
	case TakeBack:
		return c.takeBack(cmd, now)
	case End:
		return c.end(cmd, now)
	case Lose:
		return c.lose(cmd, now)
	case Doubt:
		return c.doubt(cmd, now)
	case Learn:
		return c.learn(cmd, now)
	}
	panic(fmt.Sprintf("call: unknown command %T", cmd))
}

func (c Call) park(cmd Park) (Change, error) {
	ch := Change{}
	switch c.Status {
	case "":
		ch.Events = append(ch.Events, c.created()...)
		c.Status = Pending
	case Pending, Unknown:
	default:
		return Change{}, c.errState()
	}
	c.ApprovalID, c.ApprovalN = cmd.Approval.ID, cmd.Approval.N
	c.NextTryAt = time.Time{} // what was refused before is no reason to wait with this one
	if c.Status == Pending {  // of an unknown call they stay those of the attempt in doubt
		c.SpecDigest, c.Recovery = cmd.Approval.SpecDigest, cmd.Recovery
	}
	ch.Next = c
	return ch, nil
}

// begin is the one door into running.
func (c Call) begin(cmd Begin, now time.Time) (Change, error) {
	ch := Change{}
	switch c.Status {
	case "":
		ch.Events = append(ch.Events, c.created()...)
	case Pending, Unknown:
	default:
		return Change{}, c.errState()
	}
	if cmd.Attempts != c.Attempts {
		return Change{}, decision.ErrMoved.Say("Another attempt at call %s was made in the meantime.", c.ID)
	}
	c.Status, c.Kind, c.Message = Running, "", ""
	c.Attempts++
	c.Fence++
	c.LeaseUntil, c.LeaseOwner, c.Epoch = now.Add(cmd.Lease), cmd.Owner, cmd.Epoch
	c.EffectiveDigest, c.SpecDigest, c.Recovery = cmd.EffectiveDigest, cmd.SpecDigest, cmd.Recovery
	ch.Attempt = &Attempt{
		CallID: c.ID, N: c.Attempts, Fence: c.Fence, Epoch: cmd.Epoch, ApprovalID: cmd.ApprovalID, GrantDigest: cmd.GrantDigest,
		EffectiveDigest: cmd.EffectiveDigest, Args: cmd.Args, Owner: cmd.Owner, Recovery: cmd.Recovery, StartedAt: now,
	}
	ch.Events = append(ch.Events, c.tell(event.CallStarted, c.actor(), startedPayload{
		StepID: c.StepID, CallID: c.ID, Attempt: c.Attempts, ApprovalID: cmd.ApprovalID, EffectiveDigest: cmd.EffectiveDigest,
	})...)
	ch.Next = c
	return ch, nil
}

func (c Call) refuse(cmd Refuse, now time.Time) (Change, error) {
	ch := Change{}
	switch c.Status {
	case "":
		ch.Events = append(ch.Events, c.created()...)
	case Pending:
	case Unknown: // a no does not tell what became of the first attempt
		return Change{Next: c.stillUnknown("A person did not agree to run it again. " + cmd.Message)}, nil
	default:
		return Change{}, c.errState()
	}
	return c.close(ch, Denied, Outcome{Kind: cmd.Kind, Message: cmd.Message}, cmd.Actor, now), nil
}

func (c Call) lapse(now time.Time) (Change, error) {
	switch c.Status {
	case Pending:
		return c.close(Change{}, Expired, Outcome{Kind: KindApprovalExpired, Message: "Nobody agreed, or acted on a yes, in time."}, event.System, now), nil
	case Unknown:
		return Change{Next: c.stillUnknown("Nobody agreed to run it again in time.")}, nil
	}
	return Change{}, c.errState()
}

func (c Call) takeBack(cmd TakeBack, now time.Time) (Change, error) {
	switch c.Status {
	case Pending:
		c.Status, c.Kind, c.Message, c.EndedAt = Cancelled, KindCancelled, cmd.Note, now
		return Change{Next: c, Events: c.tell(event.CallCancelled, cmd.By, finishedPayload{
			CallID: c.ID, Status: Cancelled, Kind: KindCancelled,
		})}, nil
	case Unknown:
		return Change{Next: c.stillUnknown("The request to run it again was withdrawn.")}, nil
	}
	return Change{}, c.errState()
}

// end takes what the process that ran an attempt reports. Only the last
// attempt's outcome counts, while the call runs or its outcome is unknown.
func (c Call) end(cmd End, now time.Time) (Change, error) {
	last := cmd.Fence == c.Fence && cmd.Epoch == c.Epoch
	switch {
	case cmd.Epoch != c.Epoch || cmd.Fence > c.Fence:
		return Change{}, ErrLeaseLost.Say("Call %s has no such attempt (fence %d) in this life of the store.", c.ID, cmd.Fence)
	case last && c.Status == Running:
		late := cmd.Late || now.After(c.LeaseUntil)
		if cmd.Outcome.Status == Unknown {
			return c.unknown(cmd.Outcome, now), nil
		}
		ch := c.close(Change{Late: late}, cmd.Outcome.Status, cmd.Outcome, c.actor(), now)
		return ch, nil
	case last && c.Status == Unknown && cmd.Outcome.Status != Unknown:
		return c.close(Change{Late: true}, cmd.Outcome.Status, cmd.Outcome, c.actor(), now), nil
	}
	return Change{Next: c, Late: true, Ignored: true, Events: c.tell(event.CallFinished, event.System, finishedPayload{
		StepID: c.StepID, CallID: c.ID, Status: cmd.Outcome.Status, Kind: cmd.Outcome.Kind, Late: true,
	})}, nil
}

func (c Call) lose(cmd Lose, now time.Time) (Change, error) {
	if c.Status != Running {
		return Change{}, c.errState()
	}
	switch {
	case c.Epoch < cmd.Epoch:
		return c.unknown(Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: "The store went back in time while the tool ran."}, now), nil
	case cmd.TakenOver || now.After(c.LeaseUntil):
		return c.unknown(Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: "The process that ran the tool was lost."}, now), nil
	}
	return Change{}, c.ErrStillRunning()
}

func (c Call) doubt(cmd Doubt, now time.Time) (Change, error) {
	if c.Status != Pending {
		return Change{}, c.errState()
	}
	return c.unknown(Outcome{Status: Unknown, Message: cmd.Message}, now), nil
}

func (c Call) learn(cmd Learn, now time.Time) (Change, error) {
	if c.Status != Unknown {
		return Change{}, c.errState()
	}
	return c.close(Change{Late: true}, cmd.Outcome.Status, cmd.Outcome, event.System, now), nil
}

// close is the one door into a terminal status but cancelled.
func (c Call) close(ch Change, to Status, o Outcome, actor string, now time.Time) Change {
	c.Status, c.Kind, c.Message, c.Result = to, o.Kind, o.Message, o.Result
	c.LeaseUntil, c.LeaseOwner, c.EndedAt = time.Time{}, "", now
	ch.Next = c
	if c.Hosted() && to != Succeeded && to != Failed {
		return ch // what ended before the tool is its step's to tell
	}
	ch.Events = append(ch.Events, c.tell(event.CallFinished, actor, finishedPayload{
		StepID: c.StepID, CallID: c.ID, Status: to, Kind: o.Kind, Late: ch.Late, Attempt: c.Attempts,
	})...)
	return ch
}

// unknown is the one door into that status.
func (c Call) unknown(o Outcome, now time.Time) Change {
	c.Status, c.Kind, c.Message = Unknown, KindUnknownOutcome, o.Message
	c.LeaseUntil, c.LeaseOwner = time.Time{}, ""
	return Change{Next: c, Events: c.tell(event.CallUnknown, event.System, unknownPayload{
		StepID: c.StepID, CallID: c.ID, Attempt: c.Attempts, Message: o.Message,
	})}
}

func (c Call) stillUnknown(message string) Call {
	c.Kind, c.Message = KindUnknownOutcome, message
	return c
}

func (c Call) errState() error {
	if c.Status == Running {
		return c.ErrStillRunning()
	}
	return ErrRunState.Say("Call %s is %s.", c.ID, c.Status)
}

// ErrStillRunning is [ErrRunning] for this call, saying who runs it and until when.
func (c Call) ErrStillRunning() error {
	return ErrRunning.Say("Call %s is still running (attempt %d, its lease ends at %s).", c.ID, c.Attempts, c.LeaseUntil.UTC().Format(time.RFC3339)).
		Hint("Look again later: placet show %s.", c.ID).With(At{c.ID, c.RunID})
}

// At names a call in the details of an error.
type At struct {
	CallID string `json:"call_id"`
	RunID  string `json:"run_id"`
}

func (c Call) actor() string {
	if c.Principal == "" {
		return event.System
	}
	return c.Principal
}

type createdPayload struct {
	CallID     string `json:"call_id"`
	RunID      string `json:"run_id"`
	ExternalID string `json:"external_id,omitempty"`
	Tool       string `json:"tool"`
	ArgsDigest string `json:"args_digest"`
}

type startedPayload struct {
	StepID          string `json:"step_id,omitempty"`
	CallID          string `json:"call_id"`
	Attempt         int64  `json:"attempt"`
	ApprovalID      string `json:"approval_id,omitempty"`
	EffectiveDigest string `json:"effective_digest,omitempty"`
}

type finishedPayload struct {
	StepID  string `json:"step_id,omitempty"`
	CallID  string `json:"call_id"`
	Status  Status `json:"status"`
	Kind    Kind   `json:"kind,omitempty"`
	Late    bool   `json:"late"`
	Attempt int64  `json:"attempt,omitempty"`
}

type unknownPayload struct {
	StepID  string `json:"step_id,omitempty"`
	CallID  string `json:"call_id"`
	Attempt int64  `json:"attempt"`
	Message string `json:"message,omitempty"`
}

func (c Call) created() []event.Event {
	return c.tell(event.CallCreated, c.actor(), createdPayload{c.ID, c.RunID, c.ExternalID, c.Tool, c.ArgsDigest})
}

// inRun is what a call's events are called in the stream of the run that it hangs
// below. The others' transitions are told by the step.
var inRun = map[event.Type]event.Type{
	event.CallStarted:  event.StepToolStarted,
	event.CallFinished: event.StepToolFinished,
	event.CallUnknown:  event.StepInterrupted,
}

// tell is a transition's event.
func (c Call) tell(t event.Type, actor string, payload any) []event.Event {
	subject := c.ID
	if c.Hosted() {
		var told bool
		if t, told = inRun[t]; !told {
			return nil
		}
		subject = c.StepID
	}
	return []event.Event{event.New(t, subject, actor, payload)}
}
