package call_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// Somebody alters one column of one stored row by hand, past every check of the
// schema. Whatever column and whatever value: what runs is what was approved, once,
// or nothing; and nothing panics. What a yes is bound to is refused.

// forgeries are the values that a column is given, as SQL over the row.
func forgeries(c column) []string {
	switch c.kind {
	case "TEXT":
		if c.name == "status" {
			var all []string
			for _, s := range append(call.Statuses(), "approved", "rejected", "consumed", "superseded", "withdrawn", "resolved", "") {
				all = append(all, "'"+string(s)+"'")
			}
			return all
		}
		return append([]string{"''", "NULL", c.name + " || 'x'"}, words[c.name]...)
	case "INTEGER":
		return []string{"NULL", "0", "2", c.name + " - 1", c.name + " + 1000000", "9223372036854775807"}
	case "BLOB":
		return []string{
			"NULL", "x''", "CAST('{}' AS BLOB)", "CAST('{\"n\":9}' AS BLOB)", "CAST('null' AS BLOB)", "x'7bff'",
			"CAST(replace(CAST(" + c.name + " AS TEXT), '1', '9') AS BLOB)", "CAST(replace(CAST(" + c.name + " AS TEXT), 'refund', 'pay') AS BLOB)",
		}
	}
	return nil
}

// words are what a column of text might well say instead.
var words = map[string][]string{
	"type": {"'question'"}, "owner_kind": {"'run'", "'job'"}, "tool": {"'pay'"}, "choice": {"'approve'", "'reject'"},
	"kind": {"'interrupted_side_effect'", "'remote_mutation'"}, "continue_by": {"'daemon'"}, "recovery": {"'person'", "'probe'", "'key'"},
	"outcome": {"'succeeded'", "'failed'", "'unknown'"},
}

type column struct{ table, name, kind string }

// columns lists every column of the tables that a resume reads.
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
	if len(all) < 50 {
		w.t.Fatalf("only %d columns", len(all))
	}
	return all
}

// What stands outside the digests by design (spec 1.2): who asks, the reason, times,
// metadata and edits; and what is only shown or counted. Altering one of these may
// let the approved request run all the same, never another.
var outside = map[string]bool{
	"decision.reason": true, "decision.forbid_edits": true, "decision.created_at": true, "decision.expires_at": true, "decision.due_at": true,
	"decision.needs": true, "decision.open": true,
	"decision.decided_by": true, "decision.decided_principal": true, "decision.withdrawn_by": true, "decision.withdrawn_principal": true, "decision.verified": true, "decision.note": true,
	"decision.settled_at": true, "decision.n": true, "decision.epoch": true, "decision.version": true,
	// Of questions only.
	"decision.prompt": true, "decision.options": true, "decision.form": true, "decision.idempotency_key": true, "decision.input": true,

	"call.own_run": true, "call.external_id": true, "call.spec_digest": true, "call.recovery": true, "call.continue_by": true, "call.next_try_at": true, "call.kind": true,
	"call.message": true, "call.result": true, "call.effective_digest": true, "call.approval_n": true, "call.fence": true, "call.lease_until": true,
	"call.lease_owner": true, "call.epoch": true, "call.created_at": true, "call.ended_at": true, "call.version": true, "call.head_seq": true, "call.head": true,
	"call.status": true, // pending or unknown: either waits for this very yes

	"attempt.owner": true, "attempt.started_at": true, "attempt.ended_at": true, "attempt.outcome": true, "attempt.kind": true, "attempt.message": true,
	"attempt.late": true, "attempt.fence": true, "attempt.epoch": true, "attempt.recovery": true,
}

// What an answer writes. Before it, it is written over; after it was spent, the
// attempt carries its own copy of the arguments, bound to the grant.
var answered = []string{
	"decision.decided_at", "decision.grant_expires_at", "decision.consumed_at",
	"decision.edited_args", "decision.edited_digest", "decision.effective_digest",
}

