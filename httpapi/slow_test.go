package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

const (
	never = time.Hour              // a test that waits for this hangs
	soon  = 200 * time.Millisecond // long for a machine, short for a test
)

// line is a connection on which a test writes what it likes.
type line struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (w *world) line() *line {
	w.t.Helper()
	c, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // so that what hangs says where
	return &line{c, w.t, bufio.NewReader(c)}
}

func (l *line) say(text string) *line {
	l.t.Helper()
	if _, err := io.WriteString(l, text); err != nil {
		l.t.Fatal(err)
	}
	return l
}

// answer reads one.
func (l *line) answer() reply {
	l.t.Helper()
	res, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	r := reply{status: res.StatusCode, header: res.Header}.read(text)
	if res.Close {
		r.header.Set("Connection", "close")
	}
	return r
}

// ends returns once the server has hung up; err is how that looked.
func (l *line) ends() (rest []byte, err error) { return io.ReadAll(l.r) }

// head is a request without its body. host and as may be empty.
func (w *world) head(method, path, as string, headers ...string) string {
	host := w.http.Listener.Addr().String()
	if s, ok := w.tokens[token.Scope(as)]; ok {
		as = s
	}
	var b strings.Builder
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			host = headers[i+1]
			continue
		}
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	if as != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", as)
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, path, host, b.String())
}

// bodiesThatDoNotCome end the head of a request and begin a body whose end never comes.
var bodiesThatDoNotCome = map[string]string{
	"silent":             "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n",
	"half":               "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"order\":",
	"large and silent":   "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
	"too large":          "Content-Type: application/json\r\nContent-Length: 9223372036854775807\r\n\r\n{",
	"chunked and silent": "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
	"half a chunk":       "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
	"chunks without end": "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
	"asks first":         "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
	"asks, chunked":      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
}

// What is refused for its head is answered at once, whatever its body does, and its
// client is hung up on. Nothing is read of it.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(never, 0, soon)
	const doing = "/v1/tools/look_up/call"
	for what, c := range map[string]struct {
		head   string
		status int
		reason string
	}{
		"foreign host": {w.head("POST", doing, "agent", "Host", "evil.example"), 403, "unknown_host"},
		"other site":   {w.head("POST", doing, "agent", "Origin", "http://evil.example"), 403, "cross_site"},
		"no path":      {w.head("POST", "/v1/nothing", "agent"), 404, "no_route"},
		"no method":    {w.head("PUT", "/v1/calls/x", "agent"), 405, "method_not_allowed"},
		"no token":     {w.head("POST", doing, ""), 401, "unauthenticated"},
		"bad token":    {w.head("POST", doing, "placet_x"), 401, "unauthenticated"},
		"wrong scope":  {w.head("POST", "/v1/approvals/x/decide", "agent"), 403, "forbidden"},
	} {
		for kind, body := range bodiesThatDoNotCome {
			t.Run(what+", "+kind, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				l := w.line()
				r := l.say(c.head + body).answer()
				w.want(r, c.status, "reason", c.reason)
				if r.header.Get("Connection") != "close" {
					t.Error("the answer does not say that the connection ends")
				}
				if rest, _ := l.ends(); len(rest) > 0 {
					t.Errorf("after the answer came %q", rest)
				}
			})
		}
	}
}

// A body that is not there in time is answered so, and its client is hung up on,
// though it sends byte after byte.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(soon, 0, soon)
	for kind, body := range bodiesThatDoNotCome {
		if kind == "too large" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := w.in(t)
			l := w.line()
			r := l.say(w.head("POST", "/v1/tools/look_up/call", "agent") + body).answer()
			if r.status == http.StatusContinue {
				r = l.answer()
			}
			w.want(r, 408, "reason", "request_timeout")
			if r.header.Get("Connection") != "close" {
				t.Error("the answer does not say that the connection ends")
			}
			if rest, _ := l.ends(); len(rest) > 0 {
				t.Errorf("after the answer came %q", rest)
			}
		})
	}
	t.Run("byte after byte", func(t *testing.T) {
		t.Parallel()
		w := w.in(t)
		l := w.line().say(w.head("POST", "/v1/tools/look_up/call", "agent") + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				if _, err := io.WriteString(l, "1\r\n \r\n"); err != nil {
					return
				}
			}
		}()
		if r := l.answer(); r.status != 408 && r.status != 413 { // a machine may well send a megabyte of it in time
			t.Errorf("got %d %s", r.status, r.text)
		}
		_, _ = l.ends()
		<-stopped
	})
	if n := len(w.refund.ran()); n > 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

// A body without end is read up to the limit and no further.
func TestStreamedBodyOverTheLimit(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(never, 0, soon)
	l := w.line().say(w.head("POST", "/v1/tools/look_up/call", "agent") + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat(" ", 1<<16))
		for {
			if _, err := io.WriteString(l, chunk); err != nil {
				return
			}
		}
	}()
	w.want(l.answer(), 413, "reason", "body_too_large")
	_, _ = l.ends()
	<-stopped
	for _, n := range []int{1 << 20, 1<<20 + 1} { // the limit itself is allowed
		text := `{"order":"` + strings.Repeat("a", n-len(`{"order":""}`)) + `"}`
		want := map[bool]int{true: 200, false: 413}[n == 1<<20]
		w.want(w.do("agent", "POST", "/v1/tools/look_up/call", text), want)
		r, err := w.send("agent", "POST", "/v1/tools/look_up/call", io.MultiReader(strings.NewReader(text))) // chunked
		if err != nil {
			t.Fatal(err)
		}
		w.want(r, want)
	}
}

