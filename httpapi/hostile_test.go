package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// sane is what holds of every answer: no 500, problem+json with a reason, and the
// class that the status stands for.
func sane(t testing.TB, what string, r reply) {
	t.Helper()
	if r.status == http.StatusInternalServerError || r.status == 0 {
		t.Errorf("%s: %d %s", what, r.status, r.text)
	}
	if r.status >= 400 && (r.header.Get("Content-Type") != "application/problem+json" || r.get("reason") == "" || r.get("detail") == "" || r.body["status"] != float64(r.status)) {
		t.Errorf("%s: %d %s %s", what, r.status, r.header.Get("Content-Type"), r.text)
	}
}

// Without a good token nothing is reached, and nothing is read of a body.
func TestNoToken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	for _, o := range ops {
		if o.open() {
			continue
		}
		for what, as := range map[string]string{"none": "", "not one": "placet_x", "another scheme": "x y"} {
			r := w.do(as, o.method, o.at("call_x"), `{"a":`)
			sane(t, o.ID+" "+what, r)
			if r.status != http.StatusUnauthorized || r.get("reason") != "unauthenticated" || r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %s: %d %s", o.ID, what, r.status, r.text)
			}
		}
	}
}

// A scope that an operation does not name is refused before the body is looked at.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	for _, o := range ops {
		words := strings.TrimSuffix(strings.TrimPrefix(o.Description, "Scopes: "), ".")
		if o.open() || words == "any" {
			continue
		}
		for _, s := range token.Scopes() {
			if slices.Contains(strings.Split(words, ", "), string(s)) {
				continue
			}
			if r := w.do(string(s), o.method, o.at("call_x"), `{"a":`); r.status != http.StatusForbidden || r.get("reason") != "forbidden" {
				t.Errorf("%s as %s: %d %s", o.ID, s, r.status, r.text)
			}
		}
	}
	for _, deciding := range []string{"decide", "resolve"} {
		i := slices.IndexFunc(ops, func(o operation) bool { return o.ID == deciding })
		if i < 0 || strings.Contains(ops[i].Description, "agent") || ops[i].method == "GET" {
			t.Errorf("%s: %+v", deciding, ops[i])
		}
	}
}

// Hosts that are not ours and pages of other sites reach nothing, whatever they show.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	own := "http://" + w.http.Listener.Addr().String()
	for _, o := range ops {
		for what, h := range map[string][]string{
			"host":          {"Host", "evil.example"},
			"rebound host":  {"Host", "evil.example:7420"},
			"origin":        {"Origin", "http://evil.example"},
			"null origin":   {"Origin", "null"},
			"fetch":         {"Sec-Fetch-Site", "cross-site"},
			"same site":     {"Sec-Fetch-Site", "same-site"},
			"origin, fetch": {"Origin", own, "Sec-Fetch-Site", "cross-site"},
		} {
			r := w.do("admin", o.method, o.at("call_x"), "{}", h...)
			sane(t, o.ID, r)
			if r.status != http.StatusForbidden {
				t.Errorf("%s from a foreign %s: %d %s", o.ID, what, r.status, r.text)
			}
		}
	}
	w.want(w.do("admin", "GET", "/v1/tools", "", "Origin", own, "Sec-Fetch-Site", "same-origin"), 200)
}

// Only whole paths are ours: nothing is cleaned, decoded or redirected.
func TestPaths(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park("agent")
	ops, _ := operations(t)
	for _, o := range ops {
		id := p.get("approval_id")
		for _, path := range []string{o.at(id) + "/", o.at(id) + "/x", o.at(id) + "/decide/x", "/" + o.at(id), o.at(id) + "/../x", o.at(id) + "%2Fdecide", strings.Replace(o.at(id), "/v1/", "/v1//", 1), "/v1/%2e%2e" + o.at(id)} {
			if o.path == path {
				continue
			}
			r := w.do("admin", o.method, path, map[bool]string{true: decide(true, p.get("digest"))}[o.method == "POST"])
			sane(t, path, r)
			if r.status != http.StatusNotFound && r.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", o.method, path, r.status, r.text)
			}
		}
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "NONSENSE"} {
			if slices.ContainsFunc(ops, func(x operation) bool { return x.path == o.path && x.method == m }) {
				continue
			}
			if o.ID == "cleanJobs" && m == "GET" {
				continue // a job of that id, which there is not
			}
			if r := w.do("admin", m, o.at(id), "{}"); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") == "" {
				t.Errorf("%s %s: %d %s", m, o.path, r.status, r.text)
			}
		}
	}
	w.want(w.do("reviewer", "GET", "/v1/approvals/"+p.get("approval_id"), ""), 200, "status", "pending")
}

