package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
)

// plan is a checked definition. What it decides follows from the run's steps alone.
type plan struct {
	flow Flow
	ref  run.FlowRef
	at   map[string]int // where each node stands in the list
}

func newPlan(f Flow) (*plan, error) {
	if err := f.checkHead(); err != nil {
		return nil, err
	}
	p := &plan{flow: f.clone()}
	var err error
	if p.at, err = p.flow.index(); err != nil {
		return nil, err
	}
	for _, n := range p.flow.Nodes {
		if err := p.flow.checkNode(n); err != nil {
			return nil, err
		}
	}
	if err := p.checkEdges(); err != nil {
		return nil, err
	}
	p.ref, err = p.flow.ref()
	return p, err
}

// next is what a run with this input, that has come through these steps, does now. The
// functions of the definition are foreign code: what they answer or panic with
// ends the run, and nothing else.
func (p *plan) next(input json.RawMessage, steps []run.Step, approvals []decision.Decision) run.Proposal {
	if err := p.agreed(steps, approvals); err != nil {
		return fail(err)
	}
	past := p.past(input, steps)
	i, by, err := p.place(past, steps)
	if err != nil {
		return fail(err)
	}
	prop, err := p.propose(i, past)
	if err != nil {
		return fail(fmt.Errorf("node %q: %w", p.flow.Nodes[i].name(), err))
	}
	if prop.Text == "" {
		prop.Text = by
	}
	return prop
}

// fail ends the run. It is no node's step: a process lost right here leaves nothing
// that looks like a node to be done again.
func fail(err error) run.Proposal {
	text := err.Error() // it begins with a word of ours
	text = strings.ToUpper(text[:1]) + text[1:]
	if len(text) > MaxText {
		const cut = " [cut]"
		text = strings.ToValidUTF8(text[:MaxText-len(cut)], "") + cut
	}
	return run.Proposal{Kind: run.Fail, Text: text}
}

// agreed holds every Approve that is done against what people agreed to: later nodes
// hand its arguments on, and a row may have been altered in the store.
func (p *plan) agreed(steps []run.Step, approvals []decision.Decision) error {
	for _, s := range steps {
		i, ok := p.at[s.Node]
		if !ok || s.Status != run.Done {
			continue
		}
		if _, asks := p.flow.Nodes[i].(Approve); !asks {
			continue
		}
		j := slices.IndexFunc(approvals, func(d decision.Decision) bool { return d.ID == s.ApprovalID })
		if j < 0 || !covers(approvals[j], s) {
			return fmt.Errorf("node %q: what step %d says was agreed to is not what approval %q holds; one of them was altered in the store",
				s.Node, s.Index, s.ApprovalID)
		}
	}
	return nil
}

// covers reports whether a person said yes to exactly this step's node and arguments.
func covers(d decision.Decision, s run.Step) bool {
	if d.Choice != decision.ChoiceApprove || d.Node != s.Node || d.RunID != s.RunID || d.Intact() != nil {
		return false
	}
	req, err := request.Decode(d.Request)
	return err == nil && string(req.Args) == strings.Trim(s.Args, " \t\r\n") // it holds them without the white space around them
}

// past sorts the steps by node.
func (p *plan) past(input json.RawMessage, steps []run.Step) Results {
	r := Results{input: input, at: p.at, last: map[string]run.Step{}, visits: map[string]int{}}
	for _, s := range steps {
		if s.Node != "" && outcomeOf(s) != NotYet {
			r.last[s.Node] = s
			r.visits[s.Node]++
		}
	}
	return r
}

// place is the node whose turn it is, and the branches by which it was come to.
func (p *plan) place(past Results, steps []run.Step) (i int, by string, err error) {
	s, ok := latest(steps)
	if !ok {
		return p.follow(past, 0)
	}
	i, known := p.at[s.Node]
	if !known {
		return 0, "", fmt.Errorf("step %d is of node %q, which the flow does not have", s.Index, s.Node)
	}
	switch outcomeOf(s) {
	case NotYet: // its process was lost, and nothing came of it
		return i, "", nil
	case Succeeded:
		return p.follow(past, p.target(i, nextOf(p.flow.Nodes[i])))
	}
	return p.failed(past, i, s)
}

