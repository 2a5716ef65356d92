package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
)

func newJobCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "job",
		Short: "Start commands that go on by themselves, and look after them",
		Long: `A job is a command that runs detached: it survives the terminal and the daemon, and
it can ask people questions (placet ask) while it runs. These commands speak to the
daemon: placet serve.`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newJobStartCommand(a), newJobListCommand(a), newJobShowCommand(a), newJobTailCommand(a), newJobEventsCommand(a), newJobSendCommand(a),
		newJobWaitCommand(a), newJobStopCommand(a), newJobPauseCommand(a), newJobResumeCommand(a), newJobCleanupCommand(a),
	)
	return c
}

// ofJob runs fn with a daemon and the whole id of the job that the first argument begins.
func (a *app) ofJob(fn func(ctx context.Context, d reached, jobID string, rest []string) error) func(*cobra.Command, []string) error {
	return a.asked(func(ctx context.Context, d reached, args []string) error {
		jobID, err := d.jobID(ctx, args[0])
		if err != nil {
			return err
		}
		return fn(ctx, d, jobID, args[1:])
	})
}

// onJob is ofJob for what changes something.
func (a *app) onJob(fn func(ctx context.Context, d reached, jobID string, rest []string) error) func(*cobra.Command, []string) error {
	return changing(a.ofJob(fn))
}

