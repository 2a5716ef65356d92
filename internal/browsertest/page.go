package browsertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// DefaultPatience is how long a page may take for one thing. Only a failing test meets it.
const DefaultPatience = 2 * time.Minute

// Page is a tab of the browser.
type Page struct {
	// Patience is how long the page may take for one thing. Default: [DefaultPatience].
	Patience time.Duration

	tb  testing.TB
	ctx context.Context // chromedp's
	rec *recorder
	to  view

	failures string // folder for pictures of what failed; empty: the usual one
}

// New opens an empty page in a session of its own: its cookies are nobody else's.
func New(tb testing.TB) *Page {
	tb.Helper()
	return newPage(tb, browser(tb), chromedp.WithNewBrowserContext())
}

// Tab opens another empty page in the session of p.
func (p *Page) Tab() *Page {
	p.tb.Helper()
	return newPage(p.tb, p.ctx)
}

func newPage(tb testing.TB, parent context.Context, o ...chromedp.ContextOption) *Page {
	tb.Helper()
	p := &Page{Patience: DefaultPatience, tb: tb, rec: newRecorder(), to: usual}
	var stop context.CancelFunc
	p.ctx, stop = chromedp.NewContext(parent, append(o, chromedp.WithListener(p.rec.event))...)
	p.rec.dialog = func() { go p.answer() }
	tb.Cleanup(func() {
		defer stop()
		closing, cancel := context.WithTimeout(p.ctx, endPatience)
		defer cancel()
		if err := chromedp.Cancel(closing); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("close the page: %v", err)
		}
	})
	// The tab lives as long as the context of the first command, which therefore has no
	// limit of its own.
	if err := within(startPatience, stop, func() error { return chromedp.Do(p.ctx) }); err != nil {
		tb.Fatalf("open a page: %v", err)
	}
	p.must("set the page up", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, audits.Enable, cdp.Empty{})
		if err == nil {
			// Several pages are looked at side by side: each thinks that it is the one.
			_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		}
		return err
	})
	p.look()
	return p
}

// answer agrees to what the page asks with a dialog, as [Page.Dialogs] tells: nothing goes
// on before.
func (p *Page) answer() {
	ctx, cancel := context.WithTimeout(p.ctx, p.Patience)
	defer cancel()
	_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}) // the page may be gone
}

// must does something within the page's patience.
func (p *Page) must(what string, f func(context.Context) error) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.Patience)
	defer cancel()
	if err := f(ctx); err != nil {
		p.fatalf("%s: %v", what, err)
	}
}

// Open goes to an address and returns once the page there has loaded, whatever its status.
func (p *Page) Open(address string) {
	p.tb.Helper()
	p.arrive("open "+address, func(ctx context.Context) error {
		r, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
		if err == nil && r.ErrorText != "" {
			err = errors.New(r.ErrorText)
		}
		return err
	})
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.tb.Helper()
	p.arrive("reload", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.Reload, page.ReloadParams{})
		return err
	})
}

// Back goes to the page before this one.
func (p *Page) Back() {
	p.tb.Helper()
	p.arrive("go back", func(ctx context.Context) error {
		h, err := chromedp.Call(ctx, page.GetNavigationHistory, cdp.Empty{})
		if err != nil {
			return err
		}
		if h.CurrentIndex == 0 {
			return errors.New("there is no page before this one")
		}
		_, err = chromedp.Call(ctx, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[h.CurrentIndex-1].ID})
		return err
	})
}

// arrive does something that leads elsewhere, and returns once that has loaded.
func (p *Page) arrive(what string, f func(context.Context) error) {
	p.tb.Helper()
	p.must(what, func(ctx context.Context) error {
		before := p.rec.navigations()
		if err := f(ctx); err != nil {
			return err
		}
		if err := p.rec.loadedAfter(ctx, before); err != nil {
			return errors.New("no page has loaded")
		}
		return nil
	})
}

// URL is the address of the page.
func (p *Page) URL() string { p.tb.Helper(); return Eval[string](p, "location.href") }

// Title is the page's title.
func (p *Page) Title() string { p.tb.Helper(); return Eval[string](p, "document.title") }

// HTML is the page as it is now.
func (p *Page) HTML() string {
	p.tb.Helper()
	return Eval[string](p, "document.documentElement.outerHTML")
}

// Status is the HTTP status of the page; 0 before there was one.
func (p *Page) Status() int { return p.rec.status() }

// Cookies are what the browser would send to that address, those included that no script
// can read.
func (p *Page) Cookies(address string) (all []*http.Cookie) {
	p.tb.Helper()
	p.must("read the cookies", func(ctx context.Context) error {
		r, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{address}})
		for _, c := range r.Cookies {
			all = append(all, cookie(c))
		}
		return err
	})
	return all
}

func cookie(c *network.Cookie) *http.Cookie {
	site := map[string]http.SameSite{"strict": http.SameSiteStrictMode, "lax": http.SameSiteLaxMode, "none": http.SameSiteNoneMode}
	hc := &http.Cookie{
		Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Secure: c.Secure, HttpOnly: c.HTTPOnly, SameSite: site[strings.ToLower(string(c.SameSite))],
	}
	if !c.Session {
		hc.Expires = time.Unix(int64(c.Expires), 0)
	}
	return hc
}

// SetCookie gives the session a cookie for that address.
func (p *Page) SetCookie(address, name, value string) {
	p.tb.Helper()
	p.must("set a cookie", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: address})
		return err
	})
}
