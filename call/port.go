package call

import (
	"bytes"
	"context"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Port is how a call that needs a person gets its answer: [Deferred] parks it,
// [Callback] and [AutoApprove] answer at once. The set is closed, since whoever
// answers must write the approval and its answer in the start's transaction.
type Port interface {
	// answer gives an answer at once, or nil to park.
	answer(ctx context.Context, d decision.Decision) (*decision.Answer, error)
}

// DeferredPort parks calls as rows.
type DeferredPort struct {
	// MaxPending bounds the pending approvals of the space: at the limit a call
	// is refused with [ErrTooManyPending], and nothing pending is ever dropped.
	// Default: 10,000.
	MaxPending int64

	store txn.Store
}

// DefaultMaxPending is how many approvals may be pending where nothing else is said.
const DefaultMaxPending = 10_000

// Deferred parks calls in store. It has to be the executor's own store.
func Deferred(store txn.Store) *DeferredPort {
	return &DeferredPort{MaxPending: DefaultMaxPending, store: store}
}

func (p *DeferredPort) answer(context.Context, decision.Decision) (*decision.Answer, error) {
	return nil, nil
}

// CallbackFunc asks a person who is there now. It sees exactly what would be
// parked. An error means that nothing runs and nothing is stored.
type CallbackFunc func(ctx context.Context, d decision.Decision) (decision.Answer, error)

type callbackPort struct{ ask CallbackFunc }

// Callback asks f. Its answer needs a name, like any other; the approval and the
// answer are stored with the start.
func Callback(f CallbackFunc) Port { return callbackPort{f} }

func (p callbackPort) answer(ctx context.Context, d decision.Decision) (*decision.Answer, error) {
	a, err := p.ask(ctx, d.Clone())
	if err != nil {
		return nil, err
	}
	a.EditedArgs = bytes.Clone(a.EditedArgs)
	return &a, decision.CheckAnswer(a)
}

type autoPort struct{}

// AutoApprove says yes to everything, as "auto-approve". The approval and its
// answer are still stored, so the record shows that no person was asked.
func AutoApprove() Port { return autoPort{} }

func (autoPort) answer(context.Context, decision.Decision) (*decision.Answer, error) {
	return &decision.Answer{Approved: true, By: "auto-approve"}, nil
}
