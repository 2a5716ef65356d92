package browsertest

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// Seen is one answer that a crawl got.
type Seen struct {
	Method, URL string
	From        string // address of what names it; empty: the crawl began there
	Status      int
	Header      http.Header
	Body        []byte // at most [BodyLimit] bytes; of streams nothing
	Failed      string // why there was no answer
}

// Crawled is everything that a crawl came to see.
type Crawled struct {
	Seen    []Seen
	Foreign []string // addresses of other origins that were named; they were not asked
}

// Limits of a crawl.
const (
	BodyLimit      = 4 << 20
	crawlLimit     = 2000
	answerPatience = 2 * time.Minute
)

// Crawl asks for everything that can be found from an address, on its origin, with GET,
// HEAD and OPTIONS: what links, forms, scripts, styles and redirects name. A form is not
// sent, but its address is asked for. Streams are hung up on once they have begun. So a
// test proves that none of it changes anything. Cookies are sent with every request, and
// none that an answer sets is kept: a crawl that signs itself out is still signed in.
func Crawl(tb testing.TB, start string, cookies ...*http.Cookie) Crawled {
	tb.Helper()
	c := &crawl{ctx: tb.Context(), cookies: cookies, known: map[string]bool{}, client: &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer c.client.CloseIdleConnections()
	u, err := url.Parse(start)
	if err != nil {
		tb.Fatal(err)
	}
	c.origin = *u
	for c.find("", u); len(c.todo) > 0; {
		next := c.todo[0]
		c.todo = c.todo[1:]
		if len(c.known) > crawlLimit {
			tb.Fatalf("more than %d addresses can be found from %s, such as %s: the crawl does not end", crawlLimit, start, next.url)
		}
		for _, method := range []string{http.MethodOptions, http.MethodHead, http.MethodGet} {
			c.ask(method, next)
		}
	}
	slices.Sort(c.got.Foreign)
	return c.got
}

type crawl struct {
	ctx     context.Context
	client  *http.Client
	cookies []*http.Cookie
	origin  url.URL
	known   map[string]bool
	todo    []address
	got     Crawled
}

type address struct{ from, url string }

// find notes an address that something names.
func (c *crawl) find(from string, u *url.URL) {
	at := *u
	at.Fragment, at.RawFragment = "", ""
	if at.Scheme != "http" && at.Scheme != "https" || c.known[at.String()] {
		return
	}
	c.known[at.String()] = true
	if at.Scheme != c.origin.Scheme || at.Host != c.origin.Host {
		c.got.Foreign = append(c.got.Foreign, at.String())
		return
	}
	c.todo = append(c.todo, address{from, at.String()})
}

func (c *crawl) ask(method string, n address) {
	seen := Seen{Method: method, URL: n.url, From: n.from}
	if err := c.fetch(&seen); err != nil {
		seen.Failed = err.Error()
	}
	c.got.Seen = append(c.got.Seen, seen)
	base, err := url.Parse(n.url)
	if err != nil {
		return // it was one before
	}
	for _, text := range linksOf(seen, base) {
		if u, err := base.Parse(text); err == nil {
			c.find(n.url, u)
		}
	}
}

func (c *crawl) fetch(seen *Seen) error {
	ctx, cancel := context.WithTimeout(c.ctx, answerPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, seen.Method, seen.URL, nil)
	if err != nil {
		return err
	}
	for _, cookie := range c.cookies {
		req.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	seen.Status, seen.Header = res.StatusCode, res.Header
	if mediaType(res.Header) == "text/event-stream" {
		return nil
	}
	seen.Body, err = io.ReadAll(io.LimitReader(res.Body, BodyLimit+1))
	if err == nil && len(seen.Body) > BodyLimit {
		seen.Body, err = seen.Body[:BodyLimit], errors.New("the body is larger than a crawl reads")
	}
	return err
}

func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return strings.ToLower(t)
}
