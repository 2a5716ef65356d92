package httpapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// What is wrong with a body is told with the field's name and what was expected there,
// in no library's words.
func TestRefusalsNameTheField(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park("agent")
	apr := "/v1/approvals/" + p.get("approval_id")
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for _, c := range []struct{ as, path, body, want string }{
		{"agent", apr + "/withdraw", `{"By":"x"}`, `body.By: unknown field`},
		{"agent", apr + "/withdraw", `{"unknown":1}`, `body.unknown: unknown field`},
		{"agent", apr + "/withdraw", `{"":1}`, `body."": unknown field`},
		{"agent", apr + "/withdraw", `{"a b":1}`, `body."a b": unknown field`},
		{"agent", apr + "/withdraw", `{"` + strings.Repeat("k", 5000) + `":1}`, `k…: unknown field`},
		{"agent", apr + "/withdraw", `{"by":1}`, `body.by: expected string`},
		{"agent", apr + "/withdraw", `{"by":"a","by":"b"}`, `body.by: duplicate key "by", at byte 10`},
		{"agent", apr + "/withdraw", `{"by":"a","b\u0079":"b"}`, `body.by: duplicate key`},
		{"agent", apr + "/withdraw", `{"by":"\ud800"}`, `body.by: surrogate without its other half`},
		{"agent", apr + "/withdraw", "{\"by\":\"\xff\"}", `body.by: invalid UTF-8`},
		{"agent", apr + "/withdraw", `{"by"`, `body.by: unexpected end`},
		{"agent", apr + "/withdraw", `{"by":"x"}{}`, `body: unexpected '{' after the value, at byte 10`},
		{"agent", apr + "/withdraw", "\xef\xbb\xbf{}", `body: byte order mark`},
		{"agent", apr + "/withdraw", deep, `nested more than`},
		{"agent", apr + "/withdraw", `null`, `body: expected object`},
		{"agent", apr + "/withdraw", `[]`, `body: expected object`},
		{"agent", apr + "/withdraw", ` `, `body: unexpected end`},
		{"reviewer", apr + "/decide", ``, `body: there is none`},
		{"reviewer", apr + "/decide", `{"approved":1,"digest":"x"}`, `body.approved: expected true or false`},
		{"reviewer", apr + "/decide", `{"digest":"x"}`, `property approved`},
		{"reviewer", apr + "/decide", `{"approved":true,"digest":"x","edited_args":{"n":7E29999999}}`, `body.edited_args.n: exponent over 10000, at byte 49`},
		{"reviewer", apr + "/decide", `{"approved":true,"digest":"x","edited_args":{"a":[1,{"n":1,"n":2}]}}`, `body.edited_args.a[1].n: duplicate key`},
		{"reviewer", "/v1/jobs/x/decision/y/resolve", `{"choice":"yes","input":{"n":7E29999999}}`, `body.input.n: exponent over 10000`},
		{"agent", "/v1/jobs/x/wait", `{"types":["completed"],"timeout_seconds":1.5}`, `body.timeout_seconds: expected integer`},
		{"agent", "/v1/jobs/x/wait", `{"types":["completed"],"timeout_seconds":"9"}`, `body.timeout_seconds: expected integer`},
		{"agent", "/v1/jobs/x/wait", `{"types":["completed"],"timeout_seconds":1e400}`, `body.timeout_seconds: expected integer from -9223372036854775808 to 9223372036854775807`},
		{"agent", "/v1/jobs/x/wait", `{"types":["completed"],"timeout_seconds":86401}`, `body.timeout_seconds: expected number <= 86400`},
		{"agent", "/v1/jobs/x/wait", `{"types":["completed",1]}`, `body.types[1]: expected string`},
		{"agent", "/v1/jobs/x/wait", `{"types":"completed"}`, `body.types: expected array`},
		{"agent", "/v1/jobs", `{"command":["a"],"timeout_seconds":999999999999}`, `body.timeout_seconds: expected number <= 315360000`},
		{"operator", "/v1/jobs/cleanup", `{"older_than_seconds":-1}`, `body.older_than_seconds: expected number >= 0`},
		{"agent", "/v1/jobs", `{"command":["a"],"env":{"A.B":1}}`, `body.env.A.B: expected string`},
		{"agent", "/v1/jobs", `{"command":["a"],"env":[]}`, `body.env: expected object`},
		{"agent", "/v1/jobs", `{"command":{"a":1}}`, `body.command: expected a list of texts, or one text for the shell`},
		{"agent", "/v1/jobs", `{"command":["a",1]}`, `body.command: expected a list of texts, or one text for the shell`},
		{"agent", "/v1/jobs", `{"command":["a"],"trigger":{"x":1}}`, `body.trigger.x: unknown field`},
		{"agent", "/v1/jobs", `{"command":["a"],"trigger":7}`, `body.trigger: expected object`},
		{"agent", "/v1/calls/x/renew", `{"fence":"1"}`, `body.fence: expected integer`},
		{"agent", "/v1/calls/x/renew", `{"fence":0}`, `body.fence: expected number >= 1`},
		{"agent", "/v1/calls/x/renew", `{"fence":9223372036854775808}`, `body.fence: expected integer from`},
		{"agent", "/v1/calls/x/renew", `{"fence":01}`, `body.fence: number with a leading zero`},
		{"agent", "/v1/calls/x/renew", `{}`, `property fence`},
		{"agent", "/v1/tools/look_up/call", `{"order":"x","amount":7E29999999}`, `body.amount: exponent over 10000`},
		{"agent", "/v1/tools/look_up/call", `{"order":"x","order":"y"}`, `body.order: duplicate key`},
		{"agent", "/v1/tools/look_up/call", `{"order":"x`, `body.order: unexpected end`},
		{"agent", "/v1/jobs/x/send", `{"data":1}`, `body.data: expected string in base64`},
		{"agent", "/v1/jobs/x/send", `{"data":"!!"}`, `body.data: expected string in base64`},
		{"agent", "/v1/jobs/x/send", `{"data":[1]}`, `body.data: expected string in base64`},
		{"admin", "/v1/tokens", `{"scope":"root","name":"x"}`, `body.scope: expected value to be one of`},
	} {
		r := w.want(w.do(c.as, "POST", c.path, c.body), 400, "reason", "malformed")
		if d := r.get("detail"); !strings.Contains(d, c.want) || len(d) > 1000 || r.get("hint") == "" {
			t.Errorf("%s %.60s: %q, hint %q, want %q", c.path, c.body, d, r.get("hint"), c.want)
		}
		if foreign.MatchString(r.text) {
			t.Errorf("%s %.60s: a library speaks: %s", c.path, c.body, r.text)
		}
	}
	w.want(w.do("reviewer", "GET", apr, ""), 200, "status", "pending")
}

