package job

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// Command is what can happen to a job.
type Command interface{ command() }

// Create makes a new job.
type Create struct{ Epoch int64 }

// Claim takes a queued job to launch it.
type Claim struct {
	Token    string // drawn for this launch
	Launcher string // process that takes it
	Epoch    int64  // the store's life now: a job of an earlier one is not launched
}

// Adopt takes a queued job's launch over that lies in its folder although the store
// does not know of it: the store went back in time, and the command may have run.
type Adopt struct {
	Token  string // of the launch, as its folder has it
	Launch int64
	Note   string // becomes the first part of what is said of the job's end
	Epoch  int64
}

// Began notes that the command was started.
type Began struct {
	Token  string
	Runner string // process that owns it
	At     time.Time
}

// Requeue gives a claim back of which no command was started.
type Requeue struct{ Token string }

// End notes how a launch ended.
type End struct {
	Token    string
	Status   Status // completed, failed, timeout, cancelled or orphaned
	ExitCode int
	Signal   string
	Failure  string
	Began    time.Time // zero: it never began
	Runner   string
	At       time.Time // when it ended, by the runner's clock; zero: now
}

// Abandon ends a queued job that can never be launched.
type Abandon struct{ Failure string }

// Orphan ends a job whose [Home] is lost, without a word from there.
type Orphan struct{ Failure string }

// Stop wants the job ended.
type Stop struct {
	By        string
	KillAfter time.Duration
}

// Pause keeps a queued job from being launched.
type Pause struct{ By, Reason string }

// Resume lets a paused job be launched, also one that was queued in an earlier life
// of the store.
type Resume struct {
	By    string
	Epoch int64 // the store's life now
}

// Ask counts one more question.
type Ask struct{ MaxPending, MaxQuestions int64 }

// Answered counts one question less that waits.
type Answered struct{}

// Record takes in what the command printed.
type Record struct {
	Token   string
	Offset  int64 // behind what was read of the launch's events
	From    int64 // before it
	Outputs int64 // how many events of output it made
	Dropped bool
	Events  []event.Event
	// Progress is the data of the last progress; nil: none.
	Progress []byte
}

func (Create) command()   {}
func (Claim) command()    {}
func (Adopt) command()    {}
func (Began) command()    {}
func (Requeue) command()  {}
func (End) command()      {}
func (Abandon) command()  {}
func (Orphan) command()   {}
func (Stop) command()     {}
func (Pause) command()    {}
func (Resume) command()   {}
func (Ask) command()      {}
func (Answered) command() {}
func (Record) command()   {}

// Change is what the transaction must write, all of it or none.
type Change struct {
	Next     Job
	Events   []event.Event
	Repeated bool // it is so already: there is nothing to write
}

// Step judges a command. It is pure: the same job, command and time give the same
// answer. An error means that there is nothing to write.
func (j Job) Step(cmd Command, now time.Time) (Change, error) {
	switch cmd := cmd.(type) {
	case Create:
		return j.create(cmd, now)
	case Claim:
		return j.claim(cmd, now)
	case Adopt:
		return j.adopt(cmd, now)
	case Began:
		return j.began(cmd)
	case Requeue:
		return j.requeue(cmd, now)
	case End:
		return j.end(cmd, now)
	case Abandon:
		return j.abandon(cmd, now)
	case Orphan:
		return j.orphan(cmd, now)
	case Stop:
		return j.stop(cmd, now)
	case Pause:
		return j.pause(cmd)
	case Resume:
		return j.resume(cmd)
	case Ask:
		return j.ask(cmd)
	case Answered:
		return j.answered()
	case Record:
		return j.record(cmd)
	}
	panic(fmt.Sprintf("job: unknown command %T", cmd))
}

func (j Job) create(cmd Create, now time.Time) (Change, error) {
	if j.Status != "" {
		return Change{}, j.errState()
	}
	j.Status, j.CreatedAt, j.ExitCode, j.Epoch = Queued, now, -1, cmd.Epoch
	return Change{Next: j, Events: []event.Event{j.event(event.JobQueued, j.actor(), queuedPayload{j.ID, j.Spec.Name})}}, nil
}

func (j Job) claim(cmd Claim, now time.Time) (Change, error) {
	if j.Status != Queued || j.Paused || j.Epoch < cmd.Epoch {
		return Change{}, j.errState()
	}
	j.Status, j.Claim, j.Launcher, j.Began = Launching, cmd.Token, cmd.Launcher, now
	j.Launches++
	return Change{Next: j}, nil
}

