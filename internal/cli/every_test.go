package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/channel/command"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
)

// What is planted wherever data can come from: a secret, and characters that
// would rewrite a terminal or hide in it. NUL is refused at every door.
const (
	marker  = "Planted-Secret-7f3a"
	hostile = "\r\x1b[2Kok\x1b]8;;http://x\a\x1b]52;c;AAAA\a\u009b31m\u0085\x7f\b\v\n\t\u202e\u2066\u200b\u00ad\ufeff\u2060\U000e0041\ufe0f\u3164"
	sly     = "\u009b31m\u0085\u202e\u200b\u00ad\U000e0041" // what an id may have in it
)

const everyConfig = `
tools:
  - name: vault
    description: "Opens \e[2K\u202e a vault."
    input_schema: {type: object, properties: {answer: {type: string, writeOnly: true}, login: {type: object}}}
    side_effect: remote_mutation
    exec: [./vault.sh]
  - name: vault_fails
    input_schema: {type: object, properties: {answer: {type: string, writeOnly: true}}}
    side_effect: remote_mutation
    exec: [./fails.sh]
  - name: vault_open
    input_schema: {type: object, properties: {answer: {type: string, format: password}}}
    side_effect: read_only
    exec: [./vault.sh]
  - name: strict
    input_schema: {type: object, additionalProperties: false, properties: {password: {type: string, maxLength: 3}}}
    side_effect: read_only
    exec: [./vault.sh]
  - name: web
    side_effect: read_only
    http: {method: POST, url: "http://127.0.0.1:1/", headers: {Authorization: "Bearer ` + marker + `"}}
agents:
  sly: {exec: [sh, agent.sh]}
rules:
  - name: vault
    when: tool.startsWith("vault") && side_effect != "read_only"
    outcome: require_approval
    presentation: {title: '"Open with " + args.login.password'}
`

const (
	vaultScript = `#!/bin/sh
printf '{"echo":%s,"access_token":"` + marker + `","said":"it was ` + marker + `"}' "$(cat)"
`
	failsScript = `#!/bin/sh
printf 'no: ` + marker + ` \033[2K\r\302\233' >&2
exit 1
`
)

