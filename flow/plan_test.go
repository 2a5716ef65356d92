package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
)

// ending is how a step can end, as the driver leaves it.
type ending struct {
	name string
	of   run.Step
}

var endings = []ending{
	{"done", run.Step{Status: run.Done, Observation: run.ToolResult, Result: `{"n":1}`}},
	{"failed", run.Step{Status: run.StepFailed, Observation: run.ToolError, Message: "the disk is full"}},
	{"denied", run.Step{Status: run.StepFailed, Observation: run.PolicyDenied, Message: "not today"}},
	{"refused", run.Step{Status: run.StepFailed, Observation: run.InvalidDecision, Message: "no such tool"}},
	{"stopped", run.Step{Status: run.StepFailed, Observation: run.WasInterrupted}},
	{"lost", run.Step{Status: run.Interrupted, Observation: run.WasInterrupted}},
	{"lost while its tool ran", run.Step{Status: run.Interrupted, Observation: run.WasInterrupted, CallID: "call_1"}},
}

// history is a run without a driver: steps as the driver would leave them.
type history struct {
	steps     []run.Step
	approvals []decision.Decision
}

// add ends a proposal that way. A yes to an approval leaves what the driver leaves.
func (h *history) add(p run.Proposal, e run.Step) {
	e.RunID, e.Index, e.ID = "run_1", int64(len(h.steps)+1), fmt.Sprint("stp_", len(h.steps)+1)
	e.Kind, e.Node, e.Tool, e.Args, e.Said = p.Kind, p.Node, p.Tool, string(p.Args), p.Text
	if p.Kind == run.AskApproval {
		e.Result = ""
		if e.Status == run.Done {
			e.ApprovalID = "apr_" + e.ID
			h.approvals = append(h.approvals, yesTo(p, e.ApprovalID))
		}
	}
	h.steps = append(h.steps, e)
}

func yesTo(p run.Proposal, id string) decision.Decision {
	req, err := request.Request{RunID: "run_1", Flow: "f", Version: "1", Node: p.Node, Args: p.Args}.JSON()
	if err != nil {
		panic(err)
	}
	d := decision.Decision{
		ID: id, Owner: decision.Ref{Kind: decision.OwnerRun, ID: "run_1"}, RunID: "run_1", Node: p.Node, Kind: "flow_approval",
		Request: req, Choice: decision.ChoiceApprove, Status: decision.Consumed,
	}
	if d.Digest, err = d.Binding(); err != nil {
		panic(err)
	}
	return d
}