// adopt starts nothing: it says which launch there is already. Also a paused job has one.
func (j Job) adopt(cmd Adopt, now time.Time) (Change, error) {
	if j.Status != Queued {
		return Change{}, j.errState()
	}
	j.Status, j.Claim, j.Launcher, j.Began, j.Launches = Launching, cmd.Token, "", now, cmd.Launch
	j.Paused, j.Failure, j.Epoch = false, cmd.Note, cmd.Epoch
	return Change{Next: j}, nil
}

// launched is the guard of everything that is written of a launch.
func (j Job) launched(token string) error {
	if j.Claim == "" || j.Claim != token || j.Status != Launching && j.Status != Running {
		return j.errClaim()
	}
	return nil
}

func (j Job) began(cmd Began) (Change, error) {
	if err := j.launched(cmd.Token); err != nil {
		return Change{}, err
	}
	if j.Status == Running {
		return Change{Next: j, Repeated: true}, nil
	}
	return Change{Next: j.begin(cmd), Events: []event.Event{j.event(event.JobStarted, event.System, startedPayload{j.ID, j.Launches})}}, nil
}

// begin is the one door into running. The secrets have reached the command, and are
// not kept.
func (j Job) begin(cmd Began) Job {
	j.Status, j.Runner, j.StartedAt, j.Secrets = Running, cmd.Runner, cmd.At, nil
	return j
}

func (j Job) requeue(cmd Requeue, now time.Time) (Change, error) {
	if err := j.launched(cmd.Token); err != nil {
		return Change{}, err
	}
	if j.Status != Launching {
		return Change{}, j.errState()
	}
	j.Claim, j.Launcher, j.Began = "", "", time.Time{}
	if j.StopBy != "" {
		return j.ended(End{Status: Cancelled, ExitCode: -1, Failure: "It was stopped by " + j.StopBy + " before it began."}, now), nil
	}
	j.Status = Queued
	return Change{Next: j}, nil
}

func (j Job) end(cmd End, now time.Time) (Change, error) {
	if err := j.launched(cmd.Token); err != nil {
		return Change{}, err
	}
	var es []event.Event
	if j.Status == Launching && !cmd.Began.IsZero() {
		ch, err := j.began(Began{cmd.Token, cmd.Runner, cmd.Began})
		if err != nil {
			return Change{}, err
		}
		j, es = ch.Next, ch.Events
	}
	if cmd.Status == Orphaned && j.StopBy != "" { // nothing of it runs any more: that is what was wanted
		cmd.Status, cmd.Failure = Cancelled, "It was stopped by "+j.StopBy+"."
	}
	ch := j.ended(cmd, now)
	ch.Events = append(es, ch.Events...)
	return ch, nil
}

// ended is the one door into the end of a job. Its questions are closed by whoever
// writes this, in the same transaction.
func (j Job) ended(cmd End, now time.Time) Change {
	if !cmd.Status.Terminal() {
		panic("job: " + string(cmd.Status) + " is no end")
	}
	j.Status, j.ExitCode, j.Signal = cmd.Status, cmd.ExitCode, cmd.Signal
	j.Failure = strings.TrimSpace(j.Failure + " " + cmd.Failure) // behind what is said of an adopted one
	j.EndedAt, j.Paused, j.Pending, j.Secrets = now, false, 0, nil
	if !cmd.At.IsZero() {
		j.EndedAt = cmd.At
	}
	actor := event.System
	if j.Status == Cancelled && j.StopBy != "" {
		actor = j.StopBy
	}
	p := endedPayload{JobID: j.ID, Signal: j.Signal, Reason: j.Failure}
	if j.ExitCode >= 0 {
		p.ExitCode = &j.ExitCode
	}
	return Change{Next: j, Events: []event.Event{j.event(j.Status.event(), actor, p)}}
}

func (j Job) abandon(cmd Abandon, now time.Time) (Change, error) {
	if j.Status != Queued {
		return Change{}, j.errState()
	}
	return j.ended(End{Status: Cancelled, ExitCode: -1, Failure: cmd.Failure}, now), nil
}

// orphan asks nothing of the launch: whether it runs on is not known, so one that was to
// stop is not cancelled either.
func (j Job) orphan(cmd Orphan, now time.Time) (Change, error) {
	if j.Status == "" || j.Status.Terminal() {
		return Change{}, j.errState()
	}
	return j.ended(End{Status: Orphaned, ExitCode: -1, Failure: cmd.Failure}, now), nil
}

