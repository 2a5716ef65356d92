package postgres

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/placet-dev/placet/fault"
)

// Parameters of the URL that are ours.
const (
	schemaParam = "placet_schema" // the schema in which the store's tables lie; default "placet"
	listenParam = "placet_listen" // host:port at which the server itself is reached, where the URL names a pooler
)

const defaultSchema = "placet"

// IsURL reports whether s names a PostgreSQL database: postgres://… or postgresql://….
func IsURL(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// Redacted is the url without its password and other secrets, for people to read.
func Redacted(given string) string {
	scheme, rest, _ := strings.Cut(given, "://")
	if i := strings.LastIndex(rest, "@"); i >= 0 { // what stands before it may all be a password's
		user := rest[:strings.IndexAny(rest, ":/?#@")]
		rest = user + rest[i:]
	}
	where, query, _ := strings.Cut(rest, "?")
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if pair != "" && err == nil && name != "password" && name != "sslpassword" && !strings.Contains(strings.ToLower(pair), ";") {
			kept = append(kept, pair)
		}
	}
	if len(kept) > 0 {
		where += "?" + strings.Join(kept, "&")
	}
	return scheme + "://" + where
}

// place is where a store lies.
type place struct {
	url    string
	schema string
	pool   *pgxpool.Config
	sized  bool            // the URL says how many connections there may be
	direct *pgxpool.Config // to the server itself, for what a pooler swallows
}

// validSchema are names that are the same with quotes and without, and leave room for the
// channel's.
var validSchema = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,54}$`)

// placeOf reads a URL. Nothing is connected to.
func placeOf(raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil || !IsURL(raw) {
		return place{}, fault.New(fault.Invalid, "The store's URL cannot be read.").
			Hint("Write postgres://USER@HOST:PORT/DATABASE, and keep the password in PGPASSWORD or ~/.pgpass.")
	}
	q := u.Query()
	p := place{url: raw, schema: defaultSchema}
	if s := q.Get(schemaParam); s != "" {
		p.schema = s
	}
	if !validSchema.MatchString(p.schema) || strings.HasPrefix(p.schema, "pg_") {
		return p, refuse(raw, "names the schema %q", p.schema).
			Hint("Use up to 55 small letters, digits and underscores, beginning with a letter and not with pg_.")
	}
	listen := q.Get(listenParam)
	p.sized = q.Has("pool_max_conns")
	q.Del(schemaParam)
	q.Del(listenParam)
	u.RawQuery = q.Encode()
	if p.pool, err = pgxpool.ParseConfig(u.String()); err != nil {
		return p, refuse(raw, "cannot be used as the store's URL: %s", withoutURL(err)).Hint("See docs/guide/postgres.md for what it may say.")
	}
	p.pool.ConnConfig.RuntimeParams[appParam] = appName(p.schema)
	p.pool.ConnConfig.RuntimeParams[encodingParam] = "UTF8"
	if listen != "" {
		u.Host = listen
	}
	p.direct, err = pgxpool.ParseConfig(u.String())
	if err != nil {
		return p, refuse(raw, "has a parameter %s that cannot be used", listenParam).Hint("Write %s=HOST:PORT.", listenParam)
	}
	p.direct.ConnConfig.RuntimeParams[appParam] = appName(p.schema)
	p.direct.ConnConfig.RuntimeParams[encodingParam] = "UTF8"
	return p, nil
}

// withoutURL is what was wrong, without the URL that pgx repeats.
func withoutURL(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		return s[i+2:]
	}
	return "it is not understood"
}

func (p place) String() string { return Redacted(p.url) }

// searchPath has nothing in it that others could put tables into.
func (p place) searchPath() string { return quoted(p.schema) }

// channel is what the processes of one store listen to.
func (p place) channel() string { return "placet_" + p.schema }

// unreachable is for a server that cannot be connected to.
func unreachable(p place, err error) error {
	return errUnreachable.Say("%s cannot be reached: %s. Nothing was changed.", p, shortly(err)).
		Hint("Is the server up, and are host, port, user and password right? psql %s says more.", p).Because(err)
}

func shortly(err error) string {
	s := strings.TrimSpace(err.Error())
	if i := strings.LastIndex(s, "): "); i >= 0 {
		s = s[i+3:]
	}
	return fmt.Sprintf("%.200s", strings.ReplaceAll(s, "\n", "; "))
}