func TestAlteredColumns(t *testing.T) {
	t.Parallel()
	const original, edited = `{"n":1}`, `{"n":2}`
	plain := func(w *world) *call.PendingError {
		return w.park(original, call.As("bot"), call.WithMetadata(map[string]string{"k": "v"}))
	}
	approved := func(w *world) (string, string) {
		p := plain(w)
		w.approve(p.ApprovalID)
		return p.CallID, p.ApprovalID
	}
	lose := func(w *world, id string) {
		s := w.stall(id)
		w.t.Cleanup(func() { _ = s })
	}
	tests := []struct {
		name   string
		make   func(w *world) (callID, approvalID string)
		key    bool   // the tool has one
		want   string // what may run afterwards
		tables []string
		// known are columns outside for this case only.
		known []string
	}{
		{"before the answer", func(w *world) (string, string) {
			p := plain(w)
			return p.CallID, p.ApprovalID
		}, false, original, []string{"decision", "call"}, append([]string{"decision.grant_ttl", "decision.spent_digest", "decision.choice"}, answered...)},
		{"after the yes", approved, false, original, []string{"decision", "call"}, []string{"decision.spent_digest"}},
		{"after an edit", func(w *world) (string, string) {
			p := plain(w)
			w.decide(p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(edited)})
			return p.CallID, p.ApprovalID
		}, false, edited, []string{"decision", "call"}, []string{"decision.spent_digest"}},
		{"after it ran", func(w *world) (string, string) {
			c, d := approved(w)
			w.resumed(d, call.Succeeded)
			return c, d
		}, false, "", []string{"decision", "call", "attempt"}, nil},
		{"after a no", func(w *world) (string, string) {
			p := plain(w)
			w.reject(p.ApprovalID)
			return p.CallID, p.ApprovalID
		}, false, "", []string{"decision", "call"}, nil},
		{"after a yes to run it again", func(w *world) (string, string) {
			c, d := approved(w)
			lose(w, d)
			q := w.parked(w.ex.Resume(w.ctx, d, nil))
			w.approve(q.ApprovalID)
			return c, q.ApprovalID
		}, false, original, []string{"decision", "call", "attempt"}, nil},
		{"lost, with the tool's key", func(w *world) (string, string) {
			c, d := approved(w)
			lose(w, d)
			return c, d
		}, true, original, []string{"decision", "call", "attempt"}, append([]string{"decision.grant_ttl", "decision.spent_digest"}, answered...)},
		{"lost after an edit, with the tool's key", func(w *world) (string, string) {
			p := plain(w)
			w.decide(p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(edited)})
			lose(w, p.ApprovalID)
			return p.CallID, p.ApprovalID
		}, true, edited, []string{"decision", "call", "attempt"}, append([]string{"decision.grant_ttl", "decision.spent_digest"}, answered...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := quick(t, func(c *call.Config) { c.GrantTTL, c.ApprovalTTL = time.Hour, time.Hour })
			w.altered = true
			w.register(func(rt *tool.Tool) { rt.Idempotent = tt.key })
			pay := &spy{}
			if err := w.tools.Register(tool.Tool{Spec: tool.Spec{Name: "pay", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: pay, Idempotent: tt.key}); err != nil {
				t.Fatal(err)
			}
			db := w.rawDB()
			defer db.Close()
			allowed := map[string]bool{}
			for _, k := range tt.known {
				allowed[k] = true
			}
			ran := map[string]bool{}
			n := 0
			for _, c := range w.columns(tt.tables...) {
				for i, forged := range forgeries(c) {
					if (i+len(c.name))%raceFactor != 0 {
						continue // under the race detector some of them do
					}
					callID, approvalID := tt.make(w)
					before := len(w.spy.calls())
					if !alter(t, db, c, forged, callID, approvalID) {
						continue
					}
					n++
					what := c.table + "." + c.name + " = " + forged
					w.tryEverything(t, what, callID, approvalID, tt.name == "before the answer")
					runs := w.spy.calls()[before:]
					if len(runs) > 1 {
						t.Errorf("%s: the tool ran %d times", what, len(runs))
					}
					for _, r := range runs {
						ran[c.table+"."+c.name] = true
						if r.CallID != callID || r.Tool != "refund" || string(r.Args) != tt.want {
							t.Errorf("%s: the tool ran as %+v with %s, want %q", what, r, r.Args, tt.want)
						}
						if !outside[c.table+"."+c.name] && !allowed[c.table+"."+c.name] {
							t.Errorf("%s: the tool ran although a yes is bound to this", what)
						}
					}
					if p := pay.args(); p != "" {
						t.Fatalf("%s: another tool ran with %s", what, p)
					}
				}
			}
			var names []string
			for k := range ran {
				names = append(names, k)
			}
			sort.Strings(names)
			t.Logf("%d alterations; ran with %s", n, strings.Join(names, " "))
			if n < 100/raceFactor {
				t.Errorf("only %d alterations", n)
			}
		})
	}
}

