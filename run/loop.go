package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// loop works on the run until it waits or ends.
func (s *session) loop(ctx context.Context) (Run, error) {
	defer s.close()
	for {
		r := s.known()
		if r.Status != Running {
			return r, nil
		}
		if err := s.left(ctx); err != nil {
			return r, err
		}
		if err := s.turn(ctx); err != nil {
			s.letGo(ctx, err)
			return s.ended(err)
		}
	}
}

// left is why this process does nothing more with a run that is running; nil: it has
// a step to do.
func (s *session) left(ctx context.Context) error {
	switch r := s.known(); {
	case r.LeaseUntil.IsZero():
		return s.stopped(ctx)
	case !r.Current.Status.open():
		return r.errLost() // the lease ended before the next step could be claimed
	}
	return nil
}

// stopped is why this process gave the run back.
func (s *session) stopped(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.life.Err() != nil:
		return s.known().errLost()
	}
	return ErrStopped
}

// ended is the answer where the loop could not go on.
func (s *session) ended(err error) (Run, error) {
	r := s.known()
	switch {
	case errors.Is(err, errOver):
		return r, nil
	case errors.Is(err, errAgain):
		err = ErrRunState.Say("Something of run %s was changed in the store while it was worked on; nothing was written.", r.ID).
			Hint("Look at it: placet show %s.", r.ID)
	}
	return r, err
}

// turn is one step: the agent decides, and what it decided is recorded, checked,
// judged and carried out.
func (s *session) turn(ctx context.Context) error {
	p, err := s.decide(ctx)
	if err != nil {
		return s.undecided(ctx, err)
	}
	if err := s.record(ctx, p); err != nil {
		return err
	}
	return s.follow(ctx, p)
}

// follow does what a recorded proposal asks for.
func (s *session) follow(ctx context.Context, p Proposal) error {
	why := p.unusable()
	if why == "" && s.known().Flow.Name == "" && (p.Kind == AskApproval || p.Node != "") {
		why = "Only a flow has nodes, and asks for an approval without a tool."
	}
	if why != "" {
		return s.invalid(ctx, why)
	}
	switch p.Kind {
	case Complete:
		return s.write(ctx, func(w *writing) error {
			return w.step(End{Hold: w.hold, Status: Completed, Reason: GoalCompleted, Result: string(p.Result)})
		})
	case Fail:
		return s.write(ctx, func(w *writing) error {
			return w.step(End{Hold: w.hold, Status: Failed, Reason: GoalFailed, Detail: words(p.Text)})
		})
	case AskApproval:
		return s.askNode(ctx, p)
	}
	c, refused := s.e.calls.NewCase(s.site(), p.Tool, p.Args)
	if refused != nil {
		return s.invalid(ctx, refused.Message)
	}
	return s.act(ctx, c)
}

// decide asks the agent, which is foreign code: it may panic, hang, or change what
// it was given.
func (s *session) decide(ctx context.Context) (Proposal, error) {
	if err := s.load(ctx); err != nil {
		return Proposal{}, notAgents{err}
	}
	in := s.input()
	in.Meter = &meter{s: s, step: in.Run.Current.ID}
	ctx, stop := s.within(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.e.conf.DecideTimeout, errDecideTimeout)
	defer cancel()
	var p Proposal
	done := make(chan error, 1)
	go guarded(done, func() (err error) {
		p, err = s.e.conf.Agent.Decide(ctx, in)
		if p.size() <= MaxProposal {
			p = p.clone()
		}
		return err
	})
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			err = notAgents{context.Cause(ctx)}
			if errors.Is(context.Cause(ctx), errDecideTimeout) {
				err = errDecideTimeout
			}
		}
		return p, err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errDecideTimeout) {
			return Proposal{}, errDecideTimeout
		}
		return Proposal{}, notAgents{context.Cause(ctx)}
	}
}

var errDecideTimeout = errors.New("it did not decide in time")

// notAgents is an error that is not the agent's.
type notAgents struct{ error }

func (e notAgents) Unwrap() error { return e.error }

