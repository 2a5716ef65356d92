package store

import (
	"context"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Tx is the union of the nouns' ports. Every noun's own Tx is a part of it.
type Tx interface {
	run.Tx // holds call's, decision's and event's
	token.Tx
	job.Tx
	delivery.Tx
}

// Rows is what a backend implements: rows in, rows out, nothing judged. Every
// method belongs to one transaction. What is not there is decision.ErrNotFound. A
// guarded write that another writer was quicker than fails with decision.ErrMoved,
// unless it says that it reports false; the error of a write may come only when the
// transaction is committed.
type Rows interface {
	txn.Tx
	// StoreID is random, and a store's for good: a copy of it has the same.
	StoreID() string
	Epoch() int64
	RestoredTo() time.Time
	// Latest is Now, or later where a lock was taken after that was read: events of one
	// stream never go back in time.
	Latest() time.Time
	// Touch wakes watchers of the stream once the transaction is committed.
	Touch(stream string)

	// InsertEvents numbers them, or has the database do it: their Seq and Pos are 0 then.
	InsertEvents(es []event.Event) error
	Events(q event.Query) ([]event.Event, error)
	EmptyEvent(stream string, streamSeq int64) (bool, error)
	LastPos() (int64, error)
	Heads(after string, limit int) ([]event.Head, error)
	// RootHead is a stream's head and space, from its root's row; event.ErrNoStream.
	RootHead(stream string) (event.Head, string, error)
	// PutHead writes a stream's new head and raises the root's version. It is guarded by prev.
	PutHead(prev, h event.Head) error

	Decision(id string) (decision.Decision, error)
	LockDecision(id string) (decision.Decision, error)
	DecisionByKey(owner decision.Ref, key string) (decision.Decision, error)
	Decisions(q decision.Query) ([]decision.Decision, error)
	Queue(q decision.Queued) (decision.QueuePage, error)
	QueueCounts(space string) ([]decision.QueueCount, error)
	LastApproved(space, tool, before string) (decision.Decision, error)
	SettledDecisions(q decision.Settled) ([]decision.Decision, error)
	Due(now time.Time, skip, limit int) ([]decision.Decision, error)
	InsertDecision(d decision.Decision) error
	// UpdateDecision writes what differs. It is guarded by prev's status, digest
	// and version and, with whole, by all that Decision.Same compares.
	UpdateDecision(prev, next decision.Decision, whole bool) error
	InsertVote(v decision.Vote) error

	Call(id string) (call.Call, error)
	CallByExternalID(space, runID, externalID string) (call.Call, error)
	Calls(q call.Query) ([]call.Call, error)
	LeaseEnded(space string, now time.Time, after string, limit int) ([]call.Call, error)
	Continuable(space string, now time.Time, after string, limit int) ([]call.Call, error)
	// InsertCall fails with TakenCall when the ids are in use.
	InsertCall(c call.Call) error
	// LockCall locks a call for the rest of the transaction.
	LockCall(id string) error
	// UpdateCall writes what differs, and the head in any case. It is guarded by
	// prev's version, status and fence and, with whole, by all that an attempt is bound to.
	UpdateCall(prev, next call.Call, whole bool) error
	Attempts(callID string) ([]call.Attempt, error)
	Attempt(callID string, n int64) (call.Attempt, error)
	InsertAttempt(a call.Attempt) error
	UpdateAttempt(prev, next call.Attempt) error
	GuardCount(g call.Guard) (call.Guard, error)
	PutGuard(g call.Guard) error
	DropGuard(g call.Guard) error
	CountGrants(space string) (calls, runs int64, err error)
	RunUse(space, runID string) (call.RunUse, error)
	IdempotentCall(k call.IdempotencyKey) (call.IdempotencyKey, error)
	InsertIdempotent(k call.IdempotencyKey) (bool, error)
	OldKeys(before time.Time, limit int) ([]call.IdempotencyKey, error)
	// DropKey deletes a key, guarded by its time; false: it was used anew.
	DropKey(k call.IdempotencyKey) (bool, error)

	// Run reads a run with its last step and that step's result.
	Run(id string) (run.Run, error)
	// LockRun locks a run for the rest of the transaction.
	LockRun(id string) error
	Runs(q run.Query) ([]run.Run, error)
	ContinuableRuns(space string, now time.Time, after string, limit int) ([]run.Run, error)
	Adrift(space string, now time.Time, after string, limit int) ([]run.Run, error)
	// InsertRun writes the run without its step.
	InsertRun(r run.Run) error
	// UpdateRun writes what differs of the run without its step, and the head in any
	// case. It is guarded by prev's version, status and fence.
	UpdateRun(prev, next run.Run) error
	RenewRun(id string, fence int64, until time.Time) (bool, error)
	Steps(runID string, after int64, limit int) ([]run.Step, error)
	// StepCall is the id of a step's call; empty for none.
	StepCall(runID, stepID string) (callID string, err error)
	InsertStep(s run.Step) error
	// UpdateStep writes what differs, guarded by prev's id and status.
	UpdateStep(prev, next run.Step) error

	InsertToken(t token.Token) error
	// Token is one; token.ErrNotFound.
	Token(id string) (token.Token, error)
	Tokens(q token.Query) ([]token.Token, error)
	RevokeToken(id string, at time.Time) (bool, error)
	// SignIn is one that is good; token.ErrNotFound.
	SignIn(key string) (token.SignIn, error)
	PutSignIn(s token.SignIn) error
	RenewSignIn(s token.SignIn) (bool, error)
	DropSignIn(key string) error
	DropSignIns(now time.Time, limit int) (int, error)
	// DropSignInsOf deletes those of a token.
	DropSignInsOf(tokenID string) error
	// Job reads one that is not being deleted.
	Job(id string) (job.Job, error)
	JobByKey(space, principal, key string) (job.Job, error)
	Jobs(q job.Query) ([]job.Job, error)
	ActiveJobs(home, after string, limit int) ([]job.Job, error)
	CountJobs(space string) (job.Counts, error)
	CleanedJobs(home, after string, limit int) ([]job.Job, error)
	InsertJob(j job.Job) error
	// UpdateJob writes what differs, and the head in any case. It is guarded by prev's
	// version, status and claim.
	UpdateJob(prev, next job.Job) error
	// DeleteJob deletes up to limit rows below a job that is being deleted, at last its own.
	DeleteJob(id string, limit int) (int, error)
	HomeRows
	InsertTombstone(h event.Head, space, by string) error
	// Tombstone is where a stream ended that was cleaned up; found is false if it was not.
	Tombstone(stream string) (h event.Head, found bool, err error)

	// WakeTargets are those in use that hear of a stream. They are asked for at every
	// event: a backend keeps those of every stream in memory.
	WakeTargets(space, stream string) ([]delivery.Target, error)
	// Target reads one, also one that was removed; delivery.ErrNotFound.
	Target(id string) (delivery.Target, error)
	Targets(q delivery.TargetQuery) ([]delivery.Target, error)
	CountTargets(space, stream string) (global, ofStream, most int64, err error)
	InsertTarget(t delivery.Target) error
	// UpdateTarget is guarded by prev's version; false: another writer won.
	UpdateTarget(prev, next delivery.Target) (bool, error)
	// DropTarget deletes a removed target that nothing was ever for.
	DropTarget(id string) error
	// InsertDelivery writes a new one, due at once unless it is ordered and an earlier
	// ordered one of its target and stream has not come to an end.
	InsertDelivery(d delivery.Delivery) error
	// Delivery is one; delivery.ErrNotFound.
	Delivery(id string) (delivery.Delivery, error)
	Deliveries(q delivery.Query) ([]delivery.Delivery, error)
	DeliveryAttempts(deliveryID string) ([]delivery.Attempt, error)
	CountDeliveries(space string) (map[delivery.Status]int64, error)
	// UpdateDeliveries writes what differs in each, and the attempt that begins or ends,
	// guarded by its prev's version, status, fence and epoch; false: another writer won.
	UpdateDeliveries(prev []delivery.Delivery, chs []delivery.Change) (won []bool, err error)
	// MakeDue makes the first ordered one of a target and stream due that has not come to
	// its end, unless it is due or claimed.
	MakeDue(targetID, stream string, now time.Time) error
	DueTargets(now time.Time, after string, limit int) (ids []string, at string, next time.Time, err error)
	DueOf(t delivery.Target, now time.Time, limit int) ([]delivery.Delivery, error)
	ClaimsEnded(now time.Time, skip, limit int) ([]delivery.Delivery, error)
	OfRemoved(skip, limit int) ([]delivery.Delivery, error)
	AskingSettled(after string, limit int) ([]delivery.Delivery, error)
	Overaged(now time.Time, skip, limit int) ([]delivery.Delivery, error)
	// EventsOf reads the event of each; nil: its root was cleaned up.
	EventsOf(ds []delivery.Delivery) ([]*event.Event, error)
	Settled(subject string) (bool, error)

	// Count reads a counter and, in a write transaction, holds it against limit: it
	// stays locked unless it is far below; 0: it is locked in any case. Add changes one by n.
	Count(space, name string, limit int64) (int64, error)
	Add(space, name string, n int64) error
}

// Backend runs transactions over rows. Update and View keep to txn.Store.
type Backend interface {
	// Update runs fn, and write for what fn holds back: write(false) before each
	// statement that fn runs itself, counters apart, and write(true) once fn has
	// returned nil. An error of write is fn's.
	Update(ctx context.Context, fn func(Rows) error, write func(all bool) error) error
	View(ctx context.Context, fn func(Rows) error) error
	Watch(streams ...string) (woken <-chan struct{}, stop func())
	Close() error
}

// Store is an opened store. It serves the engines of every noun and is safe for
// concurrent use.
type Store struct{ backend Backend }

var _ txn.Store = (*Store)(nil)

// New makes a store of a backend's rows. Backends call it; users call their Open.
func New(b Backend) *Store { return &Store{b} }

// Update is txn.Store's.
func (s *Store) Update(ctx context.Context, fn func(txn.Tx) error) error {
	var t *tx
	return s.backend.Update(ctx, func(r Rows) error {
		t = newTx(r)
		defer t.end()
		if err := fn(t); err != nil {
			return err
		}
		return t.failed
	}, func(all bool) error { return t.flush(all) })
}

// View is txn.Store's.
func (s *Store) View(ctx context.Context, fn func(txn.Tx) error) error {
	return s.backend.View(ctx, func(r Rows) error {
		t := newTx(r)
		if err := fn(t); err != nil {
			return err
		}
		return t.flush(true) // which says that a view cannot write
	})
}

// Watch is txn.Store's.
func (s *Store) Watch(streams ...string) (<-chan struct{}, func()) {
	return s.backend.Watch(streams...)
}

// Life is what the store was named when it was made, at random, and which of its lives this
// is. Both are the same for whoever opens it, under whatever address; what was restored or
// copied from it has its name and lives a later life. The error is a View's, or
// [fault.Unavailable] where the store was not reached.
func (s *Store) Life(ctx context.Context) (id string, epoch int64, err error) {
	err = s.backend.View(ctx, func(r Rows) error { id, epoch = r.StoreID(), r.Epoch(); return nil })
	if err == nil && id == "" {
		err = fault.New(fault.Unavailable, "The store does not say which one it is.").Hint("Try again once it can be reached.")
	}
	return id, epoch, err
}

// Close waits for what is in flight and closes the store. Twice is fine.
func (s *Store) Close() error { return s.backend.Close() }

// ApprovalReason is decision.ApprovalReason on this store.
func (s *Store) ApprovalReason(ctx context.Context, runID, approvalID string) (string, error) {
	return decision.ApprovalReason(ctx, s, runID, approvalID)
}
