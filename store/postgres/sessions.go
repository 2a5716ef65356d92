package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store/sqlrows"
)

// appParam is the session's setting by which the server tells others who is connected.
const (
	appParam      = "application_name"
	encodingParam = "client_encoding" // a role may have another one
)

// appMax is how much of it the server keeps, in bytes.
const appMax = 63

// appName says which store a session is for and which process it belongs to: "placet", the
// beginning of a digest of the schema's name, then PID@HOST. It stands in place of what a
// URL or PGAPPNAME says: a store must not be moved away under a process that is not found.
func appName(schema string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "?"
	}
	host = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, host)
	name := fmt.Sprintf("%s%d@%s", appOf(schema), os.Getpid(), host)
	return name[:min(len(name), appMax)]
}

// appOf is how the names of all sessions of one schema begin.
func appOf(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "placet " + hex.EncodeToString(sum[:4]) + " "
}

// sessionsSQL lists other sessions for the same store. Those of other roles are seen too.
const sessionsSQL = `SELECT DISTINCT application_name FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, ?) ORDER BY 1`

const (
	sessionGlances = 20 // before a session is believed to stay: one whose process has ended is seen for a moment
	sessionPause   = 50 * time.Millisecond
)

// alone refuses a store that others have open. It waits for sessions that are about to end.
func (c *conn) alone(ctx context.Context, at place) (err error) {
	for n := 0; ; n++ {
		if err = c.others(at); err == nil || n == sessionGlances {
			return err
		}
		timer := time.NewTimer(sessionPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// others refuses a store that others have open at this moment.
func (c *conn) others(at place) error {
	var who []string
	err := c.run(sessionsSQL, []any{appOf(at.schema)}, func(r sqlrows.Row) error {
		pid, host, _ := strings.Cut(strings.TrimPrefix(r.Str(0), appOf(at.schema)), "@")
		who = append(who, fmt.Sprintf("process %s on %s", pid, host))
		return nil
	})
	if err != nil {
		return told(err)
	}
	if len(who) == 0 {
		return nil
	}
	const shown = 5
	list := strings.Join(who[:min(len(who), shown)], ", ")
	if len(who) > shown {
		list += fmt.Sprintf(" and %d more", len(who)-shown)
	}
	return whole.ErrOpen.Say("The store %s is open elsewhere: %s. Nothing was copied.", at, list).
		Hint("Stop it (placet serve, or another program that uses the store), and copy again.")
}