func newJobStartCommand(a *app) *cobra.Command {
	var b httpapi.Starting
	var env, secretEnv, wakes []string
	c := &cobra.Command{
		Use:   "start [flags] -- CMD…",
		Short: "Start a job",
		Long: `Starts a command that goes on without this terminal. It gets only the variables that
are given with --env and --secret-env, and a small safe base.`,
		Example: `  placet job start --name train --timeout 12h -- make train
  placet job start --env REGION=eu --secret-env API_KEY -- ./sync.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 0 || len(args) == 0 {
				return use("A job needs a command.", "Write it behind --, as in placet job start -- make train.")
			}
			return nil
		},
		RunE: a.asked(func(ctx context.Context, d reached, args []string) (err error) {
			b.Command = httpapi.Command(args...)
			if b.Cwd, err = jobFolder(b.Cwd); err != nil {
				return err
			}
			if b.Env, b.SecretEnv, err = jobVariables(env, secretEnv); err != nil {
				return err
			}
			if b.WakeTargets, err = wakeTargets(wakes); err != nil {
				return err
			}
			j, err := d.StartJob(ctx, b)
			if err != nil {
				return err
			}
			if a.json {
				a.emitStarted(j)
				return notStarted(j)
			}
			a.sayJob(j)
			a.sayWhere(theDaemon, d.at)
			for _, t := range j.WakeTargets {
				a.say("wake target %s", strings.TrimSpace(string(own(t.TargetID+" "+t.Secret))))
			}
			if slices.ContainsFunc(j.WakeTargets, func(t delivery.Object) bool { return t.Secret != "" }) {
				a.note("Behind a webhook's id stands the secret with which its messages are signed. It is shown only once.")
			}
			if !j.Status.Terminal() {
				a.note("Follow it: %s", own(a.withGlobals("job", "tail", "--follow", j.JobID)))
			}
			return notStarted(j)
		}),
	}
	f := c.Flags()
	f.StringVar(&b.Name, "name", "", "`NAME` to find it by")
	secondsFlag(c, &b.TimeoutSeconds, "timeout", time.Second, job.MaxTimeout, "time limit, a `TIME` such as 1h (default none)")
	f.StringVar(&b.IdempotencyKey, "idempotency-key", "", "`KEY` by which the same command again starts no second job")
	f.StringVar(&b.Cwd, "cwd", "", "`DIR` to run in (default this one)")
	f.StringArrayVar(&env, "env", nil, "a variable, `NAME=VALUE`, or NAME for this shell's; may be repeated")
	f.StringArrayVar(&secretEnv, "secret-env", nil, "a variable whose value is masked in all output, `NAME` of this shell's; may be repeated")
	f.StringArrayVar(&wakes, "wake", nil, "a webhook's `URL` that is told of its end and its questions, or a wake target as JSON; may be repeated")
	f.StringArrayVar(&b.Tags, "tag", nil, "a `WORD` to list it by; may be repeated")
	return c
}

// emitStarted prints a job that was started. The secrets of its wake targets are told
// this once: they are the only ones that are not masked.
func (a *app) emitStarted(j httpapi.Job) {
	targets := j.WakeTargets
	j.WakeTargets = nil
	b := a.mask.JSON(encode(struct {
		httpapi.Job
		Where doer `json:"where"`
	}{j, theDaemon}))
	if len(targets) > 0 {
		b = append(append(bytes.TrimSuffix(b, []byte("}")), `,"wake_targets":`...), append(encode(targets), '}')...)
	}
	a.emitMasked(b)
}

// notStarted makes a command that could not be started a failure of this one too. How
// one that began has ended, be it at once, is the job's own.
func notStarted(j httpapi.Job) error {
	if j.Status == job.Failed && j.StartedAt == "" {
		return exitCode(exitFailed)
	}
	return nil
}

// jobFolder is where a job runs, absolute: the daemon's folder is another one.
func jobFolder(given string) (string, error) {
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", fault.New(fault.Invalid, "The folder that this command runs in is not there any more, and the job would run in it.").
			Hint("Go to another folder.").Because(err)
	}
	return dir, nil
}

// jobVariables reads NAME=VALUE, and NAME from this shell. A secret's value is never
// written on a command line.
func jobVariables(plain, secret []string) (env map[string]string, names []string, err error) {
	env = map[string]string{}
	for _, given := range plain {
		name, value, ok := strings.Cut(given, "=")
		if !ok {
			if value, ok = os.LookupEnv(name); !ok {
				return nil, nil, use("The variable "+quote(name)+" is not set here.", "Write --env NAME=VALUE, or set it.")
			}
		}
		env[name] = value
	}
	for _, name := range secret {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, nil, use("The variable "+quote(name)+" is not set here.", "A secret is taken from this shell: set it, and name it alone.")
		}
		env[name] = value
		names = append(names, name)
	}
	return env, names, nil
}

func newJobShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show one job", Args: oneArg("JOB", ""),
		RunE: a.ofJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
			j, err := d.GetJob(ctx, jobID)
			return a.tellJob(j, err)
		}),
	}
}

func newJobEventsCommand(a *app) *cobra.Command {
	var after string
	c := &cobra.Command{
		Use: "events JOB", Short: "Print a job's events, oldest first", Args: oneArg("JOB", ""),
		RunE: a.ofJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
			for cursor := event.Cursor(after); ; {
				l, err := d.JobEvents(ctx, jobID, cursor, 0)
				if err != nil || len(l.Events) == 0 {
					return err
				}
				for _, e := range l.Events {
					a.tellEvent(a.maskedEvent(ctx, d.Client, e))
				}
				cursor = l.Cursor
			}
		}),
	}
	c.Flags().StringVar(&after, "after", "", "`CURSOR` behind which to begin")
	return c
}

// tellEvent prints an event whose secrets are masked.
func (a *app) tellEvent(e event.Object) {
	if a.json {
		a.emitMasked(encode(e))
		return
	}
	payload := "(redacted)"
	if len(e.Payload) > 0 {
		payload = a.mask.Brief(e.Payload)
	}
	a.say("%s  %-18s %s  %s", own(e.At), own(e.Type), own(e.Actor), safe(payload))
}

func newJobSendCommand(a *app) *cobra.Command {
	var eof bool
	c := &cobra.Command{
		Use: "send JOB [TEXT]", Short: "Write to a job's standard input: TEXT and a line's end, or what comes on standard input",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return use(c.CommandPath()+" takes a JOB and, if you like, one TEXT.", "Quote a text of several words.")
			}
			return nil
		},
		RunE: a.onJob(func(ctx context.Context, d reached, jobID string, rest []string) error {
			var data []byte
			var err error
			if len(rest) == 1 {
				data = []byte(rest[0] + "\n")
			} else if data, err = io.ReadAll(io.LimitReader(a.in, job.MaxSend+1)); err != nil {
				return err
			}
			if err := d.SendToJob(ctx, jobID, httpapi.Input(data, eof)); err != nil {
				return err
			}
			return a.tellDone("Sent.")
		}),
	}
	c.Flags().BoolVar(&eof, "eof", false, "close it afterwards")
	return c
}

func (a *app) tellDone(words safe) error {
	if a.json {
		a.emit(struct {
			OK bool `json:"ok"`
		}{true})
		return nil
	}
	a.say("%s", words)
	return nil
}

func newJobWaitCommand(a *app) *cobra.Command {
	w := httpapi.Waiting{TimeoutSeconds: int64(job.DefaultWait / time.Second)}
	var after string
	c := &cobra.Command{
		Use: "wait JOB", Short: "Wait until a job ends, or for an event of it",
		Long: `Waits for the first of the named events, or for the end of the job. The exit code is
0 for an event, 1 where the job ended without one, 3 where the time was over.`,
		Args: oneArg("JOB", ""),
		PreRunE: func(*cobra.Command, []string) error {
			if job.CheckTypes(w.Types) != nil {
				return use("No event of a job is of one of the types "+quote(strings.Join(w.Types, ", "))+".", "There are "+wordList(job.Lifecycle())+", and output:NAME for what a job prints.")
			}
			return nil
		},
		RunE: a.ofJob(func(ctx context.Context, d reached, jobID string, _ []string) (err error) {
			if len(w.Types) == 0 && w.DecisionID == "" {
				for _, s := range []job.Status{job.Completed, job.Failed, job.TimedOut, job.Cancelled, job.Orphaned} {
					w.Types = append(w.Types, string(s))
				}
			}
			if w.DecisionID != "" {
				if w.DecisionID, err = d.questionID(ctx, w.DecisionID); err != nil {
					return err
				}
			}
			w.After = event.Cursor(after)
			got, err := d.WaitForJob(ctx, jobID, w)
			if got.Event != nil {
				*got.Event = a.maskedEvent(ctx, d.Client, *got.Event)
			}
			return a.tellWaited(got, err)
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&w.Types, "type", nil, "event `TYPE`, or output:NAME; may be repeated (default: its end)")
	f.StringVar(&w.DecisionID, "decision", "", "a question's `ID`: its answer, withdrawal or expiry")
	f.StringVar(&after, "after", "", "`CURSOR` behind which to look")
	secondsFlag(c, &w.TimeoutSeconds, "timeout", time.Second, job.MaxWait, "how long to wait, a `TIME` of at most 24h")
	return c
}

// waitWords say how a wait ended without an event.
var waitWords = map[job.Result]string{
	job.GotEnd:      "The job has ended, and nothing of this kind came.",
	job.GotTimeout:  "Nothing has come yet; the job goes on. Wait again, or longer with --timeout.",
	job.GotShutdown: "The daemon was stopped; the job goes on. Wait again once a daemon serves.",
}

func (a *app) tellWaited(got httpapi.Waited, err error) error {
	if err != nil {
		return err
	}
	switch {
	case a.json:
		a.emitMasked(encode(got))
	case got.Event != nil:
		a.tellEvent(*got.Event)
	default:
		a.say("%s", own(waitWords[got.Result]))
	}
	switch got.Result {
	case job.GotEvent, job.GotProgress:
		return nil
	case job.GotTimeout:
		return exitCode(exitTimeout)
	}
	return exitCode(exitFailed)
}

func newJobStopCommand(a *app) *cobra.Command {
	s := httpapi.Stopping{KillAfterSeconds: int64(job.DefaultKillAfter / time.Second)}
	c := &cobra.Command{
		Use: "stop JOB", Short: "End a job and all that it started", Args: oneArg("JOB", ""),
		RunE: a.onJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
			j, err := d.StopJob(ctx, jobID, s)
			return a.tellJob(j, err)
		}),
	}
	c.Flags().StringVar(&s.By, "by", osUser(), "`NAME` of who ends it")
	secondsFlag(c, &s.KillAfterSeconds, "kill-after", time.Second, job.MaxKillAfter, "how long a `TIME` it may take before it is killed")
	return c
}

func newJobPauseCommand(a *app) *cobra.Command {
	return jobActionCommand(a, "pause", "Keep a queued job from starting", (*httpapi.Client).PauseJob)
}

func newJobResumeCommand(a *app) *cobra.Command {
	return jobActionCommand(a, "resume", "Let a paused job start", (*httpapi.Client).ResumeJob)
}

func jobActionCommand(a *app, word, short string, do func(*httpapi.Client, context.Context, string, string) (httpapi.Job, error)) *cobra.Command {
	var by string
	c := &cobra.Command{
		Use: word + " JOB", Short: short, Args: oneArg("JOB", ""),
		RunE: a.onJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
			j, err := do(d.Client, ctx, jobID, by)
			return a.tellJob(j, err)
		}),
	}
	c.Flags().StringVar(&by, "by", osUser(), "`NAME` of who does it")
	return c
}

func newJobCleanupCommand(a *app) *cobra.Command {
	b := httpapi.Cleaning{OlderThanSeconds: int64(30 * 24 * time.Hour / time.Second)}
	c := &cobra.Command{
		Use: "cleanup", Short: "Delete jobs that ended long ago, with all that belongs to them", Args: noArgs,
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) error {
			gone, err := d.CleanJobs(ctx, b)
			if err != nil {
				return err
			}
			if a.json {
				a.emit(gone)
				return nil
			}
			for _, id := range gone.JobIDs {
				a.say("%s", own(id))
			}
			did := safe("deleted")
			if b.DryRun {
				did = "would be deleted"
			}
			a.note("%s %s.", count(len(gone.JobIDs), "job", "jobs"), did)
			return nil
		}),
	}
	secondsFlag(c, &b.OlderThanSeconds, "older-than", 0, job.MaxTimeout, "how long a `TIME` ago they ended; 0s is every one that has ended")
	c.Flags().BoolVar(&b.DryRun, "dry-run", false, "only say which")
	return c
}