// alter gives a column of the rows of one call another value; false: it has it
// already, or the table's types do not take it.
func alter(t *testing.T, db *sql.DB, c column, forged, callID, approvalID string) bool {
	t.Helper()
	key, id := "id", approvalID
	switch c.table {
	case "call":
		id = callID
	case "attempt":
		key, id = "call_id", callID
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

// tryEverything decides, resumes and repeats, by every door.
func (w *world) tryEverything(t *testing.T, what, callID, approvalID string, answer bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v", what, p)
		}
	}()
	if answer {
		_, _ = w.op.Decide(w.ctx, approvalID, *yes("ana"))
	}
	_, _ = w.op.Show(w.ctx, approvalID)
	_, _ = w.op.Pending(w.ctx, 500)
	_, _ = decision.ApprovalReason(w.ctx, w.st, "", approvalID)
	for _, a := range []*decision.Answer{nil, yes("ana")} {
		_, _ = w.ex.Resume(w.ctx, approvalID, a)
	}
	_, _ = w.ex.Handle(w.ctx, []byte(`{"v":1,"approval_id":"`+approvalID+`"}`))
	var runID string
	_ = viewTx(w.ctx, w.st, func(tx storeTx) error {
		c, err := tx.Call(callID)
		runID = c.RunID
		return err
	})
	for _, args := range []string{`{"n":1}`, `{"n":9}`} {
		_, _ = w.ex.RunCall(w.ctx, runID, callID, "refund", []byte(args))
	}
}

// Content altered alone: no yes, and no start; a no is always possible (spec 1.3).
func TestContentAltered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	q := w.park(`{"n":1}`)
	w.approve(q.ApprovalID)
	w.raw(`UPDATE decision SET presentation = CAST('{"title":"harmless"}' AS BLOB)`)
	_, err := w.op.Decide(w.ctx, p.ApprovalID, *yes("ana"))
	w.refused(err, "approval_hash")
	_, err = w.ex.Resume(w.ctx, p.ApprovalID, yes("ana"))
	w.refused(err, "approval_hash")
	_, err = w.ex.Resume(w.ctx, q.ApprovalID, nil)
	w.refused(err, "approval_hash")
	w.status(p, call.Pending, decision.Pending)
	w.status(q, call.Pending, decision.Approved)
	w.ran("")
	w.reject(p.ApprovalID)
	w.resumed(p.ApprovalID, call.Denied)
}

// The shown hash replaced together with its content: only what was shown can tell.
func TestContentAndDigestAltered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	d := w.decision(p.ApprovalID)
	d.Presentation = []byte(`{"title":"harmless"}`)
	digest, err := d.Binding()
	if err != nil {
		t.Fatal(err)
	}
	w.raw(`UPDATE decision SET presentation = ?, digest = ?`, d.Presentation, digest)
	for _, f := range []func() error{
		func() error { return w.op.ApproveShown(w.ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "") },
		func() error { return w.op.RejectShown(w.ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "") },
		func() error { return w.op.ApproveShown(w.ctx, p.RunID, p.ApprovalID, "", "ana", "") },
		func() error {
			_, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana", Shown: p.Digest, EditedArgs: []byte(`{}`)})
			return err
		},
		func() error {
			_, err := w.ex.Resume(w.ctx, p.ApprovalID, &decision.Answer{Approved: true, By: "ana", Shown: p.Digest})
			return err
		},
	} {
		w.refused(f(), "approval_changed")
	}
	w.status(p, call.Pending, decision.Pending)
	w.ran("")
}

