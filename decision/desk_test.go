package decision_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one test's own: a store whose closures all run twice, a clock, calls that wait.
type world struct {
	t    *testing.T
	ctx  context.Context
	path string
	us   atomic.Int64
	st   *store.Store
	ex   *call.Executor
	op   decision.Operator
	seen []event.Event // by the operator's observer
	mu   sync.Mutex
}

func setup(t *testing.T, change ...func(*call.Config)) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "p.db")}
	w.us.Store(noon.UnixMicro())
	var err error
	w.st, err = sqlite.Open(w.ctx, w.path, &sqlite.Options{Now: w.now, Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.st.Close() })
	reg, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), SideEffect: tool.RemoteMutation},
		Run:  tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`1`), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := call.Config{Store: w.st, Tools: reg, Now: w.now, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	w.ex = call.NewExecutor(c)
	w.op = decision.Operator{Store: w.st, Now: w.now, Observer: event.ObserverFunc(w.see)}
	return w
}

// see hears of events, of several goroutines too: a sweep ends some at once.
func (w *world) see(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
}

func (w *world) now() time.Time       { return time.UnixMicro(w.us.Load()) }
func (w *world) wait(d time.Duration) { w.us.Add(d.Microseconds()) }

func (w *world) park(opts ...call.Option) *call.PendingError {
	w.t.Helper()
	var p *call.PendingError
	if _, err := w.ex.Call(w.ctx, "refund", []byte(`{"n":1}`), opts...); !errors.As(err, &p) {
		w.t.Fatalf("not parked: %v", err)
	}
	return p
}

