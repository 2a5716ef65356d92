package flow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// Limits of a definition.
const (
	MaxNodes  = 1000
	MaxRounds = 1000
	MaxName   = 100            // bytes of a flow's, a version's and a node's name
	MaxText   = 16 << 10       // bytes of a Reason and of a Fail
	MaxArgs   = tool.MaxArgs   // bytes of arguments, of what is shown, and of an input
	MaxResult = tool.MaxResult // bytes of a flow's result
)

// Flow is a definition: what is done, in which order, and where a person has to agree.
//
// Its digest is stored with each run and compared when the run is resumed. It covers
// everything that stands in the definition as data. Of a Go function it can only tell
// that there is one: the Version stands for what the function does, so give the flow a
// new one whenever a function changes.
type Flow struct {
	Name    string // letters, digits, - and _
	Version string // letters, digits, -, _, . and +
	// Input is a JSON Schema that the input of a run has to fit. Default: any input, or none.
	Input json.RawMessage
	Nodes []Node // the first one is where a run starts
}

// Node is a [Call], an [Approve], a [Branch] or an [End].
type Node interface{ name() string }

// Call carries out a tool. It goes through the same stages as any other call: the
// policy judges it, and may ask a person or refuse. Where it did not succeed the flow
// goes to OnFailure; an abort by the policy or the tool, and a person's no, end the run.
type Call struct {
	Name string
	Tool string
	// Args are the arguments, exactly as the tool gets them. Default: {}.
	Args json.RawMessage
	// ArgsFrom builds them instead, from what came before. It has to give the same for
	// the same results: it is asked again where a process was lost. It runs outside every
	// transaction. A json.RawMessage is taken as it is, anything else is encoded.
	ArgsFrom func(Results) (any, error)
	// Next is the node that follows. Default: the one after this in the list.
	Next string
	// OnFailure is the node that follows where the tool failed, its arguments were
	// refused, or the policy or a guard denied it. Default: the run fails.
	OnFailure string
}

// Approve waits for a person's yes. No tool stands behind it, and no policy is asked. A
// no, and no answer in time, end the run.
//
// It does not stand in for the policy either: a later call whose tool the policy asks
// about is asked about as well. Where one yes is to do, let the policy allow the tool, or
// leave the Approve out.
type Approve struct {
	Name string
	// Args are what the yes is bound to, by digest. Default: {}. [ArgsOf] hands exactly
	// them to a later call.
	Args json.RawMessage
	// ArgsFrom builds them instead, like [Call].ArgsFrom.
	ArgsFrom func(Results) (any, error)
	// Show is what the person sees, a JSON object. The yes is bound to it too. Default:
	// the node's name and its arguments.
	Show json.RawMessage
	// ShowFrom builds it instead, like [Call].ArgsFrom.
	ShowFrom func(Results) (any, error)
	Reason   string // why it is asked
	Next     string // the node that follows. Default: the one after this in the list.
}

// Branch goes to one of two nodes. It leaves no row: what it decided shows in the node
// that was gone to, and is not asked again once that has begun.
type Branch struct {
	Name string
	// If is the condition, of what came before: true goes to Then. The same rules hold as
	// for [Call].ArgsFrom.
	If   func(Results) (bool, error)
	Then string
	// Else is where to go otherwise. Default: the node after this in the list.
	Else string
	// Rounds lets Then go back, to a Call or an Approve, as long as that has been carried
	// out fewer than Rounds times; then the branch goes to Else. Default: 0, only forward.
	Rounds int
}

// End ends the run.
type End struct {
	Name string
	// Result is the run's, one JSON value. Default: none.
	Result json.RawMessage
	// ResultFrom builds it instead, like [Call].ArgsFrom.
	ResultFrom func(Results) (any, error)
	// Fail ends the run as failed, with this text. Default: it ends as completed.
	Fail string
}

func (n Call) name() string    { return n.Name }
func (n Approve) name() string { return n.Name }
func (n Branch) name() string  { return n.Name }
func (n End) name() string     { return n.Name }

// Outcome is how a node ended.
type Outcome string

