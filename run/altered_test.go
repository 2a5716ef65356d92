package run_test

import (
	"context"
	"database/sql"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// Somebody alters one column of one stored row by hand, past every check of the
// schema. Whatever column and whatever value: what runs is what was approved, once,
// or nothing; and nothing panics. What a yes is bound to is refused.

// forgeries are the values that a column is given, as SQL over the row.
func forgeries(c column) []string {
	switch {
	case c.name == "status":
		var all []string
		for _, s := range statuses(c.table) {
			all = append(all, "'"+s+"'")
		}
		return all
	case c.kind == "TEXT":
		return append([]string{"''", "NULL", c.name + " || 'x'"}, wordsOf[c.name]...)
	case c.kind == "INTEGER":
		return []string{"NULL", "0", "2", c.name + " - 1", c.name + " + 1000000", "9223372036854775807"}
	case c.kind == "BLOB":
		return []string{
			"NULL", "x''", "CAST('{}' AS BLOB)", "CAST('{\"n\":9}' AS BLOB)", "CAST('null' AS BLOB)", "x'7bff'",
			"CAST(replace(CAST(" + c.name + " AS TEXT), '1', '9') AS BLOB)", "CAST(replace(CAST(" + c.name + " AS TEXT), 'push', 'drop') AS BLOB)",
		}
	}
	return nil
}

func statuses(table string) (all []string) {
	switch table {
	case "run":
		for _, s := range run.Statuses() {
			all = append(all, string(s))
		}
	case "step":
		for _, s := range run.StepStatuses() {
			all = append(all, string(s))
		}
	case "call":
		for _, s := range call.Statuses() {
			all = append(all, string(s))
		}
	case "decision":
		all = []string{"pending", "approved", "rejected", "consumed", "expired", "withdrawn", "superseded", "resolved"}
	}
	return append(all, "")
}

// wordsOf are what a column of text might well say instead.
var wordsOf = map[string][]string{
	"type": {"'question'"}, "owner_kind": {"'call'", "'job'"}, "tool": {"'drop'"}, "choice": {"'approve'", "'reject'"},
	"kind": {"'interrupted_side_effect'", "'remote_mutation'", "'complete'", "'approval'", "'tool_call'"}, "continue_by": {"'daemon'"},
	"recovery": {"'person'", "'probe'", "'key'"}, "outcome": {"'succeeded'", "'failed'", "'unknown'"}, "reason": {"'goal_completed'"},
	"observation": {"'tool_result'", "'interrupted'"}, "flow": {"'f'"}, "node": {"'n'"},
}

type column struct{ table, name, kind string }

// columns lists every column of these tables.
func (w *world) columns(tables ...string) (all []column) {
	w.t.Helper()
	db := w.rawDB()
	defer db.Close()
	for _, table := range tables {
		rows, err := db.Query(`SELECT name, type FROM pragma_table_info(?)`, table)
		if err != nil {
			w.t.Fatal(err)
		}
		for rows.Next() {
			c := column{table: table}
			if err := rows.Scan(&c.name, &c.kind); err != nil {
				w.t.Fatal(err)
			}
			all = append(all, c)
		}
		rows.Close()
	}
	return all
}

// outside are the columns that a yes is not bound to (spec 1.2: who asks, the reason,
// times, metadata and edits stand outside; and what is only shown, counted, or judged
// anew). Altering one may let the approved request run all the same, never another.
var outside = of("run", "goal limits agent flow_version flow_digest continue_by next_try_at detail result failures repeats last_digest model_calls tokens cost active "+
	"active_since fence lease_until lease_owner epoch created_at version head_seq head").
	and("step", "said raw ruling observation message started_at finished_at version").
	and("call", "own_run external_id spec_digest recovery continue_by next_try_at kind message result effective_digest approval_n fence lease_until lease_owner "+
		"epoch created_at ended_at version head_seq head status").
	and("decision", "reason forbid_edits created_at expires_at due_at needs open decided_by decided_principal withdrawn_by withdrawn_principal verified note settled_at epoch version "+
		"prompt options form idempotency_key input").
	and("attempt", "owner started_at ended_at outcome kind message late fence epoch recovery")

type columnSet map[string]bool

func of(table, columns string) columnSet { return columnSet{}.and(table, columns) }

func (s columnSet) and(table, columns string) columnSet {
	all := columnSet{}
	for k := range s {
		all[k] = true
	}
	for _, c := range strings.Fields(columns) {
		all[table+"."+c] = true
	}
	return all
}

func TestAlteredColumns(t *testing.T) {
	t.Parallel()
	approved := func(w *world, id string) {
		r, err := w.d.StartWithID(w.ctx, id, "do it", run.DefaultLimits(), run.As("bot"), run.WithMetadata(map[string]string{"k": "v"}))
		if err != nil {
			w.t.Fatal(err)
		}
		w.approve(r)
	}
	lose := func(w *world, do func(d *run.Driver) (run.Run, error)) {
		h := w.inTool(do)
		h.life.die()
		_, _ = h.goOn()
		w.clock.Advance(run.DefaultLease + time.Microsecond)
	}
	start := func(w *world, id string) func(d *run.Driver) (run.Run, error) {
		return func(d *run.Driver) (run.Run, error) {
			return d.StartWithID(w.ctx, id, "do it", run.DefaultLimits(), run.As("bot"), run.WithMetadata(map[string]string{"k": "v"}))
		}
	}
	const all = "run step call decision attempt"
	for _, tt := range []struct {
		name   string
		make   func(w *world, id string)
		allow  bool // the policy does
		keyed  bool // the tool is
		tables string
		most   int       // how often the tool may run afterwards
		known  columnSet // more that is outside here
		answer bool      // people still have to
	}{
		{"before the yes", func(w *world, id string) {
			if _, err := w.d.StartWithID(w.ctx, id, "do it", run.DefaultLimits(), run.As("bot"), run.WithMetadata(map[string]string{"k": "v"})); err != nil {
				w.t.Fatal(err)
			}
		}, false, false, "run step call decision", 1, of("decision", "grant_ttl spent_digest choice decided_at grant_expires_at consumed_at consumed_by edited_args edited_digest effective_digest"), true},
		{"after the yes", approved, false, false, "run step call decision", 1, of("decision", "spent_digest consumed_by"), false},
		{"after it ran", func(w *world, id string) {
			approved(w, id)
			w.resume(w.run(id))
		}, false, false, all, 0, nil, false},
		{"after a no", func(w *world, id string) {
			if _, err := w.d.StartWithID(w.ctx, id, "do it", run.DefaultLimits()); err != nil {
				w.t.Fatal(err)
			}
			if err := w.d.Reject(w.ctx, id, w.run(id).ApprovalID, "ana", ""); err != nil {
				w.t.Fatal(err)
			}
		}, false, false, "run step call decision", 0, nil, false},
		{"lost", func(w *world, id string) { lose(w, start(w, id)) }, true, false, "run step call attempt", 0, nil, false},
		{"lost after a yes", func(w *world, id string) {
			approved(w, id)
			lose(w, func(d *run.Driver) (run.Run, error) { return d.Resume(w.ctx, id) })
		}, false, false, all, 0, nil, false},
		{"lost, with the tool's key", func(w *world, id string) { lose(w, start(w, id)) }, true, true, "run step call attempt", 1, of("run", "approval_id approval_n").and("step", "approval_id status").and("call", "approval_id").and("attempt", "approval_id"), false},
		{"lost after a yes, with the tool's key", func(w *world, id string) {
			approved(w, id)
			lose(w, func(d *run.Driver) (run.Run, error) { return d.Resume(w.ctx, id) })
		}, false, true, all, 1, of("run", "approval_n").and("step", "status").and("decision", "grant_ttl spent_digest decided_at grant_expires_at consumed_at edited_args edited_digest effective_digest n"), false},
		{"after a yes to run it again", func(w *world, id string) {
			approved(w, id)
			lose(w, func(d *run.Driver) (run.Run, error) { return d.Resume(w.ctx, id) })
			w.approve(w.resume(w.run(id)))
		}, false, false, all, 1, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := quick(t, calls("push", `{"n":1}`))
			w.altered = true
			w.use(func(c *run.Config) { c.GrantTTL, c.ApprovalTTL = 24*time.Hour, 24*time.Hour })
			w.register("push", func(rt *tool.Tool) {
				rt.Idempotent = tt.keyed
				if tt.allow {
					rt.SideEffect = tool.LocalMutation
				}
			})
			w.register("drop", func(rt *tool.Tool) { rt.SideEffect, rt.Idempotent = tool.LocalMutation, true })
			db := w.rawDB()
			defer db.Close()
			ran := map[string]bool{}
			n := 0
			for _, c := range w.columns(strings.Fields(tt.tables)...) {
				for i, forged := range forgeries(c) {
					if (i+len(c.name))%(3*raceFactor) != 0 {
						continue // some of each
					}
					id := fmt.Sprintf("run_%05d", n)
					tt.make(w, id)
					before := w.run(id)
					ranBefore := len(w.spy.calls())
					what := c.table + "." + c.name + " = " + forged
					n++
					if !alter(t, db, c, forged, before) {
						continue
					}
					w.tryEverything(t, what, before, tt.answer)
					var runs []tool.Call
					for _, r := range w.spy.calls()[ranBefore:] {
						if r.RunID != id && r.RunID != before.ID {
							t.Errorf("%s: the tool ran for %s", what, r.RunID)
						}
						runs = append(runs, r)
					}
					if len(runs) > tt.most {
						t.Errorf("%s: the tool ran %d times", what, len(runs))
					}
					for _, r := range runs {
						ran[c.table+"."+c.name] = true
						if r.CallID != before.Current.CallID && before.Current.CallID != "" || r.Tool != "push" || string(r.Args) != `{"n":1}` {
							t.Errorf("%s: the tool ran as %+v with %s", what, r, r.Args)
						}
						if !outside[c.table+"."+c.name] && !tt.known[c.table+"."+c.name] {
							t.Errorf("%s: the tool ran although a yes is bound to this", what)
						}
					}
				}
			}
			var names []string
			for k := range ran {
				names = append(names, k)
			}
			sort.Strings(names)
			t.Logf("%d alterations; ran with %s", n, strings.Join(names, " "))
		})
	}
}

