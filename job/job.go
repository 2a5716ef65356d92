package job

import (
	"maps"
	"slices"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
)

// Status is where a job stands.
type Status string

// The statuses (spec 3.1).
const (
	Queued    Status = "queued"    // it waits to be launched, or for its trigger
	Launching Status = "launching" // claimed by a supervisor; its runner has not said yet that it began
	Running   Status = "running"   // its command has begun
	Completed Status = "completed" // exit status 0, and all it printed was kept
	Failed    Status = "failed"    // another exit status, or it could not be started
	TimedOut  Status = "timeout"   // its time limit passed
	Cancelled Status = "cancelled" // it was stopped, or can never start
	Orphaned  Status = "orphaned"  // its runner or its machine was lost
)

// Statuses lists them.
func Statuses() []Status {
	return []Status{Queued, Launching, Running, Completed, Failed, TimedOut, Cancelled, Orphaned}
}

// Terminal reports whether nothing changes a job of this status any more.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, TimedOut, Cancelled, Orphaned:
		return true
	}
	return false
}

// event is the type of the event that tells of the end.
func (s Status) event() event.Type { return event.Type(s) }

// Spec is what is to be run. Command or Shell is required.
type Spec struct {
	Command []string          `json:"command,omitempty"` // program and arguments
	Shell   string            `json:"shell,omitempty"`   // a line for /bin/sh instead
	Cwd     string            `json:"cwd,omitempty"`     // absolute. Default: the user's home
	Env     map[string]string `json:"env,omitempty"`     // besides the safe base
	// SecretEnv names variables of Env whose values are masked in logs and events, and
	// never shown.
	SecretEnv []string      `json:"secret_env,omitempty"`
	Name      string        `json:"name,omitempty"`
	Tags      []string      `json:"tags,omitempty"`
	Timeout   time.Duration `json:"timeout,omitempty"` // whole seconds. Default: 0, no limit
	Trigger   Trigger       `json:"trigger,omitzero"`  // start when another job has ended so
}

// Trigger makes a job wait for the end of another.
type Trigger struct {
	JobID  string `json:"job_id"`
	Status Status `json:"status"` // the terminal status that starts it; any other one cancels it
}

// Job is one job. Failure and Progress may carry what the command printed.
type Job struct {
	ID    string
	Space string
	Home  string // the identity of the [Home] that launches it; only that one's supervisors do
	Spec  Spec   // without the values of secrets
	// Secrets are the values of Spec.SecretEnv, kept until the command has begun.
	Secrets        map[string]string
	Principal      string // who started it, as proved; empty: not known
	IdempotencyKey string
	Request        string // digest of what was asked for with the key

	Status Status
	Paused bool

	Launches int64     // how often it was claimed; the last one's directory has this number
	Claim    string    // token of the launch; every write of it names it
	Launcher string    // process that claimed it
	Began    time.Time // of the claim
	Runner   string    // process that owns the command

	StopBy    string    // who wants it stopped; empty: nobody
	StopAt    time.Time // of the order whose patience ends first
	KillAfter time.Duration

	ExitCode int // of a command that ended by itself; -1: none
	Signal   string
	Failure  string // why it did not complete, in words; also that the store went back while it ran

	Progress []byte // data of the last output of type progress, JSON
	Outputs  int64  // job.output events so far
	Dropped  bool   // there were more than MaxOutputs
	Offset   int64  // bytes of the launch's events that are in the store

	Pending   int64 // questions that wait
	Questions int64 // questions in all; the number of the latest

	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	CleanedAt time.Time // it is being deleted, and is not seen any more

	Epoch   int64 // life of the store in which it was queued or resumed
	Version int64 // grows with every write
	Head    event.Head
}

// Ref names the job as a decision's owner.
func (j Job) Ref() decision.Ref { return RefOf(j.ID) }

// RefOf names a job as a decision's owner.
func RefOf(id string) decision.Ref { return decision.Ref{Kind: decision.OwnerJob, ID: id} }

// Stream is the job's event stream.
func (j Job) Stream() string { return j.Ref().Stream() }

// Clone is a copy that shares no memory with j.
func (j Job) Clone() Job {
	j.Spec = j.Spec.clone()
	j.Secrets = maps.Clone(j.Secrets)
	j.Progress = slices.Clone(j.Progress)
	j.Head.Hash = slices.Clone(j.Head.Hash)
	return j
}

func (s Spec) clone() Spec {
	s.Command, s.SecretEnv, s.Tags = slices.Clone(s.Command), slices.Clone(s.SecretEnv), slices.Clone(s.Tags)
	s.Env = maps.Clone(s.Env)
	return s
}

// Tx is what jobs need of a transaction.
type Tx interface {
	decision.Tx
	delivery.AddTx
	HomeTx
	// Job reads a job and, in a write transaction, locks it; [ErrNotFound], also for
	// one that is being cleaned up.
	Job(id string) (Job, error)
	// JobByKey reads the job that was started with that idempotency key; [ErrNotFound].
	JobByKey(space, principal, key string) (Job, error)
	// Jobs lists, newest first.
	Jobs(q Query) ([]Job, error)
	// ActiveJobs lists jobs of the home that have not ended, by id behind after.
	ActiveJobs(home, after string, limit int) ([]Job, error)
	// CountJobs counts the space's jobs and their questions, through indexes.
	CountJobs(space string) (Counts, error)
	// InsertJob writes a new job.
	InsertJob(ch Change) error
	// PutJob writes a change: guarded by the version, status and claim of prev;
	// decision.ErrMoved when another writer won.
	PutJob(prev Job, ch Change) error
	// EndTokens makes the tokens good no more that were given to the job.
	EndTokens(j Job) error
	// CleanJob marks an ended job as being deleted and leaves a tombstone of its stream.
	// Neither it nor its events and questions are read from then on.
	CleanJob(j Job, by string) error
	// CleanedJobs lists jobs of the home that are being deleted, by id behind after.
	CleanedJobs(home, after string, limit int) ([]Job, error)
	// DeleteJob deletes up to limit rows of what belongs to a job that is being
	// deleted, at last the job itself. It reports how many; fewer than limit: all is gone.
	DeleteJob(id string, limit int) (int, error)
}

// Counts are how many jobs there are, and questions that wait.
type Counts struct {
	ByStatus map[Status]int64 // without what is being cleaned up; a status that no job has is left out
	Asked    int64
}

// Query selects jobs, newest first.
type Query struct {
	Space     string
	Principal string // who started it; empty: all
	Status    Status // empty: all
	Active    bool   // only those that have not ended
	Asking    bool   // only those with a question that waits
	Name      string // empty: all
	Tag       string // empty: all
	// EndedBefore keeps those that ended earlier; zero: all.
	EndedBefore time.Time
	After       string // id of the last one seen
	Limit       int    // 1 to 500; 0 means 50
	Prefix      string // of the id
}

// Stays refuses a root that nothing can hear of any more: [ErrNotFound] where it is not
// there, [ErrRunState] where it has ended. It is asked in the transaction that adds a
// wake target.
func Stays(tx Tx, space, id string) error {
	j, err := tx.Job(id)
	switch {
	case err == nil && j.Space != space:
		return ErrNotFound.Say("There is no job %s.", id)
	case err == nil && j.Status.Terminal():
		return j.errState()
	}
	return err
}
