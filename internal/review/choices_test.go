package review_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
)

func said(cs []review.Choice) string {
	var all []string
	for _, c := range cs {
		mark := ""
		if c.Chosen {
			mark = "*"
		}
		all = append(all, fmt.Sprintf("%s%s=%s %d", mark, c.Value, c.Text, c.N))
	}
	return strings.Join(all, "; ")
}

// Each part of the filter says what it could be set to, and how much the rest of the filter
// leaves of each. A tool is called what it is called.
func TestChoices(t *testing.T) {
	t.Parallel()
	counts := []decision.QueueCount{
		{Type: decision.Approval, Owner: decision.OwnerRun, Kind: "local", Tool: "run", N: 3},
		{Type: decision.Approval, Owner: decision.OwnerCall, Kind: "remote", Tool: "refund", N: 8},
		{Type: decision.Approval, Owner: decision.OwnerCall, Kind: "local", Tool: "run", N: 2},
		{Type: decision.Question, Owner: decision.OwnerJob, N: 1},
	}
	none, calls := review.Filter{}, review.Filter{What: review.Calls, Tool: "gone", Age: 36 * time.Hour}
	for want, got := range map[string][]review.Choice{
		"*=everything 14; run=steps of runs 3; call=calls 10; question=questions 1":              none.Whats(counts),
		"*=any kind 14; remote=remote 8; local=local 5":                                          none.Kinds(counts),
		"*=any tool 14; refund=refund 8; run=run 5":                                              none.Tools(counts),
		"=any tool 10; refund=refund 8; run=run 2; *gone=gone 0":                                 calls.Tools(counts),
		"=everything 0; run=steps of runs 0; *call=calls 0; question=questions 0":                calls.Whats(counts),
		"*=any time -1; 1h=an hour ago -1; 24h=a day ago -1; 168h=a week ago -1":                 none.Ages(),
		"=any time -1; 1h=an hour ago -1; 24h=a day ago -1; 168h=a week ago -1; *36h=36h ago -1": calls.Ages(),
	} {
		if said(got) != want {
			t.Errorf("got  %s\nwant %s", said(got), want)
		}
	}
}
