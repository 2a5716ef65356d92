package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
)

func newAskCommand(a *app) *cobra.Command {
	var q httpapi.Asking
	var form string
	c := &cobra.Command{
		Use:   "ask JOB PROMPT",
		Short: "Ask people something for a job",
		Long: `Stores a question and ends: it prints the question's id and the cursor from which
placet job wait waits for the answer.`,
		Example: `  placet ask "$PLACET_JOB_ID" "Continue past epoch 40?" --option yes --option no
  placet ask "$PLACET_JOB_ID" "With which rate?" --form '{"type":"object","properties":{"rate":{"type":"number"}}}'`,
		Args: twoArgs("a JOB", "a PROMPT"),
		RunE: a.onJob(func(ctx context.Context, d reached, jobID string, rest []string) error {
			q.Prompt = rest[0]
			if form != "" {
				var err error
				if q.Form, err = a.readJSON("The form", form); err != nil {
					return err
				}
			}
			got, err := d.Ask(ctx, jobID, q)
			if err != nil {
				return err
			}
			if a.json {
				a.emitQuestion(got)
				return nil
			}
			a.say("%s", own(got.DecisionID))
			a.note("Wait for the answer: %s", own(a.withGlobals("job", "wait", got.JobID, "--decision", got.DecisionID, "--after", string(got.Cursor))))
			return nil
		}),
	}
	f := c.Flags()
	f.StringArrayVar(&q.Options, "option", nil, "`TEXT` that can be answered; may be repeated (default approve and deny)")
	f.StringVar(&form, "form", "", "what else is asked for: a flat JSON Schema, as `JSON`, @FILE, or -")
	secondsFlag(c, &q.TimeoutSeconds, "timeout", time.Second, decision.MaxTimeout, "how long a `TIME` it may wait (default for ever)")
	f.StringVar(&q.IdempotencyKey, "idempotency-key", "", "`KEY` by which the same question again is no second one")
	return c
}

// questionStatuses are those that a question can have.
var questionStatuses = []decision.Status{decision.Pending, decision.Resolved, decision.Withdrawn, decision.Expired}

func newDecisionsCommand(a *app) *cobra.Command {
	var q httpapi.QuestionQuery
	var of, status string
	c := &cobra.Command{
		Use:   "decisions",
		Short: "List the questions of jobs, newest first",
		Args:  noArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if status == "all" {
				return nil
			}
			return oneOf("status", status, questionStatuses, &q.Status)
		},
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) (err error) {
			if of != "" {
				if q.JobID, err = d.jobID(ctx, of); err != nil {
					return err
				}
			}
			return a.listQuestions(ctx, d, q)
		}),
	}
	c.Flags().StringVar(&of, "job", "", "only those of this `JOB`")
	c.Flags().StringVar(&status, "status", "pending", "`WORD`: pending, resolved, withdrawn, expired or all")
	return c
}

func (a *app) listQuestions(ctx context.Context, d reached, q httpapi.QuestionQuery) error {
	q.Limit = listedAtOnce
	t := a.table("id", "status", "asked", "asks", "options or answer", "job")
	var waiting []httpapi.Question
	for {
		l, err := d.Questions(ctx, q)
		if err != nil {
			return err
		}
		for _, q := range l.Decisions {
			if a.json {
				a.emitQuestion(q)
				continue
			}
			t.row(q.DecisionID, string(q.Status), ago(time.Now(), q.CreatedAt), startOf(a.mask.Text(q.Prompt), 48), startOf(a.mask.Text(optionsOrAnswer(q)), 40), q.JobID)
			if q.Status == decision.Pending {
				waiting = append(waiting, q)
			}
		}
		if q.After = l.Next; q.After == "" {
			break
		}
	}
	t.list()
	if len(waiting) > 0 && !a.json {
		a.note("Answer: %s", own(a.answerLine(waiting[0])))
	}
	return nil
}

func optionsOrAnswer(q httpapi.Question) string {
	if q.Status == decision.Resolved {
		return string(q.Choice) + by(q.By)
	}
	return strings.Join(q.Options, ", ")
}

func newResolveCommand(a *app) *cobra.Command {
	var r httpapi.Resolving
	var input string
	c := &cobra.Command{
		Use:   "resolve DECISION CHOICE",
		Short: "Answer a question of a job",
		Args:  twoArgs("a DECISION", "a CHOICE"),
		RunE: a.asked(func(ctx context.Context, d reached, args []string) (err error) {
			if err := anyOfAKind(args[0]); err != nil {
				return err
			}
			decisionID, err := d.questionID(ctx, args[0])
			if err != nil {
				return err
			}
			q, err := d.GetQuestion(ctx, decisionID)
			if err != nil {
				return err
			}
			if input != "" {
				if r.Input, err = a.readJSON("The input", input); err != nil {
					return err
				}
			}
			r.Choice = args[1]
			if q, err = d.Resolve(ctx, q.JobID, q.DecisionID, r); err != nil {
				return err
			}
			if a.json {
				a.emitQuestion(q)
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

// readJSON is the value of a flag. What is no JSON is refused here, where the place in
// it can be said.
func (a *app) readJSON(what, given string) ([]byte, error) {
	b, err := a.readArgs(given)
	if err != nil {
		return nil, err
	}
	if err := canon.Valid(b); err != nil {
		return nil, badJSON(what, err)
	}
	return b, nil
}
