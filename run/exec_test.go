//go:build unix

package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// execWorld is a store, a tool that notes what it was given, and an agent of sh.
type execWorld struct {
	t     *testing.T
	conf  run.Config
	agent *run.ExecAgent
	got   []string
}

func newExecWorld(t *testing.T, script string) *execWorld {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	agent, err := run.NewExecAgent([]string{"sh", "agent.sh"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(t.Context(), filepath.Join(dir, "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	w := &execWorld{t: t, agent: agent}
	note := func(name string, effect tool.SideEffect) tool.Tool {
		return tool.Tool{
			Spec: tool.Spec{Name: name, Description: "Note <it>.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: effect},
			Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
				w.got = append(w.got, string(c.Args))
				return json.RawMessage(`{"noted":true}`), nil
			}),
		}
	}
	tools, err := tool.NewRegistry(note("note", tool.LocalMutation), note("send", tool.RemoteMutation))
	if err != nil {
		t.Fatal(err)
	}
	w.conf = run.Config{Store: st, Agent: agent, Tools: tools}
	return w
}

func (w *execWorld) start(limits run.Limits) run.Run {
	w.t.Helper()
	r, err := run.NewDriver(w.conf).Start(w.t.Context(), "do <it>", limits)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent.Wait()
	return r
}

func (w *execWorld) steps(runID string) (ss []run.Step) {
	w.t.Helper()
	err := txn.View(w.t.Context(), w.conf.Store, func(tx run.Tx) (err error) {
		ss, err = tx.Steps(runID, 0, 0)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ss
}

// Whatever an agent prints that is no decision ends its run, and says what it was.
func TestExecAgentThatPrintsNoDecision(t *testing.T) {
	t.Parallel()
	const call = `{"kind":"tool_call","tool":"note","args":{}`
	for name, tt := range map[string]struct{ script, want string }{
		"nothing":        {``, "printed nothing"},
		"white space":    {`echo`, "printed nothing"},
		"garbage":        {`echo garbage`, `It printed \"garbage\"`},
		"two objects":    {`echo '` + call + `}{"kind":"complete"}'`, "not exactly one JSON value"},
		"two lines":      {`echo '` + call + `}'; echo '{"kind":"complete"}'`, "not exactly one JSON value"},
		"an array":       {`echo '[{"kind":"complete"}]'`, "is no decision"},
		"null":           {`echo null`, "the kind that it printed is"},
		"half":           {`printf '{"kind":"complete"'`, "not exactly one JSON value"},
		"too much":       {`head -c 5000000 /dev/zero`, "printed more than 4194304 bytes"},
		"for ever":       {`yes`, "printed more than 4194304 bytes"},
		"unknown kind":   {`echo '{"kind":"dance"}'`, `the kind that it printed is \"dance\"`},
		"no kind":        {`echo '{"tool":"note","args":{}}'`, "the kind that it printed is"},
		"flow's kind":    {`echo '{"kind":"approval"}'`, "the kind that it printed is"},
		"unknown key":    {`echo '` + call + `,"force":true}'`, "is no decision"},
		"wrong case":     {`echo '{"Kind":"complete"}'`, "is no decision"},
		"another's key":  {`echo '` + call + `,"result":1}'`, "has no result"},
		"no tool":        {`echo '{"kind":"tool_call","args":{}}'`, "needs tool and args"},
		"no args":        {`echo '{"kind":"tool_call","tool":"note"}'`, "needs tool and args"},
		"tool no text":   {`echo '{"kind":"tool_call","tool":7,"args":{}}'`, "is no decision"},
		"twice a key":    {`echo '{"kind":"complete","kind":"fail"}'`, "not exactly one JSON value"},
		"twice in args":  {`echo '{"kind":"tool_call","tool":"note","args":{"a":1,"a":2}}'`, "not exactly one JSON value"},
		"lone surrogate": {`printf '%s' '{"kind":"tool_call","tool":"note","args":{"a":"\ud800"}}'`, "not exactly one JSON value"},
		"not UTF-8":      {`printf '{"kind":"complete","result":"\377"}'`, "not exactly one JSON value"},
		"infinite":       {`echo '{"kind":"tool_call","tool":"note","args":{"a":[-1e400]}}'`, "the number -1e400 is beyond"},
		"infinite yes":   {`echo '{"kind":"complete","result":1e400}'`, "the number 1e400 is beyond"},
		"deep":           {`printf '{"kind":"complete","result":'; head -c 100000 /dev/zero | tr '\0' '['`, "not exactly one JSON value"},
		"usage below 0":  {`echo '{"kind":"complete","usage":{"tokens":-1}}'`, "usage is negative"},
		"usage too high": {`echo '{"kind":"complete","usage":{"tokens":9223372036854775807}}'`, "usage is negative, or more"},
		"usage no count": {`echo '{"kind":"complete","usage":{"tokens":1e400}}'`, "is no decision"},
		"usage unknown":  {`echo '{"kind":"complete","usage":{"dollars":1}}'`, "is no decision"},
		"exit 1":         {`echo '{"kind":"complete"}'; echo 'no key' >&2; exit 1`, `ended with exit status 1. It printed \"{\\\"kind\\\":\\\"complete\\\"}\". Its last words on standard error: \"no key\"`},
		"killed":         {`echo '{"kind":"complete"}'; kill -9 $$`, "was killed (signal: killed)"},
		"hostile words":  {`printf '\033[2J\342\200\256\000\377'; printf '\033]52;c\007' >&2; exit 3`, `\x1b[2J\u202e\x00\xff`},
		"a cut letter":   {`head -c 499 /dev/zero | tr '\0' a; printf 'é'`, `aa\" and more, 501 bytes in all`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newExecWorld(t, tt.script)
			r := w.start(run.DefaultLimits())
			if r.Status != run.Failed || r.Reason != run.AgentError {
				t.Fatalf("%s %s: %s", r.Status, r.Reason, r.Detail)
			}
			want := strings.ReplaceAll(tt.want, `\"`, `"`)
			if name == "exit 1" {
				want = `ended with exit status 1. It printed "{\"kind\":\"complete\"}". Its last words on standard error: "no key"`
			}
			if !strings.Contains(r.Detail, want) {
				t.Errorf("%q is not in %q", want, r.Detail)
			}
			if len(r.Detail) > 6000 || !utf8.ValidString(r.Detail) || strings.ContainsAny(r.Detail, "\x00\x1b\u202e\n") {
				t.Errorf("the detail is not fit to be shown: %q", r.Detail)
			}
			if len(w.got) > 0 {
				t.Errorf("a tool ran: %q", w.got)
			}
		})
	}
}

func TestExecAgentThatHangs(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, `exec sleep 1000`)
	w.conf.DecideTimeout = 300 * time.Millisecond
	if r := w.start(run.DefaultLimits()); r.Reason != run.AgentError || !strings.Contains(r.Detail, "in time") {
		t.Errorf("%s: %s", r.Reason, r.Detail)
	}
}

// A process that is interrupted gives its step and lease back; the agent's process
// does not outlive it.
func TestExecAgentIsStopped(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, `echo ready >ready; exec sleep 1000`)
	fifo := filepath.Join(w.dir(), "ready")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(fifo) // returns once the agent has written to it
		cancel()
	}()
	r, err := run.NewDriver(w.conf).Start(ctx, "x", run.DefaultLimits())
	if !errors.Is(err, context.Canceled) || r.Status != run.Running || !r.LeaseUntil.IsZero() || r.Current.Status != run.StepFailed {
		t.Errorf("%v: %s, lease until %s, step %s", err, r.Status, r.LeaseUntil, r.Current.Status)
	}
	w.agent.Wait()
}

// The tool gets the bytes that the agent printed; the answer is kept whole.
func TestExecAgentArgumentsAreExact(t *testing.T) {
	t.Parallel()
	const args = `{ "n": 9007199254740993, "x":1.10,"text":"a\u0062<&>\/" ,"z":{}}`
	const said = ` {"kind":"tool_call", "args":` + args + `, "tool":"note","reason":"because <it>"}`
	w := newExecWorld(t, `if grep -q '"steps":\[\]'; then cat <<'E'
`+said+`
E
else echo '{"kind":"complete","result":null}'; fi`)
	r := w.start(run.DefaultLimits())
	if r.Status != run.Completed || r.Result != "null" {
		t.Fatalf("%s %s %q", r.Status, r.Detail, r.Result)
	}
	if len(w.got) != 1 || w.got[0] != args {
		t.Errorf("the tool got %q", w.got)
	}
	s := w.steps(r.ID)[0]
	if s.Raw != said+"\n" || s.Args != args || s.Said != "because <it>" {
		t.Errorf("kept %q, %q, %q", s.Raw, s.Args, s.Said)
	}
}

// What an agent reads are the objects that every door writes.
func TestExecAgentInput(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, `cat >"in.$(ls in.* 2>/dev/null | wc -l | tr -d ' ')"
case "$(ls in.* | wc -l | tr -d ' ')" in
1) echo '{"kind":"tool_call","tool":"send","args":{"to":"<ana>"}}' ;;
2) echo '{"kind":"tool_call","tool":"nothing","args":{}}' ;;
*) test "$PLACET_RUN_ID" && test -z "$PLACET_TEST_SECRET" && echo '{"kind":"fail","message":"enough"}' ;;
esac`)
	r := w.start(run.DefaultLimits())
	if r.Status != run.Waiting {
		t.Fatalf("%s: %s", r.Status, r.Detail)
	}
	if err := (decision.Operator{Store: w.conf.Store}).Approve(t.Context(), r.ID, r.ApprovalID, "ana", "fine"); err != nil {
		t.Fatal(err)
	}
	r, err := run.NewDriver(w.conf).Resume(t.Context(), r.ID)
	if err != nil || r.Status != run.Failed || r.Reason != run.GoalFailed || r.Detail != "enough" {
		t.Fatalf("%v: %s %s %s", err, r.Status, r.Reason, r.Detail)
	}
	var in struct {
		V         int               `json:"v"`
		Run       map[string]any    `json:"run"`
		Steps     []map[string]any  `json:"steps"`
		Approvals []decision.Object `json:"approvals"`
		Tools     []map[string]any  `json:"tools"`
	}
	b, err := os.ReadFile(filepath.Join(w.dir(), "in.2"))
	if err == nil {
		err = json.Unmarshal(b, &in)
	}
	if err != nil {
		t.Fatal(err)
	}
	if in.V != 1 || in.Run["goal"] != "do <it>" || in.Run["status"] != "RUNNING" || in.Run["step_count"] != 3.0 || in.Run["limits"] == nil {
		t.Errorf("run %v", in.Run)
	}
	if len(in.Steps) != 2 || in.Steps[0]["result"].(map[string]any)["noted"] != true || in.Steps[0]["args"].(map[string]any)["to"] != "<ana>" ||
		in.Steps[0]["ruling"].(map[string]any)["outcome"] != "require_approval" ||
		in.Steps[1]["observation"].(map[string]any)["kind"] != "invalid_decision" || in.Steps[1]["status"] != "failed" {
		t.Errorf("steps %v", in.Steps)
	}
	if len(in.Approvals) != 1 || in.Approvals[0].Status != decision.Consumed || in.Approvals[0].Note != "fine" || string(in.Approvals[0].Args) != `{"to":"<ana>"}` {
		t.Errorf("approvals %+v", in.Approvals)
	}
	if len(in.Tools) != 2 || in.Tools[0]["name"] != "note" || in.Tools[0]["description"] != "Note <it>." || in.Tools[1]["side_effect"] != "remote_mutation" || in.Tools[0]["input_schema"] == nil {
		t.Errorf("tools %v", in.Tools)
	}
	if !strings.Contains(string(b), `"goal":"do <it>"`) {
		t.Error("the input escapes what needs no escaping")
	}
}

