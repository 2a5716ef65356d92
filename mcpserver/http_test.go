package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/token"
)

// An agent does its work at a real daemon, in every revision: a job, a question to a
// person, a wait for the answer.
func TestAnAgentsWork(t *testing.T) {
	t.Parallel()
	w := serve(t)
	agent, ana := w.token(token.Agent, "bot"), w.token(token.Reviewer, "ana")
	for _, version := range versions {
		s := w.connect(agent.Secret, version, nil)
		if got := s.InitializeResult().ProtocolVersion; got != version && version != versions[0] {
			t.Errorf("%s was asked for, and %s is spoken", version, got)
		}
		job := ok(t, s, "job_start", `{"command":["sh","-c","echo hello; cat"],"name":"work"}`).get("job_id")
		arg := func(more string) string { return `{"job_id":"` + job + `"` + more + `}` }
		ok(t, s, "job_wait", arg(`,"types":["started"]`))
		q := ok(t, s, "job_request_decision", arg(`,"prompt":"Go on?","options":["yes","no"]`))
		if a := ok(t, s, "job_view", `{}`); !strings.Contains(a.text, job) {
			t.Errorf("%s: %s", version, a.text)
		}
		reviewer := w.connect(ana.Secret, version, nil)
		resolved := ok(t, reviewer, "job_resolve", arg(`,"token":"`+q.get("decision_id")+`","choice":"yes"`))
		if resolved.get("status") != "resolved" || resolved.get("principal") != "ana" {
			t.Errorf("%s: %s", version, resolved.text)
		}
		refused(t, reviewer, "job_resolve", arg(`,"token":"`+q.get("decision_id")+`","choice":"no"`), "choice_conflict")
		got := ok(t, s, "job_wait", arg(`,"decision_id":"`+q.get("decision_id")+`","after":"`+q.get("cursor")+`"`))
		if got.get("result") != "event" || got.get("event", "type") != "decision_resolved" || got.get("event", "payload", "choice") != "yes" {
			t.Errorf("%s: %s", version, got.text)
		}
		tail := ok(t, s, "job_tail", arg(`,"follow":true`))
		if data, _ := base64.StdEncoding.DecodeString(tail.get("data")); string(data) != "hello\n" {
			t.Errorf("%s: %s", version, tail.text)
		}
		ok(t, s, "job_send", arg(`,"text":"more\n","eof":true`))
		ended := ok(t, s, "job_wait", arg(`,"types":["completed"]`))
		if ended.get("event", "type") != "completed" {
			t.Errorf("%s: %s", version, ended.text)
		}
		if a := ok(t, s, "job_status", arg(``)); a.get("status") != "completed" {
			t.Errorf("%s: %s", version, a.text)
		}
		if a := ok(t, s, "job_events", arg(`,"limit":1000`)); !strings.Contains(a.text, "decision_requested") {
			t.Errorf("%s: %s", version, a.text)
		}
		refused(t, s, "job_pause", arg(``), refusalOf(t, w, agent, "/v1/jobs/"+job+"/pause"))
		refused(t, s, "job_cleanup", `{"older_than_seconds":0}`, "forbidden")
		refused(t, s, "job_status", `{"job_id":"job_none"}`, "not_found")
	}
}

// refusalOf is the API's reason not to do it.
func refusalOf(t *testing.T, w *world, k token.Object, path string) string {
	t.Helper()
	_, answer, err := httpapi.NewClient(w.at.URL, k.Secret).Send(t.Context(), http.MethodPost, path, nil, nil, nil)
	var p struct{ Reason string }
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	if err != nil || p.Reason == "" {
		t.Fatalf("%s: %s %v", path, answer, err)
	}
	return p.Reason
}

