package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/mcpserver"
)

// translations are one call of each tool, with the operation that it has to be. It is
// whole: a tool without a row fails.
var translations = []struct{ tool, args, want string }{
	{
		"job_start", `{"command":["make","train"],"cwd":"/x","env":{"A":"1"},"secret_env":["A"],"name":"n","tags":["t"],"timeout_seconds":60,"idempotency_key":"k","wake_targets":[{"type":"relay"}],"trigger":{"job_id":"job_1","status":"completed"}}`,
		`POST /v1/jobs {"command":["make","train"],"cwd":"/x","env":{"A":"1"},"secret_env":["A"],"name":"n","tags":["t"],"timeout_seconds":60,"idempotency_key":"k","wake_targets":[{"type":"relay"}],"trigger":{"job_id":"job_1","status":"completed"}}`,
	},
	{"job_status", `{"job_id":"job_1"}`, `GET /v1/jobs/job_1`},
	{"job_list", `{"status":"failed","name":"n","tag":"t","prefix":"job_","limit":3,"after":"job_1"}`, `GET /v1/jobs?after=job_1&limit=3&name=n&prefix=job_&status=failed&tag=t`},
	{"job_view", `{"limit":3}`, `GET /v1/jobs?limit=3&view=attention`},
	{"job_tail", `{"job_id":"job_1","stream":"stderr","offset":7,"max_bytes":100,"follow":true}`, `GET /v1/jobs/job_1/tail?follow=true&max_bytes=100&offset=7&stream=stderr`},
	{"job_events", `{"job_id":"job_1","after":"s3-x","limit":9}`, `GET /v1/jobs/job_1/events?after=s3-x&limit=9`},
	{"job_wait", `{"job_id":"job_1","types":["completed"],"decision_id":"dec_1","after":"s3-x","timeout_seconds":5,"return_progress":true}`, `POST /v1/jobs/job_1/wait {"types":["completed"],"decision_id":"dec_1","after":"s3-x","timeout_seconds":5,"return_progress":true}`},
	{"job_send", `{"job_id":"job_1","text":"yes\n","eof":true}`, `POST /v1/jobs/job_1/send {"text":"yes\n","eof":true}`},
	{"job_stop", `{"job_id":"job_1","by":"ana","kill_after_seconds":3}`, `POST /v1/jobs/job_1/stop {"by":"ana","kill_after_seconds":3}`},
	{"job_pause", `{"job_id":"job_1"}`, `POST /v1/jobs/job_1/pause`},
	{"job_resume", `{"job_id":"job_1","by":"ana"}`, `POST /v1/jobs/job_1/resume {"by":"ana"}`},
	{"job_cleanup", `{"older_than_seconds":604800,"dry_run":true}`, `POST /v1/jobs/cleanup {"older_than_seconds":604800,"dry_run":true}`},
	{
		"job_request_decision", `{"job_id":"job_1","prompt":"Go on?","options":["yes","no"],"timeout_seconds":60,"form":{"type":"object","properties":{"n":{"type":"integer"}}},"idempotency_key":"k"}`,
		`POST /v1/jobs/job_1/decision {"prompt":"Go on?","options":["yes","no"],"timeout_seconds":60,"form":{"type":"object","properties":{"n":{"type":"integer"}}},"idempotency_key":"k"}`,
	},
	{"job_withdraw_decision", `{"job_id":"job_1","token":"dec_1","by":"ana","note":"why"}`, `POST /v1/jobs/job_1/decision/dec_1/withdraw {"by":"ana","note":"why"}`},
	{"job_decisions", `{"job_id":"job_1","status":"pending","prefix":"dec_","after":"dec_1","limit":2}`, `GET /v1/decisions?after=dec_1&job_id=job_1&limit=2&prefix=dec_&status=pending`},
	{"job_resolve", `{"job_id":"job_1","token":"dec_1","choice":"yes","input":{"n":1},"by":"ana","note":"why"}`, `GET /v1/decisions/dec_1 | POST /v1/jobs/job_1/decision/dec_1/resolve {"choice":"yes","input":{"n":1},"by":"ana","note":"why"}`},
	{
		"job_add_wake_target", `{"job_id":"job_1","type":"webhook","events":["completed"],"url":"https://x/","secret":"whsec_x","max_attempts":3,"retry_delay_seconds":0.5,"timeout_seconds":5,"name":"n","headers":{"A":"b"},"max_age_seconds":60,"unordered":true}`,
		`POST /v1/jobs/job_1/wake-targets {"type":"webhook","events":["completed"],"url":"https://x/","secret":"whsec_x","max_attempts":3,"retry_delay_seconds":0.5,"timeout_seconds":5,"name":"n","headers":{"A":"b"},"max_age_seconds":60,"unordered":true}`,
	},
	{"job_deliveries", `{"job_id":"job_1","target_id":"tgt_1","status":"dead","prefix":"dlv_","after":"dlv_1","limit":2}`, `GET /v1/deliveries?after=dlv_1&job_id=job_1&limit=2&prefix=dlv_&status=dead&target_id=tgt_1`},
	{"doctor", `{}`, `GET /readyz | GET /v1/deliveries?limit=500&status=dead`},
	{"tool_call", `{"tool":"refund","args":{"b":1,"a":9007199254740993,"n":1.0},"run_id":"r","idempotency_key":"k"}`, `POST /v1/tools/refund/call?run_id=r key=k {"b":1,"a":9007199254740993,"n":1.0}`},
	{"tools_list", `{}`, `GET /v1/tools`},
	{"call_wait", `{"call_id":"call_1","wait":"5s"}`, `GET /v1/calls/call_1?wait=5s`},
	{"call_withdraw", `{"call_id":"call_1"}`, `DELETE /v1/calls/call_1`},
	{"approvals_list", `{"status":"all","after":"apr_1","limit":2}`, `GET /v1/approvals?after=apr_1&limit=2&status=all`},
}

