package run

import (
	"context"
	"errors"
	"sync"
)

// meter charges the model calls of one step.
type meter struct {
	s    *session
	step string

	mu    sync.Mutex
	tries int   // attempts charged in this step
	last  Usage // what the last one reserved
}

var _ Meter = (*meter)(nil)

func (m *meter) Charge(ctx context.Context, tokens int64, cost Cost) error {
	if tokens < 0 || cost < 0 {
		return ErrUsage.Say("A charge cannot be negative.").Hint("Charge what was used, 0 or more.")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := Usage{Tokens: tokens, Cost: cost}
	if m.tries > 0 { // the step's claim has charged the first
		u.ModelCalls = 1
	}
	if u != (Usage{}) {
		if err := m.write(ctx, Charge{Usage: u}); err != nil {
			return err
		}
	}
	m.tries++
	m.last = u
	return nil
}

func (m *meter) Settle(ctx context.Context, tokens int64, cost Cost) error {
	if tokens < 0 || cost < 0 {
		return ErrUsage.Say("What was used cannot be negative.").Hint("Give what was used, 0 or more.")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	took := Usage{Tokens: tokens, Cost: cost}
	reserved := Usage{Tokens: m.last.Tokens, Cost: m.last.Cost}
	if took == reserved {
		return nil
	}
	if err := m.write(ctx, Charge{Usage: took, Refund: reserved, Corrects: true}); err != nil {
		return err
	}
	m.last.Tokens, m.last.Cost = tokens, cost
	return nil
}

// report charges what an agent says that a decision has taken. It is charged also
// where it passes a limit: it is spent, and the next step is not claimed then.
func (m *meter) report(ctx context.Context, u Usage) error {
	u.ModelCalls = max(0, u.ModelCalls-1) // the step's claim has charged the first
	if u == (Usage{}) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commit(ctx, Charge{Usage: u, Corrects: true})
}

// write is commit for an agent, to which the loop's own words say nothing.
func (m *meter) write(ctx context.Context, c Charge) error {
	err := m.commit(ctx, c)
	if errors.Is(err, errOver) || errors.Is(err, errAgain) {
		return m.s.known().errState()
	}
	return err
}

func (m *meter) commit(ctx context.Context, c Charge) error {
	return m.s.write(ctx, func(w *writing) error {
		if w.run.Current.ID != m.step {
			return ErrRunState.Say("The step that this meter belongs to has ended.")
		}
		c.Hold = w.hold
		return w.step(c)
	})
}

// limitOf is the reason for which a run ends whose agent met a limit.
func limitOf(err error) Reason {
	for reason, limit := range map[Reason]error{LimitTokens: errTokens, LimitCost: errCost} {
		if errors.Is(err, limit) {
			return reason
		}
	}
	return LimitModelCalls
}
