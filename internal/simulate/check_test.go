package simulate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
)

const (
	yes = decision.ChoiceApprove
	no  = decision.ChoiceReject
)

// op is what one client did, from a moment to another.
func op(client int, from, to int64, in input, out output) porcupine.Operation {
	in.id = "apr_1"
	return porcupine.Operation{ClientId: client, Input: in, Call: from, Output: out, Return: to}
}

func said(c decision.Choice, by string) output {
	return output{done: true, stands: standing{answered(c), c, by}}
}

func voted(c decision.Choice, by string) input { return input{act: vote, choice: c, by: by} }

func stands(s decision.Status, c decision.Choice, by string) output {
	return output{done: true, stands: standing{s, c, by}}
}

var pending = stands(decision.Pending, "", "")

// Histories that have an order, and such that have none: a checker that finds nothing in
// the latter finds nothing at all.
func TestJudgeHistory(t *testing.T) {
	t.Parallel()
	refusedBy := func(c decision.Choice, by string) output {
		return output{refused: true, stands: standing{answered(c), c, by}}
	}
	end := stands(decision.Consumed, yes, "ana")
	for name, tc := range map[string]struct {
		wrong bool
		ops   []porcupine.Operation
	}{
		"OK":                         {false, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, input{act: read}, said(yes, "ana"))}},
		"one of two wins":            {false, []porcupine.Operation{op(0, 1, 4, voted(yes, "ana"), said(yes, "ana")), op(1, 2, 3, voted(no, "bo"), refusedBy(yes, "ana"))}},
		"the same again":             {false, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, voted(yes, "bo"), said(yes, "ana"))}},
		"a lost answer that counted": {false, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), output{}), op(1, 3, 4, input{act: read}, end)}},
		"a lost answer that counts later": {false, []porcupine.Operation{
			op(0, 1, 9, voted(yes, "ana"), output{}), op(1, 3, 4, input{act: read}, pending), op(1, 5, 6, input{act: read}, end),
		}},
		"a lost answer that counted for nothing": {false, []porcupine.Operation{op(0, 1, 9, voted(yes, "ana"), output{}), op(1, 3, 4, input{act: read}, pending)}},
		"it expires":                             {false, []porcupine.Operation{op(0, 1, 2, input{act: read}, pending), op(0, 3, 4, input{act: read}, stands(decision.Expired, "", ""))}},
		"a yes that is taken back":               {false, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, input{act: take}, output{done: true}), op(1, 5, 6, input{act: read}, stands(decision.Superseded, yes, "ana"))}},
		"heard":                                  {false, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(2, 1, 9, input{act: heard}, said(yes, "ana")), op(1, 3, 4, input{act: read}, end)}},

		"double yes":                   {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, voted(yes, "bo"), said(yes, "bo"))}},
		"yes and no at once":           {true, []porcupine.Operation{op(0, 1, 4, voted(yes, "ana"), said(yes, "ana")), op(1, 2, 3, voted(no, "bo"), said(no, "bo"))}},
		"lost yes":                     {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, input{act: read}, pending)}},
		"lost yes in the end":          {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, input{act: read}, stands(decision.Expired, "", ""))}},
		"a yes that nobody gave":       {true, []porcupine.Operation{op(1, 3, 4, input{act: read}, said(yes, "ana"))}},
		"a refused vote that counts":   {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), output{refused: true}), op(1, 3, 4, input{act: read}, end)}},
		"a yes that becomes a no":      {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 3, 4, input{act: read}, stands(decision.Consumed, no, "ana"))}},
		"a read that goes back":        {true, []porcupine.Operation{op(0, 1, 9, voted(yes, "ana"), output{}), op(1, 2, 3, input{act: read}, said(yes, "ana")), op(2, 4, 5, input{act: read}, pending)}},
		"refused for no reason":        {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), output{refused: true, stands: standing{status: decision.Pending}})}},
		"a withdrawal that is undone":  {true, []porcupine.Operation{op(0, 1, 2, input{act: take}, output{done: true}), op(1, 3, 4, voted(yes, "ana"), said(yes, "ana"))}},
		"withdrawn by nobody":          {true, []porcupine.Operation{op(1, 3, 4, input{act: read}, stands(decision.Withdrawn, "", ""))}},
		"heard what never was":         {true, []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(2, 1, 9, input{act: heard}, said(no, "bo"))}},
		"heard before it was answered": {true, []porcupine.Operation{op(2, 1, 2, input{act: heard}, said(yes, "ana")), op(0, 3, 4, voted(yes, "ana"), said(yes, "ana"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judgeHistory(tc.ops, t.TempDir())
			if len(got) > 0 != tc.wrong {
				t.Errorf("%v, want wrong %t", got, tc.wrong)
			}
		})
	}
}