// undecided ends the run on an agent's error, or gives it back where the agent was
// only interrupted.
func (s *session) undecided(ctx context.Context, err error) error {
	var ours notAgents
	if errors.As(err, &ours) {
		if s.life.Err() != nil {
			return s.known().errLost()
		}
		return ours.error
	}
	end := End{Status: Failed, Reason: AgentError, Detail: "The agent failed: " + words(err.Error()), Kind: InvalidDecision}
	switch {
	case errors.Is(err, ErrModelUnavailable):
		end.Reason, end.Detail = ModelUnavailable, words(err.Error())
	case errors.Is(err, ErrLimit):
		end.Reason, end.Detail = limitOf(err), words(err.Error())
	}
	end.Message = end.Detail
	return s.write(ctx, func(w *writing) error {
		end.Hold = w.hold
		return w.step(end)
	})
}

// letGo gives back the lease of a run that could not be gone on with, so that the
// next process need not wait for its end. Where that fails the lease ends by itself.
func (s *session) letGo(ctx context.Context, why error) {
	if errors.Is(why, errOver) || errors.Is(why, ErrLeaseLost) || errors.Is(why, txn.ErrUnknown) {
		return
	}
	if err := s.giveBack(ctx); err != nil {
		s.e.conf.Log.Warn("a run's lease could not be given back; it ends by itself", "run", s.known().ID, "error", err)
	}
}

// giveBack releases the lease. A step that is not carried out yet ends with it.
func (s *session) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeOutcome)
	defer cancel()
	return s.write(ctx, func(w *writing) error {
		if w.run.Current.Status == Deciding {
			err := w.step(Observe{Hold: w.hold, Kind: WasInterrupted, Message: "The process stopped before this step was carried out."})
			if err != nil {
				return err
			}
		}
		return w.step(Release{w.hold})
	})
}

// record notes what the agent said, before anything looks at it.
func (s *session) record(ctx context.Context, p Proposal) error {
	digest := ""
	if p.Kind == CallTool {
		digest, _ = request.ArgsDigest(p.Args) // what has none is refused next
	}
	p = p.recorded()
	return s.write(ctx, func(w *writing) error {
		return w.step(Record{Hold: w.hold, Proposal: p, ArgsDigest: digest})
	})
}

// Of a proposal's words, as many bytes are recorded; what is longer is refused.
const (
	maxKind = 32
	maxName = 200 // of a tool or a node
)

// noKind is what a decision of no kind is recorded as.
const noKind ProposalKind = "none"

// recorded is p as it can be stored. What nobody could use is cut: its step says so.
func (p Proposal) recorded() Proposal {
	n := p.size()
	p.Kind, p.Tool, p.Node, p.Text = ProposalKind(upTo(maxKind, string(p.Kind))), upTo(maxName, p.Tool), upTo(maxName, p.Node), clean(p.Text)
	if p.Kind == "" {
		p.Kind = noKind
	}
	if n > MaxProposal {
		return Proposal{Kind: p.Kind, Tool: p.Tool, Node: p.Node}
	}
	if p.Raw == nil && p.Kind == Complete && len(p.Result) > 0 && canon.Valid(p.Result) != nil {
		p.Raw = p.Result // it will be nowhere else
	}
	return p
}

// upTo is s as text of at most n bytes.
func upTo(n int, s string) string {
	if len(s) > n {
		s = s[:n]
	}
	return clean(s)
}

// unusable says what is wrong with a proposal before its tool is looked up; empty: nothing.
func (p Proposal) unusable() string {
	switch {
	case p.size() > MaxProposal:
		return fmt.Sprintf("The decision has %d bytes; the limit is %d.", p.size(), MaxProposal)
	case len(p.Kind) > maxKind || len(p.Tool) > maxName || len(p.Node) > maxName:
		return "The decision has a kind, a tool or a node of a length that nothing has."
	case !validText(p.Tool) || !validText(p.Text) || !validText(p.Node):
		return "The decision has text that is not valid UTF-8, or a NUL character."
	case p.Kind == Complete && len(p.Result) > 0:
		if err := canon.Valid(p.Result); err != nil {
			return "The result is not one JSON value: " + err.Error()
		}
		if len(p.Result) > tool.MaxResult {
			return fmt.Sprintf("The result has %d bytes; the limit is %d.", len(p.Result), tool.MaxResult)
		}
	case p.Kind == CallTool && p.Tool == "":
		return "The decision names no tool."
	case p.Kind != Complete && p.Kind != Fail && p.Kind != CallTool && p.Kind != AskApproval:
		return fmt.Sprintf("The kind of the decision is %q; it is tool_call, complete or fail.", p.Kind)
	}
	return ""
}