// Bad bodies, ids and parameters are refused at every door, and nothing is stored.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, schemas := operations(t)
	before := w.look()
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	for _, o := range ops {
		if o.streams() {
			continue
		}
		for _, id := range []string{"call_x", "apr_x", "..", strings.Repeat("a", 3000)} {
			for i, b := range bodies(o, schemas, deep) {
				if id != "call_x" && i > 3 {
					break
				}
				r := w.do("admin", o.method, o.at(id), b)
				sane(t, fmt.Sprintf("%s with %.80s", o.ID, b), r)
				if o.RequestBody != nil && id == "call_x" && r.status < 300 && o.ID != "callTool" {
					t.Errorf("%s took %.200s: %s", o.ID, b, r.text)
				}
			}
			for _, q := range []string{"?limit=0", "?limit=501", "?limit=x", "?after=%00", "?status=%FF", "?wait=-1s", "?wait=99999h", "?wait=x", "?nonsense=1", "?after=" + strings.Repeat("a", 9000), "?stream=x", "?%zz"} {
				r := w.do("admin", o.method, o.at(id)+q, "")
				sane(t, o.ID+q, r)
			}
		}
		if o.RequestBody != nil {
			for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/cbor", "\"", "application/json; charset=\xff"} {
				r := w.do("admin", o.method, o.at("x"), "{}", "Content-Type", ct)
				sane(t, o.ID+" "+ct, r)
				if r.status < 400 {
					t.Errorf("%s took %s: %d", o.ID, ct, r.status)
				}
			}
			r := w.do("admin", o.method, o.at("x"), `{"x":"`+strings.Repeat("a", 1<<20)+`"}`)
			if sane(t, o.ID, r); r.status != http.StatusRequestEntityTooLarge {
				t.Errorf("%s took a large body: %d", o.ID, r.status)
			}
		}
	}
	if after := w.look(); after != before {
		t.Errorf("something was stored: %s before, %s after", before, after)
	}
}

// bodies are wrong for whatever an operation takes.
func bodies(o operation, schemas map[string]any, deep string) []string {
	list := []string{
		"", "null", "true", "0", `""`, "[]", "{", `{"`, "{}x", "\x00", "\xff", `{"a":1,"a":2}`, `{"\ud800":1}`, `{"unknown":1}`, `{"By":"x"}`,
		`{"by":1}`, `{"by":null}`, `{"note":{}}`, deep, `{"approved":"true","digest":"x"}`, `{"fence":-1}`, `{"fence":1e400}`,
	}
	if o.RequestBody == nil {
		return list
	}
	props := map[string]any{}
	if ref, ok := o.RequestBody.Content["application/json"].Schema["$ref"].(string); ok {
		if s, ok := schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any); ok {
			props, _ = s["properties"].(map[string]any)
		}
	}
	for name := range props { // each field with each wrong type, and twice
		for _, v := range []string{"null", "true", "0", "-1", "1.5", "1e400", "123456789012345678901234567890", `""`, `"\u0000"`, "[]", "[[]]", "{}", `{"a":{}}`} {
			list = append(list, fmt.Sprintf(`{%q:%s,"unknown":1}`, name, v), fmt.Sprintf(`{%q:%s,%q:%s}`, name, v, name, v))
		}
	}
	return list
}

