package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

func newTokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens by which others speak to the daemon",
		Args:  subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTokenCreateCommand(a), newTokenListCommand(a), newTokenRevokeCommand(a))
	return c
}

func newTokenCreateCommand(a *app) *cobra.Command {
	var n token.New
	var scope string
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token; it is shown this once",
		Long: `Makes a token. agent asks for things and never decides; reviewer decides; operator
cancels, resumes and manages; admin does everything. Tokens with the same principal
are one person: nobody decides what they asked for themselves.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if scope == "" || n.Name == "" {
				return use("A token needs a scope and a name.", "Add --scope agent|reviewer|operator|admin and --name NAME.")
			}
			if !token.Scope(scope).Valid() {
				return use("There is no scope "+quote(scope)+".", "It is agent, reviewer, operator or admin.")
			}
			n.Scope, n.Space = token.Scope(scope), event.MainSpace
			return a.createToken(c.Context(), n)
		},
	}
	f := c.Flags()
	f.StringVar(&scope, "scope", "", "`SCOPE`: agent, reviewer, operator or admin")
	f.StringVar(&n.Name, "name", "", "`NAME` of who or what will hold it")
	f.StringVar(&n.Principal, "principal", "", "`NAME` of who that proves to be (default the token's name)")
	return c
}

func (a *app) createToken(ctx context.Context, n token.New) error {
	st, err := a.create(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	t, secret, err := token.Create(ctx, st, n)
	if err != nil {
		return err
	}
	o := t.Object()
	o.Secret = secret
	if a.json {
		a.emitMasked(encode(o)) // it is shown this once
		return nil
	}
	a.say("%s", own(secret))
	a.note("This is shown only once. It is %s, with scope %s.", own(t.ID), own(t.Scope))
	return nil
}

func newTokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, newest first, without what is secret about them",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := a.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			return a.listTokens(c.Context(), st)
		},
	}
}

func (a *app) listTokens(ctx context.Context, st *store.Store) error {
	tab := a.table("id", "scope", "name", "principal", "created", "revoked")
	for after := ""; ; {
		ts, err := token.List(ctx, st, token.Query{Space: event.MainSpace, After: after, Limit: 500})
		if err != nil {
			return err
		}
		for _, t := range ts {
			after = t.ID
			if a.json {
				a.emitMasked(encode(t.Object()))
				continue
			}
			tab.row(t.ID, string(t.Scope), t.Name, t.Principal, stamp(t.CreatedAt), stamp(t.RevokedAt))
		}
		if len(ts) < 500 {
			break
		}
	}
	tab.list()
	return nil
}

func newTokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token",
		Args:  oneArg("ID", ""),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := a.write(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			return a.revokeToken(c.Context(), st, args[0])
		},
	}
}

func (a *app) revokeToken(ctx context.Context, st *store.Store, given string) error {
	if err := anyOfAKind(given); err != nil {
		return err
	}
	found, err := a.find(ctx, st, given, id.Token)
	if err != nil {
		return err
	}
	t, err := token.Revoke(ctx, st, event.MainSpace, found)
	if err != nil {
		return err
	}
	if a.json {
		a.emitMasked(encode(t.Object()))
		return nil
	}
	a.say("Token %s is revoked.", own(t.ID))
	return nil
}

func (a *app) showToken(ctx context.Context, st *store.Store, tokenID string) error {
	var t token.Token
	err := txn.View(ctx, st, func(tx token.Tx) (err error) {
		t, err = tx.Token(tokenID)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		a.emitMasked(encode(t.Object()))
		return nil
	}
	a.say("Token %s", own(t.ID))
	p := page{a: a, to: a.out, mask: a.mask}
	p.facts([]fact{
		{"scope", own(t.Scope)},
		{"name", own(t.Name)},
		{"principal", own(t.Principal)},
		{"job", own(t.JobID)},
		{"created", own(stamp(t.CreatedAt))},
		{"revoked", own(stamp(t.RevokedAt))},
	})
	return nil
}
