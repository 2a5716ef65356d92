package inbox

import (
	"context"
	"net/url"
	"strings"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/token"
)

// reviewer is who is signed in, and what they may do.
type reviewer struct {
	token.Token
	door Door
	form string // what the forms of this sign-in carry
}

func (r reviewer) who() view.Who {
	return view.Who{
		Name: r.Name, Principal: r.Principal, Scope: string(r.Scope), FormToken: r.form,
		Decides:  r.Scope == token.Reviewer || r.Scope == token.Admin,
		Operates: r.Scope == token.Operator || r.Scope == token.Admin,
	}
}

// identity finds out who somebody is. It is the one place that knows how: a token now,
// accounts and single sign-on later.
type identity interface {
	// prove finds out who filled in the sign-in form. proof is what is kept of that, to be
	// asked about again with each request. [token.ErrUnauthenticated], [ErrAgent].
	prove(ctx context.Context, form url.Values) (proof string, err error)
	// still is who proved to be that, if they are still let in.
	still(ctx context.Context, proof string) (token.Token, Door, error)
}

// ErrAgent: an agent's token lets nobody in here.
var ErrAgent = fault.Sentinel(fault.Forbidden, "forbidden", "This token is an agent's, and agents never decide.")

// byToken proves whoever knows a token's secret. What is kept is its id.
type byToken struct{ c Config }

func (k byToken) prove(ctx context.Context, form url.Values) (string, error) {
	t, err := token.Find(ctx, k.c.Store, k.c.Space, strings.TrimSpace(form.Get("token")))
	if err == nil {
		err = letIn(t)
	}
	return t.ID, err
}

func (k byToken) still(ctx context.Context, tokenID string) (token.Token, Door, error) {
	t, err := token.Good(ctx, k.c.Store, k.c.Space, tokenID)
	if err == nil {
		err = letIn(t)
	}
	return t, k.c.Door(t), err
}

func letIn(t token.Token) error {
	if t.Scope == token.Agent {
		return ErrAgent.Hint("Ask for one of your own: placet token create --scope reviewer --name NAME.")
	}
	return nil
}
