package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
)

func newCancelCommand(a *app) *cobra.Command {
	var flags answerFlags
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "End a run or a job",
		Long: `Ends a run that has not ended, or stops a job as placet job stop does. A call that
waits for a person is taken back with placet withdraw.`,
		Args: oneArg("ID", ""),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if strings.HasPrefix(args[0], id.Job) {
			return a.cancelJob(c, args[0], flags)
		}
		return a.cancelRun(c.Context(), args[0], flags.name(c), flags.note)
	}
	return c
}

// cancelJob has the daemon stop a job.
func (a *app) cancelJob(c *cobra.Command, given string, flags answerFlags) error {
	if flags.note != "" {
		return use("A job that is stopped keeps no note.", "Leave --note out.")
	}
	stop := a.onJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
		j, err := d.StopJob(ctx, jobID, httpapi.Stopping{By: flags.name(c)})
		return a.tellJob(j, err)
	})
	return stop(c, []string{given})
}

// cancelElsewhere names the command for what is no run.
func cancelElsewhere(given string, err error) error {
	prefix, _ := kindOf(given)
	var f *fault.Error
	if !errors.Is(err, decision.ErrUsage) || !errors.As(err, &f) {
		return err
	}
	switch prefix {
	case id.Call, id.Approval:
		return f.Hint("A call that waits is taken back with placet withdraw %s.", given)
	case id.Question:
		return f.Hint("A question is taken back with placet withdraw %s.", given)
	}
	return err
}
