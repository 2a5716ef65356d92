package cli

import (
	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/channel/command"
	"github.com/placet-dev/placet/job"
)

// newJobRunnerCommand is what supervisors start for each launch of a job. It takes
// its order on standard input and opens no store.
func newJobRunnerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    job.RunnerCommand + " DIR",
		Short:  "Watch over the command of one job (started by Placet itself)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if job.Runner(args[0]) != 0 {
				return errUse.Say("The launch in %s could not be taken over.", args[0]).Hint("Placet starts this command itself.")
			}
			return nil
		},
	}
}

// newMinderCommand is what a daemon starts for each program that is told of an event. It
// opens no store.
func newMinderCommand() *cobra.Command {
	return &cobra.Command{
		Use:                command.MinderWord + " TIME PROGRAM [ARG…]",
		Short:              "Watch over a program that is told of an event (started by Placet itself)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := command.Minder(args); code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
}