// Each tool is one operation of the API; its answer and its refusals come back unchanged.
func TestEachToolIsAnOperation(t *testing.T) {
	t.Parallel()
	d := &door{scope: "admin"}
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		if !slices.ContainsFunc(translations, func(row struct{ tool, args, want string }) bool { return row.tool == tool.Name }) {
			t.Errorf("%s has no row in this test", tool.Name)
		}
	}
	for _, row := range translations {
		d.mu.Lock()
		d.asked = nil
		d.mu.Unlock()
		const deep = `{"status":"succeeded","n":9007199254740993,"list":[{"x":null}]}`
		d.then(func(context.Context, sent) (int, string) { return http.StatusOK, deep })
		a := ok(t, s, row.tool, row.args)
		if got := strings.Join(d.lines(), " | "); got != row.want {
			t.Errorf("%s %s\n is %s\nwant %s", row.tool, row.args, got, row.want)
		}
		if row.tool == "doctor" {
			continue // it is put together
		}
		if a.text != deep {
			t.Errorf("%s answers %s, not with what the API said", row.tool, a.text)
		}
		d.then(func(context.Context, sent) (int, string) {
			return http.StatusConflict, `{"status":409,"code":"conflict","reason":"choice_conflict","detail":"No.","hint":"Look.","details":{"a":1}}`
		})
		a = refused(t, s, row.tool, row.args, "choice_conflict")
		if want := `{"error":{"code":"conflict","reason":"choice_conflict","message":"No.","hint":"Look.","details":{"a":1}}}`; a.text != want {
			t.Errorf("%s refuses with %s, want %s", row.tool, a.text, want)
		}
	}
}

// What a tool does not take is refused before anything is asked of the API: also what
// would pretend that a decision was made (case 124).
func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := &door{scope: "admin"}
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	for _, row := range translations {
		for _, more := range []string{`"approved":true`, `"approval_id":"apr_1"`, `"decided_by":"ana"`, `"hash":"x"`, `"Job_id":"job_1"`} {
			args := strings.Replace(row.args, "{", "{"+more+",", 1)
			args = strings.Replace(args, ",}", "}", 1)
			a := refused(t, s, row.tool, args, "malformed")
			name, _, _ := strings.Cut(more, ":")
			if !strings.Contains(a.get("error", "message"), name) {
				t.Errorf("%s does not say that it is %s: %s", row.tool, name, a.text)
			}
		}
	}
	for _, row := range []struct{ tool, args, says string }{
		{"job_status", `{}`, "job_id"},
		{"job_status", `{"job_id":7}`, "job_id: expected string"},
		{"job_status", `{"job_id":null}`, "job_id: expected string"},
		{"job_list", `{"limit":"3"}`, "limit: expected integer"},
		{"job_list", `{"limit":3.5}`, "limit: expected integer"},
		{"job_list", `{"status":"done"}`, "status: expected one of queued"},
		{"job_add_wake_target", `{"job_id":"job_1","type":"relay","max_age_seconds":"60"}`, "max_age_seconds: expected number"},
		{"job_tail", `{"job_id":"job_1","follow":"yes"}`, "follow: expected boolean"},
		{"job_start", `{"command":{"x":1}}`, "command: expected array or string"},
		{"job_start", `{"command":["true"],"env":[]}`, "env: expected object"},
		{"tool_call", `{"tool":"refund","args":"{}"}`, "args: expected object"},
		{"call_wait", `{"call_id":"call_1","wait":"soon"}`, "wait"},
		{"call_wait", `{"call_id":"call_1","wait":"2h"}`, "wait"},
		{"job_wait", `{"job_id":"job_1","types":["completed"],"timeout_seconds":99999999999999999999}`, "timeout_seconds"},
		{"job_resolve", `{"job_id":"job_1","token":"dec_1","input":{}}`, "no choice"},
		{"job_wait", `{"job_id":"job_1","types":["completed"],"timeout_seconds":86401}`, "from 1 to 86400"},
	} {
		a := refused(t, s, row.tool, row.args, "malformed")
		if !strings.Contains(a.get("error", "message"), row.says) {
			t.Errorf("%s %s says %q, want %q in it", row.tool, row.args, a.get("error", "message"), row.says)
		}
	}
	if lines := d.lines(); lines != nil {
		t.Errorf("the API was asked: %q", lines)
	}
}

