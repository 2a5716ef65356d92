package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/placet-dev/placet/internal/id"
)

// maker makes requests out of the document: good ones, and ones that are wrong in one
// or several ways. What it makes depends on its source of chance and on the ids it
// knows, and on nothing else.
type maker struct {
	*rand.Rand
	c    *contract
	ids  known
	good bool // what it makes now keeps to the document
}

// known are ids of what there is, by their prefix, and digests of approvals by their id.
type known struct {
	ids     map[string][]string
	digests map[string]string
	cursors []string
	tokens  map[string]string // of leases, by delivery
}

func knownOf(s seeds) known {
	return known{
		ids: map[string][]string{
			id.Call: {s.call, s.held, s.done}, id.Approval: {s.approval, s.runApproval}, id.Run: {s.run, s.granted, s.doneRun},
			id.Job: {s.job, s.queued, s.doneJob}, id.Question: {s.question, s.answered}, id.Token: {s.token},
			id.Target: {s.target, s.relay}, id.Delivery: {s.dead, s.fetched},
		},
		tokens:  map[string]string{s.fetched: s.leaseToken},
		digests: map[string]string{s.approval: s.digest, s.runApproval: s.runDigest},
		cursors: []string{s.cursor},
	}
}

// learn takes in what an answer tells of new things.
func (k *known) learn(r reply) {
	for _, key := range []string{"call_id", "approval_id", "run_id", "job_id", "decision_id", "target_id", "delivery_id"} {
		v := r.get(key)
		i := strings.IndexByte(v, '_') + 1
		if list := k.ids[v[:i]]; id.Has(v[:i], v) && len(list) < 20 && !slices.Contains(list, v) {
			k.ids[v[:i]] = append(list, v)
		}
	}
	if a := r.get("approval_id"); a != "" && r.get("digest") != "" {
		k.digests[a] = r.get("digest")
	}
	if c := r.get("cursor"); c != "" && len(k.cursors) < 20 {
		k.cursors = append(k.cursors, c)
	}
}

// made is a request.
type made struct {
	method, path, body string
	headers            []string
	plain              bool // its path is one that the operation has
}

func (m made) String() string {
	return fmt.Sprintf("%s %.300s %q %.600s", m.method, m.path, m.headers, m.body)
}

func (m *maker) chance(p float64) bool { return m.Float64() < p }

// slips reports whether to do something wrong.
func (m *maker) slips(p float64) bool { return !m.good && m.chance(p) }