// clean is text as it can be stored in a column: what is not is replaced. The bytes
// as they came are kept beside it where there are any.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// maxWords bounds what others say in an error, in bytes.
const maxWords = 16 << 10

// words is what others say, as it is kept for people and for the agent: with its size,
// where it is longer than anybody reads.
func words(s string) string {
	if len(s) <= maxWords {
		return clean(s)
	}
	return fmt.Sprintf("%s … (%d bytes)", clean(s[:maxWords]), len(s))
}

func (s *session) invalid(ctx context.Context, why string) error {
	return s.observe(ctx, Observe{Kind: InvalidDecision, Message: words(why)})
}

// observe ends the step and claims the next.
func (s *session) observe(ctx context.Context, o Observe) error {
	return s.write(ctx, func(w *writing) error {
		o.Hold = w.hold
		if err := w.step(o); err != nil {
			return err
		}
		return s.next(ctx, w)
	})
}

// judgeTries is how often a request is judged again because something moved
// between the judging and the writing (design §4, rule 1).
const judgeTries = 3

// act judges a fresh request and does what the judging came to.
func (s *session) act(ctx context.Context, c *call.Case) error {
	for range judgeTries {
		if err := s.e.calls.Judge(ctx, c); err != nil {
			return s.unjudged(ctx, err)
		}
		err := s.apply(ctx, c)
		if !errors.Is(err, errAgain) {
			return err
		}
		var refused *call.Result
		if c, refused = s.e.calls.NewCase(s.site(), c.Call().Tool, c.Call().Args); refused != nil {
			return s.invalid(ctx, refused.Message)
		}
	}
	return ErrRunState.Say("The request changed while it was judged, %d times in a row; nothing was started.", judgeTries).Hint("Try again.")
}

// unjudged fails a run whose policy cannot be acted on.
func (s *session) unjudged(ctx context.Context, err error) error {
	if !errors.Is(err, policy.ErrRuling) && !errors.Is(err, request.ErrUnencodable) {
		return err // the store's
	}
	return s.write(ctx, func(w *writing) error {
		return w.step(internal(w, err))
	})
}

func internal(w *writing, err error) End {
	detail := words(err.Error())
	return End{Hold: w.hold, Status: Failed, Reason: InternalError, Detail: detail, Kind: PolicyDenied, Message: detail}
}

func (s *session) apply(ctx context.Context, c *call.Case) error {
	kind, why := c.Refused()
	switch {
	case kind != "":
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, kind, why) })
	case c.Asks():
		return s.pause(ctx, c)
	case s.reach == holds:
		s.held = c
		return nil
	}
	return s.carryOut(ctx, c)
}

// judged notes the policy's ruling, if it was asked.
func (w *writing) judged(c *call.Case) error {
	ru := c.Ruling()
	if ru.Outcome == "" {
		return nil
	}
	return w.step(Judged{Ruling{Outcome: ru.Outcome, Reason: ru.Reason, Kind: ru.Kind}})
}

// refuse ends a step that a gate stopped: an abort ends the run with it.
func (s *session) refuse(ctx context.Context, w *writing, c *call.Case, kind call.Kind, why string) error {
	if err := w.judged(c); err != nil {
		return err
	}
	if kind == call.KindPolicyAbort {
		return w.step(End{Hold: w.hold, Status: Failed, Reason: PolicyAbort, Detail: why, Kind: PolicyDenied, Message: why})
	}
	observed := PolicyDenied
	if kind == call.KindInvalidArguments {
		observed = InvalidDecision
	}
	if err := w.step(Observe{Hold: w.hold, Kind: observed, Message: why}); err != nil {
		return err
	}
	return s.next(ctx, w)
}

