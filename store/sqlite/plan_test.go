package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
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
	for _, q := range []struct{ name, sql, through string }{
		{"overdue decisions", dueSQL, "decision_due"},
		{"calls whose lease ended", leaseEndedSQL, "call_running"},
		{"calls to go on with", continuableSQL, "decision_granted call_doubt"},
		{"runs to go on with", continuableRunsSQL, "run_running decision_granted decision_moot"},
		{"runs without a worker", adriftSQL, "run_running"},
		{"active jobs", activeJobsSQL, "job_active"},
		{"a principal's jobs", selectJobs + ` WHERE space = ? AND cleaned_at IS NULL AND principal = ? AND id < ? ORDER BY id DESC LIMIT +?`, "job_started"},
		{"jobs to be deleted", cleanedJobsSQL, "job_cleaned"},
		{"how many jobs there are", countJobsSQL, "COVERING INDEX job_status"},
		{"how many questions wait", countAskedSQL, "job_asking"},
		{"how many yeses wait", countGrantsSQL, "decision_granted"},
		{"keys whose time is over", oldKeysSQL, "idempotency_at"},
		{"who used a run id first", firstUserSQL, "call_run"},
		{"targets of every stream", globalSQL, "wake_target_hears"},
		{"targets of one stream", rootedSQL, "wake_target_hears"},
		{"whether one hears of one root", anyRootedSQL, "wake_target_hears"},
		{"how many hear of all", countGlobalSQL, "wake_target_hears"},
		{"how many hear of a stream", countOfSQL, "wake_target_hears"},
		{"how many hear of one at most", countMostSQL, "wake_target_hears"},
		{"targets", selectTargets + ` WHERE space = ? AND removed_at IS NULL AND id < ? ORDER BY id DESC LIMIT +?`, "wake_target_listed"},
		{"the next of a lane", makeDueSQL, "delivery_lane"},
		{"whether a lane has one", insertDeliverySQL, "delivery_lane"},
		{"the next target with work", nextTargetSQL, "COVERING INDEX delivery_work"},
		{"what of a target is due", dueOfSQL, "delivery_work"},
		{"claims that ended", claimsEndedSQL, "delivery_lease"},
		{"deliveries that are too old", overagedSQL, "delivery_age"},
		{"what asks for what is settled", askedSQL, "delivery_asks"},
		{"what waits for a removed target", removedSQL, "wake_target_removed delivery_work delivery_lane"},
		{"how many deliveries there are", countDeliveriesSQL, "delivery_age delivery_failed"},
		{"dead letters", selectDeliveries + ` WHERE space = ? AND status = ? AND (status = 'dead' OR status = 'dropped') AND id < ? ORDER BY id DESC LIMIT +?`, "delivery_failed"},
		{"open deliveries", selectOpen + ` WHERE space = ? AND status = ? AND ` + isOpen + ` AND id < ? ORDER BY id DESC LIMIT +?`, "delivery_age"},
		{"a target's deliveries", selectDeliveries + ` WHERE space = ? AND target_id = ? AND id < ? ORDER BY id DESC LIMIT +?`, "delivery_of"},
		{"a stream's deliveries", selectDeliveries + ` WHERE space = ? AND seq IN (SELECT event.seq FROM event WHERE event.stream = ?) AND id < ? ORDER BY id DESC LIMIT +?`, "(stream=? sqlite_autoindex_delivery_2 (seq=?"},
		{"attempts", deliveryAttemptsSQL, "PRIMARY (id=?"},
		{"events of deliveries", eventsOfSQL[16], "event USING INTEGER PRIMARY tombstone"},
		{"deliveries that change alike", `UPDATE delivery SET version = version + 1, status = ?, ended_at = ? WHERE ` + alikeStood[16], "(id=?"},
		{"a job's attempts to delete", deleteOfJobSQL[0], "(stream=? (seq=? (delivery_id=?"},
		{"a job's deliveries to delete", deleteOfJobSQL[1], "(stream=? (seq=?"},
		{"a job's events to delete", deleteOfJobSQL[2], "(stream=? (rowid=?"},
		{"a job's targets to delete", deleteOfJobSQL[3], "wake_target_of"},
	} {
		plan, err := plan(e, q.sql)
		if err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		for _, index := range strings.Fields(q.through) {
			if !strings.Contains(plan, index) {
				t.Errorf("%s: the plan does not use %s:\n%s", q.name, index, plan)
			}
		}
		for line := range strings.Lines(plan) {
			if strings.HasPrefix(line, "SCAN") || strings.Contains(line, "autoindex") && strings.Contains(line, "(id>?)") {
				t.Errorf("%s: the plan walks through a table: %s", q.name, line)
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
		return h.query("EXPLAIN QUERY PLAN "+sql, args, func(r row) error {
			_, err := fmt.Fprintln(&plan, r.str(3))
			return err
		})
	})
	return plan.String(), err
}
