package call

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/tool"
)

// A run's step makes its tool call through this file: the stages, the ledger and
// the tool are those of every other call, but the run's engine writes what is the
// run's in the same transactions. Methods that take a Tx write; the caller has
// locked the run. The others run foreign code and hold no transaction.

// Site is where a call below a run's step hangs.
type Site struct {
	RunID      string
	StepID     string
	Space      string
	ApprovalID string // the step's latest
	Approvals  int64  // how many the run has had
	Tool       string // that the step is to call
	ArgsDigest string
	Principal  string
	Metadata   map[string]string

	// What policies see of the run.
	Goal  string
	Index int

	// The run's own limits; 0: none. The shorter one of these and the executor's counts.
	ApprovalTTL, GrantTTL time.Duration
}

// Case is a hosted call on its way through the stages.
type Case struct {
	s subject
	v verdict
}

// NewCase is the first stages of a step's call: bounds, tool, schema. Arguments
// that do not pass are a Result of status invalid, and nothing is stored.
func (e *Executor) NewCase(site Site, toolName string, args []byte) (*Case, *Result) {
	args = bytes.Clone(args)
	s, refused := e.admit(toolName, args)
	if refused != nil {
		return nil, refused
	}
	s.site = site
	s.call = Call{
		ID: e.conf.NewID(id.Call), Space: e.conf.Space, RunID: site.RunID, StepID: site.StepID, Tool: toolName,
		SpecDigest: s.tool.SpecDigest(), Recovery: recoveryOf(s.tool), Args: args, ArgsDigest: s.argsDigest,
		Principal: site.Principal, Metadata: maps.Clone(site.Metadata), ContinueBy: ByCaller,
	}
	return &Case{s: s}, nil
}

// OpenCase reads a step's call as it is stored, to go on with it: under the
// approval, if one is named. [ErrApprovalHash] where the rows do not belong
// together, and a plain error where the tool is not registered here.
func (e *Executor) OpenCase(tx Tx, site Site, callID, approvalID string) (*Case, error) {
	c, err := tx.Call(callID)
	if err != nil {
		return nil, err
	}
	s := subject{call: c, argsDigest: c.ArgsDigest, life: e.lifeOf(tx), site: site}
	if approvalID != "" {
		d, err := tx.Decision(approvalID)
		if err != nil {
			return nil, err
		}
		s.grant = &d
	}
	if err := s.readAttempt(tx); err != nil {
		return nil, err
	}
	switch {
	case s.grant != nil && !(site.has(c) && belongs(*s.grant, c)):
		return nil, errAltered(approvalID, callID)
	case !site.has(c):
		return nil, s.errForeign()
	}
	s.tool, err = e.conf.Tools.Lookup(c.Tool)
	return &Case{s: s}, err
}

// has holds a stored call against the step that it hangs below.
func (s Site) has(c Call) bool {
	return c.RunID == s.RunID && c.StepID == s.StepID && c.Space == s.Space && c.ApprovalID == s.ApprovalID && c.Tool == s.Tool && c.ArgsDigest == s.ArgsDigest &&
		c.Principal == s.Principal && maps.Equal(c.Metadata, s.Metadata)
}

// ReadOnly reports whether the call changes nothing: of the tool as it was started.
// Another one of that name promises nothing for it.
func (c *Case) ReadOnly() bool {
	return c.s.tool.SideEffect == tool.ReadOnly && c.s.call.SpecDigest == c.s.tool.SpecDigest()
}

// Call is the call as it was read or made.
func (c *Case) Call() Call { return c.s.call }

// Tool is the tool as it is registered.
func (c *Case) Tool() *tool.Tool { return c.s.tool }

// Ran is the arguments of the last attempt.
func (c *Case) Ran() []byte {
	if c.s.attempt == nil {
		return c.s.call.Args
	}
	return c.s.attempt.ran(c.s.call)
}

// Moved tells the case how many approvals its run has by now.
func (c *Case) Moved(approvals int64) { c.s.site.Approvals = approvals }

// Ruling is what the policy said; empty where a gate before it refused.
func (c *Case) Ruling() policy.Ruling { return c.v.ruling }

// Refused is why the judging stopped the request; an empty kind: it did not.
func (c *Case) Refused() (Kind, string) {
	if c.v.refuse == nil {
		return "", ""
	}
	return c.v.refuse.kind, c.v.refuse.message
}

// Asks reports whether a person has to agree before the call runs.
func (c *Case) Asks() bool { return c.v.ask != nil }

