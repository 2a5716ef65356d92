package postgres

import (
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// meta is the store's one row about itself, as a transaction found it at its
// beginning, and what the server said of that transaction.
type meta struct {
	schema, minWriter, minReader int64
	store                        string
	epoch                        int64
	restoredAt, restoredTo       time.Time
	place                        identity
	targets                      int64 // rises with each change of wake targets
	clock                        int64
	lastAt                       int64 // of the last event; only where the store is opened
	xid                          int64 // of a transaction that writes
	table                        int64 // in which the row lies: it may be made anew under a connection that lasts
}

// identity says in which server, and which life of its, a store lies. pg_dump and
// copies of disks take the row along; the server they are put into is another one, or
// on another timeline, or the table is.
type identity struct {
	system          string
	timeline        int64
	database, table int64
}

const (
	metaColumns = `schema, min_writer, min_reader, store_id, epoch, restored_at, restored_to, system_id, timeline, database_oid, table_oid, targets, clock_timestamp(), tableoid::bigint`
	// viewMetaSQL also bounds the statements that follow.
	viewMetaSQL = `SELECT ` + metaColumns + `, set_config('statement_timeout', '` + viewMillis + `', true) FROM meta WHERE id = 1`
	// beginMetaSQL draws the transaction's number too, by which it can be asked later
	// what became of it.
	beginMetaSQL = `SELECT ` + metaColumns + `, pg_current_xact_id(), set_config('placet.changed', '0', true) FROM meta WHERE id = 1`
	afterLockSQL = `SELECT clock_timestamp(), targets FROM meta WHERE id = 1`
)

func (m *meta) scan(r sqlrows.Row, writes bool) {
	*m = meta{
		schema: r.Int(0), minWriter: r.Int(1), minReader: r.Int(2), store: r.Str(3), epoch: r.Int(4), restoredAt: r.Time(5), restoredTo: r.Time(6),
		place:   identity{r.Str(7), r.Int(8), r.Int(9), r.Int(10)},
		targets: r.Int(11), clock: r.(*row).clock(12), table: r.Int(13),
	}
	if writes {
		m.xid = r.Int(14)
	}
}

// metaAtAnySchema asks for what every schema of ours has.
const metaAtAnySchema = `SELECT schema, min_writer, min_reader, store_id, epoch, restored_at, restored_to, system_id, timeline, database_oid, table_oid, 0::bigint, clock_timestamp(), tableoid::bigint,
	coalesce((SELECT at FROM event ORDER BY seq DESC LIMIT 1), 0) FROM meta WHERE id = 1`

// scanAny reads what metaAtAnySchema asks for.
func (m *meta) scanAny(r sqlrows.Row) {
	m.scan(r, false)
	m.lastAt = r.Int(14)
}

var errNoMeta = txn.ErrNotCommitted.Say("The store's row about itself is missing: the database is damaged, or another program's.").
	Hint("Restore a backup (docs/guide/postgres.md), or give Placet a schema of its own: ?placet_schema=NAME.")

// mayWrite says why a program whose newest schema is own may not write m's store.
func (m *meta) mayWrite(own int64) error {
	if own >= m.minWriter {
		return nil
	}
	if m.minWriter == whole.Retired {
		return whole.Moved("The store")
	}
	return store.ErrNewer.Say("The database has schema %d, which programs of schema %d and later may write; this program is of schema %d. Nothing was changed.",
		m.schema, m.minWriter, own).Hint("Stop this program and start the newer Placet.")
}

// mayRead says why a program whose newest schema is own may not read m's store.
func (m *meta) mayRead(own int64) error {
	if own >= m.minReader {
		return nil
	}
	return store.ErrNewer.Say("The database has schema %d, which programs of schema %d and later may read; this program is of schema %d.",
		m.schema, m.minReader, own).Hint("Use the newer Placet.")
}

const numbersBack = "the numbers of its transactions went back, so the server's disk was put back"

// wentBack says in what the place where a store was found differs from the one that it
// knows; "" if it does not. The table is the one in which the row was found.
func (m *meta) wentBack(now identity) string {
	was := m.place
	switch {
	case was.timeline == putBack:
		return numbersBack
	case was.system != now.system:
		return "it lies in another server than before, so it was copied or restored there"
	case was.timeline != now.timeline:
		return "the server is on another timeline than before: a standby took over, or it was recovered to an earlier time"
	case was.database != now.database:
		return "it lies in another database than before, so it was copied or restored there"
	case was.table != m.table:
		return "its tables were made anew, so it was restored"
	}
	return ""
}

// mayGoOn refuses writes to a store that is not where it was.
func (m *meta) mayGoOn(now identity) error {
	why := m.wentBack(now)
	if why == "" {
		return nil
	}
	return restored(why)
}

func restored(why string) *fault.Error {
	return txn.ErrRestored.Say("The store may have gone back in time: %s. Nothing was changed.", why).
		Hint("If it is meant to be used as it is, run placet db accept-restore; what was approved before then needs a new yes.")
}