// What is wrong is told with what is needed to see it, and drawn.
func TestJudgeHistoryTellsLittle(t *testing.T) {
	t.Parallel()
	ops := []porcupine.Operation{op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(1, 30, 31, input{act: read}, pending)}
	for i := range int64(9) {
		ops = append(ops, op(2, 10+i, 11+i, input{act: read}, said(yes, "ana")))
	}
	dir := t.TempDir()
	got := judgeHistory(ops, dir)
	if len(got) != 1 || strings.Count(got[0], "client") != 2 {
		t.Errorf("%v", got)
	}
	if drawn, err := filepath.Glob(filepath.Join(dir, "*.html")); err != nil || len(drawn) != 1 {
		t.Errorf("drawn: %v %v", drawn, err)
	}
}

// sound is a store in which nothing is wrong, and what was seen of it: two calls, one with
// a yes and one that may be repeated.
func sound() (m stored, seen []line, came []arrival, followed []sight) {
	m = stored{
		calls: map[string]call.Call{
			"call_1": {ID: "call_1", Tool: pay, Status: call.Succeeded, Args: []byte(`{"n":1,"ask":true}`)},
			"call_2": {ID: "call_2", Tool: keyed, Status: call.Succeeded, Args: []byte(`{"n":1,"ask":false}`)},
		},
		attempts: map[string][]call.Attempt{
			"call_1": {{CallID: "call_1", N: 1, ApprovalID: "apr_1", Outcome: call.Succeeded}},
			"call_2": {{CallID: "call_2", N: 1, Outcome: call.Unknown}, {CallID: "call_2", N: 2, Outcome: call.Succeeded}},
		},
		decisions: map[string]decision.Decision{"apr_1": {ID: "apr_1", CallID: "call_1", Status: decision.Consumed, Choice: yes, DecidedBy: "ana"}},
		targets:   []delivery.Target{{ID: "tgt_1", Events: []string{string(event.CallStarted), string(event.CallFinished)}}},
	}
	for i, typ := range []event.Type{event.CallCreated, event.CallStarted, event.CallFinished} {
		e := event.Event{ID: string(typ), Pos: int64(i + 1), Stream: "call:call_1", StreamSeq: int64(i + 1), Type: typ, Hash: []byte{byte(i)}}
		m.events = append(m.events, e)
		followed = append(followed, sightOf(e))
		if i > 0 {
			d := delivery.Delivery{ID: "dlv_" + string(typ), TargetID: "tgt_1", Stream: e.Stream, StreamSeq: e.StreamSeq, EventType: typ, Status: delivery.Delivered}
			m.deliveries = append(m.deliveries, d)
			came = append(came, arrival{d.ID, d.TargetID, d.Stream, d.StreamSeq})
		}
	}
	return m, []line{{"call_1", "1", pay}, {"call_2", "1", keyed}, {"call_2", "2", keyed}}, came, followed
}