// The other tools at a real daemon: stop, withdraw, lists, cleanup, doctor.
func TestTheRestOfTheTools(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.connect(w.token(token.Agent, "bot").Secret, versions[0], nil)
	job := w.job(s)
	q := ok(t, s, "job_request_decision", `{"job_id":"`+job+`","prompt":"?"}`).get("decision_id")
	if a := ok(t, s, "job_withdraw_decision", `{"job_id":"`+job+`","token":"`+q+`","note":"mine"}`); a.get("status") != "withdrawn" {
		t.Errorf("%s", a.text)
	}
	if a := ok(t, s, "job_decisions", `{"job_id":"`+job+`","status":"withdrawn"}`); !strings.Contains(a.text, q) {
		t.Errorf("%s", a.text)
	}
	if a := ok(t, s, "job_stop", `{"job_id":"`+job+`"}`); a.get("status") != "cancelled" {
		t.Errorf("%s", a.text)
	}
	if a := ok(t, s, "job_list", `{"status":"cancelled"}`); !strings.Contains(a.text, job) {
		t.Errorf("%s", a.text)
	}
	after := ok(t, s, "job_start", `{"command":"true","trigger":{"job_id":"`+w.job(s)+`","status":"completed"}}`).get("job_id")
	if a := ok(t, s, "job_pause", `{"job_id":"`+after+`"}`); a.get("paused") != "true" {
		t.Errorf("%s", a.text)
	}
	if a := ok(t, s, "job_resume", `{"job_id":"`+after+`"}`); a.get("paused") != "false" {
		t.Errorf("%s", a.text)
	}
	if a := ok(t, s, "doctor", `{}`); a.get("ready") != "true" || a.get("token", "principal") != "bot" {
		t.Errorf("%s", a.text)
	}
	operator := w.connect(w.token(token.Operator, "op").Secret, versions[0], nil)
	if a := ok(t, operator, "job_cleanup", `{"older_than_seconds":0,"dry_run":true}`); !strings.Contains(a.text, job) {
		t.Errorf("%s", a.text)
	}
	if _, err := tryCall(t, operator, "job_resolve", unanswered); err == nil {
		t.Error("an operator has job_resolve")
	}
}

// A job's wake targets and deliveries: what cannot be told is counted by doctor.
func TestWakeTargets(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.connect(w.token(token.Agent, "bot").Secret, versions[0], nil)
	job := w.job(s)
	args := func(more string) string { return `{"job_id":"` + job + `",` + more + `}` }
	refused(t, s, "job_add_wake_target", args(`"type":"slack"`), "usage")
	refused(t, s, "job_add_wake_target", args(`"type":"command","command":["false"],"events":["no_such"]`), "usage")
	target := ok(t, s, "job_add_wake_target", args(`"type":"command","command":["false"],"events":["cancelled"],"max_attempts":1`)).get("target_id")
	if a := ok(t, s, "doctor", `{}`); a.get("dead_deliveries") != "0" {
		t.Errorf("%s", a.text)
	}
	ok(t, s, "job_stop", args(`"by":"me"`))
	for end := time.Now().Add(patience); ; {
		a := ok(t, s, "job_deliveries", args(`"target_id":"`+target+`","status":"dead"`))
		if strings.Contains(a.text, target) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing was given up: %s", ok(t, s, "job_deliveries", `{}`).text)
		}
	}
	if a := ok(t, s, "doctor", `{}`); a.get("dead_deliveries") != "1" {
		t.Errorf("%s", a.text)
	}
	started := ok(t, s, "job_start", `{"command":["true"],"wake_targets":[{"type":"relay","events":["completed"]}]}`)
	if !strings.Contains(started.text, `"wake_targets"`) {
		t.Errorf("%s", started.text)
	}
}