func (w *world) get(id string) (d decision.Decision) {
	w.t.Helper()
	err := txn.View(w.ctx, w.st, func(tx decision.Tx) (err error) { d, err = tx.Decision(id); return err })
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) raw(query string, args ...any) {
	w.t.Helper()
	u := url.URL{Scheme: "file", Path: w.path}
	db, err := sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(20000)&_pragma=wal_autocheckpoint(0)&_pragma=ignore_check_constraints(1)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// Every error row of spec 1.3, by every door that decides; nothing else is changed by it.
func TestDecideErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		ready func(w *world, p *call.PendingError) (runID, id, shown string)
		yes   string // reason of a yes, "" if it is taken
		no    string
		after decision.Status
	}{
		{"no such approval", func(w *world, p *call.PendingError) (string, string, string) { return p.RunID, "apr_x", p.Digest }, "not_found", "not_found", decision.Pending},
		{"not of that run", func(w *world, p *call.PendingError) (string, string, string) { return "run_x", p.ApprovalID, p.Digest }, "not_found", "not_found", decision.Pending},
		{"a question", func(w *world, p *call.PendingError) (string, string, string) {
			w.raw(`UPDATE decision SET type = 'question'`)
			return p.RunID, p.ApprovalID, p.Digest
		}, "not_found", "not_found", decision.Pending},
		{"expired before", func(w *world, p *call.PendingError) (string, string, string) {
			w.wait(time.Hour + time.Microsecond)
			if n, err := w.op.ExpireDue(w.ctx, 10); n != 1 || err != nil {
				w.t.Errorf("expired %d, %v", n, err)
			}
			return p.RunID, p.ApprovalID, p.Digest
		}, "approval_expired", "approval_expired", decision.Expired},
		{"approved before", func(w *world, p *call.PendingError) (string, string, string) {
			_, _ = w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "bo"})
			return p.RunID, p.ApprovalID, "x"
		}, "not_pending", "not_pending", decision.Approved},
		{"not the latest", func(w *world, p *call.PendingError) (string, string, string) {
			w.raw(`UPDATE call SET approval_id = 'apr_newer'`)
			return p.RunID, p.ApprovalID, "x"
		}, "run_state", "run_state", decision.Pending},
		{"its call ended", func(w *world, p *call.PendingError) (string, string, string) {
			w.raw(`UPDATE call SET status = 'denied', ended_at = 1`)
			return p.RunID, p.ApprovalID, "x"
		}, "run_state", "run_state", decision.Pending},
		{"its call runs", func(w *world, p *call.PendingError) (string, string, string) {
			w.raw(`UPDATE call SET status = 'running', lease_until = 1`)
			return p.RunID, p.ApprovalID, "x"
		}, "run_state", "run_state", decision.Pending},
		{"another showing", func(w *world, p *call.PendingError) (string, string, string) {
			w.wait(time.Hour + time.Microsecond) // and too late as well
			return p.RunID, p.ApprovalID, p.Digest + "x"
		}, "approval_changed", "approval_changed", decision.Pending},
		{"no showing", func(w *world, p *call.PendingError) (string, string, string) { return p.RunID, p.ApprovalID, "" }, "approval_changed", "approval_changed", decision.Pending},
		{"too late", func(w *world, p *call.PendingError) (string, string, string) {
			w.wait(time.Hour + time.Microsecond)
			return p.RunID, p.ApprovalID, p.Digest
		}, "approval_expired", "approval_expired", decision.Expired},
		{"at the last instant", func(w *world, p *call.PendingError) (string, string, string) {
			w.wait(time.Hour)
			return p.RunID, p.ApprovalID, p.Digest
		}, "", "", ""},
		{"altered content", func(w *world, p *call.PendingError) (string, string, string) {
			w.raw(`UPDATE decision SET kind = 'harmless'`)
			return p.RunID, p.ApprovalID, p.Digest
		}, "approval_hash", "", decision.Pending},
		{"as it is", func(w *world, p *call.PendingError) (string, string, string) { return p.RunID, p.ApprovalID, p.Digest }, "", "", ""},
		{"of any run", func(w *world, p *call.PendingError) (string, string, string) { return "", p.ApprovalID, p.Digest }, "", "", ""},
	}
	for _, tt := range tests {
		for _, approve := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, yes %v", tt.name, approve), func(t *testing.T) {
				t.Parallel()
				w := setup(t, func(c *call.Config) { c.ApprovalTTL = time.Hour })
				p := w.park()
				runID, id, shown := tt.ready(w, p)
				before := w.get(p.ApprovalID)
				w.seen = nil
				want, decide := tt.yes, w.op.ApproveShown
				if !approve {
					want, decide = tt.no, w.op.RejectShown
				}
				err := decide(w.ctx, runID, id, shown, "ana", "words")
				after := w.get(p.ApprovalID)
				if want == "" {
					if err != nil || after.DecidedBy != "ana" || after.Note != "words" || len(w.seen) == 0 || !after.DecidedAt.Equal(w.now()) {
						t.Errorf("%v: %+v, observed %v", err, after, w.seen)
					}
					return
				}
				if reason(err) != want {
					t.Errorf("got %v, want %s", err, want)
				}
				if after.Status != tt.after {
					t.Errorf("the approval is %s, want %s", after.Status, tt.after)
				}
				if written := after.Version != before.Version; written != (before.Status != after.Status) || written != (len(w.seen) > 0) {
					t.Errorf("changed %v, observed %v", written, w.seen)
				}
				if st, ok := decision.StandingOf(err); ok != (want == "not_pending" || want == "approval_expired") || ok && (st.ApprovalID != p.ApprovalID || st.Status != after.Status || st.By != after.DecidedBy) {
					t.Errorf("the refusal carries %+v", st)
				}
				if want == "approval_expired" && (!errors.Is(err, decision.ErrNotPending) || !strings.Contains(err.Error(), "2026-03-01T13:00:00Z")) {
					t.Errorf("the refusal does not name the instant: %v", err)
				}
			})
		}
	}
}

