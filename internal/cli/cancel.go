package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
)

func newCancelCommand(a *app) *cobra.Command {
	var flags answerFlags
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "End a run",
		Long:  `Ends a run that has not ended. A call that waits for a person is taken back with placet withdraw.`,
		Args:  oneArg("ID", ""),
		// There are no runs yet that it could end.
		Hidden: true,
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		st, err := a.write(ctx)
		if err != nil {
			return err
		}
		defer st.Close()
		runID, err := a.find(ctx, st, args[0], id.Run)
		if err != nil {
			return cancelElsewhere(args[0], err)
		}
		if err := operator(st).Cancel(ctx, runID, flags.name(c), flags.note); err != nil {
			return err
		}
		if a.json {
			a.emit(struct {
				RunID  string `json:"run_id"`
				Status string `json:"status"`
			}{runID, "CANCELLED"})
			return nil
		}
		a.say("Run %s is cancelled.", own(runID))
		return nil
	}
	return c
}

// cancelElsewhere names the command for what is no run.
func cancelElsewhere(given string, err error) error {
	prefix, _ := kindOf(given)
	var f *fault.Error
	if (prefix == id.Call || prefix == id.Approval) && errors.Is(err, decision.ErrUsage) && errors.As(err, &f) {
		return f.Hint("A call that waits is taken back with placet withdraw %s.", given)
	}
	return err
}
