package simulate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/decision"
)

// history is what clients did with decisions, and when.
type history struct {
	began time.Time

	mu    sync.Mutex
	ops   []porcupine.Operation
	loose map[string]bool // decisions that may be taken back without a client's word
	known map[string]bool // decisions that somebody was told of
}

func newHistory() *history {
	return &history{began: time.Now(), loose: map[string]bool{}, known: map[string]bool{}}
}

// now is monotonic, so that operations are in the order in which they happened.
func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// meet notes a decision, and reports whether it is new.
func (h *history) meet(id string, loose bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known[id] {
		return false
	}
	h.known[id], h.loose[id] = true, loose
	return true
}

// do notes what came of an operation.
func (h *history) do(client int, in input, f func() output) output {
	at := h.now()
	out := f()
	h.add(porcupine.Operation{ClientId: client, Input: in, Call: at, Output: out, Return: h.now()})
	return out
}

func (h *history) add(op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// all is the history as it is checked. What nobody knows the outcome of may happen until
// the end.
func (h *history) all() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.now()
	var ops []porcupine.Operation
	for _, op := range h.ops {
		in, out := op.Input.(input), op.Output.(output)
		if !out.done && !out.refused {
			op.Return = end
		}
		in.loose = h.loose[in.id]
		op.Input = in
		ops = append(ops, op)
	}
	return ops
}

// telling leaves out the operations on one decision that nothing can be seen of: who was
// told nothing, and whose vote or withdrawal no answer ever showed. They would cost the
// checker a choice each. The history has to end with a read of what stands.
func telling(ops []porcupine.Operation) []porcupine.Operation {
	shown := map[standing]bool{}
	for _, op := range ops {
		o := op.Output.(output).stands
		shown[standing{choice: o.choice, by: o.by}] = true
		shown[standing{status: o.status}] = true
	}
	return slices.DeleteFunc(slices.Clone(ops), func(op porcupine.Operation) bool {
		in, out := op.Input.(input), op.Output.(output)
		switch {
		case out.done || out.refused:
			return out.refused && out.stands.status == ""
		case in.act == vote:
			return !shown[standing{choice: in.choice, by: in.by}]
		case in.act == take:
			return !shown[standing{status: decision.Withdrawn}]
		}
		return true
	})
}

// judgeHistory finds decisions of which clients were told what no order explains. Of each
// it tells what is needed to see that it is wrong, and draws that in a file in dir.
func judgeHistory(ops []porcupine.Operation, dir string) (problems []string) {
	for _, part := range byDecision(ops) {
		part = telling(part)
		if explained(part) {
			continue
		}
		part = shortest(part)
		problems = append(problems, fmt.Sprintf("decision %s: no order explains\n%s%s", part[0].Input.(input).id, listed(part), drawn(part, dir)))
	}
	return problems
}

// explained reports whether the operations have an order. What takes too long to find out
// counts as not.
func explained(ops []porcupine.Operation) bool {
	return porcupine.CheckOperationsTimeout(decisionModel, ops, 10*time.Second) == porcupine.Ok
}

// shortest leaves out what is not needed for the rest to be wrong.
func shortest(ops []porcupine.Operation) []porcupine.Operation {
	for again := true; again; {
		again = false
		for i := range ops {
			less := slices.Delete(slices.Clone(ops), i, i+1)
			// A vote is what explains the rest; without it everything would be wrong.
			if in := ops[i].Input.(input); in.act == vote || in.act == take || explained(less) {
				continue
			}
			ops, again = less, true
			break
		}
	}
	return ops
}

func listed(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "  %9.3f–%9.3f s  client %2d  %s\n", float64(op.Call)/1e9, float64(op.Return)/1e9, op.ClientId, decisionModel.DescribeOperation(op.Input, op.Output))
	}
	return b.String()
}

// drawn is where the history is drawn, to be looked at in a browser.
func drawn(ops []porcupine.Operation, dir string) string {
	f, err := os.CreateTemp(dir, "placet-history-*.html")
	if err != nil {
		return ""
	}
	defer f.Close()
	_, info := porcupine.CheckOperationsVerbose(decisionModel, ops, time.Minute)
	if porcupine.Visualize(decisionModel, info, f) != nil {
		return ""
	}
	return "  drawn in " + f.Name() + "\n"
}
