package sqlite

import (
	"context"
	"time"

	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// meta is the store's one row about itself.
type meta struct {
	schema, minWriter, minReader int64
	store                        string
	epoch, nextSeq, lastAt       int64
	targets                      int64 // rises with each change of wake targets; only the writer reads it
	restoredAt, restoredTo       time.Time
}

const metaColumns = `schema, min_writer, min_reader, store_id, epoch, next_seq, last_at, restored_at, restored_to`

// writerMetaSQL needs the schema that has wake targets.
var (
	readMetaSQL   = `SELECT ` + sqlrows.Selected(metaColumns) + ` FROM meta WHERE id = 1`
	writerMetaSQL = `SELECT ` + sqlrows.Selected(metaColumns+`, targets`) + ` FROM meta WHERE id = 1`
)

const hasTargetsSQL = `SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'targets'`

const writeMetaSQL = `
UPDATE meta SET
	next_seq = ?,
	last_at = ?
WHERE id = 1`

func (m *meta) scan(r sqlrows.Row, withTargets bool) error {
	*m = meta{
		schema:     r.Int(0),
		minWriter:  r.Int(1),
		minReader:  r.Int(2),
		store:      r.Str(3),
		epoch:      r.Int(4),
		nextSeq:    r.Int(5),
		lastAt:     r.Int(6),
		restoredAt: r.Time(7),
		restoredTo: r.Time(8),
	}
	if withTargets {
		m.targets = r.Int(9)
	}
	return nil
}

func readMeta(ctx context.Context, c *conn) (m meta, err error) {
	return readMetaBy(ctx, c, readMetaSQL)
}

func readMetaBy(ctx context.Context, c *conn, sql string) (m meta, err error) {
	found := false
	err = c.query(ctx, sql, nil, func(r sqlrows.Row) error {
		found = true
		return m.scan(r, sql == writerMetaSQL)
	})
	if err == nil && !found {
		err = errNoMeta
	}
	return m, err
}

// holdMeta is readMeta for a read that goes on: its snapshot lasts until done is called.
func holdMeta(c *conn) (m meta, done func() error, err error) {
	found := false
	done, err = c.hold(readMetaSQL, func(r sqlrows.Row) error {
		found = true
		return m.scan(r, false)
	})
	if err == nil && !found {
		_ = done()
		err = errNoMeta
	}
	return m, done, err
}

var errNoMeta = txn.ErrNotCommitted.Say("The store's row about itself is missing: the database is damaged.").
	Hint("Restore a backup with placet db restore FILE.")

// mayWrite says why a program whose newest schema is own may not write m's store.
func (m meta) mayWrite(own int64) error {
	if own >= m.minWriter {
		return nil
	}
	if m.minWriter == whole.Retired {
		return whole.Moved("The store")
	}
	return ErrNewer.Say("The database has schema %d, which programs of schema %d and later may write; this program is of schema %d. Nothing was changed.",
		m.schema, m.minWriter, own).Hint("Stop this program and start the newer Placet.")
}

// mayRead says why a program whose newest schema is own may not read m's store.
func (m meta) mayRead(own int64) error {
	if own >= m.minReader {
		return nil
	}
	return ErrNewer.Say("The database has schema %d, which programs of schema %d and later may read; this program is of schema %d.",
		m.schema, m.minReader, own).Hint("Use the newer Placet.")
}
