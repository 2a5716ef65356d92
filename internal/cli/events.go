package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
)

type eventsCommand struct {
	*app
	after  string
	follow bool
}

func newEventsCommand(a *app) *cobra.Command {
	e := &eventsCommand{app: a}
	c := &cobra.Command{
		Use:   "events STREAM",
		Short: "Print what happened in one stream, oldest first",
		Long: `A stream is the noun, a colon and the id: call:call_0190… or run:run_0190… The id
of a call is printed by placet call, and placet show apr_… has it. A call of a run
writes to the stream of the run.`,
		Args: oneArg("STREAM", "such as call:call_…"),
		RunE: func(c *cobra.Command, args []string) error { return e.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&e.after, "after", "", "go on after this `CURSOR`, which an event has")
	c.Flags().BoolVar(&e.follow, "follow", false, "stay, and print what comes, until interrupted")
	c.AddCommand(newRedactCommand(a))
	return c
}

func (e *eventsCommand) run(ctx context.Context, given string) error {
	st, err := e.read(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	stream, err := e.streamOf(ctx, st, given)
	if err != nil {
		return err
	}
	if jobID, ok := strings.CutPrefix(stream, string(decision.OwnerJob)+":"); ok {
		if err := e.takeIn(ctx, st, jobID); err != nil && !errors.Is(err, decision.ErrNotFound) {
			return err
		}
	}
	cursor := event.Cursor(e.after)
	for {
		page, err := event.Read(ctx, st, stream, cursor, 0)
		if err != nil {
			return e.end(ctx, noStream(stream, err))
		}
		if err := e.print(ctx, st, page.Events); err != nil {
			return e.end(ctx, err)
		}
		cursor = page.Cursor
		if len(page.Events) > 0 {
			continue
		}
		if !e.follow {
			return nil
		}
		// The next reading starts where this one ended: it prints the event that ends the wait.
		if _, err := event.Wait(ctx, st, event.Waiting{Stream: stream, After: cursor}); err != nil {
			return e.end(ctx, err)
		}
	}
}

// end makes the end of following, by a signal, no failure.
func (e *eventsCommand) end(ctx context.Context, err error) error {
	if !e.follow || ctx.Err() == nil {
		return err
	}
	return nil
}

func noStream(stream string, err error) error {
	if errors.Is(err, event.ErrNoStream) && !errors.Is(err, event.ErrCursor) {
		return event.ErrNoStream.Say("There is no stream %s.", stream)
	}
	return err
}

func (e *eventsCommand) print(ctx context.Context, st *store.Store, es []event.Event) error {
	if len(es) == 0 {
		return nil
	}
	m, err := e.streamMask(ctx, st, es[0].Stream)
	if err != nil {
		return err
	}
	for _, ev := range es {
		o := eventObjectOf(ev, m)
		emit, payload := func() { e.emit(o) }, "(redacted)"
		switch {
		case ev.Redacted:
		case strings.HasPrefix(ev.Stream, "job:"):
			o.Payload = e.storedPayload(ctx, st, ev)
			emit = func() { e.emitMasked(encode(o)) }
			payload = display.Excerpt(string(o.Payload), 0)
		default:
			payload = m.Value(o.Payload)
		}
		if e.json {
			emit()
			continue
		}
		e.say("%4d  %s  %-20s  %-12s  %s", ev.StreamSeq, own(stamp(ev.At)), safe(display.Short(string(ev.Type), 40)),
			safe(display.Short(ev.Actor, 24)), safe(payload))
	}
	return nil
}

// streamMask knows the secrets of what the stream belongs to, as far as it is stored by now.
func (a *app) streamMask(ctx context.Context, st *store.Store, stream string) (*display.Mask, error) {
	if runID, ok := strings.CutPrefix(stream, "run:"); ok {
		w, err := readRun(ctx, st, runID)
		if errors.Is(err, decision.ErrNotFound) {
			return a.mask, nil
		}
		return a.runMask(a.known(), w.steps, w.approvals), err
	}
	callID, ok := strings.CutPrefix(stream, "call:")
	if !ok {
		return a.mask, nil
	}
	k, err := readCall(ctx, st, callID)
	if errors.Is(err, decision.ErrNotFound) {
		return a.mask, nil
	}
	return a.callMask(k), err
}

// streamOf checks a stream's name, and completes the id in it.
func (a *app) streamOf(ctx context.Context, st *store.Store, given string) (string, error) {
	noun, rest, ok := strings.Cut(given, ":")
	prefix, isNoun := map[string]string{"call": id.Call, "run": id.Run, "job": id.Job}[noun]
	if !ok || !isNoun {
		err := event.ErrBadStream.Say("%s is not a stream.", quote(given))
		if p, name := kindOf(given); p == id.Call || p == id.Run || p == id.Job {
			return "", err.Hint("Write %s:%s.", name, given)
		}
		return "", err.Hint("A stream is the noun, a colon and the id: call:call_….")
	}
	full, err := a.find(ctx, st, rest, prefix)
	if errors.Is(err, decision.ErrNotFound) {
		return "", event.ErrNoStream.Say("There is no stream %s.", given)
	}
	return noun + ":" + full, err
}

func newRedactCommand(a *app) *cobra.Command {
	var flags answerFlags
	c := &cobra.Command{
		Use:   "redact STREAM STREAM_SEQ",
		Short: "Empty the body of one event for good; the chain still verifies",
		Args:  twoArgs("STREAM", "STREAM_SEQ"),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		seq, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || seq < 1 {
			return use(quote(args[1])+" is not the number of an event.", "Give its stream_seq: 1 is the stream's first.")
		}
		if flags.note == "" {
			return use("A redaction says why.", "Add --note TEXT.")
		}
		return a.redact(c.Context(), args[0], seq, flags.name(c), flags.note)
	}
	return c
}

func (a *app) redact(ctx context.Context, given string, seq int64, by, note string) error {
	if err := decision.CheckAnswer(decision.Answer{By: by, Note: note}); err != nil {
		return err
	}
	st, err := a.write(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	stream, err := a.streamOf(ctx, st, given)
	if err != nil {
		return err
	}
	if err := event.Redact(ctx, st, stream, seq, by, note); err != nil {
		return noStreamOrEvent(stream, err)
	}
	if !a.json {
		a.say("The body of event %d of %s is empty from now on. Who did it and why is the stream's last event.", seq, own(stream))
		return nil
	}
	emptied, err := readEvent(ctx, st, stream, seq)
	if err == nil {
		a.emit(eventObjectOf(emptied, a.mask))
	}
	return err
}

// noStreamOrEvent leaves the sentence about a missing event alone: its reason is the same.
func noStreamOrEvent(stream string, err error) error {
	if err.Error() == event.ErrNoStream.Error() {
		return noStream(stream, err)
	}
	return err
}

func readEvent(ctx context.Context, st *store.Store, stream string, seq int64) (e event.Event, err error) {
	var cursor event.Cursor
	for {
		page, err := event.Read(ctx, st, stream, cursor, 1000)
		if err != nil {
			return e, err
		}
		for _, e := range page.Events {
			if e.StreamSeq == seq {
				return e, nil
			}
		}
		if len(page.Events) == 0 {
			return e, event.ErrNoEvent
		}
		cursor = page.Cursor
	}
}
