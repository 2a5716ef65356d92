package cli

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/token"
)

var errNoDaemon = fault.Sentinel(fault.Unavailable, "no_daemon", "No daemon serves this store.")

// reached is a daemon that a command speaks to.
type reached struct {
	*httpapi.Client
	at    string // its address, for people
	named bool   // by PLACET_URL; else it is the one that has this store
	given bool   // the token is PLACET_TOKEN; else it is the home's
	as    homeToken
}

// homeToken is one of the two tokens that a home has.
type homeToken struct {
	scope string
	read  func(daemon.Home) (string, error)
	file  func(daemon.Home) string
}

var (
	asAdmin = homeToken{"admin", daemon.Home.Token, daemon.Home.TokenFile}
	asAgent = homeToken{"agent", daemon.Home.AgentToken, daemon.Home.AgentTokenFile}
)

// reach speaks to the daemon at PLACET_URL with PLACET_TOKEN, else to the one that has
// this store, over its socket, with the home's admin token.
func (a *app) reach() (reached, error) { return a.reachAs(asAdmin) }

// reachAs is reach with that token of the home.
func (a *app) reachAs(as homeToken) (reached, error) {
	secret := strings.TrimSpace(os.Getenv("PLACET_TOKEN")) // a file's has the end of its line
	if u := os.Getenv("PLACET_URL"); u != "" {
		address, err := daemonAddress(u)
		return reached{httpapi.NewClient(address, secret), address, true, true, as}, err
	}
	p, err := a.place()
	if err != nil {
		return reached{}, err
	}
	h, err := daemon.HomeOf(p)
	var found daemon.Found
	if err == nil {
		found, err = h.Find() // its lock is free: a token is sent to nobody who listens where it listened
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reached{}, a.noDaemon()
	case err != nil:
		return reached{}, a.noDaemon().Because(err)
	}
	r := reached{at: found.URL, given: secret != "", as: as}
	if secret == "" {
		if secret, err = as.read(h); err != nil {
			return r, noHomeToken(h, as, err)
		}
	}
	if r.Client = httpapi.NewClient(found.URL, secret); found.Socket != "" {
		r.Client = httpapi.NewSocketClient(found.Socket, secret)
	}
	return r, nil
}

func (a *app) noDaemon() *fault.Error {
	hint := errNoDaemon.Hint("Start one: %s.", a.withGlobals("serve"))
	p, err := a.place()
	if err != nil {
		return hint
	}
	return hint.Say("No daemon serves this store, %s%s.", p, a.fromHome())
}

var errAddress = fault.Sentinel(fault.Invalid, "usage", "PLACET_URL is no address of a daemon.")

// daemonAddress is the value of PLACET_URL without the / that may stand at its end.
func daemonAddress(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", errAddress.Say("PLACET_URL is %s, which is no address of a daemon.", quote(given)).Hint("Write it like http://%s.", daemon.DefaultListen)
	}
	plain := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", errAddress.Say("PLACET_URL is %s; a daemon's address has nothing behind the host.", quote(given)).Hint("Write %s.", plain)
	}
	return plain, nil
}

func noHomeToken(h daemon.Home, as homeToken, err error) error {
	var ours *fault.Error
	if errors.As(err, &ours) {
		return err
	}
	return fault.New(fault.Unauthenticated, "The %s token in %s cannot be read.", as.scope, as.file(h)).
		Hint("Only the user who runs placet serve reads it. Others set PLACET_TOKEN to one of their own: placet token create.").Because(err)
}

// asked runs fn with a daemon and the command's arguments.
func (a *app) asked(fn func(ctx context.Context, d reached, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return a.atDaemon(func(d reached) error { return fn(c.Context(), d, args) })
	}
}

// atDaemon runs fn with a daemon, and says in the words of the command line why there
// is none, or why it does not listen.
func (a *app) atDaemon(fn func(reached) error) error {
	d, err := a.reach()
	if err != nil {
		return err
	}
	return a.inOurWords(d, fn(d))
}

func (a *app) inOurWords(d reached, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	var request *url.Error
	if errors.As(err, &request) {
		f = f.Because(request.Err) // the request itself says nothing that is not said
	}
	switch {
	case httpapi.IsUnreachable(err) && d.named:
		return f.Say("No daemon answers at %s, which PLACET_URL names.", d.at).Hint("Start one there with placet serve, or correct PLACET_URL.")
	case httpapi.IsUnreachable(err):
		return f.Say("The daemon that has this store does not answer.").Hint("It may be ending. Look again, or start another: %s.", a.withGlobals("serve"))
	case errors.Is(err, token.ErrUnauthenticated):
		return notAdmitted(d, f)
	case errors.Is(err, httpapi.ErrHost):
		return f.Say("The daemon at %s does not go by that name.", d.at).Hint("Start it with placet serve --host and that name and port.")
	}
	return err
}

// notAdmitted says whose token it was that the daemon did not take.
func notAdmitted(d reached, f *fault.Error) error {
	const make = "Make one on the daemon's store, with placet token create --scope agent --name NAME, and set PLACET_TOKEN to it."
	switch {
	case d.named && d.Token == "":
		return f.Say("The daemon at %s wants a token, and PLACET_TOKEN is not set.", d.at).Hint(make)
	case d.given:
		return f.Say("The daemon at %s does not take the token in PLACET_TOKEN.", d.at).Hint("It may be revoked, or another store's. " + make)
	}
	return f.Say("The daemon does not take the home's %s token.", d.as.scope).Hint("Start placet serve again: it then writes a new one.")
}