// look is how much is stored.
func (w *world) look() string {
	w.t.Helper()
	n := 0
	err := txn.View(w.t.Context(), w.st, func(tx decision.Tx) error {
		hs, err := tx.Heads("", 1000)
		for _, h := range hs {
			n += int(h.Seq)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ts, err := token.List(w.t.Context(), w.st, token.Query{Space: "main", Limit: 500})
	return fmt.Sprintf("%d events, %d tokens, %v", n, len(ts), err)
}

// Words that are no yes and no no decide nothing (037).
func TestWhatIsNoDecision(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park("agent")
	at := "/v1/approvals/" + p.get("approval_id") + "/decide"
	for _, v := range []string{`null`, `""`, `0`, `1`, `"true"`, `"yes"`, `[]`, `{}`, `{"approved":true}`} {
		w.want(w.do("reviewer", "POST", at, fmt.Sprintf(`{"approved":%s,"digest":%q}`, v, p.get("digest"))), 400, "reason", "malformed")
	}
	for _, b := range []string{`{"digest":"` + p.get("digest") + `"}`, `{"approved":true}`, `{"approved":true,"digest":""}`, `{"approved":true,"digest":null}`, `{"approved":true,"rejected":true,"digest":"x"}`, `{"approve":true,"digest":"x"}`, `{"Approved":true,"digest":"x"}`} {
		w.want(w.do("reviewer", "POST", at, b), 400, "reason", "malformed")
	}
	if r := w.want(w.do("reviewer", "POST", at, `true`), 400, "reason", "malformed"); !strings.Contains(r.get("hint"), `{"approved":true`) {
		t.Errorf("the right body is not told: %s", r.text)
	}
	w.want(w.do("reviewer", "POST", at, decide(true, "sha256-placet1:other")), 409, "reason", "approval_changed")
	for _, edit := range []string{`{}`, `{"order":1}`, `{"order":"o","amount":1.5}`, `{"order":"o","extra":1}`, `null`, `[]`, `{"order":"o","amount":-1}`} { // 043
		r := w.do("reviewer", "POST", at, decide(true, p.get("digest"), `"edited_args":`+edit))
		sane(t, edit, r)
		if r.status != 422 && r.status != 400 {
			t.Errorf("an edit to %s: %d %s", edit, r.status, r.text)
		}
	}
	w.want(w.do("reviewer", "GET", "/v1/approvals/"+p.get("approval_id"), ""), 200, "status", "pending")
	w.want(w.do("reviewer", "POST", at, decide(true, p.get("digest"), `"edited_args":{"order":"o","amount":0}`)), 200, "status", "approved")
}

// raw sends bytes and reads the answer.
func (w *world) raw(request string, half bool) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		w.t.Fatal(err)
	}
	if half {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}

func TestBrokenRequests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	host, auth := "Host: "+w.http.Listener.Addr().String()+"\r\n", "Authorization: Bearer "+w.tokens[token.Agent]+"\r\n"
	for what, request := range map[string]string{
		"a cut body":      "POST /v1/tools/look_up/call HTTP/1.1\r\n" + host + auth + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"order\":",
		"a cut chunk":     "POST /v1/tools/look_up/call HTTP/1.1\r\n" + host + auth + "Transfer-Encoding: chunked\r\n\r\nff\r\n{",
		"a bad chunk":     "POST /v1/tools/look_up/call HTTP/1.1\r\n" + host + auth + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{",
		"no host":         "GET /v1/tools HTTP/1.0\r\n" + auth + "\r\n",
		"two hosts":       "GET /v1/tools HTTP/1.1\r\n" + host + host + auth + "\r\n",
		"two tokens":      "GET /v1/tools HTTP/1.1\r\n" + host + auth + auth + "\r\n",
		"no HTTP":         "hello\r\n\r\n",
		"an absolute URI": "GET http://evil.example/v1/tools HTTP/1.1\r\n" + host + auth + "\r\n",
	} {
		if line := w.raw(request, true); line != "" && !strings.HasPrefix(line, "HTTP/1.1 4") && !strings.HasPrefix(line, "HTTP/1.0 4") {
			t.Errorf("%s: %q", what, line)
		}
	}
	if n := len(w.refund.ran()); n > 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

// What is somebody else's is not there.
func TestOthersWorkIsHidden(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tokens["other"] = w.token(token.Agent, "other")
	p := w.park("agent")
	for _, path := range []string{"/v1/calls/" + p.get("call_id"), "/v1/approvals/" + p.get("approval_id"), "/v1/events?stream=call:" + p.get("call_id")} {
		w.want(w.do("other", "GET", path, ""), 404, "reason", "not_found")
	}
	w.want(w.do("other", "DELETE", "/v1/calls/"+p.get("call_id"), ""), 404, "reason", "not_found")
	w.want(w.do("other", "POST", "/v1/approvals/"+p.get("approval_id")+"/withdraw", ""), 404, "reason", "not_found")
	w.want(w.do("other", "GET", "/v1/events", ""), 403, "reason", "forbidden")
	if r := w.want(w.do("other", "GET", "/v1/approvals?status=all", ""), 200); len(r.body["approvals"].([]any)) != 0 {
		t.Errorf("listed: %s", r.text)
	}
	w.want(w.do("agent", "DELETE", "/v1/calls/"+p.get("call_id"), ""), 200, "status", "cancelled")
}

// Nobody decides what they asked for, by whatever token.
func TestSelfDecision(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tokens["bot"] = w.token(token.Agent, "ana")
	w.tokens["ana"] = w.token(token.Reviewer, "ana")
	p := w.park("bot")
	at := "/v1/approvals/" + p.get("approval_id") + "/decide"
	w.want(w.do("ana", "POST", at, decide(true, p.get("digest"))), 403, "reason", "self_decision")
	p = w.park("admin")
	w.want(w.do("admin", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(true, p.get("digest"))), 403, "reason", "self_decision")
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(true, p.get("digest"))), 200)
}

// The same key makes one call, however many requests come at once, also while it runs (002).
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	began, open := make(chan struct{}, 1), make(chan struct{})
	w.refund.do = func(ctx context.Context) (json.RawMessage, error) {
		began <- struct{}{}
		<-open
		return json.RawMessage(`"done"`), nil
	}
	first := make(chan reply, 1)
	go func() {
		r, _ := w.send("agent", "POST", "/v1/tools/look_up/call", strings.NewReader(`{"order":"o"}`), "Idempotency-Key", "k")
		first <- r
	}()
	<-began
	again := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`, "Idempotency-Key", "k"), 202, "status", "running")
	w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"other"}`, "Idempotency-Key", "k"), 409, "reason", "call_conflict")
	close(open)
	r := w.want(<-first, 200, "status", "succeeded", "call_id", again.get("call_id"))
	w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`, "Idempotency-Key", "k"), 200, "call_id", r.get("call_id"))
	calls := make(chan string, 16)
	for range cap(calls) {
		go func() {
			r, _ := w.send("agent", "POST", "/v1/tools/refund/call", strings.NewReader(`{"order":"o"}`), "Idempotency-Key", "k2")
			calls <- r.get("call_id")
		}()
	}
	ids := map[string]bool{}
	for range cap(calls) {
		ids[<-calls] = true
	}
	if len(ids) != 1 || len(w.refund.ran()) != 1 {
		t.Errorf("%d calls, %d runs", len(ids), len(w.refund.ran()))
	}
}

// A client outside carries out its own call: it reserves, renews and confirms.
func TestReserveAndConfirm(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.want(w.do("agent", "POST", "/v1/calls", `{"tool":"refund","args":{"order":"o"}}`), 202, "status", "pending")
	again := fmt.Sprintf(`{"call_id":%q}`, p.get("call_id"))
	w.want(w.do("agent", "POST", "/v1/calls", again), 202, "approval_id", p.get("approval_id"))
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(true, p.get("digest"), `"edited_args":{"order":"x"}`)), 200)
	w.tokens["other"] = w.token(token.Agent, "other")
	w.want(w.do("other", "POST", "/v1/calls", again), 404)
	h := w.want(w.do("agent", "POST", "/v1/calls", again), 201, "status", "running")
	if h.body["fence"] != 1.0 || h.body["edited"] != true || !strings.Contains(h.text, `"args":{"order":"x"}`) || h.get("lease_until") == "" {
		t.Errorf("reserved: %s", h.text)
	}
	w.want(w.do("agent", "POST", "/v1/calls", again), 202, "status", "running")
	at := "/v1/calls/" + p.get("call_id")
	w.want(w.do("agent", "POST", at+"/renew", `{"fence":1}`), 200)
	w.want(w.do("agent", "POST", at+"/renew", `{"fence":2}`), 409, "reason", "lease_lost")
	w.want(w.do("other", "POST", at+"/confirm", `{"fence":1,"status":"succeeded","result":1}`), 404)
	w.want(w.do("agent", "POST", at+"/confirm", `{"fence":1,"status":"succeeded"}`), 400)
	w.want(w.do("agent", "POST", at+"/confirm", `{"fence":1,"status":"succeeded","result":{"n":12345678901234567890}}`), 200, "status", "succeeded")
	w.want(w.do("agent", "POST", at+"/confirm", `{"fence":1,"status":"succeeded","result":{"n":12345678901234567890}}`), 200)
	w.want(w.do("agent", "POST", at+"/confirm", `{"fence":1,"status":"failed","message":"no"}`), 409, "reason", "run_state")
	// What the daemon carries out nobody else may confirm.
	r := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`), 200)
	w.want(w.do("agent", "POST", "/v1/calls/"+r.get("call_id")+"/confirm", `{"fence":1,"status":"failed"}`), 409, "reason", "lease_lost")
	if n := len(w.refund.ran()); n != 1 {
		t.Errorf("the tools ran %d times", n)
	}
}