// alter gives a column of the rows of one run another value; false: it has it
// already, or the table's types do not take it.
func alter(t *testing.T, db *sql.DB, c column, forged string, r run.Run) bool {
	t.Helper()
	key, id := "id", r.ID
	switch c.table {
	case "step":
		key = "run_id"
	case "call":
		id = r.Current.CallID
	case "decision":
		id = r.ApprovalID
	case "attempt":
		key, id = "call_id", r.Current.CallID
	}
	if r.Status.Terminal() && (c.table == "call" || c.table == "attempt" || c.table == "decision") {
		key, id = map[string]string{"call": "run_id", "decision": "run_id", "attempt": "call_id"}[c.table], r.ID
		if c.table == "attempt" {
			if err := db.QueryRow(`SELECT call_id FROM step WHERE run_id = ? AND n = 1`, r.ID).Scan(&id); err != nil {
				t.Fatal(err)
			}
		}
	}
	res, err := db.Exec(fmt.Sprintf(`UPDATE %s SET %s = %s WHERE %s = ? AND %s IS NOT %s`, c.table, c.name, forged, key, c.name, forged), id)
	if err != nil {
		if s := err.Error(); strings.Contains(s, "constraint failed") || strings.Contains(s, "cannot store") || strings.Contains(s, "datatype mismatch") {
			return false
		}
		t.Fatalf("%s.%s = %s: %v", c.table, c.name, forged, err)
	}
	n, _ := res.RowsAffected()
	return n > 0
}

// tryEverything decides, resumes and takes over, by every door; time goes on between.
func (w *world) tryEverything(t *testing.T, what string, r run.Run, answer bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v", what, p)
		}
	}()
	ctx := context.Background()
	if answer {
		_ = w.d.Approve(ctx, r.ID, r.ApprovalID, "ana", "")
	}
	_, _ = w.op.Show(ctx, r.ApprovalID)
	_, _ = w.op.Pending(ctx, 500)
	_, _ = decision.ApprovalReason(ctx, w.st, r.ID, r.ApprovalID)
	ex := call.NewExecutor(call.Config{Store: w.st, Tools: w.tools, Policy: w.policy, Now: w.clock.Now})
	for range 3 {
		_, _ = w.d.Resume(ctx, r.ID)
		_, _ = w.d.StartWithID(ctx, r.ID, "do it", run.DefaultLimits())
		_, _ = ex.Resume(ctx, r.ApprovalID, nil)
		_, _ = ex.Handle(ctx, []byte(`{"v":1,"approval_id":"`+r.ApprovalID+`"}`))
		w.clock.Advance(run.DefaultLease + time.Second)
	}
}
