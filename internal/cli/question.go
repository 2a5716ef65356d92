package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
)

func newAskCommand(a *app) *cobra.Command {
	var q httpapi.Asking
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "ask JOB PROMPT",
		Short: "Ask people something for a job",
		Long: `Stores a question and ends: it prints the question's id and the cursor from which
placet job wait waits for the answer.`,
		Example: `  placet ask "$PLACET_JOB_ID" "Continue past epoch 40?" --option yes --option no`,
		Args:    cobra.ExactArgs(2),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) error {
			q.Prompt, q.TimeoutSeconds = args[1], int64(timeout/time.Second)
			got, err := c.Ask(ctx, args[0], q)
			if err != nil {
				return err
			}
			if a.json {
				a.emit(got)
				return nil
			}
			a.say("%s", own(got.DecisionID))
			a.note("Wait for the answer: %s", own(a.withGlobals("job", "wait", got.JobID, "--decision", got.DecisionID, "--after", string(got.Cursor))))
			return nil
		}),
	}
	f := c.Flags()
	f.StringArrayVar(&q.Options, "option", nil, "what can be answered; may be repeated (default approve and deny)")
	f.DurationVar(&timeout, "timeout", 0, "how long it may wait (default for ever)")
	f.StringVar(&q.IdempotencyKey, "idempotency-key", "", "`KEY` by which the same question again is no second one")
	return c
}

func newDecisionsCommand(a *app) *cobra.Command {
	var job, status string
	c := &cobra.Command{
		Use:   "decisions",
		Short: "List the questions of jobs, newest first",
		Args:  noArgs,
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, _ []string) error {
			return a.listQuestions(ctx, c, job, status)
		}),
	}
	c.Flags().StringVar(&job, "job", "", "only those of this `JOB`")
	c.Flags().StringVar(&status, "status", "pending", "pending, resolved, withdrawn, expired or all")
	return c
}

func (a *app) listQuestions(ctx context.Context, c *httpapi.Client, job, status string) error {
	t := a.table("id", "status", "job", "asks", "options")
	for after := ""; ; {
		l, err := c.Questions(ctx, httpapi.QuestionQuery{JobID: job, Status: decision.Status(status), After: after, Limit: jobsShown})
		if err != nil {
			return err
		}
		for _, q := range l.Decisions {
			if a.json {
				a.emit(q)
				continue
			}
			t.row(q.DecisionID, string(q.Status), q.JobID, a.mask.Text(q.Prompt), a.mask.Text(strings.Join(q.Options, ", ")))
		}
		if after = l.Next; after == "" {
			break
		}
	}
	t.list()
	return nil
}

func newResolveCommand(a *app) *cobra.Command {
	var r httpapi.Resolving
	var input string
	c := &cobra.Command{
		Use:   "resolve DECISION CHOICE",
		Short: "Answer a question of a job",
		Args:  cobra.ExactArgs(2),
		RunE: a.asked(func(ctx context.Context, c *httpapi.Client, args []string) (err error) {
			q, err := c.GetQuestion(ctx, args[0])
			if err != nil {
				return err
			}
			if input != "" {
				if r.Input, err = a.readArgs(input); err != nil {
					return err
				}
			}
			r.Choice = args[1]
			if q, err = c.Resolve(ctx, q.JobID, q.DecisionID, r); err != nil {
				return err
			}
			if a.json {
				a.emit(q)
				return nil
			}
			a.say("Question %s is answered: %s.", own(q.DecisionID), string(q.Choice))
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&r.By, "by", osUser(), "`NAME` of who answers")
	f.StringVar(&r.Note, "note", "", "`TEXT` that is kept with the answer")
	f.StringVar(&input, "input", "", "what the form asks for, as `JSON`, @FILE, or -")
	return c
}