func mustPlan(t interface{ Fatal(...any) }, f Flow) *plan {
	p, err := newPlan(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func always(Results) (bool, error) { return true, nil }
func never(Results) (bool, error)  { return false, nil }

// said is a proposal in a few words.
func said(p run.Proposal) string {
	switch p.Kind {
	case run.CallTool:
		return "call " + p.Node + " " + p.Tool + string(p.Args)
	case run.AskApproval:
		return "ask " + p.Node + " " + string(p.Args) + string(p.Presentation)
	case run.Complete:
		return "complete " + p.Node + " " + string(p.Result)
	case run.Fail:
		return "fail " + p.Node + " " + p.Text
	}
	return "nothing"
}

// Every kind of node that leaves a step × every way in which a step ends.
func TestEveryNodeByEveryEnding(t *testing.T) {
	t.Parallel()
	nodes := map[string]Node{
		"call":            Call{Name: "a", Tool: "t", Args: raw(`{"x":1}`)},
		"call, OnFailure": Call{Name: "a", Tool: "t", Args: raw(`{"x":1}`), OnFailure: "c"},
		"call, Next":      Call{Name: "a", Tool: "t", Args: raw(`{"x":1}`), Next: "c", OnFailure: "b"},
		"approve":         Approve{Name: "a", Args: raw(`{"x":1}`)},
		"approve, Next":   Approve{Name: "a", Next: "c"},
		"end":             End{Name: "a", Result: raw(`7`)},
		"end, Fail":       End{Name: "a", Fail: "no"},
	}
	const b, c, again = "call b t{}", "complete c ", "again"
	failed, denied := "fail  Node \"a\" failed: the disk is full", "fail  Node \"a\" was denied: not today"
	refused := "fail  Node \"a\" could not be carried out as it stands: no such tool"
	want := map[string][]string{ // by ending, in the order of endings; "-": it cannot be
		"call":            {b, failed, denied, refused, again, again, again},
		"call, OnFailure": {b, c, c, c, again, again, again},
		"call, Next":      {c, b, b, b, again, again, again},
		"approve":         {b, failed, denied, refused, again, again, again},
		"approve, Next":   {c, failed, denied, refused, again, again, again},
		"end":             {"-", "-", "-", "-", again, again, again},
		"end, Fail":       {"-", "-", "-", "-", again, again, again},
	}
	n := 0
	for name, node := range nodes {
		for i, e := range endings {
			want := want[name][i]
			if n++; want == "-" {
				continue
			}
			t.Run(name+"/"+e.name, func(t *testing.T) {
				t.Parallel()
				f := Flow{Name: "f", Version: "1", Nodes: []Node{
					Branch{Name: "first", If: always, Then: "a", Else: "b"}, node, Call{Name: "b", Tool: "t", OnFailure: "c"}, End{Name: "c"},
				}}
				p, h := mustPlan(t, f), &history{}
				first := p.next(nil, nil, nil)
				h.add(first, e.of)
				if want == again {
					want = said(first)
				}
				got := p.next(nil, h.steps, h.approvals)
				if said(got) != want {
					t.Errorf("got %s, want %s", said(got), want)
				}
				if twice := p.next(nil, h.steps, h.approvals); !reflect.DeepEqual(got, twice) {
					t.Errorf("the same steps gave %s, then %s", said(got), said(twice))
				}
				h.steps = append(h.steps, run.Step{Index: 2, Status: run.Interrupted, Observation: run.WasInterrupted}) // lost before it was asked
				if later := p.next(nil, h.steps, h.approvals); !reflect.DeepEqual(got, later) {
					t.Errorf("a process lost while it asked made %s of %s", said(later), said(got))
				}
			})
		}
	}
	if n != len(nodes)*len(endings) {
		t.Errorf("%d rows for %d nodes and %d endings", n, len(nodes), len(endings))
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	broken := func(Results) (bool, error) { return true, errors.New("who knows") }
	for name, tc := range map[string]struct {
		b    Branch
		want string
	}{
		"then":              {Branch{If: always, Then: "x"}, "call x t{}"},
		"else":              {Branch{If: never, Then: "x", Else: "end"}, "complete end "},
		"the next":          {Branch{If: never, Then: "end"}, "call x t{}"},
		"a result":          {Branch{If: func(r Results) (bool, error) { return string(r.Raw("a")) == `{"n":1}`, nil }, Then: "end"}, "complete end "},
		"back":              {Branch{If: always, Then: "a", Rounds: 2}, "call a t{}"},
		"back no more":      {Branch{If: always, Then: "a", Rounds: 1}, "call x t{}"},
		"back, not wanted":  {Branch{If: never, Then: "a", Rounds: 9}, "call x t{}"},
		"an error":          {Branch{If: broken, Then: "x"}, `fail  Node "b": its condition could not be judged: who knows`},
		"a panic":           {Branch{If: func(Results) (bool, error) { panic("oh") }, Then: "x"}, `fail  Node "b": its condition could not be judged: it panicked: oh`},
		"an unknown node":   {Branch{If: func(r Results) (bool, error) { return r.Visits("q") > 0, nil }, Then: "x"}, `fail  Node "b": its condition could not be judged: it panicked: the flow has no node "q"`},
		"a nil dereference": {Branch{If: func(Results) (bool, error) { var p *int; return *p > 0, nil }, Then: "x"}, `fail  Node "b": its condition could not be judged: it panicked: runtime error: invalid memory address or nil pointer dereference`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.b.Name = "b"
			p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: []Node{Call{Name: "a", Tool: "t"}, tc.b, Call{Name: "x", Tool: "t"}, End{Name: "end"}}})
			h := &history{}
			h.add(p.next(nil, nil, nil), endings[0].of)
			got := p.next(nil, h.steps, nil)
			if said(got) != tc.want {
				t.Errorf("got %s, want %s", said(got), tc.want)
			}
			if got.Kind != run.Fail && got.Text != fmt.Sprintf(`Branch "b" leads to %q.`, got.Node) {
				t.Errorf("it says %q", got.Text)
			}
		})
	}
}

