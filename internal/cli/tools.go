package cli

import (
	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/tool"
)

func newToolsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tools",
		Short: "List the tools of the configuration",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			conf, err := a.load()
			if err != nil {
				return err
			}
			if conf.Path == "" {
				a.note("No configuration was found: run placet init, or give --config FILE.")
			}
			a.listTools(conf.Tools.List())
			return nil
		},
	}
}

func (a *app) listTools(tools []tool.Tool) {
	t := a.table("name", "side effect", "confirm", "description")
	for _, k := range tools {
		if a.json {
			// A schema is not a secret for having a member called password; Schema knows.
			o := k.Object()
			o.InputSchema = a.mask.Schema(o.InputSchema)
			a.emitMasked(encode(o))
			continue
		}
		confirm := "no"
		if k.Confirm {
			confirm = "yes"
		}
		t.row(k.Name, string(k.SideEffect), confirm, k.Description)
	}
	t.list()
}
