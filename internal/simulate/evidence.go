package simulate

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// stored is what stands in the store in the end.
type stored struct {
	calls      map[string]call.Call
	attempts   map[string][]call.Attempt
	decisions  map[string]decision.Decision
	events     []event.Event // by pos
	targets    []delivery.Target
	deliveries []delivery.Delivery
}

// line is one line of the witness file.
type line struct {
	call    string
	attempt string
	tool    string
}

// sight is an event as somebody saw it.
type sight struct {
	stream string
	seq    int64
	hash   string
}

// arrival is a delivery that a receiver took.
type arrival struct {
	delivery string
	target   string
	stream   string
	seq      int64
}

func sightOf(e event.Event) sight { return sight{e.Stream, e.StreamSeq, hex.EncodeToString(e.Hash)} }

// pageOf is how much is read at a time: a read may take a second.
const pageOf = 200

// gather reads everything. Nobody may write meanwhile.
func gather(ctx context.Context, s txn.Store) (m stored, err error) {
	m = stored{calls: map[string]call.Call{}, attempts: map[string][]call.Attempt{}, decisions: map[string]decision.Decision{}}
	for _, step := range []func(context.Context, txn.Store) error{m.readEvents, m.readCalls, m.readAttempts, m.readDecisions, m.readDeliveries} {
		if err := step(ctx, s); err != nil {
			return m, err
		}
	}
	return m, nil
}

// pages reads page after page until one is empty.
func pages[T any](ctx context.Context, s txn.Store, read func(tx store.Tx) ([]T, error), each func(T)) error {
	for {
		var page []T
		err := txn.View(ctx, s, func(tx store.Tx) (err error) {
			page, err = read(tx)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, one := range page {
			each(one)
		}
	}
}

func (m *stored) readEvents(ctx context.Context, s txn.Store) error {
	after := int64(0)
	return pages(ctx, s, func(tx store.Tx) ([]event.Event, error) {
		return tx.Events(event.Query{After: after, Limit: pageOf})
	}, func(e event.Event) {
		m.events, after = append(m.events, e), e.Pos
	})
}

func (m *stored) readCalls(ctx context.Context, s txn.Store) error {
	after := ""
	return pages(ctx, s, func(tx store.Tx) ([]call.Call, error) {
		return tx.Calls(call.Query{Space: event.MainSpace, After: after, Limit: pageOf})
	}, func(c call.Call) { m.calls[c.ID], after = c, c.ID })
}

func (m *stored) readAttempts(ctx context.Context, s txn.Store) (err error) {
	for id := range m.calls {
		if err != nil {
			return err
		}
		err = txn.View(ctx, s, func(tx store.Tx) (err error) {
			m.attempts[id], err = tx.Attempts(id)
			return err
		})
	}
	return err
}

func (m *stored) readDecisions(ctx context.Context, s txn.Store) error {
	after := ""
	return pages(ctx, s, func(tx store.Tx) ([]decision.Decision, error) {
		return tx.Decisions(decision.Query{Space: event.MainSpace, After: after, Limit: pageOf})
	}, func(d decision.Decision) { m.decisions[d.ID], after = d, d.ID })
}

func (m *stored) readDeliveries(ctx context.Context, s txn.Store) error {
	after := ""
	err := pages(ctx, s, func(tx store.Tx) ([]delivery.Delivery, error) {
		return tx.Deliveries(delivery.Query{Space: event.MainSpace, After: after, Limit: pageOf})
	}, func(d delivery.Delivery) { m.deliveries, after = append(m.deliveries, d), d.ID })
	if err != nil {
		return err
	}
	return txn.View(ctx, s, func(tx store.Tx) (err error) {
		m.targets, err = tx.Targets(delivery.TargetQuery{Space: event.MainSpace, Limit: delivery.MaxTargets})
		return err
	})
}

// readWitness reads the witness file. A line that is not whole is a fault of the harness:
// each is one write.
func readWitness(path string) ([]line, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []line
	for text := range strings.Lines(string(b)) {
		f := strings.Fields(text)
		if len(f) != 3 || !strings.HasSuffix(text, "\n") {
			return nil, fmt.Errorf("the witness file has the line %q", text)
		}
		all = append(all, line{f[0], f[1], f[2]})
	}
	return all, nil
}