// everyArgs has secrets by name at several depths, in arrays and in strings, and
// one under an innocent name that only the schema marks (120).
func everyArgs(t *testing.T) string {
	t.Helper()
	inner, err := json.Marshal(map[string]any{"deep": map[string]string{"API-Key": marker}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{
		"login":    map[string]any{"user": "ana", "password": marker},
		"list":     []any{map[string]any{"Private.Key": []string{marker}}},
		"body":     string(inner),
		"answer":   marker,
		"a":        map[string]any{"b": map[string]any{"c": map[string]any{"d": map[string]any{"clientSecret": marker}}}},
		"text":     hostile,
		hostile:    hostile,
		"markup":   "</code><script>`[x](javascript:1)`{{.}}",
		"long":     strings.Repeat(hostile, 400),
		"empty":    nil,
		"password": marker,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// every is a store with something in every state, and what commands may be given.
type every struct {
	dir  string
	args string
	ids  []string
	runs int
	from map[string][]string // what stands for a word of a command's use line
}

func newEvery(t *testing.T) *every {
	t.Helper()
	e := &every{dir: t.TempDir(), args: everyArgs(t)}
	for name, text := range map[string]string{
		"placet.yaml": everyConfig, "vault.sh": vaultScript, "fails.sh": failsScript,
		"agent.sh": "cat answer.json", "fails.agent.sh": "printf 'no \\033[2K\\302\\233' >&2; exit 1", "answer.json": e.answer(t),
		"edit.json": e.args, "bad.json": `{"answer":` + `12}`, "broken.json": `{"password":"` + marker + `"`,
	} {
		if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	e.fill(t)
	e.fillRuns(t)
	var streams, runs []string
	for _, id := range e.ids {
		switch {
		case strings.HasPrefix(id, "call_"):
			streams = append(streams, "call:"+id)
		case strings.HasPrefix(id, "run_"):
			streams = append(streams, "run:"+id)
			runs = append(runs, id)
		}
	}
	e.from = map[string][]string{
		"ID":         append(e.ids, "apr_", "call_", "run_", hostile),
		"STREAM":     append(streams, hostile),
		"STREAM_SEQ": {"2"},
		"RUN":        append(runs, "run_", hostile),
		"CMD":        {"sh"},
		"JOB":        {"job_1", "job_" + hostile},
		"PROMPT":     {"go on?" + hostile},
		"DECISION":   {"dec_" + hostile},
		"TARGET":     {"tgt_" + hostile, "tgt_" + sly},
		"DELIVERY":   {"dlv_" + hostile, "dlv_" + sly},
		"CHOICE":     {"yes" + hostile},
		"TEXT":       {"text" + hostile},
		"TOOL":       {"vault", "vault_fails", "vault_open", "strict", "web", hostile},
		"FILE":       {filepath.Join(e.dir, "backup.db"), "nowhere" + sly},
		"DIR":        {"new" + sly},
		"COMMAND":    {"show", hostile},
		"FROM":       {filepath.Join(e.dir, "p.db"), "postgres://u:" + marker + "@127.0.0.1:1/x", "nowhere" + sly},
		"TO":         {"new" + sly, "mysql://u:" + marker + "@host/x", "postgres://u:pass/" + marker + "@host/x", hostile},
	}
	return e
}

// fill makes calls and approvals, with the configuration's policy and with one
// whose every word is hostile.
func (e *every) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	conf, err := config.Load(filepath.Join(e.dir, "placet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(ctx, filepath.Join(e.dir, "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	op := decision.Operator{Store: st, Principal: "p" + hostile}
	document, err := json.Marshal(map[string]any{"title": "With " + marker + hostile, hostile: hostile, "Token": marker})
	if err != nil {
		t.Fatal(err)
	}
	wordy := policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{
			Outcome: policy.RequireApproval, Reason: "Because of " + marker + hostile, Kind: "kind" + hostile,
			Capability: document, Presentation: document,
		}, nil
	})
	for i, p := range []policy.Policy{conf.Policy, wordy} {
		ex := call.NewExecutor(call.Config{Store: st, Tools: conf.Tools, Policy: p})
		park := func(tool string) *call.PendingError {
			_, err := ex.Call(ctx, tool, []byte(e.args), call.As("asker"+hostile), call.InRun("run"+sly),
				call.WithMetadata(map[string]string{"k" + hostile: "v" + hostile, "auth_token": marker}))
			var parked *call.PendingError
			if !errors.As(err, &parked) {
				t.Fatalf("not parked: %v", err)
			}
			e.ids = append(e.ids, parked.ApprovalID, parked.CallID)
			return parked
		}
		decide := func(p *call.PendingError, yes bool, edited string) {
			a := decision.Answer{Approved: yes, By: "by" + hostile, Note: "note " + marker + hostile, Shown: p.Digest}
			if edited != "" {
				a.EditedArgs = []byte(edited)
			}
			if _, err := op.Decide(ctx, p.ApprovalID, a); err != nil {
				t.Fatal(err)
			}
		}
		resume := func(p *call.PendingError) {
			if _, err := ex.Resume(ctx, p.ApprovalID, nil); err != nil {
				t.Fatal(err)
			}
		}
		park("vault")
		decide(park("vault"), true, "")
		decide(park("vault"), true, e.args)
		decide(park("vault"), false, "")
		ran, failed := park("vault"), park("vault_fails")
		decide(ran, true, "")
		resume(ran)
		decide(failed, true, "")
		resume(failed)
		if i == 0 {
			res, err := ex.RunCall(ctx, "run"+sly, "own"+sly, "vault_open", []byte(e.args))
			if err != nil || res.Failed() {
				t.Fatalf("%+v %v", res, err)
			}
			e.ids = append(e.ids, res.CallID)
		}
	}
}

// answer is what the agent of the configuration prints.
func (e *every) answer(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"kind": "tool_call", "tool": "vault", "args": json.RawMessage(e.args), "reason": "since " + marker + hostile})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fillRuns makes runs that wait, were decided, and ended in every way.
func (e *every) fillRuns(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	conf, err := config.Load(filepath.Join(e.dir, "placet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(ctx, filepath.Join(e.dir, "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	act := func(tool string) run.Proposal {
		return run.Proposal{Kind: run.CallTool, Tool: tool, Args: []byte(e.args), Text: "since " + marker + hostile, Raw: []byte(hostile)}
	}
	op := decision.Operator{Store: st, Principal: "p" + hostile}
	for _, last := range []run.Proposal{
		act("vault"), act("vault"), act("vault"), act("vault"), act("vault_fails" + hostile),
		{Kind: run.Complete, Result: json.RawMessage(`{"token":"` + marker + `","said":["it was ` + marker + `"]}`)},
		{Kind: run.Fail, Text: "it was " + marker + hostile},
		{Kind: run.ProposalKind("dance" + hostile), Args: []byte("no JSON " + sly)},
		{}, // the agent fails
	} {
		agent := run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
			switch {
			case len(in.Steps) == 0:
				return act("vault_open"), nil
			case last.Kind == "":
				return last, errors.New("it was " + marker + hostile)
			}
			return last, nil
		})
		d := run.NewDriver(run.Config{Store: st, Agent: agent, Tools: conf.Tools, Policy: conf.Policy, LeaseOwner: "owner" + hostile})
		r, err := d.Start(ctx, "goal "+marker+hostile, run.DefaultLimits(), run.As("asker"+hostile),
			run.By(run.AgentRef{Name: "sly"}), run.WithMetadata(map[string]string{"k" + hostile: "v" + hostile}))
		if err != nil {
			t.Fatal(err)
		}
		e.runs++
		e.ids = append(e.ids, r.ID)
		if r.Status != run.Waiting {
			continue
		}
		e.ids = append(e.ids, r.ApprovalID, r.Current.CallID)
		switch e.runs {
		case 2:
			err = op.Approve(ctx, r.ID, r.ApprovalID, "by"+hostile, "note "+marker+hostile)
		case 3:
			err = op.Reject(ctx, r.ID, r.ApprovalID, "by"+hostile, "note "+marker+hostile)
		case 4:
			err = op.Cancel(ctx, r.ID, "by"+hostile, "note "+marker+hostile)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lines are the command lines to try a command with: each word of its use line
// in turn, and the flags that bring data in or let it act.
func (e *every) lines(t *testing.T, c *cobra.Command) [][]string {
	t.Helper()
	lines := [][]string{nil}
	for _, word := range strings.Fields(c.Use)[1:] {
		if strings.HasPrefix(word, "--") || strings.HasPrefix(word, "[--") || word == "[flags]" {
			break // flags, which come below
		}
		word = strings.Trim(word, "[]…")
		values, ok := e.from[word]
		if !ok {
			t.Fatalf("%s takes a %s, and this test does not know what that could be: teach it", c.CommandPath(), word)
		}
		lines = each(lines, values)
	}
	has := func(name string) bool { return c.Flags().Lookup(name) != nil }
	if has("args") {
		lines = flagged(lines, "--args", e.args, `{"password":"`+marker+`"`, `{"password":"`+marker+`"}`, `{"password":12`+hostile)
	}
	if has("goal") {
		goal := []string{"--goal", "goal " + marker + hostile}
		lines = [][]string{
			append(goal, "--agent", "sly"), append(goal, "--agent", "x"+sly), append(goal, "--limits", `{"x`+sly+`":1}`, "--agent", "sly"),
			append(goal, "--limits", hostile, "--agent", "sly"),
			{"--goal", "goal" + hostile, "--daemon", "--agent", "sly"}, // no step has taught what is secret
			{"--goal", "goal" + hostile, "--", "sh", filepath.Join(e.dir, "fails.agent.sh")},
			append(goal, "--", "./x"+hostile),
		}
	}
	if has("listen") { // none that could be listened on: it would serve
		lines = [][]string{{"--listen", "127.0.0.1:99999"}, {"--listen", "x" + hostile}, {"--listen", "127.0.0.1:1", "--grant-ttl", "-1s"}}
	}
	if has("scope") {
		lines = [][]string{{"--scope", "agent", "--name", "bot", "--principal", "p" + sly}, {"--scope", "x" + hostile, "--name", "n" + hostile}}
	}
	if strings.Contains(c.Use, " -- CMD") && !has("goal") {
		lines = [][]string{{"--", "sh", "-c", "x" + hostile}, {"--env", "x" + hostile, "--", "true"}, {"--secret-env", "x" + hostile, "--", "true"}}
	}
	if has("relay") {
		lines = [][]string{
			{"--url", "http://x" + hostile, "--header", "Authorization: " + marker},
			{"--url", "https://example.com", "--header", "x" + hostile},
			{"--relay", "--name", "n" + hostile, "--event", "e" + hostile},
			{"--run", "run_" + hostile, "--", "sh", "x" + hostile},
			{"--relay", "--url", hostile},
		}
	}
	if has("yes") {
		lines = each(lines, []string{"--yes"})
	}
	if has("approve") {
		lines = append(lines, each(lines, []string{"--approve"})...)
	}
	if has("edit") {
		for _, f := range []string{"edit.json", "bad.json", "broken.json"} {
			edits := flagged(lines[:4], "--edit", filepath.Join(e.dir, f)) // of what is pending, and what is not
			if has("approve") {
				edits = append(edits, each(edits, []string{"--approve"})...)
			}
			lines = append(lines, edits...)
		}
	}
	if has("note") {
		noted := flagged(lines, "--note", "note"+hostile)
		lines = append(lines[:1:1], noted...)
	}
	if has("by") {
		lines = append(lines, flagged(lines[len(lines)-1:], "--by", "by"+hostile)...)
	}
	if has("status") {
		lines = append(lines, flagged(lines, "--status", "all", "x"+hostile)...)
	}
	if has("wait") {
		lines = append(lines, flagged(lines[:1], "--wait", "1ms")...)
	}
	lines = append(lines, []string{"--no-such-flag" + hostile}, []string{"x" + hostile, "y" + hostile, "z"})
	return lines
}

// each is every line with every value behind it.
func each(lines [][]string, values []string) [][]string {
	var out [][]string
	for _, l := range lines {
		for _, v := range values {
			out = append(out, append(l[:len(l):len(l)], v))
		}
	}
	return out
}

func flagged(lines [][]string, flag string, values ...string) [][]string {
	return each(each(lines, []string{flag}), values)
}

// leaves are the commands of the table that do something.
func leaves(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	if c.Runnable() {
		out = append(out, c)
	}
	for _, sub := range c.Commands() {
		out = append(out, leaves(sub)...)
	}
	return out
}

// commands is the command table, the help command included.
func commands() *cobra.Command {
	root := cli.Commands()
	root.InitDefaultHelpCmd()
	return root
}

// TestNoCommandShowsASecretOrObeysText goes through the command table, so that a
// command that is added is tried without being named here (115, 120, 122).
func TestNoCommandShowsASecretOrObeysText(t *testing.T) {
	t.Parallel()
	e := newEvery(t)
	var masked sync.Map
	t.Cleanup(func() {
		for _, path := range []string{"placet show", "placet approve", "placet reject", "placet call", "placet resume", "placet events", "placet approvals", "placet inbox", "placet withdraw", "placet run start", "placet run resume", "placet runs"} {
			if _, ok := masked.Load(path); !ok && !t.Failed() {
				t.Errorf("%s never masked anything: the secret did not get there, and the test proves nothing", path)
			}
		}
	})
	for _, c := range leaves(commands()) {
		if c.Name() == job.RunnerCommand || c.Name() == command.MinderWord {
			continue // it makes the process its own, signals and descriptors included; people never type it
		}
		t.Run(strings.ReplaceAll(c.CommandPath(), " ", "_"), func(t *testing.T) {
			t.Parallel()
			understood := false
			for i, line := range e.lines(t, c) {
				for _, globals := range [][]string{{}, {"--json"}} {
					full := append(append(strings.Fields(c.CommandPath())[1:], globals...), line...)
					out, code := e.piped(t, full)
					understood = understood || code != 2
					if strings.Contains(out, display.Masked) {
						masked.Store(c.CommandPath(), true)
					}
					if c.Name() != "canon" { // a pipe gets the canonical bytes themselves
						mustBeSafe(t, full, out)
					}
					if i%5 == 0 {
						mustBeSafe(t, full, e.atTerminal(t, full))
					}
				}
			}
			if !understood {
				t.Error("no command line that was tried was understood")
			}
		})
	}
}

func mustBeSafe(t *testing.T, line []string, out string) {
	t.Helper()
	if strings.Contains(out, marker) {
		t.Errorf("%.200q shows the secret:\n%.2000q", line, around(out, marker))
	}
	if !utf8.ValidString(out) {
		t.Errorf("%.200q prints bytes that are not UTF-8", line)
	}
	for _, r := range out {
		if r != '\n' && display.Hidden(r) {
			t.Errorf("%.200q prints %U:\n%.2000q", line, r, around(out, string(r)))
			return
		}
	}
}

func around(s, at string) string {
	i := strings.Index(s, at)
	return s[max(0, i-300):min(len(s), i+300)]
}

// stdin is what commands that read it are given.
func (e *every) stdin() string {
	b, err := json.Marshal(map[string]string{"text": hostile})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// fresh is a copy of the store, since a command may change it.
func (e *every) fresh(t *testing.T, line []string) []string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "p.db")
	for _, ext := range []string{"", ".mark"} { // it was closed, so the file and its mark are all of it
		b, err := os.ReadFile(filepath.Join(e.dir, "p.db"+ext))
		if err == nil {
			err = os.WriteFile(db+ext, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := append([]string{"--db", db, "--config", filepath.Join(e.dir, "placet.yaml")}, line...)
	for i, w := range out {
		if w == filepath.Join(e.dir, "backup.db") || strings.HasPrefix(w, "new") || strings.HasPrefix(w, "nowhere") {
			out[i] = filepath.Join(filepath.Dir(db), filepath.Base(w))
		}
	}
	return out
}

// piped runs a line on a copy of the store.
func (e *every) piped(t *testing.T, line []string) (string, int) {
	t.Helper()
	return piped(t, e.fresh(t, line), e.stdin())
}

// atTerminal does so with a terminal on both sides.
func (e *every) atTerminal(t *testing.T, line []string) string {
	t.Helper()
	return atTerminal(t, e.fresh(t, line), e.stdin())
}

// piped runs a line with its output in pipes: both together are what it printed.
func piped(t *testing.T, line []string, in string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := cli.Run(t.Context(), line, cli.Streams{In: strings.NewReader(in), Out: &out, Err: &out})
	return out.String(), code
}

// atTerminal runs a line with a terminal on both sides.
func atTerminal(t *testing.T, line []string, in string) string {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var out bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = out.ReadFrom(master) // ends with an error when the terminal is gone
	}()
	cli.Run(t.Context(), line, cli.Streams{In: strings.NewReader(in), Out: tty, Err: tty})
	name := tty.Name()
	tty.Close()
	select {
	case <-done:
	case <-time.After(patience):
		t.Errorf("%q left its terminal open at %q", line, holders(name))
		master.Close()
		return ""
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n") // the terminal's own doing
}

// holders are the processes that have a file open, each with its command line.
func holders(path string) (all []string) {
	descs, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, d := range descs {
		if to, err := os.Readlink(d); err == nil && to == path {
			proc := filepath.Dir(filepath.Dir(d))
			args, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
			all = append(all, proc+" "+strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return all
}

// A prompt shows what it asks about; its screen is held to the same.
func TestTheQuestionShowsNoSecretAndObeysNoText(t *testing.T) {
	t.Parallel()
	e := newEvery(t)
	for _, id := range e.ids {
		if !strings.HasPrefix(id, "apr_") {
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, dir: e.dir}
			s := w.atTerminal("approve", id, "--by", "by"+hostile, "--note", "note "+marker+hostile, "--edit", filepath.Join(e.dir, "edit.json"))
			go func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				for !s.over && !strings.Contains(s.text.String(), "[y/N]") {
					s.grew.Wait()
				}
				fmt.Fprint(s.keys, "\n")
			}()
			_, text := s.end()
			mustBeSafe(t, []string{"approve", id}, strings.ReplaceAll(text, "\r\n", "\n"))
			if !strings.Contains(text, display.Masked) && strings.Contains(text, "[y/N]") {
				t.Errorf("nothing is masked in:\n%.3000q", text)
			}
		})
	}
}
