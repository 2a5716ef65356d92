package postgres

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store/sqlrows"
)

// Whatever the server's defaults are, the store's sessions have what its promises rest on.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := pgtest.Database(t)
	c := connected(t, url+"&placet_schema=public")
	var name string
	if err := c.QueryRow(ctx, "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"synchronous_commit = off", "statement_timeout = 1000", "lock_timeout = 1", "default_transaction_isolation = serializable",
		"default_transaction_read_only = on", "search_path = nowhere", "client_min_messages = debug1", "row_security = off", "jit = on",
	} {
		must(t, c, "ALTER DATABASE "+name+" SET "+s)
	}
	e, err := openEngine(ctx, url, Options{BusyTimeout: 1234 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}, migrations())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	for _, sql := range []string{beginUpdateSQL, rollbackSQL, beginUpdateSQL} {
		if err := s.run(sql, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"synchronous_commit": "on", "statement_timeout": "30s", "lock_timeout": "1234ms", "idle_in_transaction_session_timeout": "30s",
		"transaction_isolation": "read committed", "transaction_read_only": "off", "search_path": quoted(defaultSchema), "client_min_messages": "warning",
		"plan_cache_mode": "force_generic_plan", "jit": "off",
	} {
		var got string
		if err := s.run("SELECT current_setting(?)", []any{name}, func(r sqlrows.Row) error { got = r.Str(0); return nil }); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", name, got, want, err)
		}
	}
	if err := s.run(rollbackSQL, nil, nil); err != nil {
		t.Error(err)
	}
}