// An answer that could never be recorded as given is refused before anything else.
func TestUnusableAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park()
	long := strings.Repeat("é", decision.MaxBy)
	for _, a := range []decision.Answer{
		{},
		{Approved: true},
		{By: ""},
		{By: long + "e"},
		{By: "\xff"},
		{By: "a\x00"},
		{By: "ana", Note: "\xc3("},
		{By: "ana", Note: "\x00"},
		{By: "ana", Note: strings.Repeat("n", decision.MaxNote+1)},
		{By: "ana", EditedArgs: []byte(`{}`)},
	} {
		for _, id := range []string{p.ApprovalID, "apr_x"} {
			if _, err := w.op.Decide(w.ctx, id, a); !errors.Is(err, decision.ErrUsage) {
				t.Errorf("%.20q: %v", a.By, err)
			}
		}
		if a.EditedArgs == nil {
			if _, err := w.op.Withdraw(w.ctx, p.ApprovalID, a.By, a.Note); !errors.Is(err, decision.ErrUsage) {
				t.Errorf("withdraw %.20q: %v", a.By, err)
			}
			if err := w.op.Cancel(w.ctx, p.RunID, a.By, a.Note); !errors.Is(err, decision.ErrUsage) {
				t.Errorf("cancel %.20q: %v", a.By, err)
			}
		}
	}
	// Cases 049, 106: what can be recorded is, exactly.
	note := "zweizeilig\nпривет \u202e " + strings.Repeat("n", decision.MaxNote-30)
	d, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: long, Note: note})
	if err != nil || d.DecidedBy != long || d.Note != note || w.get(p.ApprovalID).Note != note {
		t.Errorf("got %v", err)
	}
}