// A branch that was gone through is not asked again: what it decided stands.
func TestBranchIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: []Node{
		Branch{Name: "b", If: func(Results) (bool, error) { asked++; return asked > 1, nil }, Then: "y"},
		Call{Name: "x", Tool: "t"},
		Call{Name: "y", Tool: "t"},
		End{Name: "end"},
	}})
	h := &history{}
	h.add(p.next(nil, nil, nil), endings[5].of) // lost
	if got := p.next(nil, h.steps, nil); got.Node != "x" || asked != 1 {
		t.Errorf("got %s after %d questions", said(got), asked)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	from := func(v any) func(Results) (any, error) { return func(Results) (any, error) { return v, nil } }
	long := strings.Repeat("x", MaxArgs)
	for name, tc := range map[string]struct {
		n    Node
		want string
	}{
		"fixed, as it is":         {Call{Tool: "t", Args: raw(` {"b":1.0,"a":"<"}`)}, `call n t {"b":1.0,"a":"<"}`},
		"none":                    {Call{Tool: "t"}, `call n t{}`},
		"built raw, as it is":     {Call{Tool: "t", ArgsFrom: from(raw(`{ "n":1e0}`))}, `call n t{ "n":1e0}`},
		"built":                   {Call{Tool: "t", ArgsFrom: from(map[string]any{"b": "<&", "a": 1})}, `call n t{"a":1,"b":"<&"}`},
		"built nothing":           {Call{Tool: "t", ArgsFrom: from(nil)}, `call n t{}`},
		"built raw nothing":       {Call{Tool: "t", ArgsFrom: from(json.RawMessage(nil))}, `call n t{}`},
		"built raw nonsense":      {Call{Tool: "t", ArgsFrom: from(raw(`{"a":1,"a":2}`))}, `fail  Node "n": its arguments could not be built: …`},
		"built what JSON has not": {Call{Tool: "t", ArgsFrom: from(func() {})}, `fail  Node "n": its arguments could not be built: …`},
		"built too much":          {Call{Tool: "t", ArgsFrom: from(long)}, `fail  Node "n": its arguments could not be built: it has 1048578 bytes; the limit is 1048576`},
		"an error":                {Call{Tool: "t", ArgsFrom: ResultOf("n")}, `fail  Node "n": its arguments could not be built: node "n" has no result`},
		"no arguments yet":        {Call{Tool: "t", ArgsFrom: ArgsOf("n")}, `fail  Node "n": its arguments could not be built: node "n" has no arguments`},
		"a panic":                 {Call{Tool: "t", ArgsFrom: func(Results) (any, error) { panic(7) }}, `fail  Node "n": its arguments could not be built: it panicked: 7`},
		"a panic in MarshalJSON":  {Call{Tool: "t", ArgsFrom: from(bad{})}, `fail  Node "n": its arguments could not be built: it panicked: bad`},
		"approve":                 {Approve{}, `ask n {}`},
		"approve, any value":      {Approve{Args: raw(`[1]`), Show: raw(`{"s":1}`)}, `ask n [1]{"s":1}`},
		"approve, built":          {Approve{ArgsFrom: from(1), ShowFrom: from(map[string]int{"s": 2})}, `ask n 1{"s":2}`},
		"approve, no object":      {Approve{ShowFrom: from(1)}, `fail  Node "n": its presentation is not a JSON object`},
		"approve, show fails":     {Approve{ShowFrom: ResultOf("n")}, `fail  Node "n": its presentation could not be built: node "n" has no result`},
		"approve, args fail":      {Approve{ArgsFrom: ResultOf("n")}, `fail  Node "n": its arguments could not be built: node "n" has no result`},
		"end":                     {End{}, `complete n `},
		"end, fixed":              {End{Result: raw(`"x"`)}, `complete n "x"`},
		"end, built":              {End{ResultFrom: from([]int{1})}, `complete n [1]`},
		"end, not built":          {End{ResultFrom: ResultOf("n")}, `fail  Node "n": its result could not be built: node "n" has no result`},
		"end, failing":            {End{Fail: "no"}, `fail n no`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: endedBy(named(tc.n, "n"))})
			got := said(p.next(nil, nil, nil))
			head, cut := strings.CutSuffix(tc.want, "…")
			if got != tc.want && !(cut && strings.HasPrefix(got, head)) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

type bad struct{}

func (bad) MarshalJSON() ([]byte, error) { panic("bad") }

func named(n Node, name string) Node {
	switch n := n.(type) {
	case Call:
		n.Name = name
		return n
	case Approve:
		n.Name = name
		return n
	case Branch:
		n.Name = name
		return n
	case End:
		n.Name = name
		return n
	}
	return n
}

// endedBy is the nodes with an End behind them where they need one.
func endedBy(nodes ...Node) []Node {
	if _, ok := nodes[len(nodes)-1].(End); ok {
		return nodes
	}
	return append(nodes, End{Name: "end"})
}

func TestResults(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: []Node{
		Call{Name: "a", Tool: "t", Args: raw(`{"x":1}`), OnFailure: "end"},
		Approve{Name: "b"},
		Branch{Name: "c", If: always, Then: "a", Rounds: 3},
		End{Name: "end"},
	}})
	h := &history{}
	for _, i := range []int{0, 0, 5, 0, 2} { // a done, b agreed to, a lost, a done, b denied
		h.add(p.next(nil, h.steps, h.approvals), endings[i].of)
	}
	r := p.past(raw(`{"k":"v"}`), h.steps)
	var in struct{ K string }
	var n struct{ N int }
	if err := errors.Join(r.Input(&in), r.Of("a", &n)); err != nil || in.K != "v" || n.N != 1 {
		t.Errorf("%+v %+v %v", in, n, err)
	}
	if r.Outcome("a") != Succeeded || r.Outcome("b") != Denied || r.Outcome("c") != NotYet || r.Message("b") != "not today" ||
		r.Visits("a") != 2 || r.Visits("b") != 2 || r.Visits("end") != 0 || string(r.Args("a")) != `{"x":1}` || r.Args("end") != nil {
		t.Errorf("%+v", r)
	}
	if r.Of("b", &n) == nil || r.Of("a", n) == nil || r.Of("a", new(string)) == nil || (Results{}).Input(&in) == nil || r.Input(new(int)) == nil {
		t.Error("what cannot be read was read")
	}
	r.Raw("a")[0], r.RawInput()[0] = 'x', 'x' // copies
	if string(r.Raw("a")) != `{"n":1}` || string(r.RawInput()) != `{"k":"v"}` || (Results{}).RawInput() != nil {
		t.Errorf("%s %s", r.Raw("a"), r.RawInput())
	}
}

