package call_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/decision"
)

// One approval, as one thing that happens after the other (spec 1.3, 2.2). What many
// are told at once has to be what they would have been told in some order.
type oneApproval struct {
	status decision.Status
	yes    bool // what was answered
}

func (s oneApproval) step(action, told string) (bool, oneApproval) {
	word := func(want string, next oneApproval) (bool, oneApproval) {
		// A loser that saw it move is told so.
		return told == want || want == "already_decided" && (told == "moved" || told == "run_state"), next
	}
	pending := s.status == decision.Pending
	switch action {
	case "approve":
		if pending {
			return word("approved", oneApproval{decision.Approved, true})
		}
	case "reject":
		if pending {
			return word("rejected", oneApproval{decision.Rejected, false})
		}
	case "withdraw":
		if pending {
			return word("withdrawn", oneApproval{decision.Withdrawn, false})
		}
	case "expire":
		if pending {
			return word("expired", oneApproval{decision.Expired, false})
		}
		return word("not_pending", s)
	case "resume":
		switch s.status {
		case decision.Pending:
			return word("usage", s)
		case decision.Approved:
			return word("succeeded", oneApproval{decision.Consumed, true})
		case decision.Rejected:
			return word("denied", oneApproval{decision.Consumed, false})
		case decision.Expired:
			return word("approval_expired", s)
		}
		return word("already_decided", s)
	}
	if s.status == decision.Expired {
		return word("approval_expired", s)
	}
	return word("not_pending", s)
}

var oneApprovalModel = porcupine.Model{
	Init: func() any { return oneApproval{status: decision.Pending} },
	Step: func(state, input, output any) (bool, any) {
		ok, next := state.(oneApproval).step(input.(string), output.(string))
		return ok, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " → ", output) },
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	actions := []string{"approve", "reject", "withdraw", "expire", "resume", "resume", "resume"}
	for _, handles := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d handles", handles), func(t *testing.T) {
			t.Parallel()
			w := quick(t)
			w.ex = w.ex2(w.st)
			hands := []*hand{w.hand(w.st), w.hand(w.st)}
			if handles == 2 {
				hands[1] = w.hand(w.open())
			}
			expirer := *hands[0] // its clock is past the request's deadline, before the grant's
			expirer.op.Now = func() time.Time { return w.clock.Now().Add(time.Hour + time.Microsecond) }
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 1))
			for round := range rounds(200) {
				p := w.park(`{"n":1}`)
				if round%3 == 0 {
					w.approve(p.ApprovalID)
				}
				before := len(w.spy.calls())
				const clients, each = 5, 3
				plan := [clients][each]string{}
				for i := range plan {
					for k := range plan[i] {
						plan[i][k] = actions[rnd.IntN(len(actions))]
					}
				}
				history := make([]porcupine.Operation, clients*each)
				began := time.Now()
				race(clients, func(i int) {
					h := hands[i%2]
					for k, action := range plan[i] {
						by := h
						if action == "expire" {
							by = &expirer
						}
						op := porcupine.Operation{ClientId: i, Input: action, Call: time.Since(began).Nanoseconds()}
						op.Output = by.do(action, p.ApprovalID)
						op.Return = time.Since(began).Nanoseconds()
						history[i*each+k] = op
					}
				})
				if round%3 == 0 { // what went before
					history = append(history, porcupine.Operation{ClientId: clients, Input: "approve", Output: "approved", Call: -2, Return: -1})
				}
				if !porcupine.CheckOperations(oneApprovalModel, history) {
					for _, op := range history {
						t.Log(op.ClientId, op.Input, op.Output, op.Call, op.Return)
					}
					t.Fatalf("round %d (seed %d) has no order", round, seed)
				}
				ran := len(w.spy.calls()) - before
				if d := w.decision(p.ApprovalID); ran > 1 || (ran == 1) != (d.Status == decision.Consumed && d.Choice == decision.ChoiceApprove) {
					t.Fatalf("the tool ran %d times; approval %s %s", ran, d.Status, d.Choice)
				}
			}
		})
	}
}
