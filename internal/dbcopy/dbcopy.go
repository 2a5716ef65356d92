// Package dbcopy copies a whole store to another place, from SQLite to PostgreSQL or
// back.
//
// The source is read in one snapshot, while nobody can write to it. The target is
// written where nobody sees it (a transaction, a file beside its place), read again,
// compared with the source, and only then becomes a store. Whatever fails or is killed
// before that leaves the target as it was.
package dbcopy

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// Result is what was copied.
type Result struct {
	Tables  []Table // in the order in which they were copied
	StoreID string
	Epoch   int64 // of the copy
	Streams int   // of events, whose chains were verified in the copy
	Jobs    int64 // that have not ended
	Retired bool  // the source can only be read from now on
}

// Table is how many rows a table has in the copy, and a SHA-256 over all of them in the
// order of their keys, which is the same for both sides.
type Table struct {
	Name   string `json:"table"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"`
}

// Rows is how many rows there are in all.
func (r Result) Rows() (n int64) {
	for _, t := range r.Tables {
		n += t.Rows
	}
	return n
}

// Options say how a store is copied. The zero value is right for most.
type Options struct {
	// Retire ends the source's use for good, once the copy is there: it can only be read
	// then.
	Retire bool
	// Progress hears how many rows of a table are copied so far: at its beginning, and
	// every 10,000 rows. May be nil.
	Progress func(table string, rows int64)
}

// ErrUnequal: what was read again from the copy is not what the source has.
var ErrUnequal = fault.Sentinel(fault.Internal, "copy_unequal", "The copy is not equal to its source. Nothing was copied.")

// ErrUnsound: the source does not fit together, so that no copy of it should go on.
var ErrUnsound = fault.Sentinel(fault.Conflict, "source_unsound", "The store does not fit together. Nothing was copied.")

// Copy copies the store at from, a path or a URL, to the place to, which must have no
// store that was used ([whole.ErrUsed]). Nobody may have a store on a server open
// ([whole.ErrOpen]); others that write to a file wait. The copy begins a new life: its
// epoch is higher. An error means that the place is as it was, unless it matches
// [txn.ErrUnknown], or is about retiring the source, and says so.
func Copy(ctx context.Context, from, to string, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string, int64) {}
	}
	if err := parse(from, to); err != nil {
		return Result{}, err
	}
	source, err := open(ctx, from, o.Retire)
	if err != nil {
		return Result{}, err
	}
	c := copying{source: source, o: o}
	if c.tables, err = whole.Ordered(source.Tables()); err == nil && postgres.IsURL(to) {
		err = c.texts(ctx)
	}
	if err == nil {
		err = c.into(ctx, to)
	}
	if err == nil && o.Retire {
		moment("copied")
		err = c.retire(ctx, from, to)
	}
	return c.result, errors.Join(err, source.Close())
}

func parse(from, to string) error {
	source, err := place.Parse(from, "")
	if err != nil {
		return err
	}
	target, err := place.Parse(to, "")
	if err == nil && source.Same(target) {
		err = fault.New(fault.Conflict, "%s and %s are one store. Nothing was copied.", source, target).Hint("Give another place to copy it to.")
	}
	return err
}

func open(ctx context.Context, from string, retire bool) (whole.Source, error) {
	if postgres.IsURL(from) {
		return postgres.ReadWhole(ctx, from, retire)
	}
	return sqlite.ReadWhole(ctx, from, retire)
}

func openTarget(ctx context.Context, to string) (whole.Target, error) {
	if postgres.IsURL(to) {
		return postgres.MakeWhole(ctx, to)
	}
	return sqlite.MakeWhole(ctx, to)
}

// copying is one copy under way.
type copying struct {
	source whole.Source
	target whole.Target
	tables []whole.Table
	o      Options
	result Result
}

// moment is told what has just been done, for tests that end the process there.
var moment = func(string) {}

// progressEvery is in rows.
const progressEvery = 10_000

// into fills the place, compares, and has it become a store.
func (c *copying) into(ctx context.Context, to string) (err error) {
	if c.target, err = openTarget(ctx, to); err != nil {
		return err
	}
	err = c.fill(ctx)
	if err == nil {
		moment("verified")
		err = c.target.Commit(ctx)
	}
	if err != nil {
		c.result = Result{}
	}
	return errors.Join(err, c.target.Close())
}

