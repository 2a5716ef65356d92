package cli

import (
	"context"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
)

// withdrawGranted takes a yes back that nobody has acted on.
func withdrawGranted(ctx context.Context, st *store.Store, approvalID, by, note string) (decision.Decision, error) {
	if _, err := call.WithdrawGranted(ctx, operator(st), approvalID, by, note); err != nil {
		return decision.Decision{}, err
	}
	s, err := readApproval(ctx, st, approvalID)
	return s.Decision, err
}
