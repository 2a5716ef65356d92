package flow

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Check says what is wrong with a definition: an error that matches run.ErrUsage, names
// the node and says what to write; or nil. [NewRunner] does it too.
func (f Flow) Check() error {
	_, err := newPlan(f)
	return err
}

// wrong is what is wrong with the flow as a whole.
func (f Flow) wrong(format string, args ...any) *fault.Error {
	return run.ErrUsage.Say("Flow %q: "+format, append([]any{f.Name}, args...)...)
}

// wrongAt is what is wrong with one of its nodes.
func (f Flow) wrongAt(n Node, format string, args ...any) *fault.Error {
	return run.ErrUsage.Say("Flow %q, node %q: "+format, append([]any{f.Name, n.name()}, args...)...)
}

func (f Flow) checkHead() error {
	switch {
	case !isName(f.Name, ""):
		return run.ErrUsage.Say("%q is no name of a flow.", f.Name).Hint("Write letters, digits, - and _; at most %d.", MaxName)
	case !isName(f.Version, ".+"):
		return f.wrong("%q is no version.", f.Version).Hint(`Write for example "1" or "2026-01-31"; at most %d characters.`, MaxName)
	case len(f.Nodes) == 0:
		return f.wrong("it has no nodes.").Hint("Write at least a flow.Call and a flow.End.")
	case len(f.Nodes) > MaxNodes:
		return f.wrong("it has %d nodes; the limit is %d.", len(f.Nodes), MaxNodes)
	}
	if f.Input == nil {
		return nil
	}
	if _, err := tool.CompileSchema(f.Input); err != nil {
		return f.wrong("its Input is no JSON Schema that can be used.").Because(err)
	}
	return nil
}

// isName bounds what stands in rows, texts and requests as a name.
func isName(s, also string) bool {
	return s != "" && len(s) <= MaxName && !strings.ContainsFunc(s, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		return !letter && !strings.ContainsRune(also, c)
	})
}

// index finds each node by its name.
func (f Flow) index() (map[string]int, error) {
	at := map[string]int{}
	for i, n := range f.Nodes {
		switch n.(type) {
		case Call, Approve, Branch, End:
		default:
			return nil, f.wrong("node %d is a %T.", i+1, n).Hint("Write a flow.Call, flow.Approve, flow.Branch or flow.End, not a pointer to one.")
		}
		if !isName(n.name(), "") {
			return nil, f.wrong("%q is no name of a node (it is number %d).", n.name(), i+1).Hint("Write letters, digits, - and _; at most %d.", MaxName)
		}
		if before, twice := at[n.name()]; twice {
			return nil, f.wrongAt(n, "nodes %d and %d have that name.", before+1, i+1).Hint("Give each node a name of its own.")
		}
		at[n.name()] = i
	}
	return at, nil
}

// checkNode looks at what a node says by itself.
func (f Flow) checkNode(n Node) error {
	switch n := n.(type) {
	case Call:
		if n.Tool == "" {
			return f.wrongAt(n, "it names no Tool.")
		}
		return f.checkJSON(n, "Args", n.Args, n.ArgsFrom != nil, MaxArgs, true)
	case Approve:
		if err := f.checkText(n, "Reason", n.Reason); err != nil {
			return err
		}
		if err := f.checkJSON(n, "Args", n.Args, n.ArgsFrom != nil, MaxArgs, false); err != nil {
			return err
		}
		return f.checkJSON(n, "Show", n.Show, n.ShowFrom != nil, MaxArgs, true)
	case Branch:
		switch {
		case n.If == nil:
			return f.wrongAt(n, "it has no If.").Hint("Set it to the condition, a func(flow.Results) (bool, error).")
		case n.Then == "":
			return f.wrongAt(n, "it has no Then.").Hint("Set it to the node to go to where If is true.")
		case n.Rounds < 0 || n.Rounds > MaxRounds:
			return f.wrongAt(n, "its Rounds are %d; they are 0 to %d.", n.Rounds, MaxRounds)
		}
	case End:
		if n.Fail != "" && (n.Result != nil || n.ResultFrom != nil) {
			return f.wrongAt(n, "it has a Result and a Fail.").Hint("A run that fails has no result: leave one of them out.")
		}
		if err := f.checkText(n, "Fail", n.Fail); err != nil {
			return err
		}
		return f.checkJSON(n, "Result", n.Result, n.ResultFrom != nil, MaxResult, false)
	}
	return nil
}

