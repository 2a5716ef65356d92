package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// A store that went back in time starts nothing on what was agreed before (design §4, rule 9).

// restorable is a world whose clock tells the real time: that is what a restored
// store goes by as well.
func restorable(t *testing.T) *world {
	t.Helper()
	w := setup(t)
	w.clock.set(time.Now())
	return w
}

func (w *world) backup() (file string) {
	w.t.Helper()
	file = filepath.Join(filepath.Dir(w.path), fmt.Sprintf("backup%d.db", w.clock.us.Load()))
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
	w.clock.set(time.Now())
	w.st = w.open()
	w.ex = w.executor(w.st)
	w.op = decision.Operator{Store: w.st, Now: w.clock.Now}
}

func TestRestoredGrant(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{"", ` {"n":2}`} {
		for _, ran := range []bool{true, false} {
			t.Run("edit"+edit, func(t *testing.T) {
				t.Parallel()
				w := restorable(t)
				p := w.park(`{"n":1}`)
				want := `{"n":1}`
				answer := yes("ana")
				if edit != "" {
					want, answer.EditedArgs = edit, []byte(edit)
				}
				w.decide(p.ApprovalID, *answer)
				file, to := w.backup(), w.clock.Now().Format(time.RFC3339)
				runs := ""
				if ran {
					w.resumed(p.ApprovalID, call.Succeeded)
					runs = want + " "
				}
				w.restore(file)
				w.status(p, call.Pending, decision.Approved)
				q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
				d := w.decision(q.ApprovalID)
				if d.Kind != decision.KindInterrupted || d.SpentDigest != p.Digest || !strings.Contains(d.Reason, "restored to "+to+"; this call may already have run") {
					t.Errorf("asked %+v", d)
				}
				req, err := request.Decode(d.Request)
				if err != nil || string(req.Args) != strings.TrimSpace(want) {
					t.Errorf("asked for %s", req.Args)
				}
				if c := w.call(p.CallID); c.Status != call.Unknown || w.decision(p.ApprovalID).Status != decision.Superseded {
					t.Errorf("call %+v", c)
				}
				_, err = w.ex.Resume(w.ctx, p.ApprovalID, nil)
				if reason(err) != "already_decided" || !strings.Contains(err.Error(), q.ApprovalID) {
					t.Errorf("the old id: %v", err)
				}
				w.approve(q.ApprovalID) // one yes is enough
				res := w.resumed(q.ApprovalID, call.Succeeded)
				if res.Edited != (edit != "") {
					t.Errorf("result %+v", res)
				}
				if got := w.spy.args(); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(runs+want, " ", "") {
					t.Errorf("ran %q after %q", got, runs)
				}
			})
		}
	}
}

// What was asked before may have been agreed to and done since: a yes that comes again,
// from a client that repeats itself, runs nothing. A person is told, and says so anew.
func TestRestoredRequest(t *testing.T) {
	t.Parallel()
	for _, ran := range []bool{true, false} {
		t.Run(fmt.Sprintf("ran %v", ran), func(t *testing.T) {
			t.Parallel()
			w := restorable(t)
			p := w.park(`{"n":1}`)
			file, runs := w.backup(), ""
			if ran {
				w.approve(p.ApprovalID)
				w.resumed(p.ApprovalID, call.Succeeded)
				runs = `{"n":1} `
			}
			w.restore(file)
			w.status(p, call.Pending, decision.Pending)
			w.approve(p.ApprovalID)
			q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			if d := w.decision(q.ApprovalID); d.Kind != decision.KindInterrupted || !strings.Contains(d.Reason, "this call may already have run") {
				t.Errorf("asked %+v", d)
			}
			w.ran(strings.TrimSpace(runs))
			w.approve(q.ApprovalID)
			w.resumed(q.ApprovalID, call.Succeeded)
			w.ran(runs + `{"n":1}`)
		})
	}
}

