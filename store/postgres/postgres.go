// Package postgres keeps a store in a PostgreSQL database.
package postgres

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store"
)

// Options tune one use of a database. The zero value is right for most.
type Options struct {
	// ReadOnly is for commands that only look: nothing is created, migrated or written.
	ReadOnly bool
	// BusyTimeout bounds the wait for others that write. Default: 5 s.
	BusyTimeout time.Duration
	// Conns bounds the connections that are open at one time.
	Conns int
	// Logger hears of what no caller can be told. Default: slog.Default().
	Logger *slog.Logger
	// Now replaces the server's clock in tests.
	Now func() time.Time
	// Hooks are for tests of the store itself; nil in production.
	Hooks *Hooks
}

// Hooks let a test stand where a failure would.
type Hooks struct{}

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

var errNotBuiltIn = fault.Sentinel(fault.Unavailable, "not_built_in", "PostgreSQL is not built in.")

func notBuiltIn(url string) error {
	return errNotBuiltIn.Say("%s cannot be opened: PostgreSQL is not built into this program.", Redacted(url)).Hint("Give the path of a SQLite file.")
}

// Open opens the store in the PostgreSQL database that url names, and creates schema and
// tables unless o says ReadOnly. o may be nil.
func Open(_ context.Context, url string, _ *Options) (*store.Store, error) {
	return nil, notBuiltIn(url)
}

// Check looks through the store and changes nothing.
func Check(_ context.Context, url string) (Report, error) {
	return Report{URL: Redacted(url)}, notBuiltIn(url)
}

// Migrate brings the schema forward.
func Migrate(_ context.Context, url string) error { return notBuiltIn(url) }

// AcceptRestore ends the refusal of a store that went back in time; see the function of
// that name in store/sqlite.
func AcceptRestore(_ context.Context, url string) error { return notBuiltIn(url) }

// IsURL reports whether a --db value names a PostgreSQL database.
func IsURL(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// Redacted is the url without its password and other secrets, for people to read.
func Redacted(given string) string {
	scheme, rest, _ := strings.Cut(given, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, _, _ := strings.Cut(rest[:i], ":")
		rest = user + rest[i:]
	}
	where, query, _ := strings.Cut(rest, "?")
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if pair != "" && err == nil && name != "password" && name != "sslpassword" {
			kept = append(kept, pair)
		}
	}
	if len(kept) > 0 {
		where += "?" + strings.Join(kept, "&")
	}
	return scheme + "://" + where
}