// A guarded call parks, waits for a person, and runs by itself exactly as asked.
func TestAGuardedCall(t *testing.T) {
	t.Parallel()
	w := serve(t)
	agent, ana := w.token(token.Agent, "bot"), w.token(token.Reviewer, "ana")
	for _, version := range versions {
		s := w.connect(agent.Secret, version, nil)
		const args = `{"z":9007199254740993,"a":1.0}`
		parked := ok(t, s, "tool_call", `{"tool":"refund","args":`+args+`}`)
		if parked.get("status") != "pending" || parked.get("approval_id") == "" {
			t.Fatalf("%s: %s", version, parked.text)
		}
		if a := ok(t, s, "approvals_list", `{}`); !strings.Contains(a.text, parked.get("approval_id")) {
			t.Errorf("%s: %s", version, a.text)
		}
		if a := ok(t, s, "call_wait", `{"call_id":"`+parked.get("call_id")+`","wait":"0s"}`); a.get("result") != "timeout" || a.get("status") != "pending" {
			t.Errorf("%s: %s", version, a.text)
		}
		c := httpapi.NewClient(w.at.URL, ana.Secret)
		if _, err := c.Decide(t.Context(), parked.get("approval_id"), httpapi.Deciding{Approved: true, Digest: parked.get("digest")}); err != nil {
			t.Fatal(err)
		}
		if a := ok(t, s, "call_wait", `{"call_id":"`+parked.get("call_id")+`"}`); a.get("status") != string(call.Succeeded) {
			t.Errorf("%s: %s", version, a.text)
		}
		if ran := <-w.ran; ran != args {
			t.Errorf("%s: it ran with %s, not with %s", version, ran, args)
		}
		again := ok(t, s, "tool_call", `{"tool":"refund","args":{"again":true}}`)
		if a := ok(t, s, "call_withdraw", `{"call_id":"`+again.get("call_id")+`"}`); a.get("status") != string(call.Cancelled) {
			t.Errorf("%s: %s", version, a.text)
		}
		if a := ok(t, s, "tool_call", `{"tool":"look_up","args":`+order+`}`); a.get("status") != string(call.Succeeded) {
			t.Errorf("%s: %s", version, a.text)
		}
		<-w.ran
		refused(t, s, "tool_call", `{"tool":"none","args":{}}`, "unknown_tool")
	}
}

// A principal does not answer what it asked, not by the tool, nor by a form, nor with
// another of its tokens (case 128).
func TestOnesOwnQuestion(t *testing.T) {
	t.Parallel()
	w := serve(t)
	admin := w.token(token.Admin, "boss")
	never := func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		t.Error("a form was shown")
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "approve"}}, nil
	}
	for _, version := range versions {
		s := w.connect(admin.Secret, version, shows(never))
		job := w.job(s)
		q := ok(t, s, "job_request_decision", `{"job_id":"`+job+`","prompt":"?"}`).get("decision_id")
		args := `{"job_id":"` + job + `","token":"` + q + `"`
		refused(t, s, "job_resolve", args+`,"choice":"approve"}`, "self_decision")
		refused(t, s, "job_resolve", args+`,"choice":"approve","by":"ana"}`, "self_decision")
		if a := ok(t, s, "job_resolve", args+`}`); a.get("status") != "pending" {
			t.Errorf("%s: %s", version, a.text)
		}
	}
}