// What rows say of an Approve only counts as far as a person agreed to it.
func TestAgreed(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: []Node{
		Approve{Name: "a", Args: raw(" {\"x\":1}\n")}, Call{Name: "b", Tool: "t", ArgsFrom: ArgsOf("a")}, End{Name: "end"},
	}})
	for name, alter := range map[string]func(h *history){
		"":                 func(*history) {},
		"no approval":      func(h *history) { h.approvals = nil },
		"another approval": func(h *history) { h.steps[0].ApprovalID = "apr_other" },
		"arguments":        func(h *history) { h.steps[0].Args = `{"x":2}` },
		"a no":             func(h *history) { h.approvals[0].Choice = decision.ChoiceReject },
		"nobody's":         func(h *history) { h.approvals[0].Choice = "" },
		"another node's":   func(h *history) { h.approvals[0].Node = "b" },
		"another run's":    func(h *history) { h.approvals[0].RunID = "run_2" },
		"content": func(h *history) {
			h.approvals[0].Request = raw(`{"run_id":"run_1","flow":"f","version":"1","node":"a","args":{"x":2}}`)
		},
		"content and digest":  func(h *history) { h.approvals[0] = yesTo(run.Proposal{Node: "a", Args: raw(`{"x":2}`)}, "apr_stp_1") },
		"another step's node": func(h *history) { h.steps[0].Node = "q" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &history{}
			h.add(p.next(nil, nil, nil), endings[0].of)
			alter(h)
			got := p.next(nil, h.steps, h.approvals)
			if (got.Kind == run.Fail) != (name != "") || got.Kind == run.Fail && got.Node != "" {
				t.Errorf("got %s", said(got))
			}
			if name == "" && said(got) != "call b t {\"x\":1}\n" {
				t.Errorf("got %q", said(got))
			}
		})
	}
}