// Unspent checks the approval that the case stands under before it is judged: a
// grant, unaltered, and the call's latest. [ErrApprovalHash], [ErrRunState].
// Whether it is in time is its holder's to ask.
func (c *Case) Unspent() error {
	d := c.s.grant
	if err := d.SoundGrant(); err != nil {
		return err
	}
	if c.s.call.ApprovalID != d.ID {
		return c.s.errLatest(c.s.call)
	}
	return c.s.bound()
}

// Unaltered holds the call against its own digests and what its attempt spent: [ErrApprovalHash].
func (c *Case) Unaltered() error { return c.s.unaltered() }

// OfEarlierLife reports whether the grant was given before the store went back in
// time, and no key of the tool protects a repeat: it cannot be spent.
func (c *Case) OfEarlierLife() bool {
	s := c.s
	return s.grant.Epoch < s.life.epoch && !s.call.keyed(recoveryOf(s.tool), s.tool.SpecDigest())
}

// Judge asks guards and policy. Its verdict is read with Refused, Asks and Ruling;
// the transaction that acts on it compares what it was judged on.
func (e *Executor) Judge(ctx context.Context, c *Case) (err error) {
	c.v, err = e.judge(ctx, c.s)
	return err
}

// Ask parks the call until a person agrees, as the judging wants: call and
// approval, and the grant that was not enough is superseded. [ErrTooManyPending].
func (e *Executor) Ask(tx Tx, c *Case) (decision.Decision, error) { return e.ask(tx, c.s, c.v) }

// Started is an attempt whose start is written.
type Started struct{ st started }

// Attempt is the attempt.
func (s Started) Attempt() Attempt { return s.st.attempt }

// Unstored says that the attempt was begun and that its outcome is in no store,
// whatever err, the store's last word, says. It matches txn.ErrUnknown.
func (s Started) Unstored(err error) error { return errUnstored(s.st, err) }

// Call is the call as its start left it.
func (s Started) Call() Call { return s.st.call }

// Start writes one attempt and spends the grant: [ErrGuardRefused], and
// [ErrApprovalExpired] for a grant that has grown too old. On an error the
// transaction has to be given up.
func (e *Executor) Start(tx Tx, c *Case) (Started, error) {
	st, err := e.begin(tx, c.s, c.v)
	switch {
	case errors.Is(err, errStopped):
		return Started{}, ErrGuardRefused.Say("%s", st.stopped.message)
	case err == nil && st.refuse != nil:
		err = st.refuse
	}
	return Started{st}, err
}

// Invoke calls the tool for an attempt whose start is committed. It returns once
// ctx ends; what a tool that goes on regardless answers later is told to late.
// holds is asked at the last moment before the tool begins: an error, and it does not.
func (e *Executor) Invoke(ctx context.Context, c *Case, s Started, holds func() error, late func(Outcome)) Outcome {
	e.working.add()
	out := tool.Invoke(tool.WithStartCheck(ctx, holds), c.s.tool, toolCall(s.st.call, s.st.attempt, c.v.args), func(o tool.Outcome) {
		defer e.working.done()
		late(outcomeOf(o))
	})
	if !out.Running {
		e.working.done()
	}
	return outcomeOf(out)
}

// OutcomeOf is the outcome of an attempt that the caller carried out itself, sorted
// as that of a tool which returned the same.
func (c *Case) OutcomeOf(result json.RawMessage, err error) Outcome {
	return outcomeOf(c.s.tool.OutcomeOf(result, err))
}

// Runs is the arguments that the judged call runs with.
func (c *Case) Runs() []byte { return bytes.Clone(c.v.args) }

// Hold counts a run that is worked on, so that [Executor.Wait] waits for it, until
// done is called.
func (e *Executor) Hold() (done func()) {
	e.working.add()
	return e.working.done
}

// Ended is what an outcome made of a call.
type Ended struct {
	Call  Call
	Asked *decision.Decision // whether to run it again, where only a person can say
}

// End writes the outcome of an attempt: to the attempt always, to the call while it
// is the last attempt's to say. over: the run has ended, so the outcome is late.
// unmoved: the call is taken as its start wrote it, and read no more; decision.ErrMoved
// where it is not.
func (e *Executor) End(tx Tx, c *Case, s Started, out Outcome, over, unmoved bool) (Ended, error) {
	now, err := s.st.read(tx, unmoved)
	if err != nil {
		return Ended{}, err
	}
	next, asked, err := e.end(tx, c.s, now, s.st.attempt, End{Outcome: out, Late: over})
	return Ended{next, asked}, err
}

