package e2e

import (
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/token"
)

// Behind one name may stand several daemons on one database: whoever signed in at one is
// signed in at all of them, hears what happens at the others, and signs out of all.
func TestTwoDaemonsOneDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Schema(t)
	here, there := daemontest.Start(t, daemontest.Options{DB: db}), daemontest.Start(t, daemontest.Options{DB: strings.Replace(db, "127.0.0.1", "localhost", 1)})
	if here.DB() == there.DB() {
		t.Fatalf("both know it as %s", db)
	}
	p := browsertest.New(t)
	signIn(t, here, p, token.Reviewer, "ana")
	r := here.Call("refund", large)
	p.Open(pageOf(here, r.ApprovalID))

	other := p.Tab()
	other.Open(pageOf(there, r.ApprovalID))
	other.Follow(approveIt)
	other.WaitText(decideTitle, "Approved")
	other.WaitText(`[data-region="became"]`, "succeeded")
	p.WaitText(decideTitle, "Approved")
	p.WaitText(`[data-region="became"]`, "succeeded")
	if o := here.Ended(r.CallID); o.Status != call.Succeeded {
		t.Errorf("%+v", o)
	}
	if n := len(here.Effects()) + len(there.Effects()); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}

	other.Follow("button >> Sign out")
	p.WaitFor("button >> Sign in")
	p.Open(here.URL + "/decided")
	p.WaitFor("button >> Sign in")
}