// A definition that cannot be carried out is refused with the node's name and what to write.
func TestCheck(t *testing.T) {
	t.Parallel()
	call := func(change func(*Call)) []Node {
		n := Call{Name: "a", Tool: "t"}
		change(&n)
		return []Node{n, End{Name: "end"}}
	}
	branch := func(b Branch) []Node {
		return []Node{Call{Name: "a", Tool: "t"}, named(b, "b"), Call{Name: "c", Tool: "t"}, End{Name: "end"}}
	}
	both := func(Results) (any, error) { return nil, nil }
	var none *Call
	for name, tc := range map[string]struct {
		nodes []Node
		want  string // error, then hint
	}{
		"no nodes":           {nil, "has no nodes. flow.Call and a flow.End"},
		"nil":                {[]Node{nil}, "node 1 is a <nil>. not a pointer"},
		"a pointer":          {[]Node{none}, "node 1 is a *flow.Call. not a pointer"},
		"a name":             {call(func(n *Call) { n.Name = "a b" }), `"a b" is no name of a node (it is number 1).`},
		"no name":            {call(func(n *Call) { n.Name = "" }), `"" is no name of a node`},
		"a long name":        {call(func(n *Call) { n.Name = strings.Repeat("x", MaxName+1) }), `is no name of a node`},
		"twice":              {call(func(n *Call) { n.Name = "end" }), `node "end": nodes 1 and 2 have that name.`},
		"no tool":            {call(func(n *Call) { n.Tool = "" }), `node "a": it names no Tool.`},
		"no JSON":            {call(func(n *Call) { n.Args = raw(`{`) }), `node "a": its Args: not one JSON value.`},
		"empty":              {call(func(n *Call) { n.Args = raw(``) }), `node "a": its Args: not one JSON value.`},
		"no object":          {call(func(n *Call) { n.Args = raw(`[]`) }), `node "a": its Args: not a JSON object.`},
		"too long":           {call(func(n *Call) { n.Args = raw(`{"x":"` + strings.Repeat("x", MaxArgs) + `"}`) }), `its Args: 1048584 bytes`},
		"Args twice":         {call(func(n *Call) { n.Args, n.ArgsFrom = raw(`{}`), both }), `it has Args and ArgsFrom. Leave one of them out.`},
		"Show twice":         {endedBy(Approve{Name: "a", Show: raw(`{}`), ShowFrom: both}), `it has Show and ShowFrom.`},
		"Show no object":     {endedBy(Approve{Name: "a", Show: raw(`1`)}), `its Show: not a JSON object.`},
		"approve, Args":      {endedBy(Approve{Name: "a", Args: raw(`1 2`)}), `its Args: not one JSON value.`},
		"no text":            {endedBy(Approve{Name: "a", Reason: "\xff"}), `its Reason is not valid text.`},
		"a result":           {[]Node{End{Name: "a", Result: raw(`x`)}}, `its Result: not one JSON value.`},
		"Result twice":       {[]Node{End{Name: "a", Result: raw(`1`), ResultFrom: both}}, `it has Result and ResultFrom.`},
		"a result of a fail": {[]Node{End{Name: "a", Result: raw(`1`), Fail: "x"}}, `it has a Result and a Fail.`},
		"fail, long":         {[]Node{End{Name: "a", Fail: strings.Repeat("x", MaxText+1)}}, `its Fail has 16385 bytes`},
		"fail, no text":      {[]Node{End{Name: "a", Fail: "\x00"}}, `its Fail is not valid text.`},
		"no If":              {branch(Branch{Then: "end"}), `node "b": it has no If. func(flow.Results) (bool, error)`},
		"no Then":            {branch(Branch{If: always}), `node "b": it has no Then.`},
		"rounds":             {branch(Branch{If: always, Then: "a", Rounds: -1}), `its Rounds are -1; they are 0 to 1000.`},
		"rounds forward":     {branch(Branch{If: always, Then: "end", Rounds: 1}), `it has Rounds, and its Then does not go back.`},
		"back":               {branch(Branch{If: always, Then: "a"}), `its Then goes back, to "a". it says with Rounds how often`},
		"Else back":          {branch(Branch{If: always, Then: "end", Else: "a"}), `its Else goes back, to "a".`},
		"itself":             {branch(Branch{If: always, Then: "b", Rounds: 1}), `goes back to "b", which is neither a Call nor an Approve.`},
		"nowhere":            {branch(Branch{If: always, Then: "q"}), `its Then is "q", which is no node of the flow. The nodes are a, b, c, end.`},
		"Next back":          {call(func(n *Call) { n.Next = "a" }), `its Next goes back, to "a".`},
		"OnFailure nowhere":  {call(func(n *Call) { n.OnFailure = "q" }), `its OnFailure is "q"`},
		"the last":           {[]Node{Call{Name: "a", Tool: "t"}}, `node "a": it is the last in the list, and its Next names no other. Write a flow.End after it`},
		"a branch last":      {[]Node{Call{Name: "a", Tool: "t"}, Branch{Name: "b", If: always, Then: "a", Rounds: 2}}, `node "b": it is the last in the list, and its Else names no other.`},
		"unreachable":        {[]Node{End{Name: "a"}, End{Name: "b"}}, `node "b": nothing leads to it. Name it in a Next`},
		"too many":           {slices.Repeat([]Node{End{Name: "a"}}, MaxNodes+1), `it has 1001 nodes`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantWrong(t, Flow{Name: "f", Version: "1", Nodes: tc.nodes}, tc.want)
		})
	}
	end := []Node{End{Name: "end"}}
	wantWrong(t, Flow{Version: "1", Nodes: end}, `"" is no name of a flow.`)
	wantWrong(t, Flow{Name: "two words", Version: "1", Nodes: end}, `"two words" is no name of a flow.`)
	wantWrong(t, Flow{Name: "f", Nodes: end}, `"" is no version.`)
	wantWrong(t, Flow{Name: "f", Version: "1\n", Nodes: end}, `is no version.`)
	wantWrong(t, Flow{Name: "f", Version: "1", Input: raw(`{"type":7}`), Nodes: end}, `Input is no JSON Schema`)
	if err := (Flow{Name: "f", Version: "2026-01-31+b.1", Nodes: end}).Check(); err != nil {
		t.Error(err)
	}
}