// foreign are words of the libraries that read requests, and numbers as only programs
// write them.
var foreign = regexp.MustCompile(`jsontext|json:|huma|reflect|strconv|[^"]\bGo (type|value|struct)|\d[eE]\+\d|invalid syntax|out of range`)

// An integer is one however a language writes it, in every field.
func TestIntegersHoweverWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, n := range []string{"1", "1.0", "1e0", "10e-1", "0.1E1", "1.000"} {
		w.want(w.do("agent", "POST", "/v1/calls/call_x/renew", `{"fence":`+n+`}`), 404, "reason", "not_found")
		w.want(w.do("agent", "POST", "/v1/jobs/job_x/wait", `{"types":["completed"],"timeout_seconds":`+n+`}`), 404, "reason", "not_found")
		w.want(w.do("operator", "POST", "/v1/jobs/cleanup", `{"dry_run":true,"older_than_seconds":`+n+`}`), 200)
	}
	for _, n := range []string{"1.5", "1e-1", "1e19", "1e10000", "-1.0", "86400.1"} {
		w.want(w.do("agent", "POST", "/v1/jobs/job_x/wait", `{"types":["completed"],"timeout_seconds":`+n+`}`), 400, "reason", "malformed")
	}
}

// Large numbers of values that are kept as they are pass as they are.
func TestLargeNumbersOfRawValues(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.want(w.do("agent", "POST", "/v1/calls", `{"tool":"look_up","args":{"order":"o"}}`), 201)
	const large = `{"n":1e400,"m":123456789012345678901234567890.5}`
	r = w.want(w.do("agent", "POST", "/v1/calls/"+r.get("call_id")+"/confirm", `{"fence":1,"status":"succeeded","result":`+large+`}`), 200)
	if !strings.Contains(r.text, large) {
		t.Errorf("changed: %s", r.text)
	}
}

// A body is application/json in UTF-8, as it is, and says so.
func TestMedia(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	for _, o := range ops {
		if o.RequestBody == nil {
			continue
		}
		for _, h := range [][]string{
			{"Content-Type", "application/foo+json"},
			{"Content-Type", "application/json-patch+json"},
			{"Content-Type", "application/json; charset=utf-16"},
			{"Content-Type", "application/json; charset=latin1"},
			{"Content-Type", "application/json; profile=x"},
			{"Content-Type", "application/json, application/json"},
			{"Content-Type", "application/json; charset"},
			{"Content-Type", "application/jsonx"},
			{"Content-Type", "text/json"},
			{"Content-Type", "json"},
			{"Content-Type", ""},
			{"Content-Encoding", "gzip"},
			{"Content-Encoding", "br, gzip"},
			{"Content-Encoding", "identity, gzip"},
		} {
			r := w.want(w.do("admin", o.method, o.at("x"), `{"By":"x"}`, h...), 415, "reason", "unsupported_media_type")
			if r.get("hint") == "" {
				t.Errorf("%s with %v: no hint: %s", o.ID, h, r.text)
			}
		}
	}
	for _, ok := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"`} {
		w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`, "Content-Type", ok, "Content-Encoding", "identity"), 200)
	}
	// Without a body its type does not matter.
	j := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["true"]}`), 201)
	w.want(w.do("agent", "POST", "/v1/jobs/"+j.get("job_id")+"/stop", "", "Content-Type", "text/plain"), 200)
}

