package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// HTTP is a [Runner] that sends a request for each call (spec 4.2).
//
// The argument bytes are the body, as application/json, and the call id is the
// Idempotency-Key. An answer 2xx with one JSON value of at most [MaxResult] bytes is
// the result; 204 and 205, which have no body, are the result null. 4xx is an error
// that the tool returns. Everything else is [ErrOutcomeUnknown]: another status, a
// redirect (none is followed), a body that is not exactly one JSON value, a
// connection that is lost. If no connection came about the request was never sent:
// [ErrNotStarted].
//
// Each call has a connection of its own and is sent once: a connection that is
// reused may be lost in a way that cannot be told from a request that arrived. No
// proxy is used, whatever the environment says. There is no time limit but the
// context's, except for connecting (10 s) and for TLS (10 s).
type HTTP struct {
	method    string
	url       string
	headers   http.Header
	secrets   *strings.Replacer // takes the header values out of a text
	transport *http.Transport
}

var _ Runner = (*HTTP)(nil)

const (
	connectTimeout   = 10 * time.Second
	maxAnswerHeaders = 64 << 10 // bytes
	maxRefusal       = 1 << 10  // bytes of a 4xx body that are told
	refusalTimeout   = 2 * time.Second
)

// NewHTTP is a runner for that method (empty: POST), absolute http or https URL and
// headers. Content-Type may be given; Idempotency-Key and what belongs to the
// connection may not. Header values are secrets: they appear in no error and not in
// the implementation. The URL does, so it may have no user and password. The error
// matches [ErrInvalidTool].
func NewHTTP(method, address string, headers map[string]string) (*HTTP, error) {
	if method == "" {
		method = http.MethodPost
	}
	if !isToken(method) || strings.ToUpper(method) != method || method == http.MethodConnect {
		return nil, ErrInvalidTool.Say("The HTTP method %s is not allowed.", shown(method)).
			Hint("Write it in capitals: POST, PUT, PATCH, DELETE, GET.")
	}
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	h := &HTTP{method: method, url: address, headers: http.Header{}, transport: newTransport()}
	h.headers.Set("Content-Type", "application/json")
	h.headers.Set("Accept", "application/json")
	h.headers.Set("User-Agent", "placet")
	seen := map[string]bool{}
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		key := http.CanonicalHeaderKey(name)
		if seen[key] {
			return nil, ErrInvalidTool.Say("The header %s is given twice.", shown(key))
		}
		seen[key] = true
		h.headers[key] = []string{value}
		secrets = append(secrets, secretsIn(value)...)
	}
	h.secrets = redacting(secrets)
	return h, nil
}

func checkAddress(address string) error {
	refused := func(format string, args ...any) error {
		return ErrInvalidTool.Say("The URL %s is not allowed: "+format+".", append([]any{shown(address)}, args...)...)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ErrInvalidTool.Say("The URL cannot be read.").Hint("Write it as https://host/path.")
	case u.User != nil: // before any sentence that shows it
		return ErrInvalidTool.Say("The URL may have no user and password: it is shown to reviewers.").
			Hint("Put them into headers.")
	case strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return refused("it has a space, or a character outside ASCII that must be written %%XX")
	case u.Scheme != "http" && u.Scheme != "https":
		return refused("it must start with http:// or https://")
	case u.Hostname() == "":
		return refused("it names no host")
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return refused("the part behind # is never sent")
	}
	return nil
}

// ownHeaders are set by the runner or belong to the connection.
var ownHeaders = []string{
	"Idempotency-Key", "Content-Length", "Transfer-Encoding", "Connection", "Host",
	"Trailer", "Te", "Upgrade", "Expect", "Proxy-Connection", "Keep-Alive",
}

// checkHeader never shows the value.
func checkHeader(name, value string) error {
	if !isToken(name) {
		return ErrInvalidTool.Say("The header name %s is not allowed.", shown(name))
	}
	for _, own := range ownHeaders {
		if strings.EqualFold(name, own) {
			return ErrInvalidTool.Say("The header %s is set by Placet and cannot be given.", own)
		}
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == '\uFFFD' }) {
		return ErrInvalidTool.Say("The value of the header %s has a control character or is not valid UTF-8.", shown(name))
	}
	return nil
}

// secretsIn is what must not be repeated of a header's value: all of it, and its
// last word (of `Bearer …`), unless they are too short to be told from other text.
func secretsIn(value string) []string {
	const shortest = 6
	var out []string
	whole := strings.TrimSpace(value)
	for _, s := range []string{whole, whole[strings.LastIndexByte(whole, ' ')+1:]} {
		if len(s) >= shortest {
			out = append(out, s)
		}
	}
	return out
}