// Each thing that must not be is found where it is put into a sound end.
func TestChecksFind(t *testing.T) {
	t.Parallel()
	type end struct {
		m        stored
		seen     []line
		came     []arrival
		followed []sight
	}
	change := func(e *end, id string, f func(*call.Call)) {
		c := e.m.calls[id]
		f(&c)
		e.m.calls[id] = c
	}
	for name, tc := range map[string]struct {
		do   func(*end)
		want string // empty: nothing is found
	}{
		"nothing":             {func(*end) {}, ""},
		"run twice":           {func(e *end) { e.seen = append(e.seen, e.seen[0]) }, "ran twice"},
		"never started":       {func(e *end) { e.seen = append(e.seen, line{"call_1", "2", pay}) }, "which has 1 attempts"},
		"unknown call":        {func(e *end) { e.seen = append(e.seen, line{"call_9", "1", pay}) }, "not in the store"},
		"another tool":        {func(e *end) { e.seen[0].tool = slow }, "and slow ran"},
		"no trace":            {func(e *end) { e.seen = e.seen[1:] }, "left no trace"},
		"no yes":              {func(e *end) { e.m.attempts["call_1"][0].ApprovalID = "" }, "nobody had said yes"},
		"a no":                {func(e *end) { e.m.decisions["apr_1"] = decision.Decision{ID: "apr_1", Choice: no} }, "ran under apr_1"},
		"run again silently":  {func(e *end) { change(e, "call_2", func(c *call.Call) { c.Tool = pay }) }, "without a new yes"},
		"nobody asked":        {func(e *end) { change(e, "call_1", func(c *call.Call) { c.Status = call.Unknown }) }, "nobody was asked"},
		"missing event":       {func(e *end) { e.followed = slices.Delete(e.followed, 1, 2) }, "saw"},
		"missing last event":  {func(e *end) { e.followed = e.followed[:2] }, "missed is call.finished"},
		"event seen twice":    {func(e *end) { e.followed = append(e.followed, e.followed[2]) }, "saw 4 events"},
		"events out of order": {func(e *end) { e.followed[0], e.followed[1] = e.followed[1], e.followed[0] }, "saw"},
		"a gap in the stream": {func(e *end) { e.m.events[2].StreamSeq = 4 }, "stands where"},
		"a gap over all":      {func(e *end) { e.m.events[2].Pos = 4 }, "has pos 4"},
		"no delivery":         {func(e *end) { e.m.deliveries = e.m.deliveries[1:] }, "has 0 deliveries"},
		"two deliveries":      {func(e *end) { e.m.deliveries = append(e.m.deliveries, e.m.deliveries[0]) }, "has 2 deliveries"},
		"a dead delivery":     {func(e *end) { e.m.deliveries[0].Status = delivery.Dead }, "is dead"},
		"not arrived":         {func(e *end) { e.came = e.came[:1] }, "did not arrive"},
		"arrived in disorder": {func(e *end) { slices.Reverse(e.came) }, "behind event"},
		"arrived again":       {func(e *end) { e.came = append(e.came, e.came[0]) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e end
			e.m, e.seen, e.came, e.followed = sound()
			tc.do(&e)
			arrived, _ := checkArrived(e.came, e.m)
			got := slices.Concat(checkWitness(e.seen, e.m), checkRepeats(e.m), checkFollowed("f", e.followed, e.m), checkDense(e.m), checkDue(e.m), arrived)
			if tc.want == "" && len(got) > 0 || tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A vote that was told to stand, and does not, is found without the model, too.
func TestCheckTold(t *testing.T) {
	t.Parallel()
	m, _, _, _ := sound()
	good, bad := op(0, 1, 2, voted(yes, "ana"), said(yes, "ana")), op(0, 1, 2, voted(no, "bo"), said(no, "bo"))
	if got := checkTold([]porcupine.Operation{good}, m); got != nil {
		t.Error(got)
	}
	if got := checkTold([]porcupine.Operation{bad}, m); len(got) != 1 {
		t.Error(got)
	}
	if got := checkCalls([]string{"call_1", "call_3"}, map[string][]call.Status{"call_2": {call.Failed}}, m); len(got) != 2 {
		t.Error(got)
	}
}

func TestReadWitness(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "witness")
	for text, lines := range map[string]int{"": 0, "c 1 pay\nd 2 slow\n": 2, "c 1 pay\nd 2": -1, "c 1\n": -1} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readWitness(path); (err != nil) != (lines < 0) || err == nil && len(got) != lines {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
}

// What an event says is read as it is written.
func TestHeardOf(t *testing.T) {
	t.Parallel()
	e := event.Object{Type: event.ApprovalDecided, Actor: "ana 1", Payload: json.RawMessage(`{"status":"approved"}`)}
	if got := heardOf(e, ""); got != said(yes, "ana 1") {
		t.Errorf("%v", got)
	}
	e.Payload = json.RawMessage(`{"status":"rejected"}`)
	if got := heardOf(e, ""); got != said(no, "ana 1") {
		t.Errorf("%v", got)
	}
	if got := heardOf(event.Object{Type: event.ApprovalExpired}, decision.Expired); got != stands(decision.Expired, "", "") {
		t.Errorf("%v", got)
	}
}
