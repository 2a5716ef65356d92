package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// findings are what is wrong, each a sentence.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// checkWitness compares what tools did with the ledger: nothing twice, nothing that was not
// started, nothing that nobody allowed, and nothing that is said to have succeeded and left
// no trace.
func checkWitness(seen []line, m stored) (f findings) {
	ran := map[line]bool{}
	for _, l := range seen {
		if ran[l] {
			f.add("attempt %s at %s (%s) ran twice", l.attempt, l.call, l.tool)
		}
		ran[l] = true
		f = append(f, m.checkLine(l)...)
	}
	for id, as := range m.attempts {
		for _, a := range as {
			if a.Outcome == call.Succeeded && !ran[line{id, strconv.FormatInt(a.N, 10), m.calls[id].Tool}] {
				f.add("attempt %d at %s succeeded, and its tool left no trace", a.N, id)
			}
		}
	}
	return f
}

func (m *stored) checkLine(l line) (f findings) {
	c, as := m.calls[l.call], m.attempts[l.call]
	n, err := strconv.Atoi(l.attempt)
	switch {
	case c.ID == "":
		f.add("tool %s ran for call %s, which is not in the store", l.tool, l.call)
	case err != nil || n < 1 || n > len(as):
		f.add("tool %s ran attempt %s at %s, which has %d attempts", l.tool, l.attempt, l.call, len(as))
	case c.Tool != l.tool:
		f.add("call %s is of %s, and %s ran", l.call, c.Tool, l.tool)
	default:
		f = append(f, m.checkAllowed(c, as[n-1])...)
	}
	return f
}

// checkAllowed looks for the yes of an attempt that needed one.
func (m *stored) checkAllowed(c call.Call, a call.Attempt) (f findings) {
	var args struct{ Ask bool }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		f.add("the arguments of %s do not decode: %v", c.ID, err)
	}
	d := m.decisions[a.ApprovalID]
	switch {
	case a.ApprovalID == "" && (args.Ask || a.N > 1 && c.Tool != keyed):
		f.add("attempt %d at %s (%s) ran, and nobody had said yes", a.N, c.ID, c.Tool)
	case a.ApprovalID != "" && d.Choice != decision.ChoiceApprove:
		f.add("attempt %d at %s (%s) ran under %s, which is %s (%s)", a.N, c.ID, c.Tool, a.ApprovalID, d.Status, d.Choice)
	}
	return f
}

// checkRepeats looks at attempts whose outcome nobody knows: none is followed by another
// one unless its tool may be repeated or a person was asked, and where the call rests so,
// one was.
func checkRepeats(m stored) (f findings) {
	asked := map[string]bool{}
	for _, d := range m.decisions {
		if d.Kind == decision.KindInterrupted {
			asked[d.CallID], asked[d.StepID] = true, true
		}
	}
	for id, c := range m.calls {
		as := m.attempts[id]
		for i, a := range as {
			again := i+1 < len(as)
			if again && as[i+1].ApprovalID == a.ApprovalID && c.Tool != keyed {
				f.add("attempt %d at %s (%s) was %s, and attempt %d follows without a new yes", a.N, id, c.Tool, a.Outcome, as[i+1].N)
			}
		}
		if c.Status == call.Unknown && !asked[id] && (c.StepID == "" || !asked[c.StepID]) {
			f.add("nobody knows the outcome of %s (%s), and nobody was asked", id, c.Tool)
		}
	}
	return f
}

// lost is how many attempts there were whose outcome nobody knew at first.
func (m *stored) lost() (n int) {
	for _, e := range m.events {
		if e.Type == event.CallUnknown || e.Type == event.StepInterrupted {
			n++
		}
	}
	return n
}

