package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/migrate"
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

// Open opens the store in the database that url names, postgres://USER@HOST:PORT/DB, and
// makes it if it is not there and o does not say ReadOnly. o may be nil. Any number of
// processes may have one store open.
//
// Besides what PostgreSQL's own programs understand the URL may say placet_schema=NAME
// (default placet), and placet_listen=HOST:PORT where it names a pooler. Keep the
// password out of it: PGPASSWORD and ~/.pgpass are read.
//
// It refuses a database that is no store of ours or that a newer Placet changed
// ([store.ErrNewer]), with a sentence that says what to do.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	if o == nil {
		o = &Options{}
	}
	e, err := openEngine(ctx, url, *o, migrations())
	if err != nil {
		return nil, err
	}
	return store.New(e), nil
}

func openEngine(ctx context.Context, url string, o Options, schema fs.FS) (*engine, error) {
	if ctx.Err() != nil {
		return nil, store.NotBegun(ctx)
	}
	steps, err := migrate.Load(schema)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Redacted(url), err)
	}
	at, err := placeOf(url)
	if err != nil {
		return nil, err
	}
	lastAt, err := prepare(ctx, at, steps, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	e := &engine{where: at, o: o.withDefaults(), schema: int64(len(steps))}
	e.ctx, e.quit = context.WithCancel(context.Background())
	e.clock.own = o.Now
	e.clock.saw(lastAt)
	e.watcher, e.news = newWatcher(e), newNews(e)
	conf := at.pool
	if !at.sized || o.Conns > 0 {
		conf.MaxConns = int32(min(e.o.Conns, 1000))
	}
	conf.MinConns = min(conf.MinConns, conf.MaxConns)
	conf.AfterConnect = e.setUp
	e.slots = make(chan struct{}, max(int(conf.MaxConns)-kept, 1))
	if e.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, unreachable(at, err)
	}
	go e.watcher.loop()
	e.news.start()
	return e, nil
}

// prepare sees to it that there is a store of this program's schema, and returns the
// time of its last event.
func prepare(ctx context.Context, at place, steps []migrate.Step, readOnly bool) (lastAt int64, err error) {
	c, err := at.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer c.release()
	m, found, err := readMeta(c, at)
	switch {
	case err != nil:
		return 0, err
	case !found && readOnly:
		return 0, missing(at)
	case found && m.schema >= int64(len(steps)):
		return m.lastAt, m.mayRead(int64(len(steps)))
	case readOnly:
		return 0, refuse(at.url, "has schema %d, older than this program's %d", m.schema, len(steps)).Hint("Run placet db migrate; make a backup first.")
	}
	return m.lastAt, apply(ctx, c, at, steps)
}

// connect makes a connection as the pool's are, to what the URL names.
func (p place) connect(ctx context.Context) (*conn, error) {
	raw, err := pgx.ConnectConfig(ctx, p.pool.ConnConfig.Copy())
	if err != nil {
		return nil, unreachable(p, err)
	}
	c, err := newSession(raw.PgConn(), p)
	if err != nil {
		_ = raw.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return c, nil
}

func missing(at place) error {
	return fault.New(fault.NotFound, "There is no store in %s: the schema %s has none.", at, at.schema).
		Hint("Check the URL and %s. placet db migrate makes one, and so does the first command that writes.", schemaParam)
}

// inSchema is what opens a transaction that names tables without their schema, and waits
// as long as we do.
func inSchema(c *conn, at place, begin string) error {
	if err := c.send(request{sql: begin}, nil); err != nil {
		return err
	}
	return c.run(`SELECT set_config('search_path', ?, true), set_config('client_min_messages', 'warning', true),
		set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`, []any{at.searchPath()}, nil)
}

// readMeta reads what the store says about itself; found is false where there is none.
func readMeta(c *conn, at place) (m meta, found bool, err error) {
	if err := inSchema(c, at, `BEGIN READ ONLY`); err != nil {
		return m, false, told(err)
	}
	err = c.run(metaAtAnySchema, nil, func(r sqlrows.Row) error {
		found = true
		m.scanAny(r)
		return nil
	})
	if e := c.run(rollbackSQL, nil, nil); e != nil && err == nil {
		err = told(e)
	}
	said := code(err)
	if said == undefinedTable && c.place.table != 0 { // a schema that may not be used is passed over
		said = insufficientRights
	}
	switch said {
	case undefinedTable, invalidSchema:
		return m, false, nil
	case undefinedColumn:
		return m, false, refuse(at.url, "has a table meta of another program in the schema %s", at.schema).
			Hint("Give Placet a schema of its own: ?%s=NAME.", schemaParam).Because(err)
	case insufficientRights:
		return m, false, refuse(at.url, "does not let this role look into the schema %s", at.schema).
			Hint("Grant it USAGE on the schema and rights on its tables (docs/guide/postgres.md).").Because(err)
	}
	if err == nil && !found {
		err = errNoMeta
	}
	return m, found, err
}
