package inbox

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Door carries out operations of the HTTP API with the rights of one token. An answer is
// returned as it comes, whatever its status; an error says that there was none.
type Door interface {
	Send(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte) (status int, answer []byte, err error)
}

// Config says what an inbox works with. Store and Door are required.
type Config struct {
	Store txn.Store
	// Door is the API with the rights of that token.
	Door func(token.Token) Door
	// Space is the tenant. Default: main.
	Space string
	// Cookie names the sign-in's cookie: two inboxes that share a host name but not a
	// store need two names. Default: placet.
	Cookie string
	// Idle is how long a sign-in may go unused. Default: 1 h.
	Idle time.Duration
	// Longest is how long a sign-in lasts at most. Default: 12 h.
	Longest time.Duration
	// MayOwn reports whether the holder of a token decides what it asked for itself.
	// Default: nobody does.
	MayOwn func(token.Token) bool
	// Unserved says why approved work, a call or run of that id, waits although it could
	// run, in a sentence; empty: it does not. Default: nothing is known.
	Unserved func(id string) string
	// Writes says why the store takes no writes; nil: it takes them. Default: it is not known.
	Writes func() error
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

func (c Config) checked() (Config, error) {
	if c.Store == nil || c.Door == nil {
		return c, fault.New(fault.Invalid, "inbox.Config needs Store and Door.")
	}
	if c.Space == "" {
		c.Space = event.MainSpace
	}
	if c.Cookie == "" {
		c.Cookie = "placet"
	}
	if c.Idle == 0 {
		c.Idle = time.Hour
	}
	if c.Longest == 0 {
		c.Longest = 12 * time.Hour
	}
	if c.Idle < 0 || c.Longest < 0 {
		return c, fault.New(fault.Invalid, "A sign-in cannot last %s, or %s unused.", c.Longest, c.Idle)
	}
	if c.MayOwn == nil {
		c.MayOwn = func(token.Token) bool { return false }
	}
	if c.Unserved == nil {
		c.Unserved = func(string) string { return "" }
	}
	if c.Writes == nil {
		c.Writes = func() error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, nil
}

// Inbox is an http.Handler. It is safe for concurrent use.
type Inbox struct {
	c        Config
	mux      *http.ServeMux
	identity identity
	signIns  *signIns
	assets   assets
	news     *review.Newsroom

	stopping context.Context
	stop     context.CancelFunc
}

// New makes an inbox. A configuration that cannot work is an error.
func New(c Config) (*Inbox, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	b := &Inbox{c: c, mux: http.NewServeMux(), identity: byToken{c}, signIns: newSignIns(c), assets: embedded(), news: &review.Newsroom{Store: c.Store, Space: c.Space}}
	b.stopping, b.stop = context.WithCancel(context.Background())
	b.route()
	return b, nil
}

// Shutdown ends the pages that follow what happens. What a person is doing goes on.
func (b *Inbox) Shutdown(context.Context) error {
	b.stop()
	return nil
}

// route says who answers what. A page is told who is signed in; without anybody it leads
// to the form that asks.
func (b *Inbox) route() {
	b.mux.HandleFunc("GET /assets/{name}", b.asset)
	b.mux.HandleFunc("GET /sign-in", b.signInPage)
	b.mux.HandleFunc("POST /sign-in", b.signIn)
	b.page("POST /sign-out", b.signOut)

	b.page("GET /{$}", b.waiting)
	b.page("GET /decided", b.decided)
	b.page("GET /approvals/{id}", b.approval)
	b.page("POST /approvals/{id}", b.decide)
	b.page("GET /approvals/{id}/edit", b.edit)
	b.page("POST /approvals/{id}/edit", b.edited)
	b.page("GET /questions/{id}", b.question)
	b.page("POST /questions/{id}", b.resolve)
	b.routeReading()
	b.page("GET /live", b.live)
	b.page("GET /", b.missing)
}

// ServeHTTP answers for a page. Whatever comes of it is never kept, framed or read by
// another site.
func (b *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce := guard(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "This page takes GET and POST.", http.StatusMethodNotAllowed)
		return
	}
	b.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nonceKey{}, nonce)))
}