// A form is shown on the stream of the request that needs it: a client without any other
// sees it, and the answer is the person's (case 153).
func TestAFormOverHTTP(t *testing.T) {
	t.Parallel()
	w := serve(t)
	agent := w.connect(w.token(token.Agent, "bot").Secret, versions[0], nil)
	ana := w.token(token.Reviewer, "ana")
	for _, version := range versions {
		job := w.job(agent)
		for _, action := range []string{"decline", "cancel", "accept"} {
			q := ok(t, agent, "job_request_decision", `{"job_id":"`+job+`","prompt":"How far?","options":["yes","no"],"form":{"type":"object","properties":{"epoch":{"type":"integer","maximum":90}},"required":["epoch"]}}`).get("decision_id")
			args := `{"job_id":"` + job + `","token":"` + q + `"}`
			answers := func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: action, Content: map[string]any{"choice": "yes", "epoch": 40}}, nil
			}
			o := shows(answers)
			o.MultiRoundTrip = nil
			s := w.connect(ana.Secret, version, o) // it has no standing stream
			a := ok(t, s, "job_resolve", args)
			want := "pending"
			if action == "accept" {
				want = "resolved"
			}
			if a.get("status") != want || action == "accept" && (a.get("input", "epoch") != "40" || a.get("principal") != "ana") {
				t.Errorf("%s %s: %s", version, action, a.text)
			}
			s.Close()
			if action != "accept" {
				continue
			}
			// What does not fit is refused by the API, and the question stays open.
			q = ok(t, agent, "job_request_decision", `{"job_id":"`+job+`","prompt":"How far?","options":["yes","no"],"form":{"type":"object","properties":{"epoch":{"type":"integer","maximum":90}},"required":["epoch"]}}`).get("decision_id")
			s = w.connect(ana.Secret, version, nil)
			args = `{"job_id":"` + job + `","token":"` + q + `"`
			refused(t, s, "job_resolve", args+`,"choice":"yes","input":{"epoch":91}}`, "invalid_arguments")
			refused(t, s, "job_resolve", args+`,"choice":"maybe","input":{"epoch":9}}`, "not_offered")
			if a := ok(t, s, "job_resolve", args+`}`); a.get("status") != "pending" {
				t.Errorf("%s: %s", version, a.text)
			}
		}
	}
}

// post sends one message to /mcp as it is.
func (w *world) post(body string, header ...string) *http.Response {
	w.t.Helper()
	return w.send(http.MethodPost, body, header...)
}

func (w *world) send(method, body string, header ...string) *http.Response {
	w.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.at.URL+"/mcp", in)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Client{Transport: w.http}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	return res
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// Only those reach /mcp who may, by the checks of the API itself (cases 132, 134, 161).
func TestTheDoorOfMCP(t *testing.T) {
	t.Parallel()
	w := serve(t)
	good := "Bearer " + w.token(token.Agent, "bot").Secret
	revoked := w.token(token.Agent, "gone")
	if _, err := w.home.RevokeToken(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		body   string
		header []string
		want   int
	}{
		"good":            {hello, []string{"Authorization", good}, 200},
		"no token":        {hello, nil, 401},
		"a wrong token":   {hello, []string{"Authorization", good + "x"}, 401},
		"another scheme":  {hello, []string{"Authorization", "Basic eDp5"}, 401},
		"a revoked token": {hello, []string{"Authorization", "Bearer " + revoked.Secret}, 401},
		"a foreign host":  {hello, []string{"Authorization", good, "Host", "evil.example"}, 403},
		"the inside host": {hello, []string{"Authorization", good, "Host", httpapi.SocketHost}, 403},
		"another site":    {hello, []string{"Authorization", good, "Origin", "http://evil.example"}, 403},
		"origin null":     {hello, []string{"Authorization", good, "Origin", "null"}, 403},
		"a site's fetch":  {hello, []string{"Authorization", good, "Sec-Fetch-Site", "cross-site"}, 403},
		"text":            {hello, []string{"Authorization", good, "Content-Type", "text/plain"}, 415},
		"a form":          {hello, []string{"Authorization", good, "Content-Type", "application/x-www-form-urlencoded"}, 415},
		"too large":       {`"` + strings.Repeat("x", 2<<20) + `"`, []string{"Authorization", good}, 413},
		"no JSON":         {`{`, []string{"Authorization", good}, 400},
		"no session":      {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Authorization", good, "Mcp-Session-Id", "none"}, 404},
	} {
		res := w.post(row.body, row.header...)
		if res.StatusCode != row.want {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, row.want)
		}
		if row.want == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: it does not say that it wants a token", name)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		for name, row := range map[string]struct {
			header []string
			want   int
		}{
			"no token": {nil, 401}, "a foreign host": {[]string{"Authorization", good, "Host", "evil.example"}, 403}, "no session": {[]string{"Authorization", good}, 400},
		} {
			if res := w.send(method, "", row.header...); res.StatusCode != row.want {
				t.Errorf("%s, %s: %d, want %d", method, name, res.StatusCode, row.want)
			}
		}
	}
	if res := w.send(http.MethodPut, hello, "Authorization", good); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", res.StatusCode)
	}
}

