package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/pgtest"
)

// The inbox works on PostgreSQL, and ends with a sentence when the server is gone.
func TestTheInboxOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(context.Background(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = server.Stop()
		}
	})
	w := &pgWorld{world: &world{t: t, dir: t.TempDir()}, url: server.Schema(t)}
	if err := copyWorld(w.dir); err != nil {
		t.Fatal(err)
	}
	var parked struct {
		ApprovalID string `json:"approval_id"`
	}
	out, _, _ := w.runIn("home", "call", "refund", "--json", "--args", `{"order_id":"o-7","amount":500}`)
	if err := json.Unmarshal([]byte(out), &parked); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	open := func() *screen {
		c := w.in("home", "inbox", "--by", "ana")
		c.Env = append(c.Env, "TERM=xterm")
		return startTall(t, c)
	}
	s := open()
	atQuestion(s)
	s.key("approve")
	s.until("approve")
	s.key("\r")
	s.until("Nothing has run yet.")
	w.must(0, "home", "resume", parked.ApprovalID)
	s.until("It ran, and succeeded.")
	s.key("q")
	if code, text := s.end(); code != 0 {
		t.Fatalf("exit code %d:\n%q", code, text)
	}
	w.runIn("home", "call", "refund", "--args", `{"order_id":"o-8","amount":500}`)
	s = open()
	atQuestion(s)
	stopped = true
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	code, text := s.end()
	if said := text[strings.LastIndex(text, "\x1b"):]; code != 1 || !strings.Contains(said, "placet: ") {
		t.Errorf("exit code %d, and it said %q", code, said)
	}
}
