package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/fault"
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
		a.newWakeChange("remove", "Tell a target nothing more; what was not sent to it is dropped", "is removed; what was not sent to it is dropped.", (*httpapi.Client).RemoveWakeTarget),
		a.newWakeChange("enable", "Put a target in use again that was disabled", "is in use. What was given up is not sent by itself: placet deliveries --status dead.", (*httpapi.Client).EnableWakeTarget),
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
and --run it hears of all jobs, runs and calls. Without --event it hears of what people
are asked, and of the end: of a job with --job, of runs otherwise. A webhook's secret is
shown this once.`,
		Example: `  placet wake add --url https://example.com/hook
  placet wake add --url https://example.com/hook --event completed --event failed
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
	f.BoolVar(&w.relay, "relay", false, "a client that polls: docs/guide/wakes.md")
	f.StringVar(&w.adding.Name, "name", "", "`NAME` for people")
	f.Int64Var(&w.adding.MaxAttempts, "max-attempts", delivery.DefaultMaxAttempts, "`N` tries before it is given up")
	f.DurationVar(&w.retryDelay, "retry-delay", delivery.DefaultRetryDelay, "a `TIME` before the second try; later ones wait longer")
	f.DurationVar(&w.timeout, "timeout", delivery.DefaultTimeout, "a `TIME` for one try")
	f.DurationVar(&w.maxAge, "max-age", delivery.DefaultMaxAge, "a `TIME` after which what has not arrived is given up")
	f.BoolVar(&w.adding.Unordered, "unordered", false, "do not let later events wait for earlier ones")
	return c
}

// read makes of flags and a command what is to be added.
func (w *wakeFlags) read(args []string) (err error) {
	kinds := 0
	for kind, on := range map[delivery.Kind]bool{delivery.KindWebhook: w.adding.URL != "", delivery.KindCommand: len(args) > 0, delivery.KindRelay: w.relay} {
		if on {
			kinds++
			w.adding.Type = kind
		}
	}
	switch {
	case kinds == 0:
		return use("A target is a webhook, a command or a relay.", "Give one of --url URL, -- CMD… and --relay.")
	case kinds > 1:
		return use("A target is one of a webhook, a command and a relay, and more were given.", "Give one of --url URL, -- CMD… and --relay.")
	}
	if len(args) > 0 {
		if w.adding.Command, err = ownPath(args); err != nil {
			return err
		}
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
	if n := w.adding.MaxAttempts; n < 1 || n > delivery.MaxMaxAttempts {
		return use(fmt.Sprintf("--max-attempts is %d.", n), fmt.Sprintf("It is from 1 to %d.", delivery.MaxMaxAttempts))
	}
	for _, t := range []struct {
		name        string
		given       time.Duration
		least, most time.Duration
	}{
		{"retry-delay", w.retryDelay, time.Millisecond, delivery.MaxRetryDelay},
		{"timeout", w.timeout, 100 * time.Millisecond, delivery.MaxTimeout},
		{"max-age", w.maxAge, time.Second, delivery.MaxMaxAge},
	} {
		if t.given < t.least || t.given > t.most {
			return use(fmt.Sprintf("--%s is %s.", t.name, t.given), fmt.Sprintf("It is from %s to %s.", t.least, t.most))
		}
	}
	w.adding.RetryDelaySeconds, w.adding.TimeoutSeconds, w.adding.MaxAgeSeconds = w.retryDelay.Seconds(), w.timeout.Seconds(), w.maxAge.Seconds()
	return nil
}

// ownPath is a command whose program, where it is a path, is found from this folder: the
// daemon is in another.
func ownPath(words []string) ([]string, error) {
	if !strings.Contains(words[0], "/") || filepath.IsAbs(words[0]) {
		return words, nil
	}
	path, err := filepath.Abs(words[0])
	if err != nil {
		return nil, fault.New(fault.Invalid, "The folder that this command runs in is not there any more.").Hint("Write the program's absolute path.").Because(err)
	}
	return append([]string{path}, words[1:]...), nil
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
	if t.OldSecretUntil != "" {
		a.note("The secret before it signs too until %s: change the receiver's before then.", own(t.OldSecretUntil))
	}
	a.note("Of %s it hears: %s.", own(targetOf(t)), own(strings.Join(t.Events, ", ")))
	if t.Type == delivery.KindRelay {
		a.note("Its client polls: GET /v1/relay/poll?target_id=%s (docs/guide/wakes.md).", own(t.TargetID))
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
	t := a.table("id", "name", "type", "status", "to", "events", "of")
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
			t.row(w.TargetID, startOf(a.line(w.Name), 24), string(w.Type), w.Status, startOf(a.line(targetTo(w)), 48), startOf(strings.Join(w.Events, ", "), 48), targetOf(w))
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
	return ""
}

// targetOf says what a target hears of.
func targetOf(w delivery.Object) string {
	if w.JobID+w.RunID == "" {
		return "all runs, calls and jobs"
	}
	return w.JobID + w.RunID
}

func newWakeShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show TARGET",
		Short: "Show a target",
		Args:  oneArg("TARGET", "placet wake list shows the targets"),
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
		{"old secret", own(untilOr(t.OldSecretUntil))},
		{"to", p.foreign(targetTo(t))},
		{"name", p.foreign(t.Name)},
		{"headers", p.foreign(strings.Join(t.Headers, ", "))},
		{"hears of", own(targetOf(t))},
		{"events", own(strings.Join(t.Events, ", "))},
		{"attempts", own(fmt.Sprintf("at most %d, of %s each; the second after %s, given up after %s", t.MaxAttempts, secs(t.TimeoutSeconds), secs(t.RetryDelaySeconds), secs(t.MaxAgeSeconds)))},
		{"added", own(t.CreatedAt + by(t.Principal))},
	})
	return nil
}

func untilOr(until string) string {
	if until == "" {
		return ""
	}
	return "signs too until " + until
}

func secs(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

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

func (a *app) newWakeChange(word, short, done string, how func(*httpapi.Client, context.Context, string) (delivery.Object, error)) *cobra.Command {
	return &cobra.Command{
		Use: word + " TARGET", Short: short, Args: oneArg("TARGET", "placet wake list shows the targets"),
		RunE: changing(a.ofTarget(func(ctx context.Context, d reached, targetID string) error {
			t, err := how(d.Client, ctx, targetID)
			if err != nil || a.json {
				return a.tellTarget(t, err)
			}
			a.say("Wake target %s %s", own(t.TargetID), own(done))
			return nil
		})),
	}
}

func newWakeRotateCommand(a *app) *cobra.Command {
	var secret string
	var endOld bool
	c := &cobra.Command{
		Use: "rotate TARGET", Short: "Give a webhook a new secret; both sign for a day", Args: oneArg("TARGET", "placet wake list shows the targets"),
		RunE: changing(a.ofTarget(func(ctx context.Context, d reached, targetID string) error {
			t, err := d.RotateWakeTarget(ctx, targetID, httpapi.Rotating{Secret: secret, EndOld: endOld})
			return a.tellSecret(t, err)
		})),
	}
	c.Flags().StringVar(&secret, "secret", "", "the new `SECRET`, whsec_ and base64 (default one is made)")
	c.Flags().BoolVar(&endOld, "end-old", false, "do it although the secret before the present one still signs: it ends at once")
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