func (c *copying) fill(ctx context.Context) error {
	if err := c.target.Make(ctx); err != nil {
		return err
	}
	if why := whole.Differ(c.source.Tables(), c.target.Tables()); why != "" {
		return whole.ErrTables.Say("The two stores do not have the same tables: %s. Nothing was copied.", why).
			Hint("What another program keeps among Placet's tables has to be moved away first; else use the Placet that made the stores.")
	}
	moment("made")
	for _, t := range c.tables {
		if err := c.table(ctx, t); err != nil {
			return err
		}
		moment(t.Name)
	}
	life := c.source.Life()
	epoch, err := c.target.Begin(ctx, life)
	if err != nil {
		return err
	}
	c.result.StoreID, c.result.Epoch = life.StoreID, epoch
	moment("begun")
	if err := c.compare(ctx); err != nil {
		return err
	}
	return c.target.Verify(ctx, func(s txn.Store) error { return c.chains(ctx, s) })
}

// table copies one table, and notes what the source has in it.
func (c *copying) table(ctx context.Context, t whole.Table) error {
	d := newDigest(t)
	c.o.Progress(t.Name, 0)
	counted := func(yield func([]any, error) bool) {
		for row, err := range c.source.Rows(ctx, t) {
			if err == nil {
				if d.add(row); d.rows%progressEvery == 0 {
					c.o.Progress(t.Name, d.rows)
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
	if err := c.target.Fill(ctx, t, counted); err != nil {
		return notCopied(t, err)
	}
	c.result.Tables = append(c.result.Tables, d.table())
	return nil
}

// ErrRow: a row cannot be read, or cannot be stored at the other side.
var ErrRow = fault.Sentinel(fault.Conflict, "row_refused", "A row cannot be copied. Nothing was copied.")

// notCopied says which table it was; what a database says of it is shown, since only that
// tells which row.
func notCopied(t whole.Table, err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("copy the table %s: %w", t.Name, err)
	}
	return ErrRow.Say("The table %s cannot be copied: %s. Nothing was copied.", t.Name, err).Hint("Run placet db check on the source.")
}

// compare reads everything again from the target.
func (c *copying) compare(ctx context.Context) error {
	var look counts
	for i, t := range c.tables {
		d := newDigest(t)
		for row, err := range c.target.Rows(ctx, t) {
			if err != nil {
				return err
			}
			d.add(row)
			look.see(t, row)
		}
		if got, want := d.table(), c.result.Tables[i]; got != want {
			return ErrUnequal.Say("The copy of the table %s is not equal: it has %d rows with the digest %s, and the source has %d with %s. Nothing was copied.",
				t.Name, got.Rows, short(got.Digest), want.Rows, short(want.Digest)).Hint("Run placet db check on the source.")
		}
	}
	c.result.Jobs = look.jobs
	return look.agree()
}

func short(digest string) string { return digest[:min(len(digest), 12)] }

// chains verifies every stream of events in the copy, as placet verify does.
func (c *copying) chains(ctx context.Context, s txn.Store) error {
	r, err := event.Verify(ctx, s, nil)
	if err != nil {
		return fmt.Errorf("verify the copy: %w", err)
	}
	if b := r.Break; b != nil {
		return ErrUnsound.Say("The chain of events is broken at event %d of %s: %s. Nothing was copied.", b.StreamSeq, b.Stream, b.Problem).
			Hint("Run placet verify on the source: somebody may have changed it by hand.")
	}
	c.result.Streams = r.Streams
	return nil
}

func (c *copying) retire(ctx context.Context, from, to string) error {
	if err := c.source.Retire(ctx); err != nil {
		return fault.New(fault.Unavailable, "The copy is complete, but %s could not be retired: it can still be written to.", shown(from)).
			Hint("Put it away, and use %s only.", shown(to)).Because(err)
	}
	c.result.Retired = true
	return nil
}

// shown is a place without secrets.
func shown(given string) string {
	p, err := place.Parse(given, "")
	if err != nil {
		return "the store"
	}
	return p.String()
}

// texts refuses what PostgreSQL cannot hold, before anything is begun there.
func (c *copying) texts(ctx context.Context) error {
	for _, t := range c.tables {
		for row, err := range c.source.Rows(ctx, t) {
			if err != nil {
				return err
			}
			for i, v := range row {
				if s, ok := v.(string); ok && unstorable(s) != "" {
					return fault.New(fault.Invalid, "The column %s of the row %s in the table %s %s, which PostgreSQL cannot hold. Nothing was copied.",
						t.Columns[i].Name, named(t, row), t.Name, unstorable(s)).Hint("Change or delete that row in a copy of the file, or stay with SQLite.")
				}
			}
		}
	}
	return nil
}

// named is a row by its key.
func named(t whole.Table, row []any) string {
	var b bytes.Buffer
	for i, k := range t.Key {
		if i > 0 {
			b.WriteString(", ")
		}
		switch v := row[t.At(k)].(type) {
		case []byte:
			fmt.Fprintf(&b, "%s=%s", k, hex.EncodeToString(v))
		case string:
			fmt.Fprintf(&b, "%s=%q", k, v)
		default:
			fmt.Fprintf(&b, "%s=%v", k, v)
		}
	}
	return b.String()
}
