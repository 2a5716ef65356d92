package cli

import (
	"context"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
)

// withdrawGranted takes a yes back that nobody has acted on.
func withdrawGranted(ctx context.Context, st *store.Store, approvalID, by, note string) (decision.Decision, error) {
	s, err := readApproval(ctx, st, approvalID)
	if err != nil {
		return decision.Decision{}, err
	}
	if _, err := call.WithdrawGranted(ctx, st, nil, s.CallID, by, note); err != nil {
		return decision.Decision{}, err
	}
	s, err = readApproval(ctx, st, approvalID)
	return s.Decision, err
}
