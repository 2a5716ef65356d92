package simulate

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/decision"
)

// act is what a client did with a decision.
type act string

const (
	ask   act = "ask" // it is there, and waits
	vote  act = "vote"
	take  act = "withdraw"
	read  act = "read"
	heard act = "hear" // of an event: that it was so once
)

// input is what a client asked for.
type input struct {
	act    act
	id     string
	choice decision.Choice
	by     string // nobody else's, so that who reads it knows which vote it was
	edited bool
	// loose: what waits on the decision may end, and take it back without a client's word.
	loose bool
}

// standing is a decision as somebody is told of it.
type standing struct {
	status decision.Status
	choice decision.Choice
	by     string
}

// output is what a client was told. Nothing is known where neither holds: the operation
// may have had its effect, or have it later, or never.
type output struct {
	done    bool // it had its effect; of a read: there was an answer
	refused bool // it had none
	stands  standing
}

// state is a decision as the model has it.
type state struct {
	standing
	edited bool
}

var waits = state{standing: standing{status: decision.Pending}}

// decisionModel is one decision as one thing that happens after the other. What clients
// are told at once has to be what they would have been told in some order.
var decisionModel = porcupine.Model{
	Partition: byDecision,
	Init:      func() any { return waits },
	Step: func(s, in, out any) (bool, any) {
		return s.(state).step(in.(input), out.(output))
	},
	DescribeOperation: func(in, out any) string { return in.(input).String() + " → " + out.(output).String() },
	DescribeState:     func(s any) string { return fmt.Sprint(s.(state).standing) },
}

func byDecision(ops []porcupine.Operation) [][]porcupine.Operation {
	at := map[string]int{}
	var parts [][]porcupine.Operation
	for _, op := range ops {
		id := op.Input.(input).id
		i, known := at[id]
		if !known {
			i = len(parts)
			at[id], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// step reports whether in may be answered with out in s, and what stands then.
func (s state) step(in input, out output) (bool, state) {
	switch {
	case in.act == read || out.refused:
		return s.tells(in, out)
	case in.act == heard:
		return s.once(in, out)
	case in.act == vote:
		return s.vote(in, out)
	case in.act == take:
		return s.taken(out)
	}
	return s.status == decision.Pending, s
}

func (s state) vote(in input, out output) (bool, state) {
	next := s
	if s.status == decision.Pending {
		next = state{standing{answered(in.choice), in.choice, in.by}, in.edited}
	}
	if !out.done {
		return true, next
	}
	again := next.choice == in.choice && next.edited == in.edited // who says the same is told what stands
	if !again {
		return false, s
	}
	return next.tells(in, out)
}

// answered is where an approval stands once it is answered so, and a question whatever
// the answer is.
func answered(c decision.Choice) decision.Status {
	switch c {
	case decision.ChoiceApprove:
		return decision.Approved
	case decision.ChoiceReject:
		return decision.Rejected
	}
	return resolved
}

const resolved decision.Status = "resolved"

// taken: who takes back a call that has its yes lets that yes be replaced by none.
func (s state) taken(out output) (bool, state) {
	switch s.status {
	case decision.Pending:
		s.status = decision.Withdrawn
	case decision.Approved:
		s.status = decision.Superseded
	default:
		return !out.done || s.status == decision.Withdrawn, s
	}
	return true, s
}

// tells reports whether a decision in s may be told of as out says. It may have moved
// by itself.
func (s state) tells(in input, out output) (bool, state) {
	o := out.stands
	if o.status == "" {
		return true, s // it was told of nothing
	}
	if !s.moves(o.status, in.loose) || o.choice != s.choice || o.by != s.by {
		return false, s
	}
	if out.refused && in.act != read && o.status == decision.Pending {
		return false, s // for no reason
	}
	s.status = o.status
	return true, s
}

// moves reports whether a decision in s comes to stand so without a client's word: tools
// are started, time passes, and what waited may end.
func (s state) moves(to decision.Status, loose bool) bool {
	if s.status == to {
		return true
	}
	switch s.status {
	case decision.Pending:
		return to == decision.Expired || to == decision.Superseded || loose && to == decision.Withdrawn
	case decision.Approved:
		return slices.Contains([]decision.Status{decision.Consumed, decision.Expired, decision.Superseded, decision.Withdrawn}, to)
	case decision.Rejected:
		return to == decision.Consumed
	}
	return false
}

// once reports whether what an event tells of is how the decision was settled.
func (s state) once(in input, out output) (bool, state) {
	o := out.stands
	if !out.done {
		return true, s
	}
	if o.choice != "" {
		return s.choice == o.choice && s.by == o.by, s
	}
	if !s.moves(o.status, in.loose) {
		return false, s
	}
	s.status = o.status
	return true, s
}

func (in input) String() string {
	text := string(in.act)
	if in.choice != "" {
		text += " " + string(in.choice)
	}
	if in.by != "" {
		text += " by " + in.by
	}
	return text
}

func (o output) String() string {
	switch {
	case o.refused && o.stands.status != "":
		return "refused: " + o.stands.String()
	case o.refused:
		return "refused"
	case !o.done:
		return "unknown"
	}
	return o.stands.String()
}

func (s standing) String() string {
	text := string(s.status)
	if s.choice != "" {
		text += " (" + string(s.choice) + " by " + s.by + ")"
	}
	return text
}
