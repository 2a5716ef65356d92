package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/token"
)

// What a policy and whoever asked say stays apart from what Placet says, and repeats no
// secret: in the history neither, where an event holds it.
func TestWordsOfOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const secret = "s3cret-of-ours"
	asks := policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{Outcome: policy.RequireApproval, Reason: "the password is " + secret}, nil
	})
	ex := call.NewExecutor(call.Config{Store: w.st, Tools: w.tools(w.ran), Policy: asks, Approval: call.Deferred(w.st)})
	_, err := ex.Call(t.Context(), "refund", []byte(`{"password":"`+secret+`"}`), call.WithMetadata(map[string]string{"Digest": "sha256-placet1:fake", "\u202eodd": hostile}))
	var pending *call.PendingError
	if !errors.As(err, &pending) {
		t.Fatal(err)
	}
	b := w.as(token.Reviewer, "ana")
	at := "/approvals/" + pending.ApprovalID
	p := b.get(at).has("Asked for, and put to a person", "the password is [masked]", "Noted by who asked Digest sha256-placet1:fake", `\u{202e}`)
	if strings.Contains(p.raw, secret) {
		t.Error("a secret is in the page")
	}
	checkHostile(t, p)
	for _, n := range p.elements("dl") {
		if text := textIn(n); strings.Contains(text, "sha256-placet1:fake") && strings.Contains(text, pending.ApprovalID) {
			t.Errorf("what somebody noted stands among what Placet says: %s", text)
		}
	}
}

// textIn is what is shown in an element.
func textIn(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return b.String()
}
