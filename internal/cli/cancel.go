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
		Long: `Ends a run that has not ended. A call that waits for a person is taken back with
placet withdraw.`,
		Args: oneArg("ID", ""),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.cancelRun(c.Context(), args[0], flags.name(c), flags.note)
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