// latest is the last step in which a node was begun. One without a node was lost, or
// stopped, before the plan was asked.
func latest(steps []run.Step) (run.Step, bool) {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Node != "" {
			return steps[i], true
		}
	}
	return run.Step{}, false
}

func nextOf(n Node) string {
	switch n := n.(type) {
	case Call:
		return n.Next
	case Approve:
		return n.Next
	}
	return ""
}

// target is where a way leads; without a name it leads to the node after it.
func (p *plan) target(from int, name string) int {
	if name == "" {
		return from + 1
	}
	return p.at[name]
}

// failed is where a call leads that did not succeed.
func (p *plan) failed(past Results, i int, s run.Step) (int, string, error) {
	if n, ok := p.flow.Nodes[i].(Call); ok && n.OnFailure != "" {
		return p.follow(past, p.at[n.OnFailure])
	}
	how := map[Outcome]string{Failed: "failed", Denied: "was denied", Refused: "could not be carried out as it stands"}[outcomeOf(s)]
	return 0, "", fmt.Errorf("node %q %s: %s", s.Node, how, s.Message)
}

// follow goes through branches until it comes to something to do. It ends: branches
// lead forward, or back to what is none.
func (p *plan) follow(past Results, i int) (_ int, by string, err error) {
	for i < len(p.flow.Nodes) {
		b, ok := p.flow.Nodes[i].(Branch)
		if !ok {
			return i, by, nil
		}
		yes, err := safely(func() (bool, error) { return b.If(past) })
		if err != nil {
			return 0, "", fmt.Errorf("node %q: its condition could not be judged: %w", b.Name, err)
		}
		to := b.Else
		if yes && !(p.at[b.Then] <= i && past.visits[b.Then] >= b.Rounds) {
			to = b.Then
		}
		i = p.target(i, to)
		by = fmt.Sprintf("Branch %q leads to %q.", b.Name, p.flow.Nodes[i].name())
	}
	return 0, "", fmt.Errorf("the flow ends without a flow.End")
}

// propose is what the driver is to do about a node.
func (p *plan) propose(i int, past Results) (run.Proposal, error) {
	switch n := p.flow.Nodes[i].(type) {
	case Call:
		args, err := value("arguments", n.Args, n.ArgsFrom, past, MaxArgs)
		return run.Proposal{Kind: run.CallTool, Node: n.Name, Tool: n.Tool, Args: orObject(args)}, err
	case Approve:
		return proposeApproval(n, past)
	case End:
		if n.Fail != "" {
			return run.Proposal{Kind: run.Fail, Node: n.Name, Text: n.Fail}, nil
		}
		result, err := value("result", n.Result, n.ResultFrom, past, MaxResult)
		return run.Proposal{Kind: run.Complete, Node: n.Name, Result: result}, err
	}
	return run.Proposal{}, fmt.Errorf("it is a branch")
}

func proposeApproval(n Approve, past Results) (run.Proposal, error) {
	prop := run.Proposal{Kind: run.AskApproval, Node: n.Name, Text: n.Reason}
	args, err := value("arguments", n.Args, n.ArgsFrom, past, MaxArgs)
	if err != nil {
		return prop, err
	}
	show, err := value("presentation", n.Show, n.ShowFrom, past, MaxArgs)
	if err == nil && show != nil && !isObject(show) {
		err = fmt.Errorf("its presentation is not a JSON object")
	}
	prop.Args, prop.Presentation = orObject(args), show
	return prop, err
}

func orObject(args json.RawMessage) json.RawMessage {
	if args == nil {
		return json.RawMessage("{}")
	}
	return args
}

// value is a fixed value, or what its function makes of the results.
func value(what string, fixed json.RawMessage, from func(Results) (any, error), past Results, limit int) (json.RawMessage, error) {
	if from == nil {
		return fixed, nil
	}
	raw, err := safely(func() (json.RawMessage, error) {
		v, err := from(past)
		if err != nil {
			return nil, err
		}
		return encode(v, limit) // a value's MarshalJSON is foreign too
	})
	if err != nil {
		err = fmt.Errorf("its %s could not be built: %w", what, err)
	}
	return raw, err
}

// safely calls a function of the definition; a panic is its error.
func safely[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return fn()
}