// Altered records must not keep the others from being swept, also where they fill all
// that a sweep looks at in one go.
func TestSweepPastAltered(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{10, 1} {
		sweepPastAltered(t, limit)
	}
}

func sweepPastAltered(t *testing.T, limit int) {
	t.Helper()
	w := setup(t, func(c *call.Config) { c.ApprovalTTL = call.DefaultLease / 2 })
	bad, good := w.park(`{"n":1}`), w.park(`{"n":2}`)
	w.raw(`UPDATE decision SET owner_kind = 'run' WHERE id = ?`, bad.ApprovalID)
	lostBad, lostGood := w.park(`{"n":3}`), w.park(`{"n":4}`)
	for _, p := range []*call.PendingError{lostBad, lostGood} {
		w.approve(p.ApprovalID)
	}
	w.stall(lostBad.ApprovalID)
	w.clock.advance(-call.DefaultLease)
	w.stall(lostGood.ApprovalID)
	w.raw(`UPDATE call SET args = CAST('{"n":9}' AS BLOB) WHERE id = ?`, lostBad.CallID)
	n, err := w.ex.Sweep(w.ctx, limit)
	if n != 2 || err == nil || !errors.Is(err, call.ErrApprovalHash) {
		t.Errorf("swept %d, %v", n, err)
	}
	w.status(good, call.Expired, decision.Expired)
	if d := w.latest(lostGood.CallID); d.Kind != decision.KindInterrupted {
		t.Errorf("asked %+v", d)
	}
	if d := w.latest(lostBad.CallID); d.Kind == decision.KindInterrupted {
		t.Errorf("a person is asked about what was altered: %+v", d)
	}
}

// Events are read only to be shown and checked; altering one starts nothing.
func TestAlteredEventsStartNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"n":1}`)
	w.raw(`DROP TRIGGER event_update`)
	w.raw(`UPDATE event SET type = 'approval.decided', payload = CAST('{"status":"approved"}' AS BLOB), hash = x'01' WHERE type = 'approval.requested'`)
	_, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	w.refused(err, "usage")
	page, err := event.Read(context.Background(), w.st, "call:"+p.CallID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(2, len(page.Events)); diff != "" {
		t.Error(diff)
	}
	rep, err := event.Verify(w.ctx, w.st, nil)
	if err != nil || rep.Break == nil || rep.Break.StreamSeq != 2 {
		t.Errorf("verify: %+v, %v", rep, err)
	}
	w.ran("")
}

// Any column, altered between the judging and the start: what runs is what was
// judged and agreed to, once, or nothing. What the start has to notice is in
// guarded_test.go.
func TestAlteredWhileJudged(t *testing.T) {
	t.Parallel()
	w := quick(t, func(c *call.Config) { c.GrantTTL = time.Hour })
	w.altered = true
	db := w.rawDB()
	defer db.Close()
	n := 0
	for _, c := range w.columns("decision", "call") {
		for i, forged := range forgeries(c) {
			if (i+len(c.name))%raceFactor != 0 {
				continue
			}
			p := w.park(`{"n":1}`, call.As("bot"), call.WithMetadata(map[string]string{"k": "v"}))
			w.approve(p.ApprovalID)
			before, altered, judged := len(w.spy.calls()), false, 0
			w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
				if judged++; judged == 1 {
					altered = alter(t, db, c, forged, p.CallID, p.ApprovalID)
				}
				return policy.Default().Evaluate(ctx, r, v)
			})
			_, _ = w.ex.Resume(w.ctx, p.ApprovalID, nil)
			w.policy.set(nil)
			if !altered {
				continue
			}
			n++
			runs := w.spy.calls()[before:]
			for _, r := range runs {
				if len(runs) > 1 || r.CallID != p.CallID || r.RunID != p.RunID || r.Tool != "refund" || string(r.Args) != `{"n":1}` {
					t.Errorf("%s.%s = %s: the tool ran as %+v with %s", c.table, c.name, forged, r, r.Args)
				}
			}
		}
	}
	if n < 200/raceFactor {
		t.Errorf("only %d alterations", n)
	}
}
