package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

const (
	migrateLockSQL = `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`
	createMetaSQL  = `INSERT INTO meta(id, schema, min_writer, min_reader, store_id, epoch, system_id, timeline, database_oid, table_oid)
		VALUES (1, 1, 1, 1, ?, 1, ?, ?, ?, CAST('meta'::regclass::oid AS bigint))`
	writeSchemaSQL = `UPDATE meta SET schema = ? WHERE id = 1`
	// Whoever writes holds a lock on this table until its transaction ends.
	lockMetaSQL = `LOCK TABLE meta IN ACCESS EXCLUSIVE MODE`
)

// apply brings the schema forward, in one transaction. Of several programs that start
// at once one does it, and the others find it done. Who writes meanwhile is waited for,
// and waits.
func apply(ctx context.Context, c *conn, at place, steps []migrate.Step) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := inSchema(c, at, beginUpdateSQL); err != nil {
		return told(err)
	}
	defer func() {
		if err != nil {
			_ = c.run(rollbackSQL, nil, nil) // a connection that is gone has done so
		}
	}()
	if err := c.run(migrateLockSQL, []any{"placet migrate " + at.schema}, nil); err != nil {
		return told(err)
	}
	from, err := madeSchema(c, at)
	if err != nil {
		return err
	}
	for _, s := range migrate.Pending(steps, from) {
		if err := applyStep(c, s); code(err) == insufficientRights {
			return mayNotChange(at, err)
		} else if err != nil {
			return fmt.Errorf("change the schema of %s by %s: %w; the database is as it was", at, s.Name, err)
		}
	}
	if from < len(steps) {
		if err := c.run(writeSchemaSQL, []any{len(steps)}, nil); err != nil {
			return fmt.Errorf("change the schema of %s: %w", at, err)
		}
	}
	return c.commit(at, updateLimit+answerLimit)
}

// madeSchema is the schema's number under the lock, and makes the place for a new one.
func madeSchema(c *conn, at place) (from int, err error) {
	there := false
	err = c.run(`SELECT CAST(to_regclass(?) IS NOT NULL AS int), CAST(to_regnamespace(?) IS NOT NULL AS int)`,
		[]any{at.schema + ".meta", at.schema}, func(r sqlrows.Row) error {
			from, there = int(r.Int(0)), r.Int(1) == 1
			return nil
		})
	switch {
	case err != nil:
		return 0, told(err)
	case !there:
		if err = c.run(`CREATE SCHEMA `+quoted(at.schema), nil, nil); code(err) == insufficientRights {
			return 0, refuse(at.url, "has no schema %s, and this role may not make one", at.schema).
				Hint("Make it as the database's owner: CREATE SCHEMA %s AUTHORIZATION ROLE (docs/guide/postgres.md).", at.schema).Because(err)
		}
		return 0, err
	case from == 0:
		return 0, nil
	}
	if err := lockMeta(c); err != nil {
		return 0, mayNotChange(at, err)
	}
	err = c.run(`SELECT schema FROM meta WHERE id = 1`, nil, func(r sqlrows.Row) error { from = int(r.Int(0)); return nil })
	return from, err
}

// lockMeta keeps everybody out. Whoever comes while it waits for those who are in has to
// wait too, so it does not wait for long.
func lockMeta(c *conn) error {
	for _, sql := range []string{`SET LOCAL lock_timeout = '5s'`, lockMetaSQL, `SET LOCAL lock_timeout = 0`} {
		if err := c.run(sql, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

func mayNotChange(at place, err error) error {
	if code(err) != insufficientRights {
		return told(err)
	}
	return refuse(at.url, "has no tables of this program's schema, or older ones, and this role may not make or change them").
		Hint("Run placet db migrate once as the role that owns the tables (docs/guide/postgres.md).").Because(err)
}

func applyStep(c *conn, s migrate.Step) error {
	if err := c.script(s.SQL); err != nil || s.Number > 1 {
		return err
	}
	return c.run(createMetaSQL, []any{newStoreID(), c.place.system, c.place.timeline, c.place.database}, nil)
}

func newStoreID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Migrate brings the schema of the store at url forward to this program's, and makes
// the store where there is none. Programs that have it open go on, unless they are too
// old to write it then.
func Migrate(ctx context.Context, url string) error {
	at, steps, err := admin(url)
	if err != nil {
		return err
	}
	_, err = prepare(ctx, at, steps, false)
	return err
}

func admin(url string) (place, []migrate.Step, error) {
	at, err := placeOf(url)
	if err != nil {
		return at, nil, err
	}
	steps, err := migrate.Load(migrations())
	return at, steps, err
}

// lifeGap is by how much events' numbers and places go on further after a store went back
// in time: nobody knows which of them were given in the life that is gone.
const lifeGap = 1 << 32

const acceptSQL = `UPDATE meta SET epoch = epoch + 1, restored_at = ?, restored_to = ?, system_id = ?, timeline = ?, database_oid = ?,
	table_oid = CAST('meta'::regclass::oid AS bigint) WHERE id = 1`

// AcceptRestore ends the refusal of a store that is not where it was: that was restored,
// copied, or taken over by a standby. Its epoch rises, so that what was approved or
// running before counts no longer. It is an error if there is nothing to accept.
func AcceptRestore(ctx context.Context, url string) error {
	at, steps, err := admin(url)
	if err != nil {
		return err
	}
	c, err := at.connect(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	if _, found, err := readMeta(c, at); err != nil {
		return err
	} else if !found {
		return missing(at)
	}
	return accept(c, at, int64(len(steps)))
}

// accept judges and writes under the lock: of two at once, one finds nothing to accept.
func accept(c *conn, at place, own int64) (err error) {
	if err := inSchema(c, at, beginUpdateSQL); err != nil {
		return told(err)
	}
	defer func() {
		if err != nil {
			_ = c.run(rollbackSQL, nil, nil) // a connection that is gone has done so
		}
	}()
	if err := lockMeta(c); err != nil {
		return told(err)
	}
	var m meta
	if err := c.run(metaAtAnySchema, nil, func(r sqlrows.Row) error { m.scanAny(r); return nil }); err != nil {
		return told(err)
	}
	if err := m.mayWrite(own); err != nil {
		return err
	}
	if m.wentBack(c.place) == "" {
		return fault.New(fault.Conflict, "%s did not go back in time: there is nothing to accept.", at)
	}
	for _, s := range []struct {
		sql  string
		args []any
	}{
		{acceptSQL, []any{m.clock, m.lastAt, c.place.system, c.place.timeline, c.place.database}},
		{`SELECT setval('event_seq', nextval('event_seq') + ?::bigint)`, []any{lifeGap}},
		{`UPDATE event_order SET last = last + ?`, []any{lifeGap}},
	} {
		if err := c.run(s.sql, s.args, nil); err != nil {
			return told(err)
		}
	}
	return c.commit(at, updateLimit+answerLimit)
}

// commit ends a transaction of which it cannot be asked later what became of it.
func (c *conn) commit(at place, patience time.Duration) error {
	err := c.runFor(patience, commitSQL, nil, nil)
	if errors.Is(err, errDead) {
		return txn.ErrUnknown.Say("The server did not say whether %s was written.", at).Hint("Run placet --db %s db check.", at).Because(err)
	}
	return told(err)
}
