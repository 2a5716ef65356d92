package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
)

// Request is one that the page made.
type Request struct {
	Method, URL string
	Type        string      // Document, Stylesheet, Script, Image, Font, Fetch, EventSource, WebSocket, …
	Sent        http.Header // as sent, with cookies; nil: it was not sent, or the browser does not tell, as of some frames
	Status      int         // 0: there was no answer
	Received    http.Header // of the answer, with cookies
	Bytes       int64       // of the body, after decompression
	Wire        int64       // of the answer, as sent; 0 until it has ended
	Ended       bool        // there will be no more of the answer
	Failed      string      // why there was none, or it was not used
	Given       bool        // it failed because the page itself gave it up, or went elsewhere
	Cached      bool        // it was answered from memory or disk

	withheld []string
	unsent   bool // it never reached its server
}

func (r Request) String() string {
	s := fmt.Sprintf("%s %s %.200s", r.Type, r.Method, r.URL) // data: may be long
	if r.Status != 0 {
		s += fmt.Sprintf(" → %d", r.Status)
	}
	if r.Failed != "" {
		s += ": " + r.Failed
	}
	return s
}

// Cookies are the names of the cookies that were sent.
func (r Request) Cookies() (names []string) {
	for _, c := range (&http.Request{Header: r.Sent}).Cookies() {
		names = append(names, c.Name)
	}
	return names
}

// Withheld are the cookies of that address that were not sent, and why.
func (r Request) Withheld() []string { return r.withheld }

// toldWithin is how long after an answer the browser may tell what was sent for it.
const toldWithin = 2 * time.Second

// Requests are all that the page made until now, in their order. A redirect is one more.
func (p *Page) Requests() (all []Request) {
	ctx, cancel := context.WithTimeout(p.ctx, toldWithin)
	defer cancel()
	_ = until(ctx, func(context.Context) (string, error) { // some are never told of: see Request.Sent
		all = p.rec.requests()
		if slices.ContainsFunc(all, Request.half) {
			return "there is more to come", nil
		}
		return "", nil
	})
	return all
}

// half reports whether a request has come to its end or an answer, and it is not told yet
// what was sent.
func (r Request) half() bool {
	return r.Sent == nil && !r.Cached && !r.unsent && (r.Status != 0 || r.Failed != "") && strings.HasPrefix(r.URL, "http")
}

func (r *recorder) requests() (all []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.traffic.all {
		all = append(all, *one)
	}
	return all
}

// Failed are the requests that had no answer, or one that says that it failed (from 400
// on), but for those that the page gave up itself.
func (p *Page) Failed() []Request { return failed(p.Requests()) }

func failed(all []Request) []Request {
	return slices.DeleteFunc(all, func(r Request) bool { return r.Status < 400 && (r.Failed == "" || r.Given) })
}

// Foreign are the requests to anywhere else than that origin, such as http://127.0.0.1:80.
// What has no network in it (data:, blob:, about:) is not foreign.
func (p *Page) Foreign(origin string) []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool {
		u, err := url.Parse(r.URL)
		if err != nil {
			return false
		}
		return u.Scheme+"://"+u.Host == origin || slices.Contains([]string{"data", "blob", "about"}, u.Scheme)
	})
}

// traffic puts requests together from what the browser tells piece by piece. The pieces
// about what was really sent and received come before or after the others, and for each
// redirect once more.
type traffic struct {
	all      []*Request
	hops     map[network.RequestID][]*Request
	sent     map[network.RequestID][]*network.EventRequestWillBeSentExtraInfo
	received map[network.RequestID][]*network.EventResponseReceivedExtraInfo
}

func newTraffic() traffic {
	return traffic{
		hops: map[network.RequestID][]*Request{}, sent: map[network.RequestID][]*network.EventRequestWillBeSentExtraInfo{},
		received: map[network.RequestID][]*network.EventResponseReceivedExtraInfo{},
	}
}