// Lose writes the running attempt of a run that was taken over as unknown. With
// ask, and where only a person can settle it, it asks.
func (e *Executor) Lose(tx Tx, c *Case, ask bool) (*decision.Decision, error) {
	return e.lose(tx, c.s, Lose{Epoch: tx.Epoch(), TakenOver: true}, ask)
}

// AskAgain asks whether to run a call again whose outcome is unknown.
func (e *Executor) AskAgain(tx Tx, c *Case) (*decision.Decision, error) { return e.askDoubt(tx, c.s) }

// Outlive replaces a grant of an earlier life of the store and, where only a person
// can say what became of the call, asks anew.
func (e *Executor) Outlive(tx Tx, c *Case) (*decision.Decision, error) { return e.outlive(tx, c.s) }

// Supersede replaces the grant that the case stands under.
func (e *Executor) Supersede(tx Tx, c *Case) error { return e.supersede(tx, *c.s.grant) }

// GiveUp ends a parked call whose step ended otherwise.
func (e *Executor) GiveUp(tx Tx, c *Case, kind Kind, message string) error {
	now, err := c.s.unmoved(tx)
	if err != nil {
		return err
	}
	return stepHosted(tx, now, Refuse{Kind: kind, Message: message})
}

// Probe asks the tool what became of a call whose outcome is unknown. It comes to an
// outcome, or to why one has to wait; with neither, another try is possible.
func (e *Executor) Probe(ctx context.Context, c *Case) (out *Outcome, wait string, err error) {
	if c.s.tool.Probe == nil {
		return nil, "", nil
	}
	return e.askProbe(ctx, c.s)
}

// Keyed reports whether a repeat is protected by the tool's idempotency key.
func (c *Case) Keyed() bool { return c.s.recovery().key() }

// Ungranted is the case without its approval: a repeat under the tool's key.
func (c *Case) Ungranted() *Case {
	s := c.s
	s.grant = nil
	return &Case{s: s}
}

// Settle writes what became of a call whose outcome was unknown, unless that is
// known by now, and answers the question about it. The call is returned as it is then.
func (e *Executor) Settle(tx Tx, c *Case, out Outcome) (Call, error) { return e.settle(tx, c.s, out) }

// stepHosted ends a hosted call with its run: a parked one is denied, expired or
// cancelled with it; one that runs, or whose outcome is unknown, stays so until that
// is known.
func stepHosted(tx Tx, c Call, cmd Command) error {
	if c.Status != Pending {
		return nil
	}
	ch, err := c.Step(cmd, tx.Now())
	if err != nil {
		return err
	}
	return tx.PutCall(c, ch.Next, ch.Events...)
}

// DenyHosted ends a step's parked call on a person's no.
func DenyHosted(tx Tx, callID string, d decision.Decision) error {
	return onHosted(tx, callID, Refuse{Kind: KindApprovalDenied, Message: denial(d), Actor: d.DecidedBy})
}

// ExpireHosted ends one for which nobody agreed in time.
func ExpireHosted(tx Tx, callID string) error { return onHosted(tx, callID, Lapse{}) }

// CancelHosted ends one whose run was cancelled.
func CancelHosted(tx Tx, callID, by, note string) error {
	return onHosted(tx, callID, TakeBack{By: by, Note: note})
}

func onHosted(tx Tx, callID string, cmd Command) error {
	c, err := tx.Call(callID)
	if err != nil {
		return err
	}
	return stepHosted(tx, c, cmd)
}

// RenewHosted extends the lease of a step's running attempt with that of its run.
func RenewHosted(tx Tx, callID string, until time.Time) error {
	c, err := tx.Call(callID)
	if err != nil || c.Status != Running {
		return err
	}
	next := c
	next.LeaseUntil = until
	return tx.PutCall(c, next)
}

// approvalTTL and grantTTL are the executor's limits, or the shorter ones of the run.
func (e *Executor) approvalTTL(s subject) time.Duration {
	return decision.Shorter(e.conf.ApprovalTTL, s.site.ApprovalTTL)
}

func (e *Executor) grantTTL(s subject) time.Duration {
	return decision.Shorter(e.conf.GrantTTL, s.site.GrantTTL)
}

// nextApproval counts the approvals of what waits on them.
func (s subject) nextApproval() int64 {
	if s.call.Hosted() {
		return s.site.Approvals + 1
	}
	return s.call.ApprovalN + 1
}
