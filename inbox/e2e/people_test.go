package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	_ "modernc.org/sqlite" // writes to a file past Placet

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

const (
	large       = `{"order_id":"o-7","amount":75}`
	decideTitle = `[data-region="decide"] h2`
	approveIt   = "button >> Approve"
	rejectIt    = "button >> Reject"
)

// secret makes a token for somebody.
func secret(t *testing.T, w *daemontest.World, s token.Scope, name string) token.Object {
	t.Helper()
	k, err := w.Admin.CreateToken(t.Context(), httpapi.NewToken{Scope: s, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signIn signs somebody in, as people do.
func signIn(t *testing.T, w *daemontest.World, p *browsertest.Page, s token.Scope, name string) token.Object {
	t.Helper()
	k := secret(t, w, s, name)
	enter(p, w.URL+"/", k.Secret)
	return k
}

// enter shows a token at the door.
func enter(p *browsertest.Page, address, secret string) {
	p.Open(address)
	p.Fill("input[name=token]", secret)
	p.Follow("button >> Sign in")
	p.WaitFor("button >> Sign out")
}

// visitor is a page in which a reviewer of that name is signed in.
func visitor(t *testing.T, w *daemontest.World, name string) *browsertest.Page {
	t.Helper()
	p := browsertest.New(t)
	signIn(t, w, p, token.Reviewer, name)
	return p
}

func pageOf(w *daemontest.World, approvalID string) string { return w.URL + "/approvals/" + approvalID }

// approval reads how one stands.
func approval(t *testing.T, w *daemontest.World, id string) decision.Object {
	t.Helper()
	o, err := w.Admin.GetApproval(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// decideAs has somebody decide past the browser.
func decideAs(t *testing.T, c *httpapi.Client, r httpapi.Result, yes bool, note string) {
	t.Helper()
	if _, err := c.Decide(t.Context(), r.ApprovalID, httpapi.Deciding{Approved: yes, Digest: r.Digest, Note: note}); err != nil {
		t.Fatal(err)
	}
}

// untouched looks whether nobody has decided these.
func untouched(t *testing.T, w *daemontest.World, parked ...httpapi.Result) {
	t.Helper()
	for _, r := range parked {
		if o := approval(t, w, r.ApprovalID); o.Status != decision.Pending {
			t.Errorf("approval %s is %s, by %s", r.ApprovalID, o.Status, o.DecidedBy)
		}
	}
}

// decisions are the events of one call that say that somebody decided.
func decisions(t *testing.T, w *daemontest.World, r httpapi.Result) (es []event.Object) {
	t.Helper()
	var l struct{ Events []event.Object }
	status, answer, err := w.Admin.Send(t.Context(), http.MethodGet, "/v1/log", url.Values{"stream": {"call:" + r.CallID}, "type": {string(event.ApprovalDecided)}}, nil, nil)
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(answer, &l)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	return l.Events
}

// once looks whether a call was approved exactly once, and waits until it ran exactly once.
func once(t *testing.T, w *daemontest.World, r httpapi.Result) {
	t.Helper()
	if got := decisions(t, w, r); len(got) != 1 {
		t.Errorf("it was decided %d times: %v", len(got), got)
	}
	if o := w.Ended(r.CallID); o.Status != call.Succeeded || len(o.Attempts) != 1 {
		t.Errorf("the call is %s after %d attempts", o.Status, len(o.Attempts))
	}
}

// alter writes to the store as somebody would who goes past Placet.
func alter(t *testing.T, w *daemontest.World, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", w.DB()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.ExecContext(t.Context(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

// posts are the forms that a page has sent.
func posts(p *browsertest.Page) (sent []browsertest.Request) {
	for _, r := range p.Requests() {
		if r.Method == http.MethodPost {
			sent = append(sent, r)
		}
	}
	return sent
}
