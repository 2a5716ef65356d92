package postgres

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store/sqlrows"
)

// filled is how many rows each table has whose plans matter: more than fit into what it
// is cheaper to read as a whole.
const filled = 20_000

// What a daemon asks again and again goes through indexes, in a store full of what has
// ended: both as it is planned for its arguments and for any.
func TestPlans(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := pgtest.Schema(t)
	e, err := openEngine(ctx, url, Options{}, migrations())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := fill(t, url)
	sql := sqlrows.Frequent()
	delete(sql, "how many jobs there are") // they are counted, all of them
	sql["how many of each sort wait"] = sorts
	through := map[string][]string{
		"how many of each sort wait": {"Index Only Scan using decision_sorts", "decision_sorts_long"},
		"what was decided":           {"decision_settled"},
	}
	for _, name := range slices.Sorted(maps.Keys(sql)) {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, c, mode, sql[name])
			for _, table := range []string{"call", "decision", "event", "run", "delivery", "job", "idempotency", "sign_in"} {
				if regexp.MustCompile(`Seq Scan on ` + table + `\b`).MatchString(plan) {
					t.Errorf("%s (%s) walks through the table %s:\n%s\n%s", name, mode, table, sql[name], plan)
				}
			}
			for _, index := range through[name] {
				if !strings.Contains(plan, index) {
					t.Errorf("%s (%s) does not use %s:\n%s", name, mode, index, plan)
				}
			}
			inOrder := strings.HasPrefix(name, "a page of the queue") || name == "what was decided" || name == "what was approved last"
			if inOrder && (!strings.Contains(plan, "Index Scan") || strings.Contains(plan, "Sort")) {
				t.Errorf("%s (%s) is not in the order of an index:\n%s", name, mode, plan)
			}
		}
	}
}

// explain is the plan of a statement of package sqlrows.
func explain(t *testing.T, c *pgx.Conn, mode, sql string) string {
	t.Helper()
	ctx := context.Background()
	must(t, c, "SET plan_cache_mode = "+mode)
	must(t, c, "PREPARE q AS "+native(text{sql: sql}))
	defer must(t, c, "DEALLOCATE q")
	var types []string
	if err := c.QueryRow(ctx, "SELECT CAST(parameter_types AS text[]) FROM pg_prepared_statements WHERE name = 'q'").Scan(&types); err != nil {
		t.Fatal(err)
	}
	args := make([]string, len(types))
	for i, typ := range types {
		args[i] = map[string]string{"bigint": "100", "integer": "1", "bytea": `'\x00'`}[typ]
		if args[i] == "" {
			args[i] = "'main'"
		}
	}
	ask := "EXPLAIN EXECUTE q"
	if len(args) > 0 {
		ask += "(" + strings.Join(args, ", ") + ")"
	}
	rows, err := c.Query(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", ask, err)
	}
	return strings.Join(lines, "\n")
}

func must(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// fill fills the tables with what a store has that is in use for long: almost all of it
// has ended.
func fill(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	plain, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := pgx.ParseConfig(plain)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(context.Background(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	must(t, c, "SET search_path = "+schema)
	for _, of := range []struct {
		table string
		rows  int
		own   map[string]any // in which its rows differ from nothing; %d is their number
	}{
		{"call", filled, map[string]any{"id": "cal_%d", "run_id": "run_%d", "status": "succeeded", "ended_at": 1, "continue_by": "daemon"}},
		{"run", filled, map[string]any{"id": "run_%d", "status": "COMPLETED", "reason": "done", "finished_at": 1, "continue_by": "daemon"}},
		{"job", filled, map[string]any{"id": "job_%d", "status": "completed", "ended_at": 1, "paused": 0, "dropped": 0, "principal": "user:%d", "pending": 0}},
		{"decision", filled, map[string]any{
			"id": "apr_%d", "type": "approval", "owner_kind": "call", "owner_id": "cal_%d", "status": "consumed", "choice": "approve", "decided_by": "a",
			"decided_at": 1, "settled_at": 1, "consumed_at": 1,
		}},
		{"decision", filled / 20, map[string]any{"id": "apr_w%d", "type": "approval", "owner_kind": "call", "owner_id": "cal_w%d", "status": "pending", "tool": "refund"}},
		{"event", filled, map[string]any{"seq": "%d", "pos": "%d", "stream": "call:cal_%d"}},
		{"wake_target", 50, map[string]any{"id": "tgt_%d", "kind": "webhook"}},
		{"delivery", filled, map[string]any{
			"id": "dlv_%d", "target_id": "tgt_1", "seq": "%d", "stream": "call:cal_%d", "status": "delivered", "ended_at": 1, "fence": 0, "asks": 0,
		}},
		{"idempotency", filled, map[string]any{"key": "k%d"}},
		{"sign_in", filled, map[string]any{"key": "k%d", "token_id": "tok_%d", "expires_at": "%d", "epoch": 100}},
	} {
		must(t, c, `INSERT INTO `+of.table+` SELECT r.* FROM generate_series(1, $2::int) AS n,
			LATERAL jsonb_populate_record(NULL::`+of.table+`, CAST(replace($1, '%d', CAST(n AS text)) AS jsonb)) AS r`, record(t, c, of.table, of.own), of.rows)
		must(t, c, "ANALYZE "+of.table)
	}
	return c
}

// record is a row of a table as JSON, with something in each column that needs it.
func record(t *testing.T, c *pgx.Conn, table string, own map[string]any) string {
	t.Helper()
	rows, err := c.Query(context.Background(), `SELECT column_name::text, data_type::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_nullable = 'NO'`, table)
	if err != nil {
		t.Fatal(err)
	}
	row := map[string]any{}
	var name, typ string
	if _, err := pgx.ForEachRow(rows, []any{&name, &typ}, func() error {
		row[name] = map[string]any{"bigint": 1, "text": "", "bytea": `\x00`}[typ]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := row["space"]; ok {
		row["space"] = "main"
	}
	maps.Copy(row, own)
	b, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