// An operation without a body refuses one: what it says would not be heard.
func TestBodiesThatNobodyTakes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	n := 0
	for _, o := range ops {
		if o.RequestBody != nil {
			continue
		}
		n++
		r := w.want(w.do("admin", o.method, o.at("x"), `{"by":"ana"}`), 400, "reason", "malformed")
		if !strings.Contains(r.get("detail"), "body: ") || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", o.ID, r.text)
		}
	}
	if n < 15 {
		t.Errorf("only %d operations take no body", n)
	}
}

// A key is honoured or refused, and never ignored.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	var honour []string
	for _, o := range ops {
		takes := false
		for _, p := range o.Parameters {
			takes = takes || p.In == "header" && p.Name == "Idempotency-Key"
		}
		if takes {
			honour = append(honour, o.ID)
			for _, bad := range []string{"", " ", "\xff"} {
				if r := w.want(w.do("admin", o.method, o.at("x"), `{}`, "Idempotency-Key", bad), 400, "reason", "malformed"); !strings.Contains(r.get("detail"), "header.Idempotency-Key: ") {
					t.Errorf("%s with %q: %s", o.ID, bad, r.text)
				}
			}
			continue
		}
		r := w.want(w.do("admin", o.method, o.at("x"), "", "Idempotency-Key", "k"), 400, "reason", "malformed")
		if !strings.Contains(r.get("detail"), "header.Idempotency-Key: ") || r.get("hint") == "" {
			t.Errorf("%s: %s", o.ID, r.text)
		}
		if inBody := o.ID == "startJob" || o.ID == "ask"; inBody != strings.Contains(r.get("hint"), "idempotency_key") {
			t.Errorf("%s: %s", o.ID, r.get("hint"))
		}
	}
	if fmt.Sprint(honour) != "[reserveCall callTool]" {
		t.Errorf("a key is honoured by %v", honour)
	}
	l := w.line().say(w.head("POST", "/v1/tools/look_up/call", "agent", "Idempotency-Key", "a", "Idempotency-Key", "b") + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	w.want(l.answer(), 400, "reason", "malformed")
}

// What a query says twice, or cannot be read, is refused, naming it.
func TestQueries(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ops, _ := operations(t)
	for _, o := range ops {
		as := "admin"
		for query, want := range map[string]string{
			"?limit=1&limit=2": "query.limit: given 2 times", "?after=a&after=a": "query.after: given 2 times", "?x=1&x": "query.x: given 2 times",
			"?%zz": "query: it cannot be read", "?a;b": "query: it cannot be read", "?after=%FF": "query.after: expected text", "?after=%00": "query.after: expected text",
			"?nonsense=1": "query.nonsense: unknown query parameter", "?" + strings.Repeat("n", 9000) + "=1": "unknown query parameter",
		} {
			body := map[bool]string{true: `{"x":1}`}[o.RequestBody != nil && strings.HasPrefix(want, "query.x")]
			r := w.do(as, o.method, o.at("x")+query, body)
			if w.want(r, http.StatusBadRequest, "reason", "malformed"); o.RequestBody == nil && !strings.Contains(r.get("detail"), want) || len(r.text) > 2000 {
				t.Errorf("%s%.40s: %.300s, want %q", o.ID, query, r.text, want)
			}
		}
	}
	for query, want := range map[string]string{
		"approvals?limit=x": "query.limit: expected integer", "approvals?limit=99999999999999999999": "query.limit: expected integer",
		"approvals?limit=501": "query.limit: expected number <= 500", "approvals?limit=0": "query.limit: expected number >= 1",
		"approvals?status=x": "query.status: expected value to be one of", "jobs/x/tail?follow=maybe": "query.follow: expected true or false",
		"jobs/x/tail?offset=-1": "query.offset: expected number >= 0", "jobs/x/tail?max_bytes=1048577": "query.max_bytes: expected number <= 1048576",
		"calls/x?wait=3": "query.wait: ",
	} {
		if r := w.want(w.do(string(token.Admin), "GET", "/v1/"+query, ""), 400, "reason", "malformed"); !strings.Contains(r.get("detail"), want) {
			t.Errorf("%s: %s", query, r.text)
		}
	}
}
