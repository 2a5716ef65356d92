package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/mcpserver"
	"github.com/placet-dev/placet/token"
)

func newMCPCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent's MCP client over standard input and output",
		Long: `Gives an agent's MCP client the daemon's tools: jobs, questions to people, waits,
guarded calls. The client starts this command and speaks to it over standard input
and output; what is told to people goes to standard error.

It acts with the token in PLACET_TOKEN, else with the agent token that placet serve
keeps beside its store: never with the home's admin token. Questions can be answered
only with a reviewer's token.`,
		Example: `  claude mcp add placet -- placet mcp`,
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.serveMCP(c.Context()) },
	}
}

// serveMCP serves until the client closes standard input.
func (a *app) serveMCP(ctx context.Context) error {
	d, err := a.reachAs(asAgent)
	if err != nil {
		return err
	}
	if err := onlyAgent(ctx, a, d); err != nil {
		return err
	}
	folder, err := jobFolder("")
	if err != nil {
		return err
	}
	s := mcpserver.New(mcpserver.Config{
		Cwd:  folder,
		Door: func(http.Header) mcpserver.Door { return spoken{a, d} }, Version: buildVersion().Version, Log: a.logger(),
	})
	err = s.Serve(ctx, io.NopCloser(a.in), unclosed{a.out})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // told to end, it has: nothing is left half done
	}
	return a.inOurWords(d, err)
}

// onlyAgent refuses a home's agent token that is more than one: somebody put another into
// its file, and no client is to act with that by accident.
func onlyAgent(ctx context.Context, a *app, d reached) error {
	if d.given {
		return nil
	}
	who, err := d.Whoami(ctx)
	if err == nil && who.Scope != token.Agent {
		err = fault.New(fault.Forbidden, "The home's agent token has scope %s.", who.Scope).
			Hint("Start placet serve again: it writes a new one. To act with another scope, set PLACET_TOKEN.")
	}
	return a.inOurWords(d, err)
}

// spoken says in the words of the command line why a daemon does not answer.
type spoken struct {
	a *app
	d reached
}

// Send is mcpserver.Door's.
func (w spoken) Send(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte) (int, []byte, error) {
	status, answer, err := w.d.Send(ctx, method, path, query, header, body)
	return status, answer, w.a.inOurWords(w.d, err)
}

// unclosed is standard output, which stays open.
type unclosed struct{ io.Writer }

// Close is io.Closer's.
func (unclosed) Close() error { return nil }
