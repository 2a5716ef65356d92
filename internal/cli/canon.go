package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
)

func newCanonCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "canon",
		Short: "Print the canonical form of the JSON on standard input",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := a.document()
			if err != nil {
				return err
			}
			form, err := canon.Canonical(b)
			if err != nil {
				return badJSON("Standard input", err)
			}
			return a.canonical(form)
		},
	}
}

// canonical prints the bytes themselves, which are what is hashed, unless a
// terminal would take some of them as orders.
func (a *app) canonical(form []byte) error {
	if terminalOf(a.out.to) != nil {
		if shown := display.Machine(form); string(shown) != string(form) {
			a.note("placet: shown with escapes, since some characters cannot be seen; a pipe gets the canonical bytes.")
			form = shown
		}
	}
	_, err := a.out.Write(append(form, '\n'))
	return err
}

// document reads standard input.
func (a *app) document() ([]byte, error) {
	b, err := io.ReadAll(a.in)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Standard input cannot be read.").Because(err)
	}
	return b, nil
}
