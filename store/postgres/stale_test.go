package postgres

import (
	"context"
	"log/slog"
	"testing"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
)

// A server that has forgotten what was prepared, as behind a pooler that clears its
// sessions, is told anew, and nobody notices.
func TestForgottenStatements(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, sql := range map[string]string{"forgotten": "DEALLOCATE ALL", "cleared": "DISCARD ALL", "changed": "ALTER TABLE meta ALTER targets TYPE int"} {
		e, err := openEngine(ctx, pgtest.Schema(t), Options{Conns: 1, Logger: slog.New(slog.DiscardHandler)}, migrations())
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s := store.New(e)
		if _, err := putToken(s); err != nil {
			t.Fatal(err)
		}
		if _, err := tokens(s); err != nil {
			t.Fatal(err)
		}
		c, err := e.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = c.script(sql)
		c.release()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tokens(s); err != nil {
			t.Errorf("%s: a view: %v", name, err)
		}
		if _, err := putToken(s); err != nil {
			t.Errorf("%s: an update: %v", name, err)
		}
	}
}
