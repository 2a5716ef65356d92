package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/canon"
)

func newDigestCommand(a *app) *cobra.Command {
	var domain string
	c := &cobra.Command{
		Use:   "digest",
		Short: "Print the digest of the JSON on standard input",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if domain == "" || strings.ContainsAny(domain, "\n") {
				return use("--domain is one line that is not empty.", "Write it like --domain "+canon.DomainArgs+".")
			}
			b, err := a.document()
			if err != nil {
				return err
			}
			d, err := canon.Digest(domain, b)
			if err != nil {
				return badJSON("Standard input", err)
			}
			if a.json {
				a.emit(struct {
					Domain string `json:"domain"`
					Digest string `json:"digest"`
				}{domain, d})
				return nil
			}
			a.say("%s", own(d))
			return nil
		},
	}
	c.Flags().StringVar(&domain, "domain", canon.DomainArgs, "what the value is: the `DOMAIN` that is hashed with it")
	return c
}