// An id cannot lead to another operation.
func TestAnIDIsOnePartOfThePath(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	for id, want := range map[string]string{"a/stop": "GET /v1/jobs/a%2Fstop", "x?view=1": "GET /v1/jobs/x%3Fview=1", "{token}": "GET /v1/jobs/%7Btoken%7D", "a#b": "GET /v1/jobs/a%23b"} {
		ok(t, s, "job_status", js(map[string]string{"job_id": id}))
		if lines := d.lines(); lines[len(lines)-1] != want {
			t.Errorf("%q is %s, want %s", id, lines[len(lines)-1], want)
		}
	}
}

// Who may not answer questions is not offered to, and is refused when calling it anyway
// (case 128).
func TestAgentsHaveNoResolve(t *testing.T) {
	t.Parallel()
	for scope, has := range map[string]bool{"agent": false, "operator": false, "reviewer": true, "admin": true} {
		d := &door{scope: scope}
		s := at(t, d, mcpserver.Config{}, nil, versions[0])
		listed, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(listed.Tools, func(t *mcp.Tool) bool { return t.Name == "job_resolve" }); got != has {
			t.Errorf("%s: job_resolve is there: %v", scope, got)
		}
		_, err = tryCall(t, s, "job_resolve", `{"job_id":"job_1","token":"dec_1","choice":"yes"}`)
		if noted := d.log.Load() > 0; noted == has {
			t.Errorf("%s: that it was tried is logged: %v", scope, noted)
		}
		if (err == nil) != has || len(d.lines()) > 0 != has {
			t.Errorf("%s: calling it: %v, the API was asked %q", scope, err, d.lines())
		}
	}
}

// What a client may think of a tool before it calls: what looks is told apart from what
// acts, and every hint is said.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	s := at(t, &door{scope: "admin"}, mcpserver.Config{}, nil, versions[0])
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	looks := []string{"job_status", "job_list", "job_view", "job_tail", "job_events", "job_wait", "job_decisions", "job_deliveries", "doctor", "call_wait", "approvals_list", "tools_list"}
	gentle := []string{"job_pause", "job_request_decision"}
	again := []string{"job_stop", "job_pause", "job_resume", "job_cleanup", "job_withdraw_decision", "job_resolve"}
	for _, tool := range listed.Tools {
		a := tool.Annotations
		if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil || a.Title == "" || tool.Description == "" {
			t.Errorf("%s leaves something to be guessed", tool.Name)
			continue
		}
		look := slices.Contains(looks, tool.Name)
		if a.ReadOnlyHint != look {
			t.Errorf("%s: readOnlyHint is %v", tool.Name, a.ReadOnlyHint)
		}
		if want := !look && !slices.Contains(gentle, tool.Name); *a.DestructiveHint != want {
			t.Errorf("%s: destructiveHint is %v", tool.Name, *a.DestructiveHint)
		}
		if want := look || slices.Contains(again, tool.Name); a.IdempotentHint != want {
			t.Errorf("%s: idempotentHint is %v", tool.Name, a.IdempotentHint)
		}
		if look && *a.OpenWorldHint {
			t.Errorf("%s only looks at what Placet has, and openWorldHint is true", tool.Name)
		}
		var schema struct {
			Type       string
			Properties map[string]struct{ Type any }
			Additional *bool `json:"additionalProperties"`
		}
		b, err := json.Marshal(tool.InputSchema)
		if err == nil {
			err = json.Unmarshal(b, &schema)
		}
		if err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s takes more than it says: %s %v", tool.Name, b, err)
		}
		for name, p := range schema.Properties {
			if p.Type == nil {
				t.Errorf("%s: %s has no type", tool.Name, name)
			}
		}
	}
}

// Doctor tells why the daemon is not ready, and how much was given up as far as it counts.
func TestDoctor(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	d.then(func(_ context.Context, s sent) (int, string) {
		switch {
		case s.path == "/readyz":
			return http.StatusServiceUnavailable, `{"code":"unavailable","reason":"shutdown","detail":"Ending."}`
		}
		return http.StatusOK, `{"deliveries":[{},{}],"next":"dlv_2"}`
	})
	a := ok(t, s, "doctor", `{}`)
	if a.get("ready") != "false" || a.get("not_ready", "reason") != "shutdown" || a.get("dead_deliveries") != "2" || a.get("more_dead_deliveries") != "true" || a.get("token", "scope") != "agent" {
		t.Errorf("%s", a.text)
	}
}