func (j Job) stop(cmd Stop, now time.Time) (Change, error) {
	switch {
	case j.Status == "":
		return Change{}, j.errState()
	case j.Status.Terminal(), j.StopBy != "" && !now.Add(cmd.KillAfter).Before(j.StopAt.Add(j.KillAfter)):
		return Change{Next: j, Repeated: true}, nil
	}
	if j.StopBy == "" {
		j.StopBy = cmd.By
	}
	j.StopAt, j.KillAfter = now, cmd.KillAfter
	if j.Status == Queued {
		return j.ended(End{Status: Cancelled, ExitCode: -1, Failure: "It was stopped by " + j.StopBy + " before it began."}, now), nil
	}
	return Change{Next: j}, nil // told once nothing of it runs any more
}

func (j Job) pause(cmd Pause) (Change, error) {
	if j.Status != Queued {
		return Change{}, j.errState()
	}
	if j.Paused {
		return Change{Next: j, Repeated: true}, nil
	}
	j.Paused = true
	return Change{Next: j, Events: []event.Event{j.event(event.JobPaused, cmd.By, pausedPayload{j.ID, cmd.Reason})}}, nil
}

func (j Job) resume(cmd Resume) (Change, error) {
	if j.Status != Queued {
		return Change{}, j.errState()
	}
	if !j.Paused && j.Epoch >= cmd.Epoch {
		return Change{Next: j, Repeated: true}, nil
	}
	j.Paused, j.Epoch = false, max(j.Epoch, cmd.Epoch)
	return Change{Next: j, Events: []event.Event{j.event(event.JobUnpaused, cmd.By, jobPayload{j.ID})}}, nil
}

func (j Job) ask(cmd Ask) (Change, error) {
	switch {
	case j.Status == "" || j.Status.Terminal():
		return Change{}, j.errState()
	case j.Pending >= cmd.MaxPending:
		return Change{}, ErrTooManyPending.Say("Job %s has %d questions pending; the limit is %d.", j.ID, j.Pending, cmd.MaxPending).
			Hint("Wait for an answer or withdraw one, then ask again.")
	case j.Questions >= cmd.MaxQuestions:
		return Change{}, ErrTooManyPending.Say("Job %s has asked %d questions; that is the limit.", j.ID, j.Questions)
	}
	j.Pending++
	j.Questions++
	return Change{Next: j}, nil
}

func (j Job) answered() (Change, error) {
	if j.Status == "" || j.Status.Terminal() || j.Pending == 0 {
		return Change{Next: j, Repeated: true}, nil // the end has counted it
	}
	j.Pending--
	return Change{Next: j}, nil
}

// record goes on from where the last record ended, so that nothing is taken in twice.
func (j Job) record(cmd Record) (Change, error) {
	if err := j.launched(cmd.Token); err != nil {
		return Change{}, err
	}
	if j.Status != Running { // that it has begun is told first
		return Change{}, j.errState()
	}
	if cmd.From != j.Offset {
		return Change{}, decision.ErrMoved.Say("The output of job %s was taken in by another process.", j.ID)
	}
	if cmd.Offset == j.Offset {
		return Change{Next: j, Repeated: true}, nil
	}
	j.Offset = cmd.Offset
	j.Outputs += cmd.Outputs
	j.Dropped = j.Dropped || cmd.Dropped
	if cmd.Progress != nil {
		j.Progress = cmd.Progress
	}
	return Change{Next: j, Events: cmd.Events}, nil
}

func (j Job) actor() string {
	if j.Principal == "" {
		return event.System
	}
	return j.Principal
}

func (j Job) event(t event.Type, actor string, payload any) event.Event {
	return event.New(t, j.ID, actor, payload)
}

type jobPayload struct {
	JobID string `json:"job_id"`
}

type pausedPayload struct {
	JobID  string `json:"job_id"`
	Reason string `json:"reason,omitempty"`
}

type queuedPayload struct {
	JobID string `json:"job_id"`
	Name  string `json:"name,omitempty"`
}

type startedPayload struct {
	JobID  string `json:"job_id"`
	Launch int64  `json:"launch"`
}

type endedPayload struct {
	JobID    string `json:"job_id"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

type streamPayload struct {
	JobID  string `json:"job_id"`
	Stream string `json:"stream,omitempty"`
	Reason string `json:"reason,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

// outputPayload is what a job printed, as its event tells it. Type is the printer's
// own word.
type outputPayload struct {
	Type    string          `json:"type"`
	Level   string          `json:"level,omitempty"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`

	Truncated bool  `json:"truncated,omitempty"` // there was more than an event may hold
	Bytes     int64 `json:"bytes,omitempty"`     // how much, where it was

	InvalidText []string `json:"invalid_text,omitempty"` // the fields that were printed and are left out, since they are not text
}