// redacting replaces secrets, the longest first.
func redacting(secrets []string) *strings.Replacer {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "[header value]")
	}
	return strings.NewReplacer(pairs...)
}

// isToken is the rule of HTTP for methods and header names.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		alnum := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxAnswerHeaders,
		DisableKeepAlives:      true,
		DisableCompression:     true, // the bytes are the result; and a small body stays small
		ForceAttemptHTTP2:      true,
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Implementation is what a yes to this tool is bound to (spec 1.2): `http METHOD URL`.
func (h *HTTP) Implementation() string { return "http " + h.method + " " + h.url }

// Run sends the request and reads the answer.
func (h *HTTP) Run(ctx context.Context, c Call) (json.RawMessage, error) {
	var connected atomic.Bool
	var refused atomic.Pointer[error]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			connected.Store(true)
			// The last moment: connecting took its time, and nothing was written yet.
			if err := mayStart(ctx, "The request was not sent"); err != nil {
				refused.CompareAndSwap(nil, &err)
				cancel() // no other connection
				info.Conn.Close()
			}
		},
	})
	// Not even a pool is shared: over HTTP/2, a connection that was closed before its
	// first request would be taken for the next call's.
	transport := h.transport.Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	req, err := http.NewRequestWithContext(ctx, h.method, h.url, bytes.NewReader(c.Args))
	if err != nil {
		return nil, ErrNotStarted.Say("The request was not sent: it cannot be made.")
	}
	req.GetBody = nil // nothing is ever sent again on our behalf
	req.Header = h.headers.Clone()
	req.Header.Set("Idempotency-Key", c.CallID)

	resp, err := client.Do(req)
	switch {
	case err != nil && refused.Load() != nil:
		return nil, *refused.Load()
	case err != nil && !connected.Load():
		return nil, ErrNotStarted.Say("The request was not sent: no connection came about (%s).", transportFault(err))
	case err != nil:
		return nil, ErrOutcomeUnknown.Say("The connection was lost before an answer came (%s).", transportFault(err))
	}
	defer resp.Body.Close()
	return h.answer(resp)
}

// answer sorts a response.
func (h *HTTP) answer(resp *http.Response) (json.RawMessage, error) {
	code := resp.StatusCode
	switch {
	case code == http.StatusNoContent || code == http.StatusResetContent:
		return json.RawMessage("null"), nil
	case code/100 == 2:
		return accepted(resp)
	case code/100 == 4:
		return nil, errors.New(h.refusal(resp))
	case code/100 == 3:
		return nil, ErrOutcomeUnknown.Say("The answer was HTTP %d, a redirect; none is followed.", code)
	}
	return nil, ErrOutcomeUnknown.Say("The answer was HTTP %d.", code)
}

func accepted(resp *http.Response) (json.RawMessage, error) {
	const slack = 1 // one byte more, such as a line feed, is not yet too much
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxResult+slack+1))
	switch {
	case len(body) > MaxResult+slack:
		return nil, endedAs{ErrOutcomeUnknown.Say("The answer was HTTP %d, but its body has more than %d bytes.", resp.StatusCode, MaxResult), errEnded}
	case err != nil:
		return nil, ErrOutcomeUnknown.Say("The answer was HTTP %d, but the connection was lost before its end (%s).", resp.StatusCode, transportFault(err))
	}
	value, err := oneValue(body)
	if err != nil {
		return nil, endedAs{ErrOutcomeUnknown.Say("The answer was HTTP %d, but %s.", resp.StatusCode, err), errEnded}
	}
	return value, nil
}

// refusal is the message of a 4xx answer: its status and the start of its body. The
// status says all that is needed, so a slow body is not waited for.
func (h *HTTP) refusal(resp *http.Response) string {
	timer := time.AfterFunc(refusalTimeout, func() { resp.Body.Close() })
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 16*maxRefusal))
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	text := h.secrets.Replace(strings.TrimSpace(string(body)))
	if text == "" {
		return status
	}
	more := ""
	if len(text) > maxRefusal {
		text, more = cut(text, maxRefusal), "…"
	}
	return status + ": " + printable(text) + more
}

// transportFault is an error of the transport without the request it was about.
func transportFault(err error) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the time was up"
	case errors.Is(err, context.Canceled):
		return "it was cancelled"
	}
	return short(err.Error())
}