func oneOf[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

// request makes one for an operation.
func (m *maker) request(o operation) made {
	m.good = m.chance(.5)
	r := made{method: o.method, plain: true}
	var subject string
	r.path = o.with(func(variable string) string {
		v, plain := m.pathID(o, variable)
		r.plain = r.plain && plain
		if variable == "id" {
			subject = v
		}
		return v
	})
	r.path += m.query(o)
	switch {
	case o.RequestBody == nil:
		if m.slips(.1) {
			r.body = oneOf(m, "{}", "x", `{"by":"ana"}`)
		}
	case m.slips(.2):
		r.body = oneOf(m, bodies(o, m.c.schemas, strings.Repeat("[", 3000))...)
	case o.ID == "reserveCall" && m.good: // no schema says what goes together
		r.body = oneOf(m, `{"tool":"refund","args":{"order":"o"}}`, `{"tool":"look_up","args":{"order":"o"},"run_id":"r1"}`, `{"call_id":`+quoted(m.id(id.Call))+"}")
	case strings.HasSuffix(o.ID, "WakeTarget") && strings.HasPrefix(o.ID, "add") && m.good:
		r.body = oneOf(m, `{"type":"webhook","url":"https://example.com/hook"`, `{"type":"command","command":["true"],"events":["completed"]`, `{"type":"relay","name":"a"`) +
			oneOf(m, "", `,"max_attempts":3`, `,"job_id":`+quoted(m.id(id.Job))) + "}"
	default:
		r.body = m.value("", o.RequestBody.Content["application/json"].Schema, subject)
	}
	if m.slips(.08) {
		r.headers = append(r.headers, "Content-Type", oneOf(m, "", "text/plain", "application/x+json", "application/json; charset=utf-16", "application/json; charset=utf-8"))
	}
	if m.slips(.04) {
		r.headers = append(r.headers, "Content-Encoding", oneOf(m, "gzip", "identity", "x"))
	}
	if m.slips(.12) {
		r.headers = append(r.headers, "Idempotency-Key", oneOf(m, "k1", "k2", "", "\xff", "é", strings.Repeat("k", 201)))
	}
	return r
}

// prefixOf is how ids of a path's variable begin.
func prefixOf(o operation, variable string) string {
	switch {
	case variable == "token":
		return id.Question
	case strings.HasPrefix(o.path, "/v1/calls/"):
		return id.Call
	case strings.HasPrefix(o.path, "/v1/approvals/"):
		return id.Approval
	case strings.HasPrefix(o.path, "/v1/decisions/"):
		return id.Question
	case strings.HasPrefix(o.path, "/v1/jobs/"):
		return id.Job
	case strings.HasPrefix(o.path, "/v1/runs/"):
		return id.Run
	case strings.HasPrefix(o.path, "/v1/tokens/"):
		return id.Token
	case strings.HasPrefix(o.path, "/v1/wake-targets/"):
		return id.Target
	case strings.HasPrefix(o.path, "/v1/deliveries/"):
		return id.Delivery
	}
	return ""
}

func (m *maker) pathID(o operation, variable string) (v string, plain bool) {
	p := prefixOf(o, variable)
	switch {
	case variable == "name" && !m.slips(.3):
		return oneOf(m, "look_up", "refund"), true
	case variable == "name":
		return oneOf(m, "none", "Refund", strings.Repeat("r", 201)), true
	case p == id.Call && o.RequestBody != nil && m.chance(.4):
		return m.ids.ids[p][1], true // the one that is reserved
	case !m.slips(.5):
		return m.id(p), true
	case m.chance(.4):
		return m.id(oneOf(m, id.Call, id.Approval, id.Run, id.Job, id.Question, id.Token, id.Target, id.Delivery)), true
	case m.chance(.4):
		return unknown(m.id(p)), true
	case m.chance(.5):
		return oneOf(m, "x", p, p+"x", "-1", "0", strings.Repeat("a", 200), strings.Repeat("a", 201), strings.Repeat("a", 5000)), true
	}
	return oneOf(m, "..", ".", "%2e%2e", "%00", "%2F", url.PathEscape("é😀"), url.PathEscape("a b"), "%ff", "x/y"), false
}

// id is one that there is; the first of them is where most is possible.
func (m *maker) id(prefix string) string {
	list := m.ids.ids[prefix]
	if m.chance(.4) {
		return list[0]
	}
	return oneOf(m, list...)
}

func (m *maker) query(o operation) string {
	var parts []string
	for _, p := range o.Parameters {
		if p.In == "query" && m.chance(.4) {
			v := m.param(p)
			parts = append(parts, p.Name+"="+url.QueryEscape(v))
			if m.slips(.08) {
				parts = append(parts, p.Name+"="+url.QueryEscape(v))
			}
		}
	}
	if m.slips(.12) {
		parts = append(parts, oneOf(m, "nonsense=1", "x", "%zz", "a;b", "limit=1&limit=1", "Limit=1", "&&", "=", "after[]=x", strings.Repeat("q", 3000)+"=1", "é=😀"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// texts are strings that are hard to take.
var texts = []string{
	"", " ", "x", "\x00", "a\x00b", "\xff", "é😀", "\u202e", "\u2028", "a\nb", strings.Repeat("é", 200), strings.Repeat("x", 201), strings.Repeat("x", 10_001),
	"null", "true", "0", "-1", "9223372036854775808", "NaN", "1e9", "../../etc/passwd", "' OR 1=1 --", "<script>", "%", "*", "all",
}

func (m *maker) param(p parameter) string {
	if m.slips(.4) {
		return oneOf(m, append([]string{"9223372036854775807", "9223372036854775806", "-9223372036854775808", "4294967296", "1.0", "1e3", "0x10", "+1", "1s", "-1s", "99999h"}, texts...)...)
	}
	if enum, ok := p.Schema["enum"].([]any); ok {
		return fmt.Sprint(oneOf(m, enum...))
	}
	switch typeOf(p.Schema) {
	case "integer":
		return fmt.Sprint(oneOf(m, m.around(p.Schema)...))
	case "boolean":
		return oneOf(m, "true", "false")
	}
	switch p.Name {
	case "wait":
		return oneOf(m, "0s", "1ms", "5ms", "")
	case "after":
		return oneOf(m, m.cursor(), m.id(id.Job), m.id(id.Approval), "")
	case "stream":
		return oneOf(m, "call:"+m.id(id.Call), "run:"+m.id(id.Run), "job:"+m.id(id.Job), "call:x", "job:", ":", "run")
	case "job_id":
		return m.id(id.Job)
	case "run_id":
		return oneOf(m, "r1", m.id(id.Run))
	case "target_id":
		return m.id(id.Target)
	}
	return oneOf(m, "train", "a", "x")
}

func (m *maker) cursor() string { return oneOf(m, m.ids.cursors...) }

// around are integers about a schema's bounds, and as far from them as may be.
func (m *maker) around(schema map[string]any) []int64 {
	list := []int64{0, 1, 2, -1, 1 << 31, 1 << 53, 1<<63 - 1, -1 << 63, 1<<63 - 1 - 65536}
	least, most := int64(-1<<63), int64(1<<63-1)
	if n, ok := schema["minimum"].(int); ok {
		least = int64(n)
		list = append(list, least-1, least, least+1)
	}
	if n, ok := schema["maximum"].(int); ok {
		most = int64(n)
		list = append(list, most-1, most, most+1)
	}
	if m.good {
		list = slices.DeleteFunc(list, func(n int64) bool { return n < least || n > most })
	}
	return list
}

// value is JSON for a field of that name and schema; subject is what the request is about.
func (m *maker) value(name string, schema map[string]any, subject string) string {
	schema = resolved(schema, m.c.schemas)
	if name != "" && m.slips(.1) {
		return m.wrong()
	}
	if s, ok := m.meant(name, subject); ok && !m.slips(.3) {
		return s
	}
	if name == "status" && schema["enum"] == nil { // of a trigger
		return `"completed"`
	}
	if enum, ok := schema["enum"].([]any); ok {
		return quoted(fmt.Sprint(oneOf(m, enum...)))
	}
	switch typeOf(schema) {
	case "string":
		return quoted(oneOf(m, texts...))
	case "integer":
		return m.integer(schema)
	case "boolean":
		return oneOf(m, "true", "false")
	case "array":
		var items []string
		for range m.IntN(4) {
			items = append(items, m.value(name+"[]", schema["items"].(map[string]any), subject))
		}
		return "[" + strings.Join(items, ",") + "]"
	case "object":
		return m.object(schema, subject)
	}
	return oneOf(m, `{"order":"o"}`, `{"order":"o","amount":1e400}`, `{"n":7E29999999}`, `{}`, `[]`, `"text"`, "1", "true", `{"a":{"b":[1,{"c":"é"}]}}`)
}

func (m *maker) integer(schema map[string]any) string {
	if m.slips(.3) {
		return oneOf(m, "1.0", "1e0", "1.5", "1e400", "9223372036854775808", "-0", "1E+2", "0.1e1", "123456789012345678901234567890")
	}
	return fmt.Sprint(oneOf(m, m.around(schema)...))
}

func (m *maker) object(schema map[string]any, subject string) string {
	props, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	var members []string
	for _, name := range sortedKeys(props) {
		needed := slices.Contains(required, any(name))
		if needed && m.slips(.05) || !needed && m.chance(.6) {
			continue
		}
		member := quoted(name) + ":" + m.value(name, props[name].(map[string]any), subject)
		members = append(members, member)
		if m.slips(.02) {
			members = append(members, member)
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok && m.chance(.7) {
		members = append(members, quoted(oneOf(m, "KEY", "A B", "", "é", "PATH"))+":"+m.value("", more, subject))
	}
	if m.slips(.06) {
		members = append(members, oneOf(m, `"unknown":1`, `"By":"x"`, `"":0`, `"\u0000":null`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// meant are values that make sense for a field of that name.
func (m *maker) meant(name, subject string) (string, bool) {
	switch name {
	case "digest":
		if d, ok := m.ids.digests[subject]; ok {
			return quoted(d), true
		}
		return `"sha256-placet1:x"`, true
	case "tool":
		return quoted(oneOf(m, "look_up", "refund")), true
	case "args", "edited_args", "result", "input":
		return oneOf(m, `{"order":"o"}`, `{"order":"o","amount":7}`, `{"order":"o","password":"hunter22"}`, `{"order":1}`), true
	case "form":
		return oneOf(m, `{"type":"object","properties":{"why":{"type":"string"}}}`, `{"type":"object"}`, `{"type":"array"}`), true
	case "call_id":
		return quoted(m.id(id.Call)), true
	case "run_id":
		return quoted(oneOf(m, "r1", m.id(id.Run))), true
	case "job_id":
		return quoted(m.id(id.Job)), true
	case "decision_id":
		return quoted(m.id(id.Question)), true
	case "delivery_id":
		return quoted(oneOf(m, m.ids.ids[id.Delivery][1], m.id(id.Delivery))), true
	case "lease_token":
		return quoted(oneOf(m, m.ids.tokens[m.ids.ids[id.Delivery][1]], "forged")), true
	case "events":
		return oneOf(m, `["completed"]`, `["decision_requested","output:x"]`, `["run.finished"]`, `[]`, `["job.output"]`), true
	case "url":
		return oneOf(m, `"https://example.com/hook"`, `""`), true
	case "secret":
		return oneOf(m, `"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="`, `"whsec_x"`, `""`), true
	case "type":
		return quoted(oneOf(m, "webhook", "command", "relay", "slack", "pigeon")), true
	case "max_attempts", "retry_delay_seconds", "max_age_seconds":
		return "3", true
	case "after":
		return quoted(m.cursor()), true
	case "types":
		return oneOf(m, `["started"]`, `["queued"]`, `["completed","cancelled"]`, `["output:x"]`, `["job.output"]`, `[]`), true
	case "command":
		return oneOf(m, `["true"]`, `["echo","hello"]`, `"echo hello"`, `["/nonexistent"]`), true
	case "cwd":
		return oneOf(m, `"/tmp"`, `"/nonexistent"`, `"relative"`), true
	case "options":
		return oneOf(m, `["yes","no"]`, `["yes","yes"]`, `[]`, `[" "]`), true
	case "prompt":
		return `"Go on?"`, true
	case "choice":
		return quoted(oneOf(m, "yes", "no", "approve", "maybe")), true
	case "fence", "timeout_seconds", "kill_after_seconds":
		return "1", true
	case "older_than_seconds":
		return "86400", true
	case "name", "by", "note", "principal":
		return quoted(oneOf(m, "ana", "train")), true
	}
	return "", false
}

// wrong is JSON of a type that a field may not have.
func (m *maker) wrong() string {
	return oneOf(m, "null", "true", "0", "-1", "1.5", "1e400", `""`, `"\u0000"`, "[]", "[[]]", "{}", `{"a":{}}`, `"\ud800"`, "nul", "")
}

// integers are written as languages write them, and as far out as they go.
var integers = []string{
	"0", "1", "-1", "-0", "1.0", "1e0", "1e3", "1.5", "0.1e1", "01", "+1", "0x10", "1_000", "4294967296", "9007199254740993", "9223372036854775806", "9223372036854775807",
	"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "1e400", "1e-400", "7E29999999", "NaN", "Infinity", "null", "true", `"1"`, "[]", "{}",
}

// extremes are requests in which one parameter or one field has each hard value.
func extremes(o operation, schemas map[string]any, path, body string) (all []made) {
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		for _, v := range append(append(bounds(p.Schema), integers...), texts...) {
			all = append(all, made{method: o.method, path: path + "?" + p.Name + "=" + url.QueryEscape(v), body: body, plain: true})
		}
	}
	if o.RequestBody == nil {
		return all
	}
	schema := resolved(o.RequestBody.Content["application/json"].Schema, schemas)
	props, _ := schema["properties"].(map[string]any)
	for _, name := range sortedKeys(props) {
		values := append(bounds(resolved(props[name].(map[string]any), schemas)), integers...)
		for _, s := range texts {
			values = append(values, quoted(s), "["+quoted(s)+"]", "{"+quoted(s)+":"+quoted(s)+"}")
		}
		for _, v := range values {
			all = append(all, made{method: o.method, path: path, body: with(body, name, v), plain: true})
		}
	}
	return all
}

// bounds are a schema's, and what lies next to them.
func bounds(schema map[string]any) (all []string) {
	for _, bound := range []string{"minimum", "maximum"} {
		if n, ok := schema[bound].(int); ok {
			all = append(all, fmt.Sprint(n-1), fmt.Sprint(n), fmt.Sprint(n+1))
		}
	}
	return all
}

// with is an object with one member set, whatever it was.
func with(object, name, value string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		panic(err)
	}
	delete(members, name)
	b, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	rest := strings.TrimPrefix(string(b), "{")
	if rest != "}" {
		rest = "," + rest
	}
	return "{" + quoted(name) + ":" + value + rest
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func sortedKeys(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
