package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/store/sqlrows"
)

// Report is what Check found. Problems is empty if all is well; a warning is no fault,
// and worth knowing.
type Report struct {
	URL      string   `json:"url"` // without secrets
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`

	StoreID    string    `json:"store_id"`
	Epoch      int64     `json:"epoch"`
	Events     int64     `json:"events"` // number of the last event
	LastAt     time.Time `json:"last_at,omitzero"`
	RestoredAt time.Time `json:"restored_at,omitzero"`
	RestoredTo time.Time `json:"restored_to,omitzero"`

	Schema    int64 `json:"schema"`
	Newest    int64 `json:"newest"` // schema this program knows
	MinWriter int64 `json:"min_writer"`
	MinReader int64 `json:"min_reader"`

	Server     string            `json:"server"` // its version
	Database   string            `json:"database"`
	SchemaName string            `json:"schema_name"`
	Role       string            `json:"role"`
	Identity   string            `json:"identity"` // "agrees", or in what the server differs from what was noted
	Settings   map[string]string `json:"settings"`
	Bytes      int64             `json:"bytes"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// checkedSettings are those that matter to what was promised.
var checkedSettings = []string{
	"synchronous_commit", "fsync", "full_page_writes", "is_superuser", "synchronous_standby_names", "default_transaction_isolation",
	"server_encoding", "max_connections", "ssl", "data_checksums", "lock_timeout", "statement_timeout",
}

// guards are the triggers that hold rows to what they may be.
var guards = []string{
	"event_update", "event_delete", "event_holds", "call_holds", "run_holds", "step_holds", "attempt_holds", "decision_holds",
	"job_holds", "delivery_holds", "delivery_attempt_holds",
}

// Check looks through the store at url: schema, rights, settings of the server, rows that
// point to nothing, and whether the store is where it was. It changes nothing. The error
// is for a store that could not be looked at.
func Check(ctx context.Context, url string) (Report, error) {
	r := Report{URL: Redacted(url), Settings: map[string]string{}, Problems: []string{}, Warnings: []string{}}
	at, steps, err := admin(url)
	if err != nil {
		return r, err
	}
	c, err := at.connect(ctx)
	if err != nil {
		return r, err
	}
	defer c.release()
	m, found, err := readMeta(c, at)
	switch {
	case err != nil:
		return r, err
	case !found:
		return r, missing(at)
	}
	r.Newest, r.SchemaName = int64(len(steps)), at.schema
	r.describe(m, c.place)
	if err := r.look(c, at); err != nil {
		return r, told(err)
	}
	r.judge(c)
	return r, nil
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *Report) warning(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *Report) describe(m meta, now identity) {
	r.StoreID, r.Epoch, r.RestoredAt, r.RestoredTo = m.store, m.epoch, m.restoredAt, m.restoredTo
	r.Schema, r.MinWriter, r.MinReader = m.schema, m.minWriter, m.minReader
	if m.lastAt > 0 {
		r.LastAt = time.UnixMicro(m.lastAt).UTC()
	}
	r.Identity = "agrees"
	if why := m.wentBack(now); why != "" {
		r.Identity = why
		r.problem("the store may have gone back in time: %s; run placet db accept-restore if that is meant", why)
	}
	if err := m.mayRead(r.Newest); err != nil {
		r.problem("%s", err)
	} else if err := m.mayWrite(r.Newest); err != nil {
		r.problem("%s", err)
	} else if m.schema < r.Newest {
		r.problem("schema %d is older than this program's %d: run placet db migrate", m.schema, r.Newest)
	}
}

const (
	aboutSQL = `SELECT current_setting('server_version'), current_database(), current_user::text,
		coalesce((SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'), 0)::bigint,
		CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END,
		(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
		CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE') THEN 1 ELSE 0 END,
		coalesce((SELECT max(seq) FROM event), 0)`
	settingSQL = `SELECT name, setting FROM pg_settings WHERE name = ANY (string_to_array(?, ' '))`
	// Foreign keys that were not validated, and indexes that were not built to the end.
	unsoundSQL = `SELECT 'the foreign key ' || conname || ' is not validated' FROM pg_constraint
			WHERE connamespace = current_schema()::regnamespace AND NOT convalidated
		UNION ALL SELECT 'the index ' || indexrelid::regclass::text || ' is not valid' FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
			WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisvalid
		UNION ALL SELECT 'the trigger ' || tgname || ' is disabled' FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
			WHERE c.relnamespace = current_schema()::regnamespace AND t.tgenabled = 'D'`
	// What holds rows to what they may be has to be there, and nothing that turns writes away.
	guardsSQL = `SELECT 'the trigger ' || want || ' is gone or does not always run' FROM unnest(string_to_array(?, ' ')) AS want
			WHERE NOT EXISTS (SELECT 1 FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
				WHERE c.relnamespace = current_schema()::regnamespace AND t.tgname = want AND t.tgenabled IN ('O', 'A'))
		UNION ALL SELECT 'there is a rule ' || rulename || ' on ' || tablename FROM pg_rules WHERE schemaname = current_schema()`
	// What this role may not do that writing needs.
	rightsSQL = `SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
		AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
			AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')) LIMIT 1`
	sequenceSQL = `SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S'
		AND NOT CASE relkind WHEN 'S' THEN has_sequence_privilege(c.oid, 'USAGE') ELSE true END LIMIT 1`
)

func (r *Report) look(c *conn, at place) (err error) {
	if err := inSchema(c, at, `BEGIN READ ONLY`); err != nil {
		return err
	}
	standby, seen, synced := false, false, int64(0)
	ask := func(sql string, args []any, each func(sqlrows.Row)) {
		if err == nil {
			err = c.run(sql, args, func(x sqlrows.Row) error { each(x); return nil })
		}
	}
	ask(aboutSQL, nil, func(x sqlrows.Row) {
		r.Server, r.Database, r.Role, r.Bytes = x.Str(0), x.Str(1), x.Str(2), x.Int(3)
		standby, synced, seen, r.Events = x.Int(4) == 1, x.Int(5), x.Int(6) == 1, x.Int(7)
	})
	ask(settingSQL, []any{strings.Join(checkedSettings, " ")}, func(x sqlrows.Row) { r.Settings[x.Str(0)] = x.Str(1) })
	ask(`SELECT current_setting('is_superuser')`, nil, func(x sqlrows.Row) { r.Settings["is_superuser"] = x.Str(0) })
	ask(unsoundSQL, nil, func(x sqlrows.Row) { r.problem("%s", x.Str(0)) })
	ask(guardsSQL, []any{strings.Join(guards, " ")}, func(x sqlrows.Row) { r.problem("%s", x.Str(0)) })
	ask(rightsSQL, nil, func(x sqlrows.Row) {
		r.problem("the role %s may not read and write the table %s: grant it SELECT, INSERT, UPDATE and DELETE (docs/guide/postgres.md)", r.Role, x.Str(0))
	})
	ask(sequenceSQL, nil, func(x sqlrows.Row) {
		r.problem("the role %s may not draw numbers from %s: grant it USAGE on the sequence (docs/guide/postgres.md)", r.Role, x.Str(0))
	})
	ask(rollbackSQL, nil, nil)
	if standby {
		r.problem("the server is a standby: it can be read, and takes no writes")
	} else if synced == 0 && (seen || r.Settings["synchronous_standby_names"] == "") {
		r.warning("No synchronous standby is connected: after a failover, what was acknowledged last may be missing, and a tool may run a second time.")
	}
	return err
}

// judge says what of the server's settings does not keep what was promised.
func (r *Report) judge(c *conn) {
	if r.Settings["fsync"] == "off" || r.Settings["full_page_writes"] == "off" {
		r.problem("fsync or full_page_writes is off on the server: a crash of its machine loses commits, or the whole database")
	}
	if s := r.Settings["synchronous_commit"]; s == "off" || s == "local" || s == "remote_write" {
		r.warning("synchronous_commit is %s on the server; Placet turns it on for its own transactions.", s)
	}
	if r.Settings["is_superuser"] == "on" {
		r.warning("The role %s is a superuser: give Placet one of its own, which owns its schema and nothing else.", r.Role)
	}
	if e := r.Settings["server_encoding"]; e != "UTF8" {
		r.problem("the database's encoding is %s: make it with ENCODING 'UTF8'", e)
	}
	if c.pooled {
		r.warning("A pooler is between Placet and the server: statements are not prepared, which is slower, and notifications need %s=HOST:PORT of the server itself.", listenParam)
	}
}