// pause stores the request and lets go of the run. Where too many wait already the
// step is refused.
func (s *session) pause(ctx context.Context, c *call.Case) error {
	err := s.write(ctx, func(w *writing) error {
		if err := w.judged(c); err != nil {
			return err
		}
		if err := w.tell(); err != nil {
			return err
		}
		d, err := s.e.calls.Ask(w.tx, c)
		if err != nil {
			return err
		}
		return w.step(Pause{w.hold, d, c.Call().ID})
	})
	if errors.Is(err, decision.ErrTooManyPending) {
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, call.KindGuardRefused, err.Error()) })
	}
	return err
}

// carryOut starts the tool, calls it and records how it went.
func (s *session) carryOut(ctx context.Context, c *call.Case) error {
	st, asked, err := s.start(ctx, c)
	if errors.Is(err, call.ErrGuardRefused) {
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, call.KindGuardRefused, messageOf(err)) })
	}
	if err != nil {
		return err
	}
	return s.carry(ctx, c, st, asked)
}

// carry calls the tool of an attempt whose start is committed and records how it
// went, unless its caller is to do that.
func (s *session) carry(ctx context.Context, c *call.Case, st call.Started, asked time.Time) error {
	if out := s.tardy(asked); out != nil {
		return s.finish(ctx, c, st, *out)
	}
	if s.reach == reserves {
		s.reserved = &attempt{c, st}
		return nil
	}
	return s.finish(ctx, c, st, s.invoke(ctx, c, st))
}

// attempt is one that somebody else carries out.
type attempt struct {
	c  *call.Case
	st call.Started
}

func messageOf(err error) string { return fault.From(err).Message }

// start commits the start of an attempt, the policy's word before it.
func (s *session) start(ctx context.Context, c *call.Case) (st call.Started, asked time.Time, err error) {
	asked = time.Now() // monotonic: taken before the commit is asked for
	err = s.write(ctx, func(w *writing) (err error) {
		if err := w.judged(c); err != nil {
			return err
		}
		if err := w.tell(); err != nil {
			return err
		}
		if st, err = s.e.calls.Start(w.tx, c); err != nil {
			return err
		}
		return w.step(Execute{w.hold, c.Call().ID})
	})
	return st, asked, err
}

// tardy is the outcome of an attempt whose tool is not called because storing its
// start took most of the lease (design §4, rule 4).
func (s *session) tardy(asked time.Time) *call.Outcome {
	if time.Since(asked) < s.e.conf.LeaseTTL*2/3 {
		return nil
	}
	return &call.Outcome{
		Status: call.Failed, Kind: call.KindNotStarted,
		Message: "Storing the start took longer than two thirds of the lease; the tool was not called.",
	}
}

func (s *session) invoke(ctx context.Context, c *call.Case, st call.Started) call.Outcome {
	ctx, stop := s.within(ctx)
	defer stop()
	return s.e.calls.Invoke(ctx, c, st, s.keeper.holds, func(late call.Outcome) { s.recordLate(c, st, late) })
}

// writeOutcome bounds how long an outcome is tried to be written after the tool
// returned; then the lease ends and the outcome is unknown.
const writeOutcome = 30 * time.Second

// finish records an outcome, also where ctx has ended, and claims the next step.
func (s *session) finish(ctx context.Context, c *call.Case, st call.Started, out call.Outcome) error {
	unknown := false
	end := func(outer context.Context, unmoved bool) error {
		return s.write(outer, func(w *writing) error {
			unknown = false
			c.Moved(w.run.ApprovalN)
			ended, err := s.e.calls.End(w.tx, c, st, out, false, unmoved)
			if err != nil {
				return err
			}
			if ended.Call.Status == call.Unknown {
				unknown = ended.Asked == nil
				return s.doubt(w, c, ended.Asked, out.Message)
			}
			return s.outcome(ctx, w, out)
		})
	}
	err := s.persist(ctx, func(outer context.Context) error {
		err := end(outer, true)
		if errors.Is(err, errAgain) { // its lease was renewed since
			err = end(outer, false)
		}
		return err
	})
	switch {
	case errors.Is(err, errOver), errors.Is(err, ErrLeaseLost):
		s.recordLate(c, st, out)
		return err
	case err != nil:
		return unstored(st, err)
	case unknown && !s.closing:
		return s.settle(ctx)
	}
	return nil
}

