package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/placet-dev/placet/store/sqlrows"
)

// oldestServer is the first that Placet is made for.
const oldestServer = 140000

const (
	// The timeline is asked for only where the server writes: a standby has none of its own.
	// The table is looked for where that takes no right on the schema. Statistics outlast a server that is stopped, and none that crashed.
	whoSQL = `SELECT pg_backend_pid(), current_setting('max_connections')::bigint, current_setting('synchronous_commit'),
		current_setting('server_version_num')::bigint,
		(SELECT system_identifier::text FROM pg_control_system()),
		CASE WHEN pg_is_in_recovery() THEN 0 ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END,
		(SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
		coalesce((SELECT c.oid::bigint FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ?::name AND c.relname = 'meta'), 0),
		(SELECT coalesce(extract(epoch FROM stats_reset) * 1000000, 0)::bigint FROM pg_stat_bgwriter)`
	whereSQL = `SELECT (SELECT system_identifier::text FROM pg_control_system()),
		CASE WHEN pg_is_in_recovery() THEN 0 ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END`
	// Every statement finds its rows by an index, whatever its arguments: planning it anew for them
	// took longer than running it. Nor is it worth compiling: the plan of a page of many has a high
	// cost, since it is not known to end soon.
	setupSQL = `SELECT set_config('search_path', ?, false), set_config('lock_timeout', ?, false),
		set_config('statement_timeout', ?, false), set_config('idle_in_transaction_session_timeout', ?, false),
		set_config('client_min_messages', 'warning', false), set_config('plan_cache_mode', 'force_generic_plan', false),
		set_config('jit', 'off', false), set_config('synchronous_commit', ?, false)`
)

// setUp learns what a new connection leads to, and tells its session what it is for.
func (e *engine) setUp(ctx context.Context, raw *pgx.Conn) error {
	c, err := newSession(raw.PgConn(), e.where)
	if err != nil {
		return err
	}
	if !c.pooled {
		if err := c.run(setupSQL, e.settings(c), nil); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// newSession asks a new connection where it leads.
func newSession(pg *pgconn.PgConn, at place) (*conn, error) {
	c := &conn{pg: pg, session: &session{names: map[text]string{}, pooled: true}} // so that nothing is prepared before it is known
	var version int64
	err := c.runFor(answerLimit, whoSQL, []any{at.schema}, func(r sqlrows.Row) error {
		c.pid = r.Int(0)
		c.max = r.Int(1)
		c.sync = r.Str(2)
		version = r.Int(3)
		c.place, c.crash = identity{r.Str(4), r.Int(5), r.Int(6), r.Int(7)}, r.Int(8)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if version < oldestServer {
		return nil, refuse(at.url, "is PostgreSQL %d, and Placet needs 14 or later", version/10000)
	}
	clear(c.names)
	c.pooled = c.pid != int64(pg.PID())
	c.slot = c.pid % counterSlots
	pg.CustomData()[connKey] = c
	return c, nil
}

// quoted is a name as it stands in a statement.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// dial makes a connection of our own, outside of the pool, to the server itself.
func (p place) dial(ctx context.Context) (*conn, error) {
	conf := p.direct.ConnConfig.Copy()
	conf.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // else pgx keeps each for somebody to ask
	raw, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return nil, unreachable(p, err)
	}
	c, err := newSession(raw.PgConn(), p)
	if err != nil {
		_ = raw.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	if c.pooled {
		return c, nil // the server's session is not ours alone
	}
	if err := c.run(`SELECT set_config('search_path', ?, false), set_config('client_min_messages', 'warning', false)`, []any{p.searchPath()}, nil); err != nil {
		c.release()
		return nil, fmt.Errorf("set up a connection to %s: %w", p, err)
	}
	return c, nil
}
