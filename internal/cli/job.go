package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/event"
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

// asked runs fn with a client of the daemon and the command's arguments.
func (a *app) asked(fn func(ctx context.Context, c *httpapi.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		return fn(c.Context(), client, args)
	}
}

func newJobStartCommand(a *app) *cobra.Command {
	var b httpapi.Starting
	var timeout time.Duration
	c := &cobra.Command{
		Use:     "start -- CMD…",
		Short:   "Start a job",
		Example: `  placet job start --name train --timeout 12h -- make train`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 0 || len(args) == 0 {
				return use("A job needs a command.", "Write it behind --, as in placet job start -- make train.")
			}
			return nil
		},
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) (err error) {
			if timeout != 0 && (timeout < time.Second || timeout%time.Second != 0) {
				return use("The time limit "+timeout.String()+" is no whole number of seconds.", "Write it like --timeout 1h.")
			}
			if b.Command, err = json.Marshal(args); err != nil {
				return err
			}
			if b.Cwd, err = os.Getwd(); err != nil {
				return err
			}
			b.TimeoutSeconds = int64(timeout / time.Second)
			j, err := c.StartJob(ctx, b)
			return a.tellJob(j, err)
		}),
	}
	f := c.Flags()
	f.StringVar(&b.Name, "name", "", "`NAME` to find it by")
	f.DurationVar(&timeout, "timeout", 0, "time limit, such as 1h (default none)")
	f.StringVar(&b.IdempotencyKey, "idempotency-key", "", "`KEY` by which the same command again starts no second job")
	return c
}

// tellJob prints a job as it stands.
func (a *app) tellJob(j httpapi.Job, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		a.emit(j)
		return nil
	}
	a.say("Job %s %s", own(j.JobID), own(j.Status))
	p := page{a: a, to: a.out, mask: a.mask}
	command := j.Shell
	if command == "" {
		command = strings.Join(j.Command, " ")
	}
	exit := ""
	if j.ExitCode != nil {
		exit = fmt.Sprint(*j.ExitCode)
	}
	asks := ""
	if j.PendingDecisions > 0 {
		asks = fmt.Sprintf("%d: placet decisions --job %s", j.PendingDecisions, j.JobID)
	}
	p.facts([]fact{
		{"name", p.foreign(j.Name)},
		{"command", p.foreign(command)},
		{"in", p.foreign(j.Cwd)},
		{"started by", own(j.Principal)},
		{"created", own(j.CreatedAt)},
		{"started", own(j.StartedAt)},
		{"ended", own(j.EndedAt)},
		{"exit code", own(exit)},
		{"why", p.foreign(j.FailureReason)},
		{"questions", own(asks)},
		{"progress", p.document(string(j.Progress))},
	})
	return nil
}

func newJobListCommand(a *app) *cobra.Command {
	var status string
	c := &cobra.Command{
		Use:   "list",
		Short: "List jobs: at a terminal those that need a person first, with --json the newest first",
		Args:  noArgs,
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, _ []string) error {
			return a.listJobs(ctx, c, status)
		}),
	}
	c.Flags().StringVar(&status, "status", "", "only those of this status")
	return c
}

// jobsShown is how many jobs a list has.
const jobsShown = 500

func (a *app) listJobs(ctx context.Context, c *httpapi.Client, status string) error {
	byAttention := !a.json && status == ""
	for after := ""; ; {
		l, err := c.Jobs(ctx, httpapi.JobQuery{ByAttention: byAttention, Status: job.Status(status), After: after, Limit: jobsShown})
		if err != nil {
			return err
		}
		if a.json {
			for _, j := range l.Jobs {
				a.emit(j)
			}
			if after = l.Next; after != "" {
				continue
			}
			return nil
		}
		if len(l.Jobs) == 0 {
			a.note("None.")
			return nil
		}
		t := a.table("id", "status", "name", "progress", "created", "")
		for _, j := range l.Jobs {
			t.row(j.JobID, string(j.Status), a.mask.Text(j.Name), bar(j), j.CreatedAt, attention(j))
		}
		t.print()
		return nil
	}
}

// attention is what a job needs a person for.
func attention(j httpapi.Job) string {
	switch {
	case j.PendingDecisions == 1:
		return "asks a question"
	case j.PendingDecisions > 1:
		return fmt.Sprintf("asks %d questions", j.PendingDecisions)
	case j.Status == job.Failed || j.Status == job.Orphaned:
		return "look at it"
	case j.Paused:
		return "paused"
	}
	return ""
}

// bar draws how far a running job says it is: {"current":3,"total":10}, {"fraction":0.3}
// or {"percent":30}.
func bar(j httpapi.Job) string {
	var p struct{ Current, Total, Fraction, Percent *float64 }
	if j.Status != job.Running || json.Unmarshal(j.Progress, &p) != nil {
		return ""
	}
	done := -1.0
	switch {
	case p.Fraction != nil:
		done = *p.Fraction
	case p.Percent != nil:
		done = *p.Percent / 100
	case p.Current != nil && p.Total != nil && *p.Total > 0:
		done = *p.Current / *p.Total
	}
	if done < 0 || done > 1 {
		return ""
	}
	const width = 10
	full := int(done * width)
	return strings.Repeat("#", full) + strings.Repeat(".", width-full) + fmt.Sprintf(" %3.0f%%", done*100)
}

func newJobShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show one job", Args: oneArg("JOB", ""),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			j, err := c.GetJob(ctx, args[0])
			return a.tellJob(j, err)
		}),
	}
}