// wantWrong wants an error with the words before the first full stop that is followed by
// a space, and a hint with those after it.
func wantWrong(t *testing.T, f Flow, want string) {
	t.Helper()
	err := f.Check()
	if !errors.Is(err, run.ErrUsage) {
		t.Fatalf("got %v, want %s", err, want)
	}
	b, _ := json.Marshal(err)
	var e struct{ Message, Hint string }
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	says, hint, _ := strings.Cut(want, ". ")
	if !strings.Contains(e.Message, strings.TrimSuffix(says, ".")) || !strings.Contains(e.Hint, hint) {
		t.Errorf("got %q, %q; want %q", e.Message, e.Hint, want)
	}
}

// dice draws a number below n.
type dice func(n int) int

// drawFlow makes a definition that is right: every node goes forward, some go back in
// rounds, and what nothing leads to is left out.
func drawFlow(roll dice) Flow {
	n := 1 + roll(7)
	name := func(i int) string { return fmt.Sprint("n", i) }
	ahead := func(i int) string { return name(i + 1 + roll(n-i)) }
	nodes := make([]Node, 0, n+1)
	for i := range n {
		switch roll(6) {
		case 0:
			nodes = append(nodes, Approve{Name: name(i), Args: raw(`{"a":1}`), Next: ahead(i)})
		case 1:
			nodes = append(nodes, Branch{Name: name(i), If: coin(roll(3)), Then: ahead(i)})
		case 2:
			nodes = append(nodes, drawBack(roll, i, nodes))
		case 3:
			nodes = append(nodes, Call{Name: name(i), Tool: "t", ArgsFrom: func(Results) (any, error) { return map[string]int{"i": i}, nil }})
		default:
			nodes = append(nodes, Call{Name: name(i), Tool: "t", OnFailure: ahead(i)})
		}
	}
	f := Flow{Name: "f", Version: "1", Nodes: append(nodes, End{Name: name(n)})}
	return f.pruned()
}

