package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
)

func newWakeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "wake",
		Short: "Say who is to be told of events: a webhook, a program, or a client that polls",
		Long: `A wake target hears of events: of one job, of one run, or of all. Each event is sent to
it at least once, tried again when that fails, and listed by placet deliveries. These
commands speak to the daemon: placet serve.`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWakeAddCommand(a), newWakeListCommand(a), newWakeShowCommand(a),
		a.newWakeChange("remove", "Tell a target nothing more; what was not sent to it is dropped", (*httpapi.Client).RemoveWakeTarget),
		a.newWakeChange("enable", "Put a target in use again that was disabled", (*httpapi.Client).EnableWakeTarget),
		newWakeRotateCommand(a))
	return c
}

// wakeFlags are what a target is made of, as flags.
type wakeFlags struct {
	adding                      delivery.Adding
	headers                     []string
	relay                       bool
	timeout, retryDelay, maxAge time.Duration
}

func newWakeAddCommand(a *app) *cobra.Command {
	var w wakeFlags
	var of, run string
	c := &cobra.Command{
		Use:   "add [flags] [-- CMD…]",
		Short: "Add a target",
		Long: `Adds a target. Give --url for a webhook, a command behind -- for a program that gets
each message on its standard input, or --relay for a client that polls. Without --job
and --run it hears of everything; without --event, of ends and of what people are asked.
A webhook's secret is shown this once.`,
		Example: `  placet wake add --url https://example.com/hook
  placet wake add --job "$JOB" --event completed --event output:progress -- ./told.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return use("A command stands behind --.", "Write it like placet wake add -- notify-send Placet.")
			}
			return nil
		},
		PreRunE: func(_ *cobra.Command, args []string) error { return w.read(args) },
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) (err error) {
			q := httpapi.Waking{Adding: w.adding}
			if q.JobID, q.RunID, err = d.rootsOf(ctx, of, run); err != nil {
				return err
			}
			t, err := d.AddWakeTarget(ctx, q)
			return a.tellSecret(t, err)
		}),
	}
	f := c.Flags()
	f.StringVar(&of, "job", "", "only events of this `JOB`")
	f.StringVar(&run, "run", "", "only events of this `RUN`")
	f.StringArrayVar(&w.adding.Events, "event", nil, "`TYPE` of event, such as approval.requested, or output:NAME for what a job prints; may be repeated")
	f.StringVar(&w.adding.URL, "url", "", "`URL` of a webhook, with https")
	f.StringArrayVar(&w.headers, "header", nil, "a header that the webhook gets, `\"NAME: VALUE\"`; may be repeated")
	f.StringVar(&w.adding.Secret, "secret", "", "the webhook's `SECRET`, whsec_ and base64 (default one is made)")
	f.BoolVar(&w.relay, "relay", false, "a client that polls: see the guide")
	f.StringVar(&w.adding.Name, "name", "", "`NAME` for people")
	f.Int64Var(&w.adding.MaxAttempts, "max-attempts", 0, "`N` tries before it is given up (default 20)")
	f.DurationVar(&w.retryDelay, "retry-delay", 0, "a `TIME` before the second try; later ones wait longer (default 5s)")
	f.DurationVar(&w.timeout, "timeout", 0, "a `TIME` for one try (default 10s)")
	f.DurationVar(&w.maxAge, "max-age", 0, "a `TIME` after which what has not arrived is given up (default 168h)")
	f.BoolVar(&w.adding.Unordered, "unordered", false, "do not let later events wait for earlier ones")
	return c
}

// read makes of flags and a command what is to be added.
func (w *wakeFlags) read(args []string) error {
	kinds := 0
	for kind, on := range map[delivery.Kind]bool{delivery.KindWebhook: w.adding.URL != "", delivery.KindCommand: len(args) > 0, delivery.KindRelay: w.relay} {
		if on {
			kinds++
			w.adding.Type = kind
		}
	}
	if kinds != 1 {
		return use("A target is a webhook, a command or a relay.", "Give one of --url URL, -- CMD… and --relay.")
	}
	if len(args) > 0 {
		w.adding.Command = args
	}
	for _, h := range w.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return use(quote(h)+" is no header.", `Write it like "Authorization: Bearer TOKEN".`)
		}
		if w.adding.Headers == nil {
			w.adding.Headers = map[string]string{}
		}
		w.adding.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	w.adding.RetryDelaySeconds, w.adding.TimeoutSeconds, w.adding.MaxAgeSeconds = w.retryDelay.Seconds(), w.timeout.Seconds(), w.maxAge.Seconds()
	return nil
}

// tellSecret prints a target that was made or got a new secret, which is told only then.
func (a *app) tellSecret(t delivery.Object, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		a.emitMasked(encode(t))
		return nil
	}
	a.say("%s", own(t.TargetID))
	if t.Secret != "" {
		a.say("%s", own(t.Secret))
		a.note("The second line is the secret with which its messages are signed. It is shown only once.")
	}
	return nil
}