// outcome is what the step learns of a tool that ended.
func (s *session) outcome(ctx context.Context, w *writing, out call.Outcome) error {
	o := Observe{Hold: w.hold, Kind: ToolResult, Result: string(out.Result)}
	if out.Status != call.Succeeded {
		o.Kind, o.Message = ToolError, out.Message
	}
	if err := w.step(o); err != nil {
		return err
	}
	if out.Abort {
		return w.step(End{Hold: w.hold, Status: Failed, Reason: ToolAbort, Detail: out.Message})
	}
	return s.next(ctx, w)
}

// doubt notes that an outcome is unknown: the run waits for a person where only they
// can say what is to become of it.
func (s *session) doubt(w *writing, c *call.Case, asked *decision.Decision, why string) error {
	if err := w.step(Interrupt{w.hold, why}); err != nil || asked == nil {
		return err
	}
	return w.step(Pause{w.hold, *asked, c.Call().ID})
}

// recordLate writes the outcome of an attempt whose run went on, or ended, without
// it. Nobody waits for it any more, so a failure is logged.
func (s *session) recordLate(c *call.Case, st call.Started, out call.Outcome) {
	if err := s.storeLate(c, st, out); err != nil {
		a := st.Attempt()
		s.e.conf.Log.Error("a late outcome could not be stored", "call", a.CallID, "attempt", a.N, "status", out.Status, "error", err)
	}
}

func (s *session) storeLate(c *call.Case, st call.Started, out call.Outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeOutcome)
	defer cancel()
	return retry(ctx, func() error {
		return s.e.update(ctx, func(tx Tx) error {
			r, err := tx.Run(c.Call().RunID)
			if err != nil {
				return err
			}
			_, err = s.e.calls.End(tx, c, st, out, r.Status.Terminal(), false)
			return err
		})
	})
}

// persist repeats a write that the outcome of a tool hangs on, also where ctx has
// ended. Where it is not known whether it was committed, the run tells.
func (s *session) persist(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeOutcome)
	defer cancel()
	before := s.known()
	return retry(ctx, func() error {
		err := write(ctx)
		if !errors.Is(err, txn.ErrUnknown) {
			return err
		}
		r, readErr := s.e.read(ctx, before.ID)
		if readErr == nil && r.Fence == before.Fence && (r.Status != before.Status || r.Current.ID != before.Current.ID || r.Current.Status != before.Current.Status) {
			s.relearn(r)
			return nil // nobody else can have written that: it was committed
		}
		return err
	})
}

// relearn is adopt where it is not known what was written: what came before is read again.
func (s *session) relearn(r Run) {
	s.mu.Lock()
	s.steps, s.approvals, s.loaded = nil, nil, false
	s.mu.Unlock()
	s.adopt(r, nil, time.Time{})
}

// retry repeats a guarded write while it is known that nothing, or not known whether
// anything, was written.
func retry(ctx context.Context, write func() error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := write()
		if err == nil || !errors.Is(err, txn.ErrNotCommitted) && !errors.Is(err, txn.ErrUnknown) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// unstored says that an attempt was begun and that its outcome is in no store.
func unstored(st call.Started, err error) error {
	a := st.Attempt()
	e := txn.ErrUnknown.Say("Call %s was started (attempt %d), but how it ended could not be stored: %s", a.CallID, a.N, err).
		Hint("Look at it: placet show %s.", a.CallID)
	if errors.Is(err, txn.ErrNotCommitted) {
		return e
	}
	return e.Because(err)
}
