package simulate

import (
	"os"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
)

// One daemon, one call, one yes: the harness itself works.
func TestOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	r, err := w.as("bot", 0).Call(t.Context(), pay, []byte(`{"n":1,"ask":true}`), "")
	if err != nil || r.Status != call.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := w.as("ana", 0).Decide(t.Context(), r.ApprovalID, httpapi.Deciding{Approved: true, Digest: r.Digest}); err != nil {
		t.Fatal(err)
	}
	o, err := w.as("bot", 0).GetCall(t.Context(), r.CallID, patience)
	if err != nil || o.Status != call.Succeeded {
		t.Fatalf("%+v %v\n%s", o, err, w.members[0].log.last(2000))
	}
	b, err := os.ReadFile(w.seen)
	if err != nil || strings.TrimSpace(string(b)) != r.CallID+" 1 pay" {
		t.Fatalf("%q %v", b, err)
	}
}
