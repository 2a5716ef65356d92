package run_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// A store that went back in time starts nothing on what was agreed before (design §4, rule 9).

// restorable is a world whose clock tells the real time: that is what a restored
// store goes by as well.
func restorable(t *testing.T, ps ...run.Proposal) *world {
	t.Helper()
	w := setup(t, ps...)
	w.clock.Set(time.Now())
	return w
}

func (w *world) backup() (file string) {
	w.t.Helper()
	file = filepath.Join(filepath.Dir(w.path), fmt.Sprintf("backup%d.db", w.clock.Now().UnixMicro()))
	if err := sqlite.Backup(w.ctx, w.path, file); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// restore puts a backup back; everything is opened anew.
func (w *world) restore(file string) {
	w.t.Helper()
	if err := w.st.Close(); err != nil {
		w.t.Fatal(err)
	}
	if err := sqlite.Restore(w.ctx, w.path, file); err != nil {
		w.t.Fatal(err)
	}
	w.clock.Set(time.Now())
	w.st = w.open()
	w.use(nil)
	w.op = decision.Operator{Store: w.st, Now: w.clock.Now}
}

// A yes of an earlier life: the call may have run after the backup, so it needs a new
// yes, the tool's probe or its key.
func TestRestoredGrant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*tool.Tool)
		allow  bool // the policy does by now
		asks   bool
		runs   int
	}{
		"person":             {nil, false, true, 2},
		"person and allowed": {nil, true, true, 2},
		"key":                {func(rt *tool.Tool) { rt.Idempotent = true }, false, false, 2},
		"probe, succeeded":   {probed(tool.ProbeSucceeded, nil), false, false, 1},
		"probe, failed":      {probed(tool.ProbeFailed, nil), false, false, 1},
		"probe, not found":   {probed(tool.ProbeNotFound, nil), false, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := restorable(t, calls("push", `{"n":1}`))
			w.register("push", tt.change)
			r := w.approved()
			file := w.backup()
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.restore(file)
			if tt.allow {
				w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
			}
			w.stands(w.run(r.ID), run.Waiting, "")
			after := w.resume(r)
			if !tt.asks {
				w.stands(after, run.Completed, run.GoalCompleted)
				if n := len(w.spy.calls()); n != tt.runs {
					t.Errorf("it ran %d times", n)
				}
				return
			}
			d := w.asked(r.ID)
			if w.stands(after, run.Waiting, ""); d.Kind != decision.KindInterrupted || !strings.Contains(d.Reason, "restored to") || w.decision(r.ApprovalID).Status != decision.Superseded {
				t.Fatalf("asked %+v", d)
			}
			if c := w.call(after.Current.CallID); c.Status != call.Unknown {
				t.Errorf("call %s", c.Status)
			}
			w.ran(`push{"n":1}`)
			_, err := w.d.Resume(w.ctx, r.ID)
			w.refused(err, "run_state")
			w.approve(r)
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.ran(`push{"n":1} push{"n":1}`)
		})
	}
}

// What was asked before may have been agreed to and done since: a yes to it is asked
// about once more.
func TestRestoredRequest(t *testing.T) {
	t.Parallel()
	w := restorable(t, calls("push", `{"n":1}`))
	r := w.waiting()
	w.restore(w.backup())
	w.approve(r)
	r = w.resume(r)
	w.stands(r, run.Waiting, "")
	if d := w.asked(r.ID); d.Kind != decision.KindInterrupted || !strings.Contains(d.Reason, "restored to") {
		t.Fatalf("asked %+v", d)
	}
	w.ran("")
	w.approve(r)
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	w.ran(`push{"n":1}`)
}

// A run that was worked on when the backup was taken belongs to nobody in the new
// life: it is taken over at once, and its tool's outcome is not known.
func TestRestoredWhileRunning(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"look", "push"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := restorable(t, calls(name, `{"n":1}`))
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
			h := w.inTool(func(d *run.Driver) (run.Run, error) {
				return d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
			})
			file := w.backup()
			_, _ = h.goOn()
			w.restore(file)
			r := w.resume(w.run("run_x"))
			if name == "look" {
				w.stands(r, run.Completed, run.GoalCompleted)
				return
			}
			if d := w.asked(r.ID); r.Status != run.Waiting || d.Kind != decision.KindInterrupted {
				t.Fatalf("run %s, asked %+v", r.Status, d)
			}
			w.ran(`push{"n":1}`)
			w.approve(r)
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.ran(`push{"n":1} push{"n":1}`)
		})
	}
}
