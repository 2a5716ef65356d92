package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// TestTheStartComparesAllThatItWasJudgedOn alters one column between the reading
// and the start. The start reads neither row again: its writes have to notice.
func TestTheStartComparesAllThatItWasJudgedOn(t *testing.T) {
	t.Parallel()
	other := `'sha256-placet1:0000000000000000000000000000000000000000000000000000000000000000'`
	for table, columns := range map[string]map[string]string{
		"decision": {
			"version": `version + 1`, "status": `'consumed'`, "choice": `'reject'`, "epoch": `epoch + 1`, "kind": `'other'`,
			"digest": other, "args_digest": other, "spent_digest": other, "edited_digest": other, "effective_digest": other,
			"owner_kind": `'run'`, "owner_id": `'call_other'`, "request": `x'7b7d'`, "capability": `NULL`, "presentation": `x''`, "edited_args": `x'7b7d'`,
		},
		"call": {
			"version": `version + 1`, "status": `'denied'`, "fence": `fence + 1`, "attempts": `attempts + 1`, "approval_id": `'apr_other'`,
			"tool": `'other'`, "run_id": `'run_other'`, "args_digest": other,
		},
	} {
		for column, value := range columns {
			t.Run(table+"."+column, func(t *testing.T) {
				t.Parallel()
				w := quick(t)
				p := w.park(`{"amount":5}`)
				w.approve(p.ApprovalID)
				judged := 0
				w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
					if judged++; judged == 1 {
						w.raw(fmt.Sprintf(`UPDATE %s SET %s = %s`, table, column, value))
					}
					return policy.Default().Evaluate(ctx, r, v)
				})
				res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
				if judged == 1 && err == nil {
					t.Errorf("started on what was judged before: %s", res.Status)
				}
				if judged == 0 {
					t.Error("the policy was not asked, so nothing was altered")
				}
			})
		}
	}
}

// TestAnOutcomeIsWrittenToTheCallThatRan alters the call while its tool runs. The
// outcome is first written as if it had not changed.
func TestAnOutcomeIsWrittenToTheCallThatRan(t *testing.T) {
	t.Parallel()
	for column, value := range map[string]string{
		"version": `version + 1`, "attempts": `attempts + 1`, "args_digest": `'x'`, "approval_id": `'apr_other'`, "run_id": `'run_other'`, "tool": `'other'`,
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			w := quick(t)
			p := w.park(`{"amount":5}`)
			w.approve(p.ApprovalID)
			w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
				w.raw(fmt.Sprintf(`UPDATE call SET %s = %s`, column, value))
				return json.RawMessage(`1`), nil
			})
			res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
			if err != nil || res.Failed() { // read again, it is still the same attempt's to say
				t.Fatalf("got %s, %v", res.Status, err)
			}
			if n := w.number(`SELECT count(*) FROM call WHERE status = 'succeeded'`); n != 1 {
				t.Errorf("%d calls succeeded", n)
			}
			if n := w.number(`SELECT version FROM call`); column == "version" && n != 5 {
				t.Errorf("version %d, want 5: parked, decided, started, altered, ended", n)
			}
		})
	}
}