// Lengths that lie end in a refusal, and what follows is no request.
func TestLyingLengths(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(never, 0, soon)
	head := w.head("POST", "/v1/tools/look_up/call", "agent") + "Content-Type: application/json\r\n"
	l := w.line().say(head + "Content-Length: 100\r\n\r\n{\"order\":\"o\"}")
	if err := l.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.want(l.answer(), 400, "reason", "malformed")
	_, _ = l.ends()
	l = w.line().say(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n")
	w.want(l.answer(), 400, "reason", "malformed")
	_, _ = l.ends()
	l = w.line().say(head + "Content-Length: 8\r\n\r\n{\"order\":\"o\"}\r\n\r\n") // what is left over is no request
	w.want(l.answer(), 400, "reason", "malformed")
	if r := l.answer(); r.status != 400 {
		t.Errorf("what was left over was answered with %d", r.status)
	}
	_, _ = l.ends()
	if n := len(w.refund.ran()); n > 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

// Who sends requests and reads no answers is hung up on.
func TestAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.refund.do = func(context.Context) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("a", 1<<19) + `"`), nil
	}
	r := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`), 200)
	w.api.SetPatience(0, soon, 0)
	request := w.head("GET", "/v1/calls/"+r.get("call_id"), "agent") + "\r\n"
	l := w.line()
	for {
		if _, err := io.WriteString(l, request); err != nil {
			break
		}
	}
}

// Who follows events and reads none is hung up on.
func TestEventsThatNobodyReads(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(0, soon, 0)
	stream := "call:" + w.park("agent").get("call_id")
	l := w.line()
	if err := l.Conn.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
		t.Fatal(err)
	}
	l.say(w.head("GET", "/v1/events?stream="+stream, "agent") + "\r\n")
	w.untilWaiters(1)
	large := event.New(event.ResumeRefused, "", "test", map[string]string{"reason": strings.Repeat("a", 1<<19)})
	for range 20 {
		if err := txn.Update(t.Context(), w.st, func(tx event.Tx) error { return tx.Append(stream, large) }); err != nil {
			t.Fatal(err)
		}
	}
	w.untilWaiters(0)
}

// A client that hangs up while it waits is let go of.
func TestClientsThatHangUpWhileTheyWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	p := w.park("agent")
	j := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201)
	job := "/v1/jobs/" + j.get("job_id")
	w.want(w.do("agent", "POST", job+"/wait", `{"types":["started"]}`), 200)
	q := w.want(w.do("agent", "POST", job+"/decision", `{"prompt":"?"}`), 201)
	wait := `{"types":["completed"]}`
	for what, request := range map[string]string{
		"a call":     w.head("GET", "/v1/calls/"+p.get("call_id")+"?wait=1h", "agent") + "\r\n",
		"a job":      w.head("POST", job+"/wait", "agent") + fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(wait), wait),
		"a question": w.head("GET", "/v1/decisions/"+q.get("decision_id")+"/wait", "agent") + "\r\n",
		"output":     w.head("GET", job+"/tail?follow=true", "agent") + "\r\n",
		"events":     w.head("GET", "/v1/events", "reviewer") + "\r\n",
	} {
		l := w.line().say(request)
		w.untilWaiters(1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("who waited for %s has hung up", what)
		w.untilWaiters(0)
	}
}

// A call goes on when its client hangs up, and is there to be asked for.
func TestClientsThatHangUpDuringACall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	began, open := make(chan context.Context, 1), make(chan struct{})
	w.refund.do = func(ctx context.Context) (json.RawMessage, error) {
		began <- ctx
		<-open
		return json.RawMessage(`"done"`), ctx.Err()
	}
	const args = `{"order":"o"}`
	l := w.line().say(w.head("POST", "/v1/tools/look_up/call", "agent", "Idempotency-Key", "k") + fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(args), args))
	<-began
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for w.metric(`placet_http_requests_total{operation="callTool",status="503"}`) != 1 { // the server has noticed
	}
	close(open)
	if err := w.api.Shutdown(t.Context()); err != nil { // the call is counted among what has begun
		t.Fatal(err)
	}
	var cs []call.Call
	err := txn.View(t.Context(), w.st, func(tx call.Tx) (err error) {
		cs, err = tx.Calls(call.Query{Space: "main"})
		return err
	})
	if err != nil || len(cs) != 1 || cs[0].Status != call.Succeeded || string(cs[0].Result) != `"done"` {
		t.Errorf("%+v, %v", cs, err)
	}
}

// metric is one of the server's figures; 0 where it is not told yet.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	r := w.want(w.do("admin", "GET", "/metrics", ""), 200)
	_, after, ok := strings.Cut(r.text, "\n"+name+" ")
	if !ok {
		return 0
	}
	var value float64
	if _, err := fmt.Sscan(after, &value); err != nil {
		w.t.Fatal(err)
	}
	return value
}

// untilWaiters returns once so many requests wait.
func (w *world) untilWaiters(n int) {
	w.t.Helper()
	for int(w.metric("placet_http_waiters")) != n {
	}
}

// A client that writes all of its body before it reads learns why that was refused.
func TestRefusedBodyIsHeardOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetPatience(never, 0, never)
	const size = 12 << 20
	l := w.line().say(w.head("POST", "/v1/tools/look_up/call", "agent") + fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", size))
	l.say(strings.Repeat(" ", size))
	w.want(l.answer(), 413, "reason", "body_too_large")
	if rest, err := l.ends(); len(rest) > 0 || err != nil {
		t.Errorf("it goes on with %q, %v", rest, err)
	}
}
