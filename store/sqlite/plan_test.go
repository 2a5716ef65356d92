package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/store/sqlrows"
)

// What a daemon asks again and again goes through indexes that hold only what it looks
// for: a file of a million decided records is as quick as an empty one.
func TestPlans(t *testing.T) {
	t.Parallel()
	e, err := openEngine(context.Background(), filepath.Join(t.TempDir(), "p.db"), Options{}, migrations())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	sql := sqlrows.Frequent()
	for name, through := range map[string]string{
		"overdue decisions":               "decision_due",
		"calls whose lease ended":         "call_running",
		"calls to go on with":             "decision_granted call_doubt",
		"runs to go on with":              "run_running decision_granted decision_moot",
		"runs without a worker":           "run_running",
		"active jobs":                     "job_active",
		"a principal's jobs":              "job_started",
		"jobs to be deleted":              "job_cleaned",
		"how many jobs there are":         "COVERING INDEX job_status",
		"how many questions wait":         "job_asking",
		"how many yeses wait":             "decision_granted",
		"keys whose time is over":         "idempotency_at",
		"who used a run id first":         "call_run",
		"targets of every stream":         "wake_target_hears",
		"targets of one stream":           "wake_target_hears",
		"whether one hears of one root":   "wake_target_hears",
		"how many hear of all":            "wake_target_hears",
		"how many hear of a stream":       "wake_target_hears",
		"how many hear of one at most":    "wake_target_hears",
		"targets":                         "wake_target_listed",
		"the next of a lane":              "delivery_lane",
		"whether a lane has one":          "delivery_lane",
		"the next target with work":       "COVERING INDEX delivery_work",
		"what of a target is due":         "delivery_work",
		"claims that ended":               "delivery_lease",
		"deliveries that are too old":     "delivery_age",
		"what asks for what is settled":   "delivery_asks",
		"what waits for a removed target": "wake_target_removed delivery_work delivery_lane",
		"how many deliveries there are":   "delivery_age delivery_failed",
		"dead letters":                    "delivery_failed",
		"open deliveries":                 "delivery_age",
		"a target's deliveries":           "delivery_of",
		"a stream's deliveries":           "(stream=? sqlite_autoindex_delivery_2 (seq=?",
		"attempts":                        "PRIMARY (id=?",
		"a stream's last events":          "(stream=? tombstone",
		"the last events of all":          "PRIMARY tombstone",
		"events of deliveries":            "event USING INTEGER PRIMARY tombstone",
		"deliveries that change alike":    "(id=?",
		"a job's attempts to delete":      "(stream=? (seq=? (delivery_id=?",
		"a job's deliveries to delete":    "(stream=? (seq=?",
		"a job's events to delete":        "(stream=? (rowid=?",
		"a job's targets to delete":       "wake_target_of",
		"a page of the queue, the first":  "decision_queue (space=?)",
		"a page of the queue, the last":   "decision_queue (space=?)",
		"a page of the queue, the next":   "decision_queue (queue_at,id)>(?,?)",
		"a page of the queue, one before": "decision_queue (queue_at,id)<(?,?)",
		"what of the queue is picked":     "decision_queue (queue_at,id)>(?,?)",
		"a page of the queue, a piece":    "decision_queue (queue_at,id)>(?,?) (queue_at,id)<(?,?)",
		"sizes in the queue":              "decision_queue (queue_at,id)>(?,?)",
		"how many of each sort wait":      "COVERING INDEX decision_sorts (type,owner_kind,kind,tool)>(?,?,?,?) (space=? AND type=? AND owner_kind=? AND kind=? AND tool=?)",
		"what waits for jobs that go":     "job_cleaned sqlite_autoindex_decision_2",
		"what was approved last":          "decision_approved (space=? tool=? id<?)",
		"what was decided":                "decision_settled (space=? AND settled_at<?)",
		"a sign-in":                       "sign_in (key=?)",
		"a token's sign-ins":              "sign_in_of",
		"sign-ins that are over":          "sign_in_over",
	} {
		plan, err := plan(e, sql[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, index := range strings.Fields(through) {
			if !strings.Contains(plan, index) {
				t.Errorf("%s: the plan does not use %s:\n%s", name, index, plan)
			}
		}
		for line := range strings.Lines(plan) {
			if strings.HasPrefix(line, "SCAN") || strings.Contains(line, "autoindex") && strings.Contains(line, "(id>?)") {
				t.Errorf("%s: the plan walks through a table: %s", name, line)
			}
			if strings.Contains(line, "TEMP B-TREE") && strings.Contains(plan, "decision_") { // what waits and what was decided may be many
				t.Errorf("%s: the plan sorts: %s", name, line)
			}
		}
	}
}

func plan(e *engine, sql string) (string, error) {
	var plan strings.Builder
	args := make([]any, strings.Count(sql, "?"))
	for i := range args {
		args[i] = int64(1)
	}
	err := e.view(context.Background(), func(h *handle) error {
		plan.Reset()
		return h.Query("EXPLAIN QUERY PLAN "+sql, args, func(r sqlrows.Row) error {
			_, err := fmt.Fprintln(&plan, r.Str(3))
			return err
		})
	})
	return plan.String(), err
}
