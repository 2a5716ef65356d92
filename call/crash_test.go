package call_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// faulty is a way to the store on which one commit goes wrong.
type faulty struct {
	txn.Store
	n, at int
	mode  string
	dead  bool
}

func (f *faulty) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if f.dead {
		return errDead
	}
	if f.n++; f.n != f.at {
		return f.Store.Update(ctx, fn)
	}
	switch f.mode {
	case "killed before":
		f.dead = true
		return errDead
	case "killed after":
		err := f.Store.Update(ctx, fn)
		f.dead = true
		return errors.Join(err, errDead)
	case "not committed":
		return txn.ErrNotCommitted.Say("the disk is full")
	case "unknown, committed":
		if err := f.Store.Update(ctx, fn); err != nil {
			return err
		}
	}
	return txn.ErrUnknown
}

func (f *faulty) View(ctx context.Context, fn func(txn.Tx) error) error {
	if f.dead {
		return errDead
	}
	return f.Store.View(ctx, fn)
}

// From the request to the result there are four commits. Whichever fails, and however:
// nothing starts on a commit that is not known, an outcome that can still be stored is
// stored, and in the end each yes had at most one effect.
func TestFailedCommits(t *testing.T) {
	t.Parallel()
	names := []string{1: "park", 2: "decide", 3: "start", 4: "finish"}
	for at := 1; at < len(names); at++ {
		for _, mode := range []string{"killed before", "killed after", "not committed", "unknown, committed", "unknown, lost"} {
			for _, edit := range []string{"", `{"n":2}`} {
				t.Run(fmt.Sprintf("%s %s %s", names[at], mode, edit), func(t *testing.T) {
					t.Parallel()
					w := setup(t)
					f := &faulty{Store: w.st, at: at, mode: mode}
					ex := w.executor(f)
					answer := *yes("ana")
					want := `{"n":1}`
					if edit != "" {
						answer.EditedArgs, want = []byte(edit), edit
					}
					op := decision.Operator{Store: f, Now: w.clock.Now}
					var p *call.PendingError
					_, err := ex.Call(w.ctx, "refund", []byte(`{"n":1}`))
					var res call.Result
					if errors.As(err, &p) {
						if _, err = op.Decide(w.ctx, p.ApprovalID, answer); err == nil {
							res, err = ex.Resume(w.ctx, p.ApprovalID, nil)
						}
					}
					ran := len(w.spy.calls())
					if (ran == 1) != (at == 4) {
						t.Fatalf("the tool ran %d times; %v", ran, err)
					}
					killed := mode == "killed before" || mode == "killed after"
					switch {
					case killed && !errors.Is(err, errDead):
						t.Errorf("a dead process was told %v", err)
					case at == 4 && !killed && (err != nil || res.Status != call.Succeeded):
						t.Errorf("an outcome that can be stored was not: %+v, %v", res, err)
					case at < 4 && mode == "not committed" && !errors.Is(err, txn.ErrNotCommitted), at < 4 && mode[0] == 'u' && !errors.Is(err, txn.ErrUnknown):
						t.Errorf("told %v", err)
					case at == 4 && killed && !errors.Is(err, txn.ErrUnknown):
						t.Errorf("after the tool ran, told %v", err)
					}
					w.bringToEnd(t, want)
				})
			}
		}
	}
}

// bringToEnd does what people would do then, until the call has ended.
func (w *world) bringToEnd(t *testing.T, want string) {
	t.Helper()
	var callID string
	db := w.rawDB()
	_ = db.QueryRow(`SELECT id FROM call`).Scan(&callID)
	db.Close()
	if callID == "" {
		w.ran("")
		return
	}
	for range 8 {
		c := w.call(callID)
		if c.Status.Terminal() {
			break
		}
		d := w.latest(callID)
		switch {
		case d.Status == decision.Pending && d.Kind != decision.KindInterrupted && want != `{"n":1}`:
			w.decide(d.ID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(want)})
		case d.Status == decision.Pending:
			w.approve(d.ID)
		default:
			w.clock.advance(call.DefaultLease + time.Microsecond)
			_, _ = w.ex.Resume(w.ctx, d.ID, nil)
		}
	}
	if c := w.call(callID); c.Status != call.Succeeded {
		t.Errorf("it ended as %+v", c)
	}
	spent := w.number(`SELECT count(*) FROM decision WHERE status = 'consumed' AND choice = 'approve'`)
	runs := w.spy.calls()
	if int64(len(runs)) > spent || len(runs) == 0 {
		t.Errorf("%d effects of %d answers", len(runs), spent)
	}
	for _, r := range runs {
		if string(r.Args) != want {
			t.Errorf("ran %s, want %s", r.Args, want)
		}
	}
}