func newWakeListCommand(a *app) *cobra.Command {
	var q httpapi.WakeTargetQuery
	var of, run string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the targets, newest first",
		Args:  noArgs,
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) (err error) {
			if q.JobID, q.RunID, err = d.rootsOf(ctx, of, run); err != nil {
				return err
			}
			return a.listTargets(ctx, d, q)
		}),
	}
	c.Flags().StringVar(&of, "job", "", "only those of this `JOB`")
	c.Flags().StringVar(&run, "run", "", "only those of this `RUN`")
	return c
}

func (a *app) listTargets(ctx context.Context, d reached, q httpapi.WakeTargetQuery) error {
	q.Limit = listedAtOnce
	t := a.table("id", "type", "status", "to", "events", "of")
	for {
		l, err := d.WakeTargets(ctx, q)
		if err != nil {
			return err
		}
		for _, w := range l.WakeTargets {
			if a.json {
				a.emitMasked(encode(w))
				continue
			}
			t.row(w.TargetID, string(w.Type), w.Status, startOf(targetTo(w), 48), startOf(strings.Join(w.Events, ", "), 48), targetOf(w))
		}
		if q.After = l.Next; q.After == "" {
			break
		}
	}
	t.list()
	return nil
}

// targetTo says where a target's messages go.
func targetTo(w delivery.Object) string {
	switch {
	case w.URL != "":
		return w.URL
	case len(w.Command) > 0:
		return strings.Join(w.Command, " ")
	}
	return w.Name
}

// targetOf says what a target hears of.
func targetOf(w delivery.Object) string {
	if w.JobID+w.RunID == "" {
		return "everything"
	}
	return w.JobID + w.RunID
}

func newWakeShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show TARGET",
		Short: "Show a target",
		Args:  oneArg("a TARGET", "placet wake list shows the targets."),
		RunE: a.ofTarget(func(ctx context.Context, d reached, targetID string) error {
			t, err := d.GetWakeTarget(ctx, targetID)
			return a.tellTarget(t, err)
		}),
	}
}

// tellTarget prints a target as it stands.
func (a *app) tellTarget(t delivery.Object, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		a.emitMasked(encode(t))
		return nil
	}
	p := page{a: a, to: a.out, mask: a.mask}
	p.say("Wake target %s", own(t.TargetID))
	p.facts([]fact{
		{"type", own(t.Type)},
		{"status", own(t.Status)},
		{"because", p.foreign(t.Disabled)},
		{"to", p.foreign(targetTo(t))},
		{"name", p.foreign(t.Name)},
		{"headers", p.foreign(strings.Join(t.Headers, ", "))},
		{"hears of", own(targetOf(t))},
		{"events", own(strings.Join(t.Events, ", "))},
		{"added", own(t.CreatedAt + by(t.Principal))},
	})
	return nil
}

// ofTarget runs fn with a daemon and the whole id of the target that the argument begins.
func (a *app) ofTarget(fn func(ctx context.Context, d reached, targetID string) error) func(*cobra.Command, []string) error {
	return a.asked(func(ctx context.Context, d reached, args []string) error {
		targetID, err := d.targetID(ctx, args[0])
		if err != nil {
			return err
		}
		return fn(ctx, d, targetID)
	})
}

// changing is a command that changes the one thing that its argument names.
func changing(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := anyOfAKind(args[0]); err != nil {
			return err
		}
		return run(c, args)
	}
}

func (a *app) newWakeChange(word, short string, how func(*httpapi.Client, context.Context, string) (delivery.Object, error)) *cobra.Command {
	return &cobra.Command{
		Use: word + " TARGET", Short: short, Args: oneArg("a TARGET", "placet wake list shows the targets."),
		RunE: changing(a.ofTarget(func(ctx context.Context, d reached, targetID string) error {
			t, err := how(d.Client, ctx, targetID)
			return a.tellTarget(t, err)
		})),
	}
}

func newWakeRotateCommand(a *app) *cobra.Command {
	var secret string
	c := &cobra.Command{
		Use: "rotate TARGET", Short: "Give a webhook a new secret; both sign for a day", Args: oneArg("a TARGET", "placet wake list shows the targets."),
		RunE: changing(a.ofTarget(func(ctx context.Context, d reached, targetID string) error {
			t, err := d.RotateWakeTarget(ctx, targetID, secret)
			return a.tellSecret(t, err)
		})),
	}
	c.Flags().StringVar(&secret, "secret", "", "the new `SECRET`, whsec_ and base64 (default one is made)")
	return c
}

// wakeTargets reads what --wake was given: the URL of a webhook, or a target as JSON.
func wakeTargets(given []string) (as []delivery.Adding, err error) {
	for _, text := range given {
		a := delivery.Adding{Type: delivery.KindWebhook, URL: text}
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			a = delivery.Adding{}
			dec := json.NewDecoder(strings.NewReader(text))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&a); err != nil {
				return nil, use("--wake: the target cannot be read.", `Write it like '{"type":"webhook","url":"https://example.com/hook","events":["completed"]}'.`)
			}
		}
		as = append(as, a)
	}
	return as, nil
}
