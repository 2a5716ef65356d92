package cli

import (
	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
)

// newGatewayCommand refuses with the sentence of spec 4.4.
func newGatewayCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:                "gateway",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return fault.New(fault.Unavailable, "gateway comes later")
		},
	}
}