// checkTold looks for the votes that clients were told had counted.
func checkTold(ops []porcupine.Operation, m stored) (f findings) {
	for _, op := range ops {
		in, out := op.Input.(input), op.Output.(output)
		if in.act != vote || !out.done {
			continue
		}
		d := m.decisions[in.id]
		if d.Choice != in.choice || d.DecidedBy != out.stands.by {
			f.add("%s: %s was told that it stands (by %s), and the store says %s (%s by %s)", in.id, in, out.stands.by, d.Status, d.Choice, d.DecidedBy)
		}
	}
	return f
}

// checkFollowed compares what a follower saw with the log: every event once, in order.
func checkFollowed(who string, seen []sight, m stored) (f findings) {
	for i, e := range m.events {
		switch {
		case i >= len(seen):
			f.add("%s saw %d events of %d; the first it missed is %s in %s", who, len(seen), len(m.events), e.Type, e.Stream)
			return f
		case seen[i] != sightOf(e):
			f.add("event %d is %v, and %s saw %v there", i+1, sightOf(e), who, seen[i])
			return f
		}
	}
	if len(seen) > len(m.events) {
		f.add("%s saw %d events, and there are %d", who, len(seen), len(m.events))
	}
	return f
}

// checkDense looks for numbers that are left out, over all streams and in each, and for
// times that go back in one.
func checkDense(m stored) (f findings) {
	next, last := map[string]int64{}, map[string]event.Event{}
	for i, e := range m.events {
		if l := last[e.Stream]; e.At.Before(l.At) {
			f.add("event %d of %s (%s at %s) is older than the one before it (%s at %s)", e.StreamSeq, e.Stream, e.Type, txn.Stamp(e.At), l.Type, txn.Stamp(l.At))
		}
		last[e.Stream] = e
		if e.Pos != int64(i+1) {
			f.add("event %s has pos %d, want %d", e.ID, e.Pos, i+1)
		}
		if next[e.Stream]++; e.StreamSeq != next[e.Stream] {
			f.add("event %d of %s stands where %d should", e.StreamSeq, e.Stream, next[e.Stream])
		}
	}
	return f
}

// checkDue looks for the delivery of each event that a target hears of. All targets are
// older than the events.
func checkDue(m stored) (f findings) {
	type one struct {
		target, stream string
		seq            int64
	}
	has := map[one]int{}
	for _, d := range m.deliveries {
		has[one{d.TargetID, d.Stream, d.StreamSeq}]++
		if d.Status != delivery.Delivered && (d.Status != delivery.Dropped || !d.Asks()) {
			f.add("delivery %s of %s in %s is %s: %s", d.ID, d.EventType, d.Stream, d.Status, d.Message)
		}
	}
	for _, t := range m.targets {
		for _, e := range m.events {
			if n := has[one{t.ID, e.Stream, e.StreamSeq}]; t.Wants(delivery.Word(&e)) && n != 1 {
				f.add("event %d of %s (%s) has %d deliveries to %s, want 1", e.StreamSeq, e.Stream, e.Type, n, t.ID)
			}
		}
	}
	return f
}

// checkArrived compares what the receiver took with what is said to be delivered, and
// looks at the order of what came first of each. It returns how much came again.
func checkArrived(came []arrival, m stored) (f findings, again int) {
	type lane struct{ target, stream string }
	first, last, ordered := map[string]bool{}, map[lane]int64{}, map[string]bool{}
	for _, t := range m.targets {
		ordered[t.ID] = !t.Unordered
	}
	for _, a := range came {
		if first[a.delivery] {
			again++
			continue
		}
		first[a.delivery] = true
		at := lane{a.target, a.stream}
		if ordered[a.target] && a.seq <= last[at] {
			f.add("event %d of %s came to %s behind event %d", a.seq, a.stream, a.target, last[at])
		}
		last[at] = a.seq
	}
	for _, d := range m.deliveries {
		if d.Status == delivery.Delivered && !first[d.ID] {
			f.add("delivery %s is %s, and did not arrive", d.ID, d.Status)
		}
	}
	return f, again
}
