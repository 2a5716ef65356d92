package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

// dead leaves a delivery that was given up.
func dead(t *testing.T, w *daemontest.World) delivery.DeliveryObject {
	t.Helper()
	if _, err := w.Operator.AddWakeTarget(t.Context(), httpapi.Waking{Adding: delivery.Adding{
		Type: delivery.KindWebhook, URL: "http://127.0.0.1:1/", Events: []string{"approval.requested"}, MaxAttempts: 1,
	}}); err != nil {
		t.Fatal(err)
	}
	w.Call("refund", large)
	var found delivery.DeliveryObject
	for found.DeliveryID == "" {
		l, err := w.Admin.Deliveries(t.Context(), httpapi.DeliveryQuery{Status: delivery.Dead, Limit: 1})
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if len(l.Deliveries) > 0 {
			found = l.Deliveries[0]
		}
	}
	return found
}

// Whatever another site's page sends in the name of somebody who is signed in here decides
// nothing, tries nothing again, signs nobody in or out, and shows nothing of ours in a
// frame.
func TestAttacker(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	given := dead(t, w)
	r := w.Call("refund", large)
	q := w.Ask(w.Job(httpapi.Starting{Name: "train"}).JobID, "Go on?", "yes", "no")
	p := browsertest.New(t)
	signIn(t, w, p, token.Admin, "ana")
	cookie := p.Cookies(w.URL)
	before := w.Rows()

	a := browsertest.NewAttacker(t)
	decide := url.Values{"answer": {"approve"}, "digest": {r.Digest}, "form_token": {"guessed"}, "opened": {"1"}, "approved": {"true"}}
	targets := map[string]url.Values{
		"/approvals/" + r.ApprovalID:                 decide,
		"/approvals/" + r.ApprovalID + "/edit":       {"answer": {"approve"}, "digest": {r.Digest}, "form_token": {"guessed"}, "arg.amount": {"60"}},
		"/questions/" + q.DecisionID:                 {"answer": {"0"}, "digest": {q.Digest}, "form_token": {"guessed"}},
		"/sign-in":                                   {"token": {w.Reviewer.Token}},
		"/sign-out":                                  {"form_token": {"guessed"}},
		"/deliveries/" + given.DeliveryID + "/retry": {"form_token": {"guessed"}},
		"/v1/approvals/" + r.ApprovalID + "/decide":  decide,
	}
	t.Run("from", func(t *testing.T) { // which is over once all of them are
		for i, origin := range a.Origins() {
			t.Run([]string{"another site", "another name", "another port"}[i], func(t *testing.T) {
				t.Parallel()
				victim := browsertest.New(t)
				victim.SetCookie(w.URL, cookie[0].Name, cookie[0].Value)
				victim.Open(w.URL + "/decided")
				victim.WaitText(".who", "ana")
				for path, fields := range targets {
					for _, way := range browsertest.Ways {
						refusedAll(t, a.Run(victim, origin, browsertest.Attack{Way: way, Target: w.URL + path, Fields: fields}), way, path)
					}
				}
				if now := victim.Cookies(w.URL); len(now) != 1 || now[0].Value != cookie[0].Value {
					t.Errorf("the sign-in was %v, and is %v", cookie, now)
				}
				victim.Open(w.URL + "/decided")
				victim.WaitText(".who", "ana")
			})
		}
	})
	untouched(t, w, r)
	if now, err := w.Agent.GetQuestion(t.Context(), q.DecisionID); err != nil || now.Status != decision.Pending {
		t.Errorf("the question: %+v %v", now, err)
	}
	if now, err := w.Admin.GetDelivery(t.Context(), given.DeliveryID); err != nil || now.Status != delivery.Dead || now.Attempts != given.Attempts {
		t.Errorf("the delivery: %+v %v", now, err)
	}
	if changed := butSignIns(w.Rows().Changed(before)); len(changed) > 0 {
		t.Errorf("these changed: %q", changed)
	}
	// The same form from our own page does decide.
	p.Open(pageOf(w, r.ApprovalID))
	p.Follow(approveIt)
	once(t, w, r)
}

// butSignIns leaves out the table in which it is noted, each minute, that one is used.
func butSignIns(tables []string) []string {
	return slices.DeleteFunc(tables, func(name string) bool { return name == "sign_in" })
}

// refusedAll looks whether everything that was sent was refused, and nothing but a refusal
// is shown in a frame. A page of ours may be opened by a link from anywhere: it only shows.
func refusedAll(t *testing.T, o browsertest.Outcome, way browsertest.Way, path string) {
	t.Helper()
	for _, r := range o.Requests {
		shows := r.Method == http.MethodGet && way == browsertest.Link || r.Type == "Stylesheet" || r.Type == "Script" && strings.Contains(r.URL, "/assets/") || r.Type == "EventSource"
		if r.Status > 0 && r.Status < http.StatusBadRequest && !shows {
			t.Errorf("%s to %s is answered: %v", way, path, r)
		}
	}
}

// A program that asks for everything it finds, with a reviewer's cookie or without, as
// scanners of links in mails do, changes nothing.
func TestScanner(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	given := dead(t, w)
	r := w.Call("refund", large)
	w.Call("deploy", `{"version":"1.2","api_key":"hidden"}`)
	j := w.Job(httpapi.Starting{Name: "train"})
	q := w.Ask(j.JobID, "Go on?", "yes", "no")
	w.StartRun("Refund o-9.")
	p := browsertest.New(t)
	signIn(t, w, p, token.Admin, "ana")
	cookies := p.Cookies(w.URL)
	p.Open("about:blank")
	before := w.Rows()
	for name, with := range map[string][]*http.Cookie{"signed in": cookies, "nobody": nil} {
		got := browsertest.Crawl(t, w.URL+"/", with...)
		if len(got.Foreign) > 0 {
			t.Errorf("%s: these lead elsewhere: %q", name, got.Foreign)
		}
		found := map[string]int{}
		for _, s := range got.Seen {
			u, err := url.Parse(s.URL)
			if err != nil || s.Failed != "" {
				t.Errorf("%s: %s %s: %s %v", name, s.Method, s.URL, s.Failed, err)
				continue
			}
			if s.Status >= http.StatusInternalServerError {
				t.Errorf("%s: %s %s is answered with %d, named by %s", name, s.Method, s.URL, s.Status, s.From)
			}
			if s.Method == http.MethodGet {
				found[u.Path] = s.Status
			}
		}
		for _, path := range []string{"/approvals/" + r.ApprovalID, "/approvals/" + r.ApprovalID + "/edit", "/questions/" + q.DecisionID, "/jobs/" + j.JobID, "/deliveries/" + given.DeliveryID} {
			if with != nil && found[path] != http.StatusOK {
				t.Errorf("%s: %s was answered with %d", name, path, found[path])
			}
		}
		t.Logf("%s: %d addresses", name, len(found))
	}
	if changed := butSignIns(w.Rows().Changed(before)); len(changed) > 0 {
		t.Errorf("these changed: %q", changed)
	}
	p.Open(w.URL + "/")
	p.WaitText(".who", "ana")
}
