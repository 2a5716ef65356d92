package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// Invoke carries out one attempt: it runs t with the arguments of c for at most
// t.Timeout(), on a goroutine of its own, and sorts what came of it (see [Outcome]).
// It never panics because of the tool. It asks [StartCheck] before it begins.
//
// Invoke returns no later than the time limit or the end of ctx. A tool that goes on
// regardless is not waited for: the outcome is marked [Outcome.Running], and when the
// tool ends at last, late is called once with what it then returned, on the tool's
// goroutine. In every other case late is not called. It may be nil.
func Invoke(ctx context.Context, t *Tool, c Call, late func(Outcome)) Outcome {
	if ctx.Err() != nil {
		return notStarted("The tool was not started: " + because(context.Cause(ctx)) + ".")
	}
	if t.Run == nil {
		return notStarted("The tool was not started: it has nothing that carries it out.")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.limit(), errTimeLimit)
	c.Args = bytes.Clone(c.Args)

	var answered atomic.Bool // by whoever is first: the tool, or the end of its context
	done := make(chan Outcome, 1)
	go t.attempt(ctx, c, func(o Outcome) {
		first := answered.CompareAndSwap(false, true)
		cancel() // after it: else this end of the context could be taken for a caller's
		if first {
			done <- o
		} else if late != nil {
			late(o)
		}
	})

	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		if !answered.CompareAndSwap(false, true) {
			return <-done
		}
		o := t.cutOff(context.Cause(ctx))
		o.Running = true
		return o
	}
}

// limit is the tool's time limit, also of a tool that was not registered.
func (t *Tool) limit() time.Duration {
	if t.TimeoutMS <= 0 {
		return DefaultTimeout
	}
	return t.Timeout()
}

// errTimeLimit is the cause of a context that ended because the tool's time was up.
var errTimeLimit = fmt.Errorf("the tool's time limit: %w", context.DeadlineExceeded)

// attempt runs the tool on this goroutine, sorts how it ended and tells then.
func (t *Tool) attempt(ctx context.Context, c Call, tell func(Outcome)) {
	var result json.RawMessage
	var err error
	guarded(func() {
		if err = mayStart(ctx, "The tool was not started"); err == nil {
			result, err = t.Run.Run(ctx, c)
		}
	}, func(p *foreignPanic) {
		switch {
		case p != nil:
			o := t.unsure(KindToolPanic, "The tool "+p.Error()+".")
			o.Stack = p.stack
			tell(o)
		case err != nil && ctx.Err() != nil:
			tell(t.ofError(err, context.Cause(ctx)))
		case err != nil:
			tell(t.ofError(err, nil))
		default:
			tell(t.ofResult(result))
		}
	})
}

// cutOff is the outcome of a tool that had not ended by itself when its context did.
func (t *Tool) cutOff(cause error) Outcome {
	kind, msg := KindToolError, "The tool was stopped before it ended: "+because(cause)+"."
	switch {
	case errors.Is(cause, errTimeLimit):
		kind, msg = KindToolTimeout, fmt.Sprintf("The tool did not end within its time limit of %s.", t.limit())
	case errors.Is(cause, context.DeadlineExceeded):
		kind = KindToolTimeout
	}
	return t.unsure(kind, msg)
}

// because is why a context ended.
func because(cause error) string {
	switch {
	case errors.Is(cause, errTimeLimit):
		return "its time limit had passed"
	case cause == nil, errors.Is(cause, context.Canceled):
		return "its caller cancelled it"
	case errors.Is(cause, context.DeadlineExceeded):
		return "its caller's deadline had passed"
	}
	return short(cause.Error())
}

// foreignPanic is how foreign code ended if not by returning.
type foreignPanic struct {
	value any // nil: it ended its goroutine
	stack string
}

func (p *foreignPanic) Error() string {
	if p.value == nil {
		return "ended its goroutine without returning (runtime.Goexit)"
	}
	return fmt.Sprintf("panicked: %v", p.value)
}

// guarded calls fn, which others wrote, and then then: also when fn panics, or ends
// the goroutine with runtime.Goexit.
func guarded(fn func(), then func(*foreignPanic)) {
	p := &foreignPanic{}
	defer func() {
		if v := recover(); v != nil {
			p.value, p.stack = v, trimStack(debug.Stack())
		}
		then(p)
	}()
	fn()
	p = nil
}

// trimStack is a panic's stack from where it happened, at most 8 KiB.
func trimStack(stack []byte) string {
	s := string(stack)
	if _, below, ok := strings.Cut(s, "\npanic("); ok {
		if _, rest, ok := strings.Cut(below, "\n\t"); ok {
			_, s, _ = strings.Cut(rest, "\n")
		}
	}
	return cut(s, 8<<10)
}

// probeTimeout bounds a probe: it only asks.
const probeTimeout = 30 * time.Second

// InvokeProbe asks t's probe what became of c. It returns within 30 s and never
// panics; an error settles nothing, and neither does an answer that is not one of
// the three, a success without one JSON value as its result, or no probe at all.
func InvokeProbe(ctx context.Context, t *Tool, c Call) (ProbeResult, error) {
	if t.Probe == nil {
		return ProbeResult{}, fmt.Errorf("the tool %s has no probe", shown(t.Name))
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c.Args = bytes.Clone(c.Args)

	type answer struct {
		result ProbeResult
		err    error
	}
	done := make(chan answer, 1)
	var a answer
	go guarded(func() { a.result, a.err = t.Probe.Probe(ctx, c) }, func(p *foreignPanic) {
		if p != nil {
			a.err = fmt.Errorf("the probe %s", message(p.Error()))
		}
		done <- a
	})
	select {
	case a := <-done:
		if a.err != nil {
			return ProbeResult{}, a.err
		}
		return a.result.checked()
	case <-ctx.Done():
		return ProbeResult{}, fmt.Errorf("the probe did not answer in time: %w", ctx.Err())
	}
}

// checked is r in a form that can be stored, or why it settles nothing.
func (r ProbeResult) checked() (ProbeResult, error) {
	switch r.Outcome {
	case ProbeSucceeded:
		value, err := oneValue(r.Result)
		if err != nil {
			return ProbeResult{}, fmt.Errorf("the probe answered succeeded, but %w", err)
		}
		return ProbeResult{Outcome: r.Outcome, Result: bytes.Clone(value)}, nil
	case ProbeFailed:
		msg := r.Message
		if msg == "" {
			msg = "The probe found that the call failed."
		}
		return ProbeResult{Outcome: r.Outcome, Message: message(msg)}, nil
	case ProbeNotFound:
		return ProbeResult{Outcome: r.Outcome}, nil
	}
	return ProbeResult{}, fmt.Errorf("the probe answered %s; it may answer succeeded, failed or not_found", shown(string(r.Outcome)))
}