// begin begins a session with a token and returns its id.
func (w *world) begin(k token.Object) string {
	w.t.Helper()
	res := w.post(hello, "Authorization", "Bearer "+k.Secret)
	id := res.Header.Get("Mcp-Session-Id")
	if res.StatusCode != http.StatusOK || id == "" {
		w.t.Fatalf("%d, session %q", res.StatusCode, id)
	}
	return id
}

// A session's id gives no access to it: not to another caller, not to another token of
// the same one, and not once its token is revoked (case 134).
func TestASessionIsItsTokens(t *testing.T) {
	t.Parallel()
	w := serve(t)
	mine, others := w.token(token.Agent, "bot"), w.token(token.Admin, "boss")
	second, err := w.home.CreateToken(t.Context(), httpapi.NewToken{Scope: token.Agent, Name: "second", Principal: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	id := w.begin(mine)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	ask := func(k token.Object) []int {
		auth := []string{"Authorization", "Bearer " + k.Secret, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}
		return []int{w.post(list, auth...).StatusCode, w.send(http.MethodGet, "", auth...).StatusCode, w.send(http.MethodDelete, "", auth...).StatusCode}
	}
	for name, k := range map[string]token.Object{"another caller": others, "another token": second} {
		if got := fmt.Sprint(ask(k)); got != "[403 403 403]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if res := w.post(list, "Authorization", "Bearer "+mine.Secret, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"); res.StatusCode != http.StatusOK {
		t.Errorf("its own: %d", res.StatusCode)
	}
	if _, err := w.home.RevokeToken(t.Context(), mine.ID); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(ask(mine)); got != "[401 401 401]" {
		t.Errorf("revoked: %s", got)
	}
}

// One token's sessions are bounded, and take nothing from another's.
func TestOneTokensSessionsAreBounded(t *testing.T) {
	t.Parallel()
	w := serve(t)
	many, few := w.token(token.Agent, "many"), w.token(token.Agent, "few")
	var ids []string
	for range 100 {
		ids = append(ids, w.begin(many))
	}
	res := w.post(hello, "Authorization", "Bearer "+many.Secret)
	if b, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(b), "too_many_sessions") {
		t.Errorf("one more: %d %s", res.StatusCode, b)
	}
	w.begin(few)
	if res := w.send(http.MethodDelete, "", "Authorization", "Bearer "+many.Secret, "Mcp-Session-Id", ids[0]); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	w.begin(many)
}

// stream opens a session's standing stream.
func (w *world) stream(k token.Object) *http.Response {
	w.t.Helper()
	res := w.send(http.MethodGet, "", "Authorization", "Bearer "+k.Secret, "Mcp-Session-Id", w.begin(k), "Mcp-Protocol-Version", "2025-11-25", "Accept", "text/event-stream")
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("the stream answers %d", res.StatusCode)
	}
	return res
}

func mustEnd(t *testing.T, what string, r io.Reader) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, bufio.NewReader(r))
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Errorf("%s does not end", what)
	}
}

// What waits ends with the token it came with.
func TestARevokedTokenEndsWhatWaits(t *testing.T) {
	t.Parallel()
	w := serve(t)
	for _, version := range versions {
		k := w.token(token.Agent, "bot")
		s := w.connect(k.Secret, version, nil)
		job := w.job(s)
		waited := make(chan answer, 1)
		go func() {
			r, err := s.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "job_wait", Arguments: json.RawMessage(`{"job_id":"` + job + `","types":["completed"]}`)})
			if err != nil {
				t.Errorf("%s: %v", version, err)
				close(waited)
				return
			}
			waited <- read(t, r)
		}()
		w.someoneWaits(1)
		stream := w.stream(k)
		if _, err := w.home.RevokeToken(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
		if a := <-waited; a.get("error", "code") != "unauthenticated" {
			t.Errorf("%s: the wait answers %s", version, a.text)
		}
		mustEnd(t, version+": the stream", stream.Body)
	}
}

