package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// Commands is the command table, for tests that are driven by it.
func Commands() *cobra.Command { return newRoot(newApp(Streams{})) }

// Run is Main without the process's signals.
func Run(ctx context.Context, args []string, s Streams) int { return execute(ctx, args, s) }