func (f Flow) checkText(n Node, field, text string) error {
	switch {
	case !txn.IsText(text):
		return f.wrongAt(n, "its %s is not valid text.", field).Hint(txn.TextHint)
	case len(text) > MaxText:
		return f.wrongAt(n, "its %s has %d bytes; the limit is %d.", field, len(text), MaxText)
	}
	return nil
}

// checkJSON looks at a value that stands in the definition.
func (f Flow) checkJSON(n Node, field string, raw json.RawMessage, built bool, limit int, object bool) error {
	switch {
	case raw == nil:
		return nil
	case built:
		return f.wrongAt(n, "it has %s and %sFrom.", field, field).Hint("Leave one of them out.")
	case len(raw) > limit:
		return f.wrongAt(n, "its %s: %d bytes; the limit is %d.", field, len(raw), limit)
	}
	if err := canon.Valid(raw); err != nil {
		return f.wrongAt(n, "its %s: not one JSON value.", field).Because(err)
	}
	if object && !isObject(raw) {
		return f.wrongAt(n, "its %s: not a JSON object.", field).Hint(`Write for example {"id":7}.`)
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// edge is a way from one node to another.
type edge struct {
	field string // of the definition
	to    string // empty: the node after it in the list
	back  int    // how often the target may have been carried out for a way back
}

func edges(n Node) []edge {
	switch n := n.(type) {
	case Call:
		es := []edge{{field: "Next", to: n.Next}}
		if n.OnFailure != "" {
			es = append(es, edge{field: "OnFailure", to: n.OnFailure})
		}
		return es
	case Approve:
		return []edge{{field: "Next", to: n.Next}}
	case Branch:
		return []edge{{field: "Then", to: n.Then, back: n.Rounds}, {field: "Else", to: n.Else}}
	}
	return nil
}

// checkEdges looks at where the nodes go, and that each of them can be come to.
func (p *plan) checkEdges() error {
	f := p.flow
	reached := make([]bool, len(f.Nodes))
	reached[0] = true
	for i, n := range f.Nodes {
		if !reached[i] { // ways back only lead to what was come to already
			return f.wrongAt(n, "nothing leads to it.").Hint("Name it in a Next, Then, Else or OnFailure of an earlier node, or remove it.")
		}
		for _, e := range edges(n) {
			to, err := p.checkEdge(i, e)
			if err != nil {
				return err
			}
			reached[to] = true
		}
	}
	return nil
}

func (p *plan) checkEdge(i int, e edge) (to int, err error) {
	f, n := p.flow, p.flow.Nodes[i]
	if e.to == "" {
		if i+1 == len(f.Nodes) {
			return 0, f.wrongAt(n, "it is the last in the list, and its %s names no other.", e.field).Hint("Write a flow.End after it, or name the node that follows.")
		}
		return i + 1, nil
	}
	to, ok := p.at[e.to]
	switch {
	case !ok:
		return 0, f.wrongAt(n, "its %s is %q, which is no node of the flow.", e.field, e.to).Hint("The nodes are %s.", p.names())
	case to > i && e.back > 0:
		return 0, f.wrongAt(n, "it has Rounds, and its Then does not go back.").Hint("Leave the Rounds out.")
	case to > i:
		return to, nil
	case e.back == 0:
		return 0, f.wrongAt(n, "its %s goes back, to %q.", e.field, e.to).
			Hint("Only the Then of a flow.Branch goes back, and it says with Rounds how often.")
	}
	switch f.Nodes[to].(type) {
	case Call, Approve:
		return to, nil
	}
	return 0, f.wrongAt(n, "its Then goes back to %q, which is neither a Call nor an Approve.", e.to).
		Hint("Go back to the first node that is to be carried out again.")
}

func (p *plan) names() string {
	var names []string
	for _, n := range p.flow.Nodes {
		names = append(names, n.name())
	}
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}

// spare are steps for nodes that are begun again because a process was lost.
const spare = 50

// derived is the limits that follow from the definition. A flow cannot run away: its
// nodes and Rounds bound it, so repeats and failures do not.
func (f Flow) derived() run.Limits {
	ways := int64(1)
	for _, n := range f.Nodes {
		if b, ok := n.(Branch); ok {
			ways += int64(b.Rounds)
		}
	}
	most := ways*int64(len(f.Nodes)) + spare
	return run.Limits{MaxSteps: most, MaxConsecutiveToolFailures: most, LoopThreshold: most}
}

// fill gives the limits that have to be above 0 their defaults where they are 0.
func (f Flow) fill(l run.Limits) run.Limits {
	d := f.derived()
	for _, p := range []struct {
		to *int64
		by int64
	}{{&l.MaxSteps, d.MaxSteps}, {&l.MaxConsecutiveToolFailures, d.MaxConsecutiveToolFailures}, {&l.LoopThreshold, d.LoopThreshold}} {
		if *p.to == 0 {
			*p.to = p.by
		}
	}
	return l
}

// definition is what a flow's digest covers: everything that stands in it as data, and
// where a function does.
type definition struct {
	Name    string           `json:"name"`
	Version string           `json:"version"`
	Input   json.RawMessage  `json:"input,omitempty"`
	Nodes   []nodeDefinition `json:"nodes"`
}

type nodeDefinition struct {
	Call    string `json:"call,omitempty"`
	Approve string `json:"approve,omitempty"`
	Branch  string `json:"branch,omitempty"`
	End     string `json:"end,omitempty"`

	Tool       string          `json:"tool,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	ArgsFrom   bool            `json:"args_from,omitempty"`
	Show       json.RawMessage `json:"show,omitempty"`
	ShowFrom   bool            `json:"show_from,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Next       string          `json:"next,omitempty"`
	OnFailure  string          `json:"on_failure,omitempty"`
	Then       string          `json:"then,omitempty"`
	Else       string          `json:"else,omitempty"`
	Rounds     int             `json:"rounds,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	ResultFrom bool            `json:"result_from,omitempty"`
	Fail       string          `json:"fail,omitempty"`
}

func define(n Node) nodeDefinition {
	switch n := n.(type) {
	case Call:
		return nodeDefinition{Call: n.Name, Tool: n.Tool, Args: n.Args, ArgsFrom: n.ArgsFrom != nil, Next: n.Next, OnFailure: n.OnFailure}
	case Approve:
		return nodeDefinition{
			Approve: n.Name, Args: n.Args, ArgsFrom: n.ArgsFrom != nil, Show: n.Show, ShowFrom: n.ShowFrom != nil,
			Reason: n.Reason, Next: n.Next,
		}
	case Branch:
		return nodeDefinition{Branch: n.Name, Then: n.Then, Else: n.Else, Rounds: n.Rounds}
	case End:
		return nodeDefinition{End: n.Name, Result: n.Result, ResultFrom: n.ResultFrom != nil, Fail: n.Fail}
	}
	return nodeDefinition{}
}

// ref names the flow and its definition.
func (f Flow) ref() (run.FlowRef, error) {
	d := definition{Name: f.Name, Version: f.Version, Input: f.Input}
	for _, n := range f.Nodes {
		d.Nodes = append(d.Nodes, define(n))
	}
	b, err := json.Marshal(d)
	if err != nil {
		return run.FlowRef{}, err
	}
	digest, err := canon.Digest(canon.DomainFlow, b)
	return run.FlowRef{Name: f.Name, Version: f.Version, Digest: digest}, err
}

// clone is a copy that nobody else can change.
func (f Flow) clone() Flow {
	nodes := make([]Node, len(f.Nodes))
	for i, n := range f.Nodes {
		switch n := n.(type) {
		case Call:
			n.Args = bytes.Clone(n.Args)
			nodes[i] = n
		case Approve:
			n.Args, n.Show = bytes.Clone(n.Args), bytes.Clone(n.Show)
			nodes[i] = n
		case End:
			n.Result = bytes.Clone(n.Result)
			nodes[i] = n
		default:
			nodes[i] = n
		}
	}
	f.Input, f.Nodes = bytes.Clone(f.Input), nodes
	return f
}
