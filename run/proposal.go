package run

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// ProposalKind is what an agent proposes.
type ProposalKind string

// The kinds. AskApproval is only a flow's: a person's yes, with no tool.
const (
	CallTool    ProposalKind = "tool_call"
	Complete    ProposalKind = "complete"
	Fail        ProposalKind = "fail"
	AskApproval ProposalKind = "approval"
)

// Proposal is an agent's decision.
type Proposal struct {
	Kind   ProposalKind
	Tool   string
	Args   json.RawMessage // exactly what runs; never reformatted
	Result json.RawMessage // of complete: one JSON value; nil: none
	Text   string          // why, or the message of fail
	// Raw is the whole answer as the model gave it, kept before anything else is
	// looked at. nil: it did not come as bytes.
	Raw []byte
	// Node names the flow's node that this is. Presentation is what people see of one
	// that asks for an approval, a JSON object. Default: {node, args}.
	Node         string
	Presentation json.RawMessage
}

// clone is a copy that shares no memory with p: what an agent does to its own after
// it answered changes nothing.
func (p Proposal) clone() Proposal {
	p.Args, p.Result, p.Raw = bytes.Clone(p.Args), bytes.Clone(p.Result), bytes.Clone(p.Raw)
	p.Presentation = bytes.Clone(p.Presentation)
	return p
}

func (p Proposal) size() int {
	return len(p.Kind) + len(p.Tool) + len(p.Args) + len(p.Result) + len(p.Text) + len(p.Raw) + len(p.Node) + len(p.Presentation)
}

// Of a proposal's words, as many bytes are recorded; what is longer is refused.
const (
	maxKind = 32
	maxName = 200 // of a tool or a node
)

// noKind is what a decision of no kind is recorded as.
const noKind ProposalKind = "none"

// recorded is p as it can be stored. What nobody could use is cut: its step says so.
func (p Proposal) recorded() Proposal {
	n := p.size()
	p.Kind, p.Tool, p.Node, p.Text = ProposalKind(upTo(maxKind, string(p.Kind))), upTo(maxName, p.Tool), upTo(maxName, p.Node), txn.AsText(p.Text)
	if p.Kind == "" {
		p.Kind = noKind
	}
	if n > MaxProposal {
		return Proposal{Kind: p.Kind, Tool: p.Tool, Node: p.Node}
	}
	if p.Raw == nil && p.Kind == Complete && len(p.Result) > 0 && canon.Valid(p.Result) != nil {
		p.Raw = p.Result // it will be nowhere else
	}
	return p
}

// unusable says what is wrong with a proposal before its tool is looked up; empty: nothing.
func (p Proposal) unusable() string {
	switch {
	case p.size() > MaxProposal:
		return fmt.Sprintf("The decision has %d bytes; the limit is %d.", p.size(), MaxProposal)
	case len(p.Kind) > maxKind || len(p.Tool) > maxName || len(p.Node) > maxName:
		return "The decision has a kind, a tool or a node of a length that nothing has."
	case !txn.IsText(p.Tool) || !txn.IsText(p.Text) || !txn.IsText(p.Node):
		return "The decision has text that is not valid UTF-8, or a NUL character."
	case p.Kind == Complete && len(p.Result) > 0:
		if err := canon.Valid(p.Result); err != nil {
			return "The result is not one JSON value: " + err.Error()
		}
		if len(p.Result) > tool.MaxResult {
			return fmt.Sprintf("The result has %d bytes; the limit is %d.", len(p.Result), tool.MaxResult)
		}
	case p.Kind == CallTool && p.Tool == "":
		return "The decision names no tool."
	case p.Kind != Complete && p.Kind != Fail && p.Kind != CallTool && p.Kind != AskApproval:
		return fmt.Sprintf("The kind of the decision is %q; it is tool_call, complete or fail.", p.Kind)
	}
	return ""
}

// upTo is s as text of at most n bytes.
func upTo(n int, s string) string {
	if len(s) > n {
		s = s[:n]
	}
	return txn.AsText(s)
}

// maxWords bounds what others say in an error, in bytes.
const maxWords = 16 << 10

// words is what others say, as it is kept for people and for the agent: with its size,
// where it is longer than anybody reads.
func words(s string) string {
	if len(s) <= maxWords {
		return txn.AsText(s)
	}
	return fmt.Sprintf("%s … (%d bytes)", txn.AsText(s[:maxWords]), len(s))
}
