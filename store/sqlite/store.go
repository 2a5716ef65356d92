package sqlite

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are the schema's steps, in the order of their numbers.
func migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Open opens the store in the SQLite file at path, and creates it if it is not
// there and o does not say ReadOnly. o may be nil. Several processes may have
// one file open.
//
// It refuses a path that is no database of ours, that others may write, or that
// a newer Placet changed ([ErrNewer]), with a sentence that says what to do.
func Open(ctx context.Context, path string, o *Options) (*store.Store, error) {
	if o == nil {
		o = &Options{}
	}
	e, err := openEngine(ctx, path, *o, migrations())
	if err != nil {
		return nil, err
	}
	return store.New(backend{e}), nil
}

// backend shows an engine as rows.
type backend struct{ e *engine }

var _ store.Backend = backend{}

func (b backend) Update(ctx context.Context, fn func(store.Rows) error, write func(all bool) error) error {
	return b.e.run(&call{ctx: ctx, fn: func(h *handle) error { return fn(sqlrows.Of(h)) }, write: write})
}

func (b backend) View(ctx context.Context, fn func(store.Rows) error) error {
	return b.e.view(ctx, func(h *handle) error { return fn(sqlrows.Of(h)) })
}

func (b backend) Watch(streams ...string) (<-chan struct{}, func()) { return b.e.watch(streams...) }

func (b backend) Close() error { return b.e.close() }

var _ sqlrows.Conn = (*handle)(nil)

var dialect = sqlrows.Dialect{
	HasTag: `EXISTS (SELECT 1 FROM json_each(CAST(spec AS TEXT), '$.tags') WHERE value = ?)`,
	// Of bytes that are no text lower changes nothing else, and instr of bytes looks at nothing but bytes.
	Holds: `instr(CAST(lower(CAST({} AS TEXT)) AS BLOB), ?) > 0`,
}

func (h *handle) Dialect() *sqlrows.Dialect { return &dialect }

// Latest is Now: the lock is held from the beginning.
func (h *handle) Latest() time.Time { return h.now }

// RestoredTo is the moment to which the store last went back in time; zero if it never did.
func (h *handle) RestoredTo() time.Time {
	_, to := h.restored()
	return to
}

// Write is run at once: nothing is gained by waiting.
func (h *handle) Write(w sqlrows.Write) error {
	n, err := h.Exec(w.SQL, w.Args...)
	switch {
	case err != nil && w.Taken != nil && isUnique(err):
		return w.Taken()
	case err == nil && n != 1 && w.Lost != nil:
		return w.Lost()
	}
	return err
}

// Lock has nothing to do: the transaction holds the only lock there is.
func (h *handle) Lock(func(sqlrows.Row) error, string, ...any) error { return nil }

// LockName is as Lock.
func (h *handle) LockName(string) error { return nil }

// Number draws numbers, which are the events' public order too.
func (h *handle) Number(es []event.Event) (err error) {
	for i := range es {
		if es[i].Seq, err = h.nextSeq(); err != nil {
			return err
		}
		es[i].Pos = es[i].Seq
	}
	return nil
}

// Arrange has nothing to do.
func (h *handle) Arrange() error { return nil }

const targetsChangedSQL = `UPDATE meta SET targets = targets + 1 WHERE id = 1`

// hearing is what is remembered of wake targets, as of one value of meta.targets in one
// life of the store.
type hearing struct {
	targets, epoch int64
	*sqlrows.Hearing
}

func (h *handle) Hearing(read func() (*sqlrows.Hearing, error)) (*sqlrows.Hearing, error) {
	b := h.b
	if b == nil {
		return read() // a view matches nothing; tests look
	}
	kept := &b.w.e.hears
	if k := kept.Load(); !b.targetsMoved && k != nil && k.targets == b.meta.targets && k.epoch == b.meta.epoch {
		return k.Hearing, nil
	}
	now, err := read()
	if err == nil && !b.targetsMoved {
		kept.Store(&hearing{b.meta.targets, b.meta.epoch, now})
	}
	return now, err
}

// TargetsMove is noted before the change: this batch asks anew from now on, also if
// the closure is taken back.
func (h *handle) TargetsMove(string) error {
	if h.b != nil {
		h.b.targetsMoved = true
	}
	_, err := h.Exec(targetsChangedSQL)
	return err
}
