package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// folder is a folder with programs and a placet.yaml; it gives the path of the latter.
func folder(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ok.sh"), "#!/bin/sh\ncat\n", 0o755)
	write(t, filepath.Join(dir, "plain.txt"), "not a program\n", 0o644)
	path := filepath.Join(dir, DefaultName)
	write(t, path, text, 0o644)
	return path
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// environment is a fixed environment.
func environment(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

const full = `
tools:
  - name: refund
    description: Refund an order.
    input_schema: {type: object, required: [order_id, amount], additionalProperties: false,
                   properties: {order_id: {type: string}, amount: {type: number, exclusiveMinimum: 0}}}
    side_effect: remote_mutation
    timeout: 45s
    confirm: true
    exec: [./ok.sh, --fast, 5]
    idempotency: call_id
    cancel_safe: true
    pin: true
    probe: [./ok.sh]
    cost: 3
  - name: deploy
    http: {method: PUT, url: "https://deploy.internal/v1/deploy", headers: {Authorization: "Bearer ${DEPLOY_TOKEN}", X-Team: "a${TEAM}b"}}
agents:
  fixer: {exec: [./ok.sh, -v]}
  other: {exec: [sh]}
rules:
  - name: small refunds
    when: tool == "refund" && args.amount <= 50
    outcome: allow
  - name: large refunds
    when: tool == "refund"
    outcome: require_approval
    reason: "refunds above 50 need a person"
    kind: money
    expires_in: 24h
    grant_expires_in: 15m
    edits: forbid
    presentation: {title: '"Refund " + string(args.amount) + " on " + args.order_id', level: 3}
    capability: {max: args.amount}
guards:
  calls_per_run: 10
  calls_per_minute: 20
  repeats: 3
  cost: 500
`

func TestLoad(t *testing.T) {
	t.Parallel()
	path := folder(t, full)
	dir := filepath.Dir(path)
	c, err := load(path, environment("DEPLOY_TOKEN", "s3cret", "TEAM", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != path || c.Dir != dir {
		t.Errorf("path %s, dir %s", c.Path, c.Dir)
	}

	refund, err := c.Tools.Lookup("refund")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(refund.Implementation, "exec sha256:") || !strings.HasSuffix(refund.Implementation, " "+dir+"/ok.sh --fast 5") {
		t.Errorf("implementation %s", refund.Implementation)
	}
	if refund.Timeout() != 45*time.Second || !refund.Confirm || !refund.Idempotent || !refund.CancelSafe || refund.Cost != 3 || refund.Probe == nil {
		t.Errorf("%+v", refund)
	}
	if refund.Description != "Refund an order." || refund.SideEffect != tool.RemoteMutation {
		t.Errorf("%+v", refund.Spec)
	}
	if err := refund.CheckArgs([]byte(`{"order_id":"o-7","amount":0}`)); !errors.Is(err, tool.ErrInvalidArguments) {
		t.Errorf("the schema does not hold: %v", err)
	}
	got, err := refund.Run.Run(context.Background(), tool.Call{CallID: "c-1", Args: []byte(`{"n": 1.0}`)})
	if err != nil || string(got) != `{"n": 1.0}` {
		t.Errorf("run: %s, %v", got, err)
	}

	deploy, err := c.Tools.Lookup("deploy")
	if err != nil {
		t.Fatal(err)
	}
	if deploy.Implementation != "http PUT https://deploy.internal/v1/deploy" || deploy.SideEffect != tool.Destructive ||
		string(deploy.InputSchema) != `{"type":"object"}` || deploy.Timeout() != tool.DefaultTimeout {
		t.Errorf("%+v", deploy.Spec)
	}

	if want := (call.Guards{CallsPerRun: 10, CallsPerMinute: 20, Repeats: 3, Cost: 500}); c.Guards != want {
		t.Errorf("guards %+v", c.Guards)
	}
	agents := map[string]Agent{
		"fixer": {Name: "fixer", Argv: []string{filepath.Join(dir, "ok.sh"), "-v"}, Dir: dir},
		"other": {Name: "other", Argv: []string{"sh"}, Dir: dir},
	}
	if diff := cmp.Diff(agents, c.Agents); diff != "" {
		t.Error(diff)
	}

	judge := func(args string) policy.Ruling {
		t.Helper()
		r, err := c.Policy.Evaluate(context.Background(), request.Request{CallID: "c", Tool: refund.Spec, Args: []byte(args)}, policy.View{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := judge(`{"order_id":"o-7","amount":50}`); r.Outcome != policy.Allow {
		t.Errorf("%+v", r)
	}
	want := policy.Ruling{
		Outcome: policy.RequireApproval, Reason: "refunds above 50 need a person", Kind: "money",
		ApprovalTTL: 24 * time.Hour, GrantTTL: 15 * time.Minute, ForbidEdits: true,
		Presentation: []byte(`{"level":3,"title":"Refund 500 on o-7"}`), Capability: []byte(`{"max":500}`),
	}
	if diff := cmp.Diff(want, judge(`{"order_id":"o-7","amount":500}`)); diff != "" {
		t.Error(diff)
	}
}

// sample is the placet.yaml of spec 4.2.
const sample = `tools:
  - name: refund
    description: Refund an order.
    input_schema: {type: object, required: [order_id, amount], additionalProperties: false,
                   properties: {order_id: {type: string}, amount: {type: number, exclusiveMinimum: 0}}}
    side_effect: remote_mutation      # read_only | local_mutation | remote_mutation | destructive
    timeout: 30s                      # default 30s, at most 24h
    confirm: true                     # always ask, whatever the rules say
    exec: [./refund.sh]               # exact argument bytes on stdin, JSON on stdout
    idempotency: call_id              # optional: a repeat with the same call id is safe
    cancel_safe: false                # optional: true promises that a killed or timed-out call had no effect
    pin: false                        # optional: true puts the program's SHA-256 into the spec
    probe: [./refund-status.sh]       # optional: settles an unknown outcome
    cost: 0                           # optional: what one call adds to the guard cost
  - name: deploy
    http: {method: POST, url: "https://deploy.internal/v1/deploy", headers: {Authorization: "${DEPLOY_TOKEN}"}}
agents:
  fixer: {exec: [./agent.py]}         # one process per decision
rules:                                # first match wins; none matches: the side-effect default
  - name: small refunds
    when: tool == "refund" && args.amount <= 50
    outcome: allow                    # allow | require_approval | deny | abort
  - name: large refunds
    when: tool == "refund"
    outcome: require_approval
    reason: "refunds above 50 need a person"
    expires_in: 24h
    grant_expires_in: 15m
    edits: allow                      # or forbid
    presentation: {title: '"Refund " + string(args.amount) + " on " + args.order_id'}   # CEL
`

func TestLoadTakesTheSampleOfTheSpec(t *testing.T) {
	t.Parallel()
	path := folder(t, sample)
	for _, name := range []string{"refund.sh", "refund-status.sh", "agent.py"} {
		write(t, filepath.Join(filepath.Dir(path), name), "#!/bin/sh\n", 0o755)
	}
	c, err := load(path, environment("DEPLOY_TOKEN", "s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tools.List()) != 2 || len(c.Agents) != 1 || c.Guards != (call.Guards{}) {
		t.Errorf("%+v", c)
	}
}

func TestNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != "" || len(c.Tools.List()) != 0 || c.Guards != (call.Guards{}) || len(c.Agents) != 0 || policy.VersionOf(c.Policy) != policy.VersionOf(policy.Default()) {
		t.Errorf("%+v", c)
	}
	if dir, _ := os.Getwd(); c.Dir != dir {
		t.Errorf("dir %s", c.Dir)
	}
	if _, err := Load(DefaultName); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "There is no file placet.yaml. placet init writes an example.") {
		t.Errorf("a file that was named and is not there: %v", err)
	}
	write(t, DefaultName, "guards: {repeats: 2}\n", 0o644)
	if c, err = Load(""); err != nil || c.Guards.Repeats != 2 || !filepath.IsAbs(c.Path) {
		t.Errorf("%+v, %v", c, err)
	}
	write(t, DefaultName, "gards: {repeats: 2}\n", 0o644)
	if _, err = Load(""); err == nil || err.Error() != `placet.yaml:1: unknown key "gards" in the file; did you mean "guards"?` {
		t.Errorf("%v", err)
	}
}

func TestLoadReadsTheEnvironment(t *testing.T) {
	path := folder(t, `tools: [{name: d, http: {url: "http://x.test/", headers: {A: "${PLACET_TEST_TOKEN}"}}}]`)
	t.Setenv("PLACET_TEST_TOKEN", "s3cret")
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
}

func TestFilesWithoutSettings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}\n", "null\n", "tools:\nrules:\nagents:\nguards:\n", "tools: []\nrules: []\nagents: {}\nguards: {}\n", "\ufeff# with a byte order mark\n"} {
		c, err := Load(folder(t, text))
		if err != nil || len(c.Tools.List()) != 0 || c.Path == "" || c.Policy == nil {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "large.yaml"), strings.Repeat("# a comment\n", maxFile/12+1), 0o644)
	for path, want := range map[string]string{
		dir:                              "is not an ordinary file",
		os.DevNull:                       "is not an ordinary file",
		filepath.Join(dir, "none.yaml"):  "There is no file",
		filepath.Join(dir, "large.yaml"): "has more than 1048576 bytes",
		filepath.Join(dir, "large.yaml", "placet.yaml"): "cannot be read: not a directory",
		filepath.Join(dir, "a\x00b"):                    "cannot be read",
	} {
		_, err := Load(path)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if f := fault.From(err); f.Code != fault.Invalid || f.Reason != "config" {
			t.Errorf("code %s, reason %s", f.Code, f.Reason)
		}
	}
}

func TestSchemaKeepsNumbersAndDoesNotDependOnLayout(t *testing.T) {
	t.Parallel()
	schema := func(text string) string {
		t.Helper()
		c, err := Load(folder(t, "tools:\n- name: t\n  exec: [sh]\n  input_schema: "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		spec, err := c.Tools.Lookup("t")
		if err != nil {
			t.Fatal(err)
		}
		return string(spec.InputSchema)
	}
	flow := schema(`{type: object, properties: {n: {type: integer, maximum: 9007199254740993, multipleOf: 1.50},
    e: {enum: [123456789012345678901234567890, 1e400, -0.10, "7", "1e3", null, true, "null", ~, 2020-01-01, yes, 'off', on, a b]}}}`)
	want := `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"multipleOf":1.50},` +
		`"e":{"enum":[123456789012345678901234567890,1e400,-0.10,"7","1e3",null,true,"null",null,"2020-01-01","yes","off","on","a b"]}}}`
	if flow != want {
		t.Errorf("got  %s\nwant %s", flow, want)
	}
	block := schema(`
    properties:
      e:
        enum: [123456789012345678901234567890, 1e400, -0.10, "7", "1e3", null, true, "null", ~, 2020-01-01, yes, 'off', on, a b]
      n:
        multipleOf: 1.5
        maximum: 9007199254740993
        type: integer
    type: object`)
	if same, err := canon.Equal([]byte(flow), []byte(block)); err != nil || !same {
		t.Errorf("another layout is another schema: %s, %v", block, err)
	}
}

func TestEverythingIsToldInTheOrderOfTheLines(t *testing.T) {
	t.Parallel()
	path := folder(t, `guards:
  repeats: -1
tools:
  - name: a
    confrim: true
    exec: [./none.sh]
  - name: b
    exec: [sh]
    timeout: 90d
rules:
  - name: r
    when: |
      tool == "a" &&
        foo
    outcome: allow
colour: red
`)
	_, err := Load(path)
	want := strings.Join([]string{
		`:2: the guard repeats has to be a whole number, 0 or more`,
		`:5: unknown key "confrim" in tool "a"; did you mean "confirm"?`,
		`:6: exec of tool "a": The program "` + filepath.Dir(path) + `/none.sh" cannot be used: it does not exist.`,
		`:9: timeout of tool "b": "90d" has a unit that is not known, since days are not all of one length; write 2160h`,
		`:14: rule "r", when, column 3: foo is not known; an expression knows tool, args, side_effect, principal, run, metadata and the functions of the CEL standard`,
		`:16: unknown key "colour" in the file; write tools, agents, rules or guards`,
	}, "\n"+path)
	if err == nil || err.Error() != path+want {
		t.Errorf("got\n%v\nwant\n%s", err, path+want)
	}
	var details struct {
		Problems []problem `json:"problems"`
	}
	if e := unmarshal(fault.From(err).Details, &details); e != nil || len(details.Problems) != 6 || details.Problems[1].Line != 5 {
		t.Errorf("details %s, %v", fault.From(err).Details, e)
	}
}

func TestAtMostTwentyProblems(t *testing.T) {
	t.Parallel()
	_, err := Load(folder(t, "guards:\n"+strings.Repeat("  x: 1\n  y: 2\n", 15)))
	if n := strings.Count(err.Error(), "\n"); n != 20 || !strings.HasSuffix(err.Error(), "\nand 38 more") {
		t.Errorf("%d lines: %v", n+1, err)
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, DefaultName)
	write(t, path, string(Example()), 0o644)
	files := ExampleFiles()
	for name, text := range files {
		write(t, filepath.Join(dir, name), string(text), 0o755)
	}
	if len(files) != 2 {
		t.Errorf("files %v", reflect.ValueOf(files).MapKeys())
	}
	c, err := load(path, environment())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tools.List()) != 2 || c.Guards.CallsPerRun != 100 {
		t.Errorf("%+v", c)
	}
	if _, ok := c.Policy.(*rules.Policy); !ok {
		t.Errorf("policy %T", c.Policy)
	}
	run := func(name, id, args string) string {
		t.Helper()
		tl, err := c.Tools.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := tl.CheckArgs([]byte(args)); err != nil {
			t.Fatal(err)
		}
		out, err := tl.Run.Run(context.Background(), tool.Call{CallID: id, Tool: name, Attempt: 1, Args: []byte(args)})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := run("list_notes", "call_0", `{}`); got != `{"notes":[]}` {
		t.Error(got)
	}
	note := `{"text": "buy \u006dilk"}`
	for range 2 { // a repeat with the same id writes the same file
		if got := run("write_note", "call_1", note); got != `{"file":"notes/call_1.json"}` {
			t.Error(got)
		}
	}
	run("write_note", "call_2", `{"text":"b"}`)
	if got, err := os.ReadFile(filepath.Join(dir, "notes", "call_1.json")); err != nil || string(got) != note {
		t.Errorf("%s, %v", got, err)
	}
	if got := run("list_notes", "call_3", `{}`); got != `{"notes":["notes/call_1.json","notes/call_2.json"]}` {
		t.Error(got)
	}
	tl, _ := c.Tools.Lookup("write_note")
	if _, err := tl.Run.Run(context.Background(), tool.Call{CallID: "../x", Args: []byte(note)}); err == nil || !strings.Contains(err.Error(), "not fit for a file name") {
		t.Errorf("a call id that is a path: %v", err)
	}

	for args, want := range map[string]policy.Outcome{
		`{"text":"short"}`:                           policy.Allow,
		`{"text":"` + strings.Repeat("x", 41) + `"}`: policy.RequireApproval,
		`{}`: policy.RequireApproval,
	} {
		r, err := c.Policy.Evaluate(context.Background(), request.Request{CallID: "c", Tool: tl.Spec, Args: []byte(args)}, policy.View{})
		if err != nil || r.Outcome != want {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
		if _, err := r.Complete(request.Request{CallID: "c", Tool: tl.Spec, Args: []byte(args)}); err != nil {
			t.Error(err)
		}
	}
}
