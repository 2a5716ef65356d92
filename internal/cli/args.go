package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// What commands take besides flags, and what is said about anything else.

// noArgs is for commands that are all flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return use(c.CommandPath()+" takes nothing besides flags; "+quote(args[0])+" was given.", seeHelp(c))
	}
	return nil
}

// oneArg is for commands that take one word; more says something about the rest, or nothing.
func oneArg(word, more string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		text := c.CommandPath() + " takes one " + word
		if more != "" {
			text += "; " + more
		}
		return use(text+".", seeHelp(c))
	}
}

func twoArgs(one, two string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 2 {
			return use(c.CommandPath()+" takes "+one+" and "+two+".", seeHelp(c))
		}
		return nil
	}
}

func upToOneArg(word string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return use(c.CommandPath()+" takes at most one "+word+".", seeHelp(c))
		}
		return nil
	}
}

// subcommand is for commands that only hold others.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := seeHelp(c)
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "Did you mean " + c.CommandPath() + " " + strings.Join(near, " or ") + "? " + hint
	}
	return use("There is no command "+quote(c.CommandPath()+" "+args[0])+".", hint)
}

func seeHelp(c *cobra.Command) string { return "See " + c.CommandPath() + " --help." }

// noSuchCommand is the error of a --help that stands behind a word which is no command.
func noSuchCommand(c *cobra.Command) error {
	if !c.HasSubCommands() || c.Args == nil || c.Flags().NArg() == 0 {
		return nil
	}
	return c.Args(c, c.Flags().Args())
}

// oneUsage leaves the usage line of a command out that only holds others: the line
// with the place for the other's name says it.
func oneUsage(template string) string {
	return strings.Replace(template, "{{if .Runnable}}", "{{if and .Runnable (not (and .HasAvailableSubCommands (eq .Use .Name)))}}", 1)
}
