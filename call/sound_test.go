package call_test

import (
	"context"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

type storeTx = store.Tx

func viewTx(ctx context.Context, st txn.Store, fn func(store.Tx) error) error {
	return txn.View(ctx, st, fn)
}

// What holds in every store, whatever happened: each query counts its offences.
var sound = []struct{ rule, query string }{
	{
		"the count of pending approvals is their number",
		`SELECT (SELECT coalesce(sum(n), 0) FROM counter WHERE name = 'pending_approvals') <> (SELECT count(*) FROM decision WHERE status = 'pending')`,
	},
	{
		"a pending or approved approval is its call's latest, and the call waits",
		`SELECT count(*) FROM decision d JOIN call c ON c.id = d.owner_id WHERE d.status IN ('pending', 'approved') AND (c.approval_id <> d.id OR c.status NOT IN ('pending', 'unknown'))`,
	},
	{
		"a spent grant is named by the attempt that it says",
		`SELECT count(*) FROM decision d WHERE d.status = 'consumed' AND d.choice = 'approve'
			AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.call_id = d.owner_id AND a.n = d.consumed_by AND a.approval_id = d.id AND a.grant_digest = d.digest)`,
	},
	{
		"an attempt's grant is spent and was a yes",
		`SELECT count(*) FROM attempt a LEFT JOIN decision d ON d.id = a.approval_id
			WHERE a.approval_id IS NOT NULL AND (d.id IS NULL OR d.status <> 'consumed' OR d.choice <> 'approve' OR d.consumed_by > a.n)`,
	},
	{
		"two attempts share a grant only under the tool's key",
		`SELECT count(*) FROM attempt a JOIN attempt b ON a.call_id = b.call_id AND a.n < b.n AND a.approval_id = b.approval_id WHERE a.recovery NOT LIKE '%key'`,
	},
	{
		"an attempt that was edited is bound to its grant",
		`SELECT count(*) FROM attempt WHERE (args IS NOT NULL AND effective_digest = '')`,
	},
	{
		"a call counts its attempts",
		`SELECT count(*) FROM call c WHERE c.attempts <> (SELECT count(*) FROM attempt a WHERE a.call_id = c.id)`,
	},
	{
		"only a running call has an attempt without an outcome",
		`SELECT count(*) FROM attempt a JOIN call c ON c.id = a.call_id WHERE a.outcome IS NULL AND NOT (c.status = 'running' AND a.n = c.attempts)`,
	},
	{
		"a no or a lapse never ran, unless it ran before and is unknown",
		`SELECT count(*) FROM call c WHERE c.status IN ('denied', 'expired', 'cancelled') AND c.attempts > 0`,
	},
	{
		"each start has one event",
		`SELECT (SELECT count(*) FROM attempt) <> (SELECT count(*) FROM event WHERE type = 'call.started')`,
	},
	{
		"each approval was requested by one event",
		`SELECT (SELECT count(*) FROM decision) <> (SELECT count(*) FROM event WHERE type = 'approval.requested')`,
	},
	{
		"each answer has one event and one vote",
		`SELECT (SELECT count(*) FROM decision WHERE choice <> '') <> (SELECT count(*) FROM event WHERE type = 'approval.decided')
			OR (SELECT count(*) FROM decision WHERE choice <> '') <> (SELECT count(*) FROM vote)`,
	},
	{
		"each end of an approval has its event",
		`SELECT count(*) FROM decision d WHERE d.status IN ('expired', 'withdrawn', 'superseded')
			AND 1 <> (SELECT count(*) FROM event e WHERE e.subject = d.id AND e.type = 'approval.' || d.status)`,
	},
	{
		"each end of a call has one event that is not late news",
		`SELECT count(*) FROM call c WHERE c.status IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled')
			AND 1 > (SELECT count(*) FROM event e WHERE e.stream = 'call:' || c.id AND e.type IN ('call.finished', 'call.cancelled'))`,
	},
}

// sound checks the whole store at the end of a test.
func (w *world) sound() {
	w.t.Helper()
	for _, s := range sound {
		if n := w.number(s.query); n != 0 {
			w.t.Errorf("%s: %d offences", s.rule, n)
		}
	}
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{ReadOnly: true, Now: w.clock.Now})
	if err != nil {
		w.t.Error(err)
		return
	}
	defer st.Close()
	rep, err := event.Verify(context.Background(), st, nil)
	if err != nil || rep.Break != nil {
		w.t.Errorf("verify: %+v, %v", rep.Break, err)
	}
}
