package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/tool"
)

type toolObject struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	SideEffect  tool.SideEffect `json:"side_effect"`
	Confirm     bool            `json:"confirm"`
	InputSchema json.RawMessage `json:"input_schema"`
	SpecDigest  string          `json:"spec_digest"`
}

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
			a.emitMasked(encode(toolObject{k.Name, k.Description, k.SideEffect, k.Confirm, a.mask.Schema(k.InputSchema), k.SpecDigest()}))
			continue
		}
		confirm := "no"
		if k.Confirm {
			confirm = "yes"
		}
		t.row(k.Name, string(k.SideEffect), confirm, k.Description)
	}
	switch {
	case a.json:
	case len(tools) == 0:
		a.note("None.")
	default:
		t.print()
	}
}