// The outcomes.
const (
	NotYet    Outcome = ""          // the run has not come through it
	Succeeded Outcome = "succeeded" // the tool did its work; of an Approve: a person agreed
	Failed    Outcome = "failed"    // the tool failed
	Denied    Outcome = "denied"    // the policy or a guard said no
	Refused   Outcome = "refused"   // the tool is not known, or does not take these arguments
)

// Results is what came before a node: the run's input and how its nodes ended. Of a
// node that was carried out more than once it has the last time.
type Results struct {
	input  json.RawMessage
	at     map[string]int // every node of the flow
	last   map[string]run.Step
	visits map[string]int
}

// Input reads the run's input into v. Without an input it is an error.
func (r Results) Input(v any) error {
	if r.input == nil {
		return fmt.Errorf("the run has no input")
	}
	return into(r.input, "the input", v)
}

// RawInput is the input as it was given; nil: there is none.
func (r Results) RawInput() json.RawMessage { return bytes.Clone(r.input) }

// Of reads the result of a call into v. It is an error if there is none.
func (r Results) Of(node string, v any) error {
	raw := r.Raw(node)
	if raw == nil {
		return fmt.Errorf("node %q has no result", node)
	}
	return into(raw, fmt.Sprintf("the result of node %q", node), v)
}

// Raw is the result of a call as its tool gave it; nil: there is none. Like the methods
// below it panics on a name that the flow does not have; that ends the run with a
// sentence that says so.
func (r Results) Raw(node string) json.RawMessage {
	if s := r.of(node); s.Result != "" {
		return json.RawMessage(s.Result)
	}
	return nil
}

// Args is what a call was made with, or what a person agreed to, exactly; nil: the run
// has not come through the node.
func (r Results) Args(node string) json.RawMessage {
	if s := r.of(node); s.Args != "" {
		return json.RawMessage(s.Args)
	}
	return nil
}

// Outcome is how a node ended.
func (r Results) Outcome(node string) Outcome { return outcomeOf(r.of(node)) }

// Message says why a node did not succeed.
func (r Results) Message(node string) string { return r.of(node).Message }

// Visits is how often a node was carried out, whatever came of it.
func (r Results) Visits(node string) int {
	r.of(node)
	return r.visits[node]
}

func (r Results) of(node string) run.Step {
	if _, ok := r.at[node]; !ok {
		panic(fmt.Sprintf("the flow has no node %q", node))
	}
	return r.last[node]
}

// outcomeOf is [NotYet] for a step that did not come to its end.
func outcomeOf(s run.Step) Outcome {
	switch {
	case s.Status == run.Done:
		return Succeeded
	case s.Status != run.StepFailed:
		return NotYet
	}
	switch s.Observation {
	case run.ToolError:
		return Failed
	case run.PolicyDenied:
		return Denied
	case run.InvalidDecision:
		return Refused
	}
	return NotYet
}

// ArgsOf is an ArgsFrom that hands on the arguments of an earlier node, byte for byte:
// what a person agreed to at an [Approve] is what the tool gets.
func ArgsOf(node string) func(Results) (any, error) {
	return func(r Results) (any, error) { return given(r.Args(node), node, "arguments") }
}

// ResultOf is an ArgsFrom, ShowFrom or ResultFrom that hands on the result of an earlier call.
func ResultOf(node string) func(Results) (any, error) {
	return func(r Results) (any, error) { return given(r.Raw(node), node, "result") }
}

func given(raw json.RawMessage, node, what string) (any, error) {
	if raw == nil {
		return nil, fmt.Errorf("node %q has no %s", node, what)
	}
	return raw, nil
}

func into(raw json.RawMessage, what string, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return nil
}

// encode is v as JSON of at most limit bytes; nil for nil. Raw JSON stays as it is.
func encode(v any, limit int) (json.RawMessage, error) {
	raw, isRaw := v.(json.RawMessage)
	if v == nil || isRaw && raw == nil {
		return nil, nil
	}
	if !isRaw {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // people read it
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		raw = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	if len(raw) > limit {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(raw), limit)
	}
	return raw, canon.Valid(raw)
}
