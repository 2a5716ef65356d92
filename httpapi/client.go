package httpapi

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
)

// Client speaks to a daemon. Its errors are those of the engines behind it: errors.Is
// holds as it does there. It is safe for concurrent use.
type Client struct {
	// URL is the daemon's, without a path.
	URL string
	// Token proves who asks.
	Token string
	// HTTP sends the requests. Default: one that follows no redirects and uses no proxy.
	HTTP *http.Client
}

// NewClient is a client of the daemon at that address.
func NewClient(address, secret string) *Client {
	return &Client{URL: strings.TrimSuffix(address, "/"), Token: secret, HTTP: plainHTTP(nil)}
}

// NewSocketClient is a client of the daemon behind that Unix socket.
func NewSocketClient(path, secret string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{URL: "http://" + SocketHost, Token: secret, HTTP: plainHTTP(dial)}
}

// handshake bounds how long a daemon may take to prove who it is. What it may take to
// answer is the caller's to say, since many requests wait.
const handshake = 10 * time.Second

// plainHTTP follows nothing and asks no proxy: a token goes to one place.
func plainHTTP(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, TLSHandshakeTimeout: handshake, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// maxAnswer bounds what is taken of an answer.
const maxAnswer = 64 << 20

// Do sends one request and reads its answer: in is the body, nil for none; out takes
// the answer, nil to drop it.
func (c *Client) Do(ctx context.Context, method, path string, in, out any, header ...string) error {
	res, err := c.send(ctx, method, path, in, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return unreachable(ctx, err)
	case res.StatusCode >= 300:
		return problem.Read(res.StatusCode, b)
	case out == nil:
		return nil
	}
	if err := stdjson.Unmarshal(b, out); err != nil {
		return fault.New(fault.Internal, "The daemon's answer cannot be read.").Because(err)
	}
	return nil
}

// Send sends one request as it is given, and returns the answer as it comes, also where
// that is a refusal. An error says that there was no answer. body nil is none.
func (c *Client) Send(ctx context.Context, method, path string, q url.Values, header http.Header, body []byte) (status int, answer []byte, err error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var pairs []string
	for name := range header {
		pairs = append(pairs, name, header.Get(name))
	}
	var in any
	if body != nil {
		in = stdjson.RawMessage(body)
	}
	res, err := c.send(ctx, method, path, in, pairs)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return 0, nil, unreachable(ctx, err)
	}
	return res.StatusCode, answer, nil
}

func (c *Client) send(ctx context.Context, method, path string, in any, header []string) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := written(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, call.ErrUsage.Say("%q is no address of a daemon.", c.URL).Because(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if err := headersText(req.Header); err != nil {
		return nil, err
	}
	h := c.HTTP
	if h == nil {
		h = defaultHTTP
	}
	res, err := h.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	return res, nil
}

var defaultHTTP = plainHTTP(nil)

func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errUnreachable.Because(err)
}

// at is a path with what is variable in it escaped.
func at(parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/v1/" + strings.Join(parts, "/")
}