// An attempt that ran when the backup was taken is unknown at once, lease or not.
func TestRestoredAttempt(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"resume", "sweep"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := restorable(t)
			p := w.park(`{"n":1}`)
			w.approve(p.ApprovalID)
			g := newGate()
			w.spy.then(g.hold)
			done := make(chan struct{})
			go func() { defer close(done); w.ex.Resume(w.ctx, p.ApprovalID, nil) }()
			<-g.began
			file := w.backup()
			a := w.attempts(p.CallID)[0]
			close(g.open)
			<-done
			w.spy.then(nil)
			w.restore(file)
			if c := w.call(p.CallID); c.Status != call.Running {
				t.Fatalf("call %+v", c)
			}
			// What the process of the earlier life still has to say means nothing here.
			err := txn.Update(w.ctx, w.st, func(tx store.Tx) error { return call.Renew(tx, a.CallID, a.Fence, a.Epoch+1, time.Minute) })
			w.refused(err, "lease_lost")
			if by == "sweep" {
				if n, err := w.ex.Sweep(w.ctx, 10); n != 1 || err != nil {
					t.Errorf("swept %d, %v", n, err)
				}
			} else {
				w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
			}
			q := w.latest(p.CallID)
			if q.Kind != decision.KindInterrupted || !strings.Contains(q.Reason, "restored to") {
				t.Errorf("asked %+v", q)
			}
			w.ran(`{"n":1}`)
			w.approve(q.ID)
			w.resumed(q.ID, call.Succeeded)
			w.ran(`{"n":1} {"n":1}`)
		})
	}
}

// A yes to run it again, of the life before: it has to be given once more.
func TestRestoredSecondYes(t *testing.T) {
	t.Parallel()
	w := restorable(t)
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	s := w.stall(p.ApprovalID)
	q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
	w.approve(q.ApprovalID)
	file := w.backup()
	if _, err := s.goOn(); err != nil {
		t.Error(err)
	}
	w.restore(file)
	r := w.parked(w.ex.Resume(w.ctx, q.ApprovalID, nil))
	if d := w.decision(r.ApprovalID); d.Kind != decision.KindInterrupted || d.SpentDigest != p.Digest {
		t.Errorf("asked %+v", d)
	}
	w.status(r, call.Unknown, decision.Pending)
	w.approve(r.ApprovalID)
	w.resumed(r.ApprovalID, call.Succeeded)
}

// The tool's key or probe may settle it without a person.
func TestRestoredAndTool(t *testing.T) {
	t.Parallel()
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		w := restorable(t)
		w.register(func(rt *tool.Tool) { rt.Idempotent = true })
		p := w.park(`{"n":1}`)
		w.approve(p.ApprovalID)
		file := w.backup()
		w.resumed(p.ApprovalID, call.Succeeded)
		w.restore(file)
		w.resumed(p.ApprovalID, call.Succeeded)
		for _, c := range w.spy.calls() {
			if c.CallID != p.CallID {
				t.Errorf("another key: %+v", c)
			}
		}
	})
	t.Run("probe", func(t *testing.T) {
		t.Parallel()
		w := restorable(t)
		answer, fail := tool.ProbeResult{}, errors.New("no network")
		w.register(func(rt *tool.Tool) {
			rt.Probe = tool.ProberFunc(func(_ context.Context, c tool.Call) (tool.ProbeResult, error) {
				if string(c.Args) != `{"n":1}` || c.CallID == "" {
					t.Errorf("the probe was asked about %+v", c)
				}
				return answer, fail
			})
		})
		p := w.parked(w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`)))
		w.approve(p.ApprovalID)
		file := w.backup()
		w.resumed(p.ApprovalID, call.Succeeded)
		w.restore(file)
		for range 2 { // the probe cannot say: nothing is settled, and both doors stay open
			w.resumed(p.ApprovalID, call.Unknown)
			res, err := w.ex.RunCall(w.ctx, "r", "c", "refund", []byte(`{"n":1}`))
			if err != nil || res.Status != call.Unknown {
				t.Errorf("got %+v, %v", res, err)
			}
		}
		w.ran(`{"n":1}`)
		answer, fail = tool.ProbeResult{Outcome: tool.ProbeNotFound}, nil
		q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
		if d := w.decision(q.ApprovalID); d.SpentDigest != p.Digest {
			t.Errorf("asked %+v", d)
		}
		answer = tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`"it did"`)}
		w.approve(q.ApprovalID)
		res := w.resumed(q.ApprovalID, call.Succeeded)
		if string(res.Value) != `"it did"` {
			t.Errorf("result %+v", res)
		}
		w.ran(`{"n":1}`)
	})
}