func drawBack(roll dice, i int, before []Node) Node {
	b := Branch{Name: fmt.Sprint("n", i), If: coin(roll(3)), Then: fmt.Sprint("n", i+1)}
	for _, n := range before {
		if _, ok := n.(Branch); !ok && roll(2) == 0 {
			b.Then, b.Rounds = n.name(), 1+roll(4)
		}
	}
	return b
}

func coin(side int) func(Results) (bool, error) {
	return func(r Results) (bool, error) {
		n := 0
		for _, v := range r.visits {
			n += v
		}
		return side == 0 || side == 1 && n%2 == 0, nil
	}
}

// pruned leaves out what nothing leads to, until there is none.
func (f Flow) pruned() Flow {
	for {
		f.Nodes = slices.Clone(f.Nodes)
		led := map[string]bool{f.Nodes[0].name(): true}
		drop := -1
		for i, n := range f.Nodes {
			if !led[n.name()] {
				drop = i
				break
			}
			for _, e := range edges(n) {
				if e.to == "" {
					e.to = f.Nodes[i+1].name()
				}
				led[e.to] = true
			}
		}
		if drop < 0 {
			return f
		}
		gone := f.Nodes[drop].name()
		f.Nodes = slices.Delete(f.Nodes, drop, drop+1)
		for i, n := range f.Nodes { // a way back to it goes to what follows instead
			if b, ok := n.(Branch); ok && b.Then == gone {
				b.Then, b.Rounds = f.Nodes[i+1].name(), 0
				f.Nodes[i] = b
			}
		}
	}
}

// carryOut runs a plan without a driver, with endings that are drawn, as far as its end.
func carryOut(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, p *plan, roll dice,
) (*history, run.Proposal) {
	h := &history{}
	lost := 0
	for {
		prop := p.next(nil, h.steps, h.approvals)
		if again := p.next(nil, h.steps, h.approvals); !reflect.DeepEqual(prop, again) {
			t.Fatalf("%s, then %s", said(prop), said(again))
		}
		e := endings[0].of
		if i := roll(2 * len(endings)); i < len(endings) {
			e = endings[i].of
		}
		if prop.Kind == run.AskApproval && e.Status == run.StepFailed && e.Observation != run.WasInterrupted {
			e = endings[0].of // a no ends the run elsewhere
		}
		if outcomeOf(e) == NotYet {
			if lost++; lost > spare {
				e = endings[0].of
			}
		}
		if (prop.Kind == run.Complete || prop.Kind == run.Fail) && outcomeOf(e) != NotYet {
			return h, prop
		}
		before := h.last()
		h.add(prop, e)
		if before != nil && outcomeOf(*before) == NotYet && before.Node != "" && before.Node != prop.Node {
			t.Fatalf("node %q had not finished, and %q was next", before.Node, prop.Node)
		}
		if most := p.flow.derived().MaxSteps; int64(len(h.steps)) > most {
			t.Fatalf("%d steps; the limit is %d", len(h.steps), most)
		}
	}
}

func (h *history) last() *run.Step {
	if len(h.steps) == 0 {
		return nil
	}
	return &h.steps[len(h.steps)-1]
}