func newJobTailCommand(a *app) *cobra.Command {
	var stream string
	var offset int64
	var follow bool
	c := &cobra.Command{
		Use: "tail JOB", Short: "Print what a job has printed", Args: oneArg("JOB", ""),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			return a.tailJob(ctx, c, args[0], stream, offset, follow)
		}),
	}
	f := c.Flags()
	f.StringVar(&stream, "stream", "stdout", "stdout or stderr")
	f.Int64Var(&offset, "offset", 0, "`BYTES` to leave out")
	f.BoolVar(&follow, "follow", false, "go on until the job ends")
	return c
}

func (a *app) tailJob(ctx context.Context, c *httpapi.Client, id, stream string, offset int64, follow bool) error {
	for {
		t, err := c.TailJob(ctx, id, job.Tailing{Stream: job.Stream(stream), Offset: offset, Follow: follow})
		if err != nil {
			return err
		}
		if a.json {
			a.emit(t)
		} else {
			a.printOutput(t.Data)
		}
		offset = t.Next
		if t.End || !follow && len(t.Data) == 0 {
			return nil
		}
	}
}

// printOutput prints what a command printed, escaped line by line.
func (a *app) printOutput(b []byte) {
	for _, l := range strings.SplitAfter(string(b), "\n") {
		text, whole := strings.CutSuffix(l, "\n")
		if text != "" || whole {
			fmt.Fprint(a.out, a.line(text))
		}
		if whole {
			fmt.Fprint(a.out, "\n")
		}
	}
}

func newJobEventsCommand(a *app) *cobra.Command {
	var after string
	c := &cobra.Command{
		Use: "events JOB", Short: "Print a job's events, oldest first", Args: oneArg("JOB", ""),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			for cursor := event.Cursor(after); ; {
				l, err := c.JobEvents(ctx, args[0], cursor, 0)
				if err != nil || len(l.Events) == 0 {
					return err
				}
				for _, e := range l.Events {
					a.tellEvent(e)
				}
				cursor = l.Cursor
			}
		}),
	}
	c.Flags().StringVar(&after, "after", "", "`CURSOR` behind which to begin")
	return c
}

func (a *app) tellEvent(e event.Object) {
	if a.json {
		a.emit(e)
		return
	}
	a.say("%s  %-18s %s  %s", own(e.At), own(e.Type), own(e.Actor), a.excerpt(string(e.Payload)))
}

func newJobSendCommand(a *app) *cobra.Command {
	var eof bool
	c := &cobra.Command{
		Use: "send JOB [TEXT]", Short: "Write to a job's standard input: TEXT and a line's end, or what comes on standard input",
		Args: cobra.RangeArgs(1, 2),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			s := httpapi.Sending{EOF: eof}
			if len(args) == 2 {
				s.Text = args[1] + "\n"
			} else if b, err := io.ReadAll(io.LimitReader(a.in, job.MaxSend+1)); err != nil {
				return err
			} else {
				s.Text = string(b)
			}
			if err := c.SendToJob(ctx, args[0], s); err != nil {
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
	var w httpapi.Waiting
	var after string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait JOB", Short: "Wait until a job ends, or for an event of it",
		Long: `Waits for the first of the named events, or for the end of the job. The exit code is
0 for an event, 1 where the job ended without one, 3 where the time was over.`,
		Args: oneArg("JOB", ""),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			if len(w.Types) == 0 && w.DecisionID == "" {
				for _, s := range []job.Status{job.Completed, job.Failed, job.TimedOut, job.Cancelled, job.Orphaned} {
					w.Types = append(w.Types, string(s))
				}
			}
			w.After, w.TimeoutSeconds = event.Cursor(after), int64(timeout/time.Second)
			got, err := c.WaitForJob(ctx, args[0], w)
			return a.tellWaited(got, err)
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&w.Types, "type", nil, "event `TYPE`, or output:NAME; may be repeated (default: its end)")
	f.StringVar(&w.DecisionID, "decision", "", "a question's `ID`: its answer, withdrawal or expiry")
	f.StringVar(&after, "after", "", "`CURSOR` behind which to look")
	f.DurationVar(&timeout, "timeout", time.Hour, "how long to wait, at most 24h")
	return c
}

func (a *app) tellWaited(got httpapi.Waited, err error) error {
	if err != nil {
		return err
	}
	switch {
	case a.json:
		a.emit(got)
	case got.Event != nil:
		a.tellEvent(*got.Event)
	default:
		a.say("%s", own(got.Result))
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
	var s httpapi.Stopping
	var killAfter time.Duration
	c := &cobra.Command{
		Use: "stop JOB", Short: "End a job and all that it started", Args: oneArg("JOB", ""),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			s.KillAfterSeconds = int64(killAfter / time.Second)
			j, err := c.StopJob(ctx, args[0], s)
			return a.tellJob(j, err)
		}),
	}
	c.Flags().StringVar(&s.By, "by", osUser(), "`NAME` of who ends it")
	c.Flags().DurationVar(&killAfter, "kill-after", job.DefaultKillAfter, "how long it may take before it is killed")
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
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			j, err := do(c, ctx, args[0], by)
			return a.tellJob(j, err)
		}),
	}
	c.Flags().StringVar(&by, "by", osUser(), "`NAME` of who does it")
	return c
}

func newJobCleanupCommand(a *app) *cobra.Command {
	var age time.Duration
	var dry bool
	c := &cobra.Command{
		Use: "cleanup", Short: "Delete jobs that ended long ago, with all that belongs to them", Args: noArgs,
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, _ []string) error {
			gone, err := c.CleanJobs(ctx, httpapi.Cleaning{OlderThanSeconds: int64(age / time.Second), DryRun: dry})
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
			if dry {
				did = "would be deleted"
			}
			a.note("%s %s.", count(len(gone.JobIDs), "job", "jobs"), did)
			return nil
		}),
	}
	c.Flags().DurationVar(&age, "older-than", 30*24*time.Hour, "since they ended")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say which")
	return c
}