// What a decision returns is what is stored (case 061).
func TestReturnedIsStored(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *call.Config) { c.GrantTTL = 1500 * time.Nanosecond; c.ApprovalTTL = time.Hour })
	w.op.Principal, w.op.Verified = "oidc:ana", true
	nanos := w.now().Add(999 * time.Nanosecond).In(time.FixedZone("x", -6*3600)) // case 057
	w.op.Now = func() time.Time { return nanos }
	p := w.park(call.As("bot"))
	d, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(` {"n":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, w.get(p.ApprovalID)); diff != "" {
		t.Errorf("-returned +stored:\n%s", diff)
	}
	if !d.DecidedAt.Equal(noon) || !d.GrantExpiresAt.Equal(noon.Add(2*time.Microsecond)) || !d.Verified || d.DecidedPrincipal != "oidc:ana" {
		t.Errorf("%+v", d)
	}
	q := w.park()
	d, err = w.op.Withdraw(w.ctx, q.ApprovalID, "x", "")
	if reason(err) != "forbidden" { // it was not oidc:ana who asked
		t.Errorf("got %v", err)
	}
	w.op.MayOwn = true
	if d, err = w.op.Withdraw(w.ctx, q.ApprovalID, "x", ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, w.get(q.ApprovalID)); diff != "" {
		t.Errorf("-returned +stored:\n%s", diff)
	}
}

// The sweep: strictly after the instant, each once, of several sweepers each its own.
func TestExpireDue(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = time.Hour, time.Minute })
	var ps []*call.PendingError
	for range 12 {
		ps = append(ps, w.park())
	}
	for _, p := range ps[:4] { // grants: these end sooner
		if _, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana"}); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(limit, want int) {
		t.Helper()
		var n atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				k, err := decision.Operator{Store: w.st, Now: w.now}.ExpireDue(w.ctx, limit)
				if err != nil {
					t.Error(err)
				}
				n.Add(int64(k))
			})
		}
		wg.Wait()
		if int(n.Load()) != want {
			t.Errorf("expired %d, want %d", n.Load(), want)
		}
	}
	w.wait(time.Minute)
	sweep(100, 0)
	w.wait(time.Microsecond)
	sweep(100, 4)
	d := w.get(ps[0].ApprovalID)
	if d.Status != decision.Expired || d.DecidedBy != "ana" || d.Choice != decision.ChoiceApprove || d.Open {
		t.Errorf("grant %+v", d)
	}
	if _, err := w.ex.Resume(w.ctx, ps[0].ApprovalID, nil); !errors.Is(err, call.ErrApprovalExpired) {
		t.Errorf("resume: %v", err)
	}
	w.wait(59 * time.Minute)
	w.us.Add(-1)
	sweep(100, 0)
	w.us.Add(1)
	sweep(100, 8)
	sweep(100, 0)
	for _, p := range ps[4:] {
		if d := w.get(p.ApprovalID); d.Status != decision.Expired || d.DecidedBy != "" {
			t.Errorf("request %+v", d)
		}
	}
	if _, err := w.op.Expire(w.ctx, ps[5].ApprovalID); reason(err) != "not_pending" {
		t.Errorf("expired twice: %v", err)
	}
}

// Lists: newest first, each once, also of one instant (case 157); overdue ones are
// shown as such before anybody expires them; what closed is not work (cases 015, 066).
func TestPendingAndShow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", decision.MaxPageText+5)
	w := setup(t, func(c *call.Config) {
		c.ApprovalTTL = time.Hour
		c.Policy = policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
			return policy.Ruling{Outcome: policy.RequireApproval, Reason: long}, nil
		})
	})
	var want []string
	for range 25 {
		want = append([]string{w.park().ApprovalID}, want...)
	}
	list, err := w.op.Pending(w.ctx, 500)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, s.ID)
		if s.Overdue || len(s.Reason) != decision.MaxPageText+len(" [cut]") || !strings.HasSuffix(s.Reason, "x [cut]") {
			t.Errorf("overdue %v, reason of %d", s.Overdue, len(s.Reason))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	for after := ""; ; {
		var page []decision.Decision
		if err := txn.View(w.ctx, w.st, func(tx decision.Tx) (err error) {
			page, err = tx.Decisions(decision.Query{Space: event.MainSpace, After: after, Limit: 10})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			got = append(got, d.ID)
		}
		if len(page) < 10 {
			break
		}
		after = page[9].ID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, err := decision.ApprovalReason(w.ctx, w.st, "", want[0])
	if err != nil || len(text) != decision.MaxPageText+len(" [cut]") {
		t.Errorf("reason of %d, %v", len(text), err)
	}
	if text, err := w.st.ApprovalReason(w.ctx, "run_x", want[0]); reason(err) != "not_found" || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	w.wait(time.Hour + time.Microsecond)
	if s, err := w.op.Show(w.ctx, want[0]); err != nil || !s.Overdue || s.Status != decision.Pending {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := w.op.Show(w.ctx, "apr_x"); reason(err) != "not_found" {
		t.Errorf("got %v", err)
	}
	if _, err := w.op.ExpireDue(w.ctx, 100); err != nil {
		t.Fatal(err)
	}
	if list, err := w.op.Pending(w.ctx, 0); err != nil || len(list) != 0 {
		t.Errorf("%d pending, %v", len(list), err)
	}
	if text, err := decision.ApprovalReason(w.ctx, w.st, "", want[0]); err != nil || text == "" {
		t.Errorf("the reason is gone: %v", err)
	}
	if err := event.Redact(w.ctx, w.st, "call:"+w.get(want[0]).CallID, 2, "ana", "private"); err != nil {
		t.Fatal(err)
	}
	if text, err := decision.ApprovalReason(w.ctx, w.st, "", want[0]); err != nil || text != "" {
		t.Errorf("%d characters of a redacted reason, %v", len(text), err)
	}
}

// The package's functions are the operator's, on the wall clock.
func TestPackageFunctions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var seen []event.Type
	obs := event.ObserverFunc(func(e event.Event) { seen = append(seen, e.Type); panic("an observer's panic is dropped") })
	ps := []*call.PendingError{w.park(), w.park(), w.park(), w.park()}
	for i, f := range []func(p *call.PendingError) error{
		func(p *call.PendingError) error {
			return decision.Approve(w.ctx, w.st, obs, p.RunID, p.ApprovalID, "ana", "")
		},
		func(p *call.PendingError) error {
			return decision.Reject(w.ctx, w.st, obs, p.RunID, p.ApprovalID, "ana", "")
		},
		func(p *call.PendingError) error {
			return decision.ApproveShown(w.ctx, w.st, obs, p.RunID, p.ApprovalID, p.Digest, "ana", "")
		},
		func(p *call.PendingError) error {
			return decision.RejectShown(w.ctx, w.st, nil, p.RunID, p.ApprovalID, p.Digest, "ana", "")
		},
	} {
		if err := f(ps[i]); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if err := f(ps[i]); reason(err) != "not_pending" { // a second decision, even the same
			t.Errorf("%d again: %v", i, err)
		}
	}
	want := []event.Type{event.ApprovalDecided, event.ApprovalDecided, event.CallFinished, event.ApprovalDecided}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if err := decision.Cancel(w.ctx, w.st, nil, "run_x", "ana", ""); reason(err) != "not_found" {
		t.Errorf("cancel: %v", err)
	}
}

// The deadline is judged once the store's lock is held, not before (case 052).
func TestDeadlineInsideTheTransaction(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *call.Config) { c.ApprovalTTL = time.Hour })
	p := w.park()
	w.wait(time.Hour)
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	var once sync.Once
	go func() {
		done <- w.st.Update(w.ctx, func(txn.Tx) error {
			once.Do(func() { close(held) })
			<-release
			return nil
		})
	}()
	<-held
	decided := make(chan error)
	go func() {
		_, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana"})
		decided <- err
	}()
	w.wait(time.Microsecond)
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := <-decided; !errors.Is(err, decision.ErrApprovalExpired) {
		t.Errorf("got %v", err)
	}
}

// A limit below a microsecond is a short one, not none.
func TestTinyLimits(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *call.Config) { c.GrantTTL = time.Nanosecond })
	p := w.park()
	if _, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	w.wait(2 * time.Microsecond)
	if _, err := w.ex.Resume(w.ctx, p.ApprovalID, nil); !errors.Is(err, call.ErrApprovalExpired) {
		t.Errorf("got %v", err)
	}
}

// What doors show in the place of a secret is no value: an edit is refused that has it
// where the request has something else.
func TestEditsWithTheMask(t *testing.T) {
	t.Parallel()
	original := `{"a":"s","n":1,"list":[{"password":"x"}],"body":"{\"passwd\":\"y\"}","said":"a [masked] word"}`
	d := asked(t)
	d.Request = replaced(d.Request, `{"amount": 5}`, original)
	for edit, path := range map[string]string{
		original: "",
		`{"a":"t","n":2,"list":[{"password":"z"}],"body":"{}","said":"a [masked] word, and more"}`: "",
		`{}`:                                    "",
		`{"a":"[masked]"}`:                      "/a",
		`{"n":"[masked]"}`:                      "/n",
		`{"new":"[masked]"}`:                    "/new",
		`{"list":[{"password":"[masked]"}]}`:    "/list/0/password",
		`{"list":[{},{"password":"[masked]"}]}`: "/list/1/password",
		`{"body":"{\"passwd\":\"[masked]\",\"n\":2}"}`: "/body",
		`{"a~/b":{"c":"[masked]"}}`:                    "/a~0~1b/c",
	} {
		err := decision.CheckEditedArgs(d, []byte(edit))
		if path == "" {
			if err != nil {
				t.Errorf("%s: %v", edit, err)
			}
			continue
		}
		var f *fault.Error
		if !errors.Is(err, tool.ErrInvalidArguments) || !errors.As(err, &f) || !strings.Contains(f.Message, path+" ") || f.Advice == "" || !strings.Contains(string(f.Details), path) {
			t.Errorf("%s: %v", edit, err)
		}
	}
}