func (w *execWorld) dir() string { return w.agent.Dir() }

// What an agent says that it used is charged, and a limit that it passes ends the run.
func TestExecAgentUsage(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, `echo "{\"kind\":\"tool_call\",\"tool\":\"note\",\"args\":{\"n\":$$},\"usage\":{\"model_calls\":3,\"tokens\":1200,\"cost\":0.25}}"`)
	limits := run.DefaultLimits()
	limits.MaxTotalTokens = 2000
	r := w.start(limits)
	if r.Status != run.Failed || r.Reason != run.LimitTokens || r.StepCount != 2 {
		t.Fatalf("%s %s after %d steps: %s", r.Status, r.Reason, r.StepCount, r.Detail)
	}
	if r.Usage != (run.Usage{ModelCalls: 6, Tokens: 2400, Cost: 500_000}) {
		t.Errorf("charged %+v", r.Usage)
	}
}

func TestNewExecAgentRefuses(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {""}, {"./nothing"}, {"no-such-program-anywhere"}} {
		if _, err := run.NewExecAgent(argv, t.TempDir()); err == nil {
			t.Errorf("%q is accepted", argv)
		}
	}
}

// A command line that could only be stored as another one is refused: resumed, the run
// would have another agent.
func TestAgentsCommandLineIsText(t *testing.T) {
	t.Parallel()
	w := newExecWorld(t, `echo '{"kind":"complete"}'`)
	for _, ref := range []run.AgentRef{{Argv: []string{"./agent", "\xff"}}, {Name: "a\x00"}, {Argv: []string{"./agent"}, Dir: "/x\xff"}} {
		if _, err := run.NewDriver(w.conf).Start(t.Context(), "do it", run.DefaultLimits(), run.By(ref)); !errors.Is(err, run.ErrUsage) {
			t.Errorf("%q: %v", ref, err)
		}
	}
}
