package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/placet-dev/placet/internal/migrate"
)

const (
	createMetaSQL = `
INSERT INTO meta (
	id,
	schema,
	min_writer,
	min_reader,
	store_id,
	epoch,
	next_seq,
	last_at
) VALUES (1, 1, 1, 1, ?, 1, 1, 0)`
	writeSchemaSQL = `UPDATE meta SET schema = ? WHERE id = 1`
)

// migrate brings the schema forward, in one transaction, after a copy of an
// existing store has been put beside it. It is called under the write lock, so
// of several programs that start at once one does it.
func (p *prepared) migrate(ctx context.Context, steps []migrate.Step) error {
	newest := int64(len(steps))
	if p.meta.schema >= newest {
		return p.meta.mayRead(newest)
	}
	if p.meta.schema > 0 {
		if err := p.keepCopy(ctx, newest); err != nil {
			return err
		}
	}
	if err := p.apply(ctx, migrate.Pending(steps, int(p.meta.schema))); err != nil {
		return err
	}
	return p.readMeta(ctx, p.conn)
}

// keepCopy writes <db>.before-N. It is written under another name first: a file
// of this name is always whole.
func (p *prepared) keepCopy(ctx context.Context, newest int64) error {
	dest := fmt.Sprintf("%s.before-%d", p.path, newest)
	tmp, err := copyTo(ctx, p.conn, filepath.Dir(dest))
	if err != nil {
		return fmt.Errorf("back up %s before its schema is changed from %d to %d: %w", p.path, p.meta.schema, newest, err)
	}
	if err := os.Rename(tmp, dest); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("back up %s before its schema is changed: %w", p.path, err)
	}
	return syncFolder(filepath.Dir(dest))
}

// apply runs the steps; a failure leaves the database as it was. The context
// counts until they have begun.
func (p *prepared) apply(ctx context.Context, steps []migrate.Step) (err error) {
	c := p.conn
	c.dead = false
	if _, err := c.exec(ctx, beginSQL); err != nil {
		return openError(p.path, err)
	}
	ctx = context.WithoutCancel(ctx)
	for _, s := range steps {
		if err := p.applyStep(ctx, s); err != nil {
			p.takeBack()
			return fmt.Errorf("change the schema of %s by %s: %w; the database is as it was", p.path, s.Name, err)
		}
	}
	if _, err = c.exec(ctx, writeSchemaSQL, steps[len(steps)-1].Number); err == nil && !c.dead {
		_, err = c.exec(ctx, commitSQL)
	}
	if err != nil {
		p.takeBack()
		return fmt.Errorf("change the schema of %s: %w", p.path, err)
	}
	return nil
}

func (p *prepared) takeBack() {
	if !p.conn.dead {
		_, _ = p.conn.exec(context.Background(), rollbackSQL) // the connection is closed next
	}
}

func (p *prepared) applyStep(ctx context.Context, s migrate.Step) error {
	if f := p.o.Hooks.BeforeStatement; f != nil {
		if err := f(0, s.SQL); err != nil {
			return err
		}
	}
	if err := p.conn.script(ctx, s.SQL); err != nil {
		return err
	}
	if p.conn.dead {
		return fmt.Errorf("it ended the transaction it runs in")
	}
	if s.Number > 1 {
		return nil
	}
	_, err := p.conn.exec(ctx, createMetaSQL, newStoreID())
	return err
}

func newStoreID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