// Whatever a flow looks like and however its nodes end: it comes to an end within its
// own limits, a node that had not finished is next, and rounds bound every way back.
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") }
		f := drawFlow(roll)
		p := mustPlan(t, f)
		h, end := carryOut(t, p, roll)
		if i, ok := p.at[end.Node]; end.Kind == run.Complete && (!ok || f.Nodes[i].name() != end.Node) {
			t.Fatalf("it ended with %s", said(end))
		}
		checkWay(t, p, h)
	})
}

// checkWay holds every step that follows a finished one against the definition.
func checkWay(t *rapid.T, p *plan, h *history) {
	visits := map[string]int{}
	before := map[string]int{}
	for _, s := range h.steps {
		if outcomeOf(s) != NotYet && s.Node != "" {
			visits[s.Node]++
		}
	}
	for _, n := range p.flow.Nodes {
		if b, ok := n.(Branch); ok && b.Rounds > 0 {
			before[b.Then] = max(before[b.Then], b.Rounds)
		}
	}
	if len(before) == 0 {
		for node, n := range visits {
			if n > 1 {
				t.Fatalf("node %q was carried out %d times without a way back", node, n)
			}
		}
	}
	most := 1
	for _, n := range maps.All(before) {
		most += n
	}
	for node, n := range visits {
		if n > most {
			t.Fatalf("node %q was carried out %d times; all rounds together allow %d", node, n, most)
		}
	}
}

// FuzzDefinition: whatever a definition says, Check answers, and one that it takes can
// be carried out to its end.
func FuzzDefinition(f *testing.F) {
	f.Add("f", "1", `{"n":1}`, "a", "b", []byte{0, 1, 2, 3})
	f.Add("", "", `{`, "", "", []byte{9, 1, 4, 4, 0, 2, 200, 1})
	f.Add("f", "1", `{"a":1,"a":2}`, "n1", "n1", []byte{1, 1, 1, 1, 1, 1, 1})
	f.Add("f", "v.2+x", `[]`, "é", "n0", []byte{2, 2, 250, 3, 1, 0, 7, 7, 7, 5})
	f.Fuzz(func(t *testing.T, name, version, args, one, other string, rolls []byte) {
		at := 0
		roll := func(n int) int {
			if at++; at > len(rolls) {
				return 0
			}
			return int(rolls[at-1]) % n
		}
		def := Flow{Name: name, Version: version}
		pick := func() string {
			return []string{"", one, other, "n0", "n1", "n2", "end"}[roll(7)]
		}
		from := func(Results) (any, error) { return raw(args), nil }
		for i := range 1 + roll(4) {
			id := fmt.Sprint("n", i)
			if roll(5) == 4 {
				id = pick()
			}
			def.Nodes = append(def.Nodes, []Node{
				Call{Name: id, Tool: other, Args: raw(args), Next: pick(), OnFailure: pick()},
				Call{Name: id, Tool: "t", ArgsFrom: from},
				Approve{Name: id, Args: raw(args), Reason: one, ShowFrom: from},
				Branch{Name: id, If: coin(roll(3)), Then: pick(), Else: pick(), Rounds: roll(4) - 1},
				End{Name: id, Result: raw(args)},
				End{Name: id, Fail: one},
				nil,
			}[roll(7)])
		}
		def.Nodes = append(def.Nodes, End{Name: "end"})
		p, err := newPlan(def)
		if err != nil {
			if !errors.Is(err, run.ErrUsage) || !json.Valid(mustMarshal(t, err)) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := newPlan(def)
		if err != nil || again.ref != p.ref || !strings.HasPrefix(p.ref.Digest, "sha256-placet1:") {
			t.Fatalf("%+v, then %+v: %v", p.ref, again.ref, err)
		}
		carryOut(t, p, roll)
	})
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A function that ends its goroutine is the driver's to notice; the plan does not hang.
func TestGoexit(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, Flow{Name: "f", Version: "1", Nodes: []Node{
		Call{Name: "a", Tool: "t", ArgsFrom: func(Results) (any, error) { runtime.Goexit(); return nil, nil }}, End{Name: "end"},
	}})
	done := make(chan struct{})
	go func() { defer close(done); p.next(nil, nil, nil) }()
	<-done
}
