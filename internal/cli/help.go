package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// newHelpCommand is in place of cobra's, which prints what it was given as it is.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return use("There is no command "+quote(strings.Join(args, " "))+".", "See placet --help.")
			}
			return c.Help()
		},
	}
}