// someoneWaits waits until as many waits have begun at the daemon.
func (w *world) someoneWaits(n int) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		_, text, err := w.home.Send(w.t.Context(), http.MethodGet, "/metrics", nil, nil, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var got float64
			if _, err := fmt.Sscanf(line, "placet_http_waiters %g", &got); err == nil && int(got) >= n {
				return
			}
		}
		if time.Now().After(end) {
			w.t.Fatal("nobody waits")
		}
	}
}

// A daemon that stops tells who waits, and ends streams and forms.
func TestADaemonThatStops(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		w := serve(t)
		k, ana := w.token(token.Agent, "bot"), w.token(token.Reviewer, "ana")
		s := w.connect(k.Secret, version, nil)
		job := w.job(s)
		q := ok(t, s, "job_request_decision", `{"job_id":"`+job+`","prompt":"?"}`).get("decision_id")
		results := make(chan string, 2)
		go func() {
			r, err := s.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "job_wait", Arguments: json.RawMessage(`{"job_id":"` + job + `","types":["completed"]}`)})
			if err != nil {
				results <- "job_wait: " + err.Error()
				return
			}
			results <- "job_wait: " + read(t, r).get("result")
		}()
		w.someoneWaits(1)
		stream := w.stream(k)
		want := 1
		if version != versions[0] { // there a form is not waited for
			want = 2
			shown := make(chan struct{})
			reviewer := w.connect(ana.Secret, version, shows(func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				close(shown)
				<-t.Context().Done()
				return nil, errors.New("nobody came")
			}))
			go func() {
				r, err := reviewer.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "job_resolve", Arguments: json.RawMessage(`{"job_id":"` + job + `","token":"` + q + `"}`)})
				if err != nil {
					results <- "job_resolve: " + err.Error()
					return
				}
				results <- "job_resolve: " + read(t, r).get("status")
			}()
			<-shown
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		for range want {
			if got := <-results; got != "job_wait: shutdown" && got != "job_resolve: pending" {
				t.Errorf("%s: %s", version, got)
			}
		}
		mustEnd(t, version+": the stream", stream.Body)
		serve(t, func(c *daemon.Config) { c.DB = w.db }) // it ends the job, which goes on without a daemon
	}
}

// The token of a job is good for that job, over MCP as elsewhere.
func TestAJobsToken(t *testing.T) {
	t.Parallel()
	w := serve(t)
	agent := w.connect(w.token(token.Agent, "bot").Secret, versions[0], nil)
	other := w.job(agent)
	dir := t.TempDir()
	job := ok(t, agent, "job_start", `{"command":["sh","-c","printf %s $PLACET_TOKEN >token; echo AGENT_EVENT '{\"type\":\"ready\"}'; cat"],"cwd":"`+dir+`"}`).get("job_id")
	ok(t, agent, "job_wait", `{"job_id":"`+job+`","types":["output:ready"]}`)
	secret, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		s := w.connect(string(secret), version, nil)
		q := ok(t, s, "job_request_decision", `{"job_id":"`+job+`","prompt":"?"}`)
		ok(t, s, "job_withdraw_decision", `{"job_id":"`+job+`","token":"`+q.get("decision_id")+`"}`)
		refused(t, s, "job_status", `{"job_id":"`+other+`"}`, "not_found")
		refused(t, s, "job_start", `{"command":["true"]}`, "forbidden")
		refused(t, s, "tool_call", `{"tool":"look_up","args":{}}`, "forbidden")
	}
}