// query is a path with its parameters, without those that are empty.
func query(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Whoami says what the token proves.
func (c *Client) Whoami(ctx context.Context) (t token.Object, err error) {
	return t, c.Do(ctx, http.MethodGet, at("whoami"), nil, &t)
}

// Ready says why the daemon is not ready; nil: it is.
func (c *Client) Ready(ctx context.Context) error {
	return c.Do(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Tools lists the tools.
func (c *Client) Tools(ctx context.Context) (t Tools, err error) {
	return t, c.Do(ctx, http.MethodGet, at("tools"), nil, &t)
}

// Call calls a tool. A status of pending waits for a person. key may be empty.
func (c *Client) Call(ctx context.Context, tool string, args []byte, key string) (r Result, err error) {
	return c.CallInRun(ctx, "", tool, args, key)
}

// CallInRun is [Client.Call] under the id of a run: the guards of its calls count
// together.
func (c *Client) CallInRun(ctx context.Context, runID, tool string, args []byte, key string) (r Result, err error) {
	path := query(at("tools", tool, "call"), "run_id", runID)
	return r, c.Do(ctx, http.MethodPost, path, stdjson.RawMessage(args), &r, idempotent(key)...)
}

// idempotent is the header by which the same request again is the same.
func idempotent(key string) []string {
	if key == "" {
		return nil
	}
	return []string{"Idempotency-Key", key}
}

// GetCall reads a call, once it has ended or after wait.
func (c *Client) GetCall(ctx context.Context, id string, wait time.Duration) (o call.Object, err error) {
	w := ""
	if wait > 0 {
		w = wait.String()
	}
	return o, c.Do(ctx, http.MethodGet, query(at("calls", id), "wait", w), nil, &o)
}

// WithdrawCall takes a pending call back.
func (c *Client) WithdrawCall(ctx context.Context, id string) (o call.Object, err error) {
	return o, c.Do(ctx, http.MethodDelete, at("calls", id), nil, &o)
}

// Reserve reserves an attempt that the caller carries out itself.
func (c *Client) Reserve(ctx context.Context, what Reserving) (r Reserved, err error) {
	return r, c.Do(ctx, http.MethodPost, at("calls"), what, &r, idempotent(what.IdempotencyKey)...)
}

// Confirm records how a reserved attempt went.
func (c *Client) Confirm(ctx context.Context, id string, how Confirming) (o call.Object, err error) {
	return o, c.Do(ctx, http.MethodPost, at("calls", id, "confirm"), how, &o)
}

// Renew extends the lease of a reserved attempt.
func (c *Client) Renew(ctx context.Context, id string, fence int64) (l Leased, err error) {
	return l, c.Do(ctx, http.MethodPost, at("calls", id, "renew"), Fenced{fence}, &l)
}

// Approvals lists approvals of a status (empty: pending), newest first.
func (c *Client) Approvals(ctx context.Context, status, after string, limit int) (a Approvals, err error) {
	return a, c.Do(ctx, http.MethodGet, query(at("approvals"), "status", status, "after", after, "limit", number(limit)), nil, &a)
}

// GetApproval reads an approval.
func (c *Client) GetApproval(ctx context.Context, id string) (o decision.Object, err error) {
	return o, c.Do(ctx, http.MethodGet, at("approvals", id), nil, &o)
}

// Decide says yes or no to exactly what was shown.
func (c *Client) Decide(ctx context.Context, id string, d Deciding) (o Decided, err error) {
	return o, c.Do(ctx, http.MethodPost, at("approvals", id, "decide"), d, &o)
}

// Withdraw takes a pending approval of a call back.
func (c *Client) Withdraw(ctx context.Context, id string, n Note) (o decision.Object, err error) {
	return o, c.Do(ctx, http.MethodPost, at("approvals", id, "withdraw"), n, &o)
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, status, after string, limit int) (r Runs, err error) {
	return r, c.Do(ctx, http.MethodGet, query(at("runs"), "status", status, "after", after, "limit", number(limit)), nil, &r)
}

// RunsBeginning lists runs whose id begins so, newest first.
func (c *Client) RunsBeginning(ctx context.Context, prefix string, limit int) (r Runs, err error) {
	return r, c.Do(ctx, http.MethodGet, query(at("runs"), "prefix", prefix, "limit", number(limit)), nil, &r)
}

// GetRun reads a run with its steps.
func (c *Client) GetRun(ctx context.Context, id string) (o run.Object, err error) {
	return o, c.Do(ctx, http.MethodGet, at("runs", id), nil, &o)
}

// CancelRun ends a run.
func (c *Client) CancelRun(ctx context.Context, id string, n Note) (o run.Object, err error) {
	return o, c.Do(ctx, http.MethodPost, at("runs", id, "cancel"), n, &o)
}

// ResumeRun lets the daemon go on with a run.
func (c *Client) ResumeRun(ctx context.Context, id string) (o run.Object, err error) {
	return o, c.Do(ctx, http.MethodPost, at("runs", id, "resume"), nil, &o)
}

// Tokens lists tokens, newest first.
func (c *Client) Tokens(ctx context.Context, after string, limit int) (t Tokens, err error) {
	return t, c.Do(ctx, http.MethodGet, query(at("tokens"), "after", after, "limit", number(limit)), nil, &t)
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, n NewToken) (t token.Object, err error) {
	return t, c.Do(ctx, http.MethodPost, at("tokens"), n, &t)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) (t token.Object, err error) {
	return t, c.Do(ctx, http.MethodDelete, at("tokens", id), nil, &t)
}

// IsUnreachable reports whether err says that no daemon answered.
func IsUnreachable(err error) bool { return errors.Is(err, errUnreachable) }
