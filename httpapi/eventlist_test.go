package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
)

// listed reads a whole list of events, page by page.
func (w *world) listed(as, query string, limit int) (es []event.Object) {
	w.t.Helper()
	for after := ""; ; {
		var l httpapi.EventList
		w.want(w.do(as, "GET", fmt.Sprintf("/v1/log?limit=%d&after=%s&%s", limit, url.QueryEscape(after), query), ""), 200).into(&l)
		if es = append(es, l.Events...); l.Next == "" {
			return es
		}
		if len(l.Events) != limit {
			w.t.Fatalf("%s: a page of %d events says that there are more", query, len(l.Events))
		}
		after = string(l.Next)
	}
}

// A list of events has each of them once, from either end, however large its pages are.
func TestListEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, second := w.park("agent"), w.park("agent")
	for _, p := range []reply{first, second} {
		w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(false, p.get("digest"))), 200)
	}
	for _, query := range []string{"", "stream=call:" + first.get("call_id"), "type=approval.decided"} {
		all := w.listed("reviewer", query, 500)
		if len(all) < 2 {
			t.Fatalf("%q: only %d events", query, len(all))
		}
		for _, limit := range []int{1, 2, len(all) - 1, len(all)} {
			if got := hashes(w.listed("reviewer", query, limit)); !slices.Equal(got, hashes(all)) {
				t.Errorf("%q in pages of %d: %v, want %v", query, limit, got, hashes(all))
			}
			back := hashes(w.listed("reviewer", query+"&order=newest", limit))
			slices.Reverse(back)
			if !slices.Equal(back, hashes(all)) {
				t.Errorf("%q from the end in pages of %d: %v, want %v", query, limit, back, hashes(all))
			}
		}
	}
	stream := "stream=call:" + first.get("call_id")
	if mine, theirs := hashes(w.listed("agent", stream, 2)), hashes(w.listed("reviewer", stream, 3)); !slices.Equal(mine, theirs) {
		t.Errorf("the agent's own stream: %v, want %v", mine, theirs)
	}
	w.want(w.do("agent", "GET", "/v1/log", ""), 403, "reason", "forbidden")
	w.tokens["other"] = w.token("agent", "other")
	w.want(w.do("other", "GET", "/v1/log?"+stream, ""), 404)
	w.want(w.do("reviewer", "GET", "/v1/log?stream=call:none", ""), 404, "reason", "not_found")
	w.want(w.do("reviewer", "GET", "/v1/log?type=none", ""), 400, "reason", "malformed")
	w.want(w.do("reviewer", "GET", "/v1/log?after=p9-ffffffffffff", ""), 400, "reason", "unknown_cursor")
}

func hashes(es []event.Object) []string {
	hs := make([]string, len(es))
	for i, e := range es {
		hs[i] = e.Hash
	}
	return hs
}

// What was removed from an event is said to be.
func TestListRedacted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stream := "call:" + w.park("agent").get("call_id")
	if err := event.Redact(t.Context(), w.st, stream, 1, "ana", "it named a customer"); err != nil {
		t.Fatal(err)
	}
	es := w.listed("reviewer", "stream="+stream, 50)
	if !es[0].Redacted || es[0].Payload != nil || es[0].Actor != "" || es[1].Redacted {
		t.Errorf("%+v", es[:2])
	}
}
