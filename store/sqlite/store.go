package sqlite

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/placet-dev/placet/store"
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
	return b.e.run(&call{ctx: ctx, fn: func(h *handle) error { return fn(rows{h}) }, write: write})
}

func (b backend) View(ctx context.Context, fn func(store.Rows) error) error {
	return b.e.view(ctx, func(h *handle) error { return fn(rows{h}) })
}

func (b backend) Watch(streams ...string) (<-chan struct{}, func()) { return b.e.watch(streams...) }

func (b backend) Close() error { return b.e.close() }

// rows is one transaction's rows: a statement each, nothing judged.
type rows struct{ h *handle }

var _ store.Rows = rows{}

func (x rows) Now() time.Time          { return x.h.Now() }
func (x rows) Epoch() int64            { return x.h.epoch() }
func (x rows) Touch(stream string)     { x.h.touch(stream) }
func (x rows) NextSeq() (int64, error) { return x.h.nextSeq() }

func (x rows) RestoredTo() time.Time {
	_, to := x.h.restored()
	return to
}

// one runs a guarded statement: true if it changed exactly its row.
func (x rows) one(sql string, args ...any) (bool, error) {
	n, err := x.h.exec(sql, args...)
	return n == 1, err
}

// text is NULL for an empty text, in columns where nothing is not a value.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// pageSize is a list's limit: from 1 to most, usual where none is given. Statements say
// LIMIT +? for it: SQLite looks at the value of a plain LIMIT ? for its plan, and so
// prepares the statement again each time that it is bound.
func pageSize(n, usual, most int) int {
	if n <= 0 {
		return usual
	}
	return min(n, most)
}
