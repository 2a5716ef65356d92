package browsertest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/daemontest"
)

// The daemon's present pages, in a browser: what it says without a token, and that it has
// no other name.
func TestDaemonInABrowser(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := New(t)
	p.Open(w.URL + "/healthz")
	if p.Status() != http.StatusOK || len(p.Foreign(w.URL)) > 0 {
		t.Errorf("%d %q %v", p.Status(), p.Text("body"), p.Foreign(w.URL))
	}
	p.Open(w.URL + "/v1/approvals")
	if p.Status() != http.StatusUnauthorized {
		t.Errorf("%d %q", p.Status(), p.Text("body"))
	}
	p.Open(strings.Replace(w.URL, "127.0.0.1", "localhost", 1) + "/healthz")
	if p.Status() != http.StatusOK {
		t.Errorf("as localhost: %d %q", p.Status(), p.Text("body"))
	}
	p.Open(strings.Replace(w.URL, "127.0.0.1", "evil.test", 1) + "/healthz")
	if p.Status() < 400 {
		t.Errorf("by a name that is not its own: %d %q", p.Status(), p.Text("body"))
	}
	before := w.Rows()
	w.Kill9()
	mustSay(t, mustFail(t, p, func(p *Page) { p.Open(w.URL + "/healthz") }), "net::ERR_CONNECTION_REFUSED")
	w.Restart()
	p.Open(w.URL + "/healthz")
	if p.Status() != http.StatusOK {
		t.Errorf("after a restart: %d", p.Status())
	}
	if changed := w.Rows().Changed(before); !slices.Equal(changed, []string{"home"}) {
		t.Errorf("after a restart: %q", changed)
	}
}

// Nothing that another site's page sends, and nothing that can be asked for, decides.
func TestDaemonIsNotChanged(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	parked := w.Call("refund", `{"order_id":"o-7","amount":75}`)
	before := w.Rows()
	a, p := NewAttacker(t), New(t)
	for _, origin := range a.Origins() {
		for _, way := range Ways {
			o := a.Run(p, origin, Attack{
				Way: way, Target: w.URL + "/v1/approvals/" + parked.ApprovalID + "/decide",
				Fields: url.Values{"approved": {"true"}, "digest": {parked.Digest}},
			})
			for _, r := range o.Requests {
				if r.Status > 0 && r.Status < 400 && r.Method != http.MethodOptions {
					t.Errorf("%s from %s is answered with %v", way, origin, r)
				}
			}
		}
	}
	for _, path := range []string{"/", "/healthz", "/v1/approvals", "/v1/approvals/" + parked.ApprovalID + "/decide", "/v1/openapi.yaml"} {
		for _, s := range Crawl(t, w.URL+path).Seen {
			if s.Failed != "" {
				t.Errorf("%+v", s)
			}
		}
	}
	if changed := w.Rows().Changed(before); len(changed) > 0 {
		t.Errorf("these changed: %q", changed)
	}
	if got := w.Effects(); got != nil {
		t.Errorf("tools ran: %q", got)
	}
	// With its token, the same would have been a decision.
	body, err := json.Marshal(map[string]any{"approved": true, "digest": parked.Digest})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer, err := w.Reviewer.Send(t.Context(), http.MethodPost, "/v1/approvals/"+parked.ApprovalID+"/decide", nil, nil, body); err != nil || status != http.StatusOK {
		t.Errorf("%d %s %v", status, answer, err)
	}
}
