package cli

import (
	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
)

func newConfigCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Work on the configuration",
		Args:  subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Read the configuration and tell everything that is wrong with it",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return a.checkConfig() },
	})
	return c
}

func (a *app) checkConfig() error {
	conf, err := a.load()
	if err != nil {
		return err
	}
	if conf.Path == "" {
		return fault.New(fault.NotFound, "There is no %s here.", config.DefaultName).Hint("Run placet init, or give --config FILE.")
	}
	if a.json {
		a.emit(struct {
			OK    bool   `json:"ok"`
			Path  string `json:"path"`
			Tools int    `json:"tools"`
		}{true, conf.Path, len(conf.Tools.List())})
		return nil
	}
	a.say("%s can be used. It has %s.", own(conf.Path), holds(conf))
	return nil
}

// holds is what a configuration has, for people.
func holds(conf *config.Config) safe {
	words := count(len(conf.Tools.List()), "tool", "tools")
	if n := len(conf.Agents); n > 0 {
		words += " and " + count(n, "agent", "agents")
	}
	return words
}
