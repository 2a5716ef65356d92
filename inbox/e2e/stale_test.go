package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // its driver

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// The form of a page is never for anything else than what the page shows: not even where
// the record was altered, digest and all, and the page hears that something happened.
func TestTheFormIsForWhatIsShown(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "placet.db")
	st, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	address := serve(t, st)
	d := parked(t, st)
	_, secret, err := token.Create(ctx, st, token.New{Space: event.MainSpace, Scope: token.Reviewer, Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	p := browsertest.New(t)
	p.Open(address + "/sign-in?to=/approvals/" + d.ID)
	p.Fill("[name=token]", secret)
	p.Follow("main button:not([disabled])")
	p.WaitText("#runs ~ .tree", "harmless")

	d.Request = []byte(strings.Replace(string(d.Request), "harmless", "terrible", 1))
	if d.Digest, err = d.Binding(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `UPDATE decision SET request = ?, digest = ? WHERE id = ?`, d.Request, d.Digest, d.ID); err != nil {
		t.Fatal(err)
	}
	err = txn.Update(ctx, st, func(tx store.Tx) error {
		return tx.Append(d.Owner.Stream(), event.New(event.ResumeRefused, d.ID, "bot", map[string]string{"approval_id": d.ID}))
	})
	if err != nil {
		t.Fatal(err)
	}
	p.WaitText("#history ~ ol", "Not started yet")
	if shown, form := p.Text(".sheet-main"), p.Value("[data-region=decide] [name=digest]"); form == d.Digest && !strings.Contains(shown, "terrible") {
		t.Errorf("the form is for what is not shown: %s", shown)
	}
	p.WaitText("#runs ~ .tree", "terrible")
}

// serve serves the inbox of a store.
func serve(t *testing.T, st *store.Store) (address string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	s := httptest.NewUnstartedServer(nil)
	api, err := httpapi.New(httpapi.Config{Store: st, Calls: executor(t, st), Tools: tools(t), Log: quiet, Hosts: []string{s.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := inbox.New(inbox.Config{Store: st, Door: func(k token.Token) inbox.Door { return api.As(k) }, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	api.Pages(pages)
	s.Config.Handler = api
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(func() { _ = pages.Shutdown(context.Background()) })
	return s.URL
}

func tools(t *testing.T) *tool.Registry {
	t.Helper()
	run := tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`{}`), nil })
	reg, err := tool.NewRegistry(tool.Tool{Spec: tool.Spec{Name: "send", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation}, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func executor(t *testing.T, st *store.Store) *call.Executor {
	t.Helper()
	return call.NewExecutor(call.Config{Store: st, Tools: tools(t), Log: slog.New(slog.DiscardHandler)})
}

// parked is an approval that waits.
func parked(t *testing.T, st *store.Store) (d decision.Decision) {
	t.Helper()
	_, err := executor(t, st).Call(t.Context(), "send", []byte(`{"what":"harmless"}`))
	var pending *call.PendingError
	if !errors.As(err, &pending) {
		t.Fatal(err)
	}
	err = txn.View(t.Context(), st, func(tx decision.Tx) (err error) {
		d, err = tx.Decision(pending.ApprovalID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
