package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/event"
)

type verifyObject struct {
	OK       bool         `json:"ok"`
	Streams  int          `json:"streams"`
	Events   int          `json:"events"`
	Redacted int          `json:"redacted,omitempty"`
	Heads    []string     `json:"heads"`
	Break    *breakObject `json:"break,omitempty"`
}

type breakObject struct {
	Stream    string `json:"stream"`
	StreamSeq int64  `json:"stream_seq"`
	Problem   string `json:"problem"`
}

func newVerifyCommand(a *app) *cobra.Command {
	var heads []string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain of every stream",
		Long: `Checks every event against the one before it. The end of a stream can only be
missed by comparing: keep the heads that this command prints somewhere else, and
give them back with --head.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.verify(c.Context(), heads) },
	}
	c.Flags().StringArrayVar(&heads, "head", nil, "`STREAM:SEQ:HASH` that was kept; may be given more than once")
	return c
}

func (a *app) verify(ctx context.Context, kept []string) error {
	var expect []event.Head
	for _, k := range kept {
		h, err := event.ParseHead(k)
		if err != nil {
			return usageError{err}
		}
		expect = append(expect, h)
	}
	st, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	r, err := event.Verify(ctx, st, expect)
	if err != nil {
		return err
	}
	o := verifyObject{OK: r.Break == nil, Streams: r.Streams, Events: r.Events, Redacted: r.Redacted, Heads: []string{}}
	for _, h := range r.Heads {
		o.Heads = append(o.Heads, h.String())
	}
	if b := r.Break; b != nil {
		o.Break = &breakObject{b.Stream, b.StreamSeq, b.Problem}
	}
	a.tellVerified(o)
	if !o.OK {
		return exitCode(exitFailed)
	}
	return nil
}

func (a *app) tellVerified(o verifyObject) {
	if a.json {
		a.emit(o)
		return
	}
	if b := o.Break; b != nil {
		a.say("The chain is broken at event %d of %s: %s.", b.StreamSeq, own(b.Stream), own(b.Problem))
		a.say("Before that, %s in %s hold.", count(o.Events, "event", "events"), count(o.Streams, "stream", "streams"))
		return
	}
	a.say("Everything holds: %s in %s, %d redacted.", count(o.Events, "event", "events"), count(o.Streams, "stream", "streams"), o.Redacted)
	if len(o.Heads) > 0 {
		a.say("Heads, to be kept elsewhere and given back with --head:")
	}
	for _, h := range o.Heads {
		a.say("  %s", own(h))
	}
}