func (t *traffic) event(ev any) {
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		if ev.RedirectResponse != nil {
			if r := t.last(ev.RequestID); r != nil {
				r.answer(ev.RedirectResponse)
				r.Ended = true
			}
		}
		t.add(ev.RequestID, &Request{Method: ev.Request.Method, URL: ev.Request.URL, Type: string(ev.Type)})
	case *network.EventWebSocketCreated:
		t.add(ev.RequestID, &Request{Method: http.MethodGet, URL: ev.URL, Type: "WebSocket"})
	case *network.EventRequestWillBeSentExtraInfo:
		t.sent[ev.RequestID] = append(t.sent[ev.RequestID], ev)
		t.match(ev.RequestID)
	case *network.EventResponseReceivedExtraInfo:
		t.received[ev.RequestID] = append(t.received[ev.RequestID], ev)
		t.match(ev.RequestID)
	default:
		t.answers(ev)
	}
}

func (t *traffic) answers(ev any) {
	switch ev := ev.(type) {
	case *network.EventResponseReceived:
		if r := t.last(ev.RequestID); r != nil {
			r.answer(ev.Response)
		}
	case *network.EventRequestServedFromCache:
		if r := t.last(ev.RequestID); r != nil {
			r.Cached = true
		}
	case *network.EventDataReceived:
		if r := t.last(ev.RequestID); r != nil {
			r.Bytes += ev.DataLength
		}
	case *network.EventLoadingFinished:
		if r := t.last(ev.RequestID); r != nil {
			r.Ended, r.Wire = true, int64(ev.EncodedDataLength)
		}
	case *network.EventLoadingFailed:
		if r := t.last(ev.RequestID); r != nil {
			r.Ended, r.Failed, r.Given = true, why(ev), ev.Canceled
			r.unsent = unsent(ev)
		}
	}
}

func (t *traffic) last(id network.RequestID) *Request {
	hops := t.hops[id]
	if len(hops) == 0 {
		return nil // it was made before they were forgotten
	}
	return hops[len(hops)-1]
}

func (t *traffic) add(id network.RequestID, r *Request) {
	t.all = append(t.all, r)
	t.hops[id] = append(t.hops[id], r)
	t.match(id)
}

// match gives each hop its pieces.
func (t *traffic) match(id network.RequestID) {
	for i, r := range t.hops[id] {
		if i < len(t.sent[id]) && r.Sent == nil {
			r.Sent, r.withheld = headers(t.sent[id][i].Headers), withheld(t.sent[id][i].AssociatedCookies)
		}
		if i < len(t.received[id]) {
			r.Received, r.Status = headers(t.received[id][i].Headers), int(t.received[id][i].StatusCode)
		}
	}
}

func (r *Request) answer(a *network.Response) {
	r.Cached = r.Cached || a.FromDiskCache
	if r.Received == nil {
		r.Status, r.Received = int(a.Status), headers(a.Headers)
	}
}

func headers(h network.Headers) http.Header {
	all := http.Header{}
	for name, v := range h {
		if s, ok := v.(string); ok {
			all[http.CanonicalHeaderKey(name)] = strings.Split(s, "\n")
		}
	}
	return all
}

func withheld(all []*network.AssociatedCookie) (list []string) {
	for _, a := range all {
		for _, why := range a.BlockedReasons {
			list = append(list, a.Cookie.Name+": "+string(why))
		}
	}
	return list
}

// unsent reports whether a request failed on its way to its server: there is none, the
// page's policy forbids it, or the browser asked before and was refused.
func unsent(ev *network.EventLoadingFailed) bool {
	for _, beginning := range []string{"net::ERR_NAME_NOT_RESOLVED", "net::ERR_CONNECTION", "net::ERR_ADDRESS"} {
		if strings.HasPrefix(ev.ErrorText, beginning) {
			return true
		}
	}
	return ev.BlockedReason == network.BlockedReasonCsp || ev.BlockedReason == network.BlockedReasonMixedContent ||
		ev.CorsErrorStatus != nil && strings.HasPrefix(string(ev.CorsErrorStatus.CorsError), "Preflight")
}

func why(ev *network.EventLoadingFailed) string {
	said := []string{ev.ErrorText}
	if ev.BlockedReason != "" {
		said = append(said, "("+string(ev.BlockedReason)+")")
	}
	if ev.CorsErrorStatus != nil {
		said = append(said, "("+string(ev.CorsErrorStatus.CorsError)+")")
	}
	return strings.TrimSpace(strings.Join(said, " "))
}
