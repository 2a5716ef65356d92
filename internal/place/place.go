package place

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store/postgres"
)

// Place is where a store is. The zero Place is nowhere.
type Place struct {
	path string // of a SQLite file; empty: it is on a server
	url  string // of a PostgreSQL database, secrets included
	home string // folder in which files of ours lie; empty: not known
	on   server // what url says
}

// ErrPlace: what was given names no store.
var ErrPlace = fault.Sentinel(fault.Invalid, "usage", "This names no store.")

// kinds is said to whoever gave something else.
const kinds = "A store is a SQLite file, given by its path, or a PostgreSQL database, given like postgres://USER@HOST/DATABASE."

// File is the place of a SQLite file, which need not be there yet.
func File(path string) Place { return Place{path: path} }

// Named is the place that a command line names: db, the value of --db; else that of
// PLACET_DB; else the file placet.db in [Home].
func Named(db string) (Place, error) {
	if db == "" {
		db = os.Getenv("PLACET_DB")
	}
	home, err := Home()
	if err != nil && (db == "" || postgres.IsURL(db)) {
		return Place{}, err
	}
	return Parse(db, home)
}

// Home is the folder in which files of ours lie unless said otherwise: PLACET_HOME, else
// .placet in the user's own.
func Home() (string, error) {
	if home := os.Getenv("PLACET_HOME"); home != "" {
		return home, nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", ErrPlace.Say("Your home folder is not known, so neither is where Placet's files lie.").
			Hint("Set PLACET_HOME, or give --db PATH.").Because(err)
	}
	return filepath.Join(dir, ".placet"), nil
}

// keywords are the other way to name a PostgreSQL database, which may hold a password
// and is hardly ever meant as the name of a file.
var keywords = regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=`)

// Parse reads a path or the URL of a PostgreSQL database; nothing given is the file
// placet.db in home. What a URL leaves open is as the environment has it (PGHOST,
// PGPORT, PGDATABASE, PGUSER, PGSERVICE, PGOPTIONS, PGSSLMODE). Errors match [ErrPlace]
// and repeat nothing that may be a password.
func Parse(given, home string) (Place, error) {
	scheme, _, isURL := strings.Cut(given, "://")
	switch {
	case given == "":
		return Place{path: filepath.Join(home, "placet.db"), home: home}, nil
	case postgres.IsURL(given):
		on, err := parseURL(given)
		return Place{url: given, home: home, on: on}, err
	case strings.HasPrefix(given, "postgres:"), strings.HasPrefix(given, "postgresql:"):
		return Place{}, ErrPlace.Say("What stands behind postgres: is no URL.").Hint("Write it like postgres://USER@HOST/DATABASE.")
	case isURL:
		return Place{}, ErrPlace.Say("No store can be kept at a URL that begins with %s://.", scheme).Hint(kinds)
	case keywords.MatchString(given):
		return Place{}, ErrPlace.Say("The database is given by keywords, and not as a URL.").
			Hint("Write it like postgres://USER@HOST/DATABASE. A file of such a name is given with ./ before it.")
	}
	return Place{path: given, home: home}, nil
}

// File is the path of the SQLite file; ok is false where the store is on a server.
func (p Place) File() (path string, ok bool) { return p.path, p.url == "" }

// String is the path, or the URL without its secrets. It names the same store on a
// command line, where the password comes from PGPASSWORD or ~/.pgpass.
func (p Place) String() string {
	if p.url != "" {
		return postgres.Redacted(p.url)
	}
	return p.path
}

// GoString is String: a place that is printed for debugging has no password in it either.
func (p Place) GoString() string { return p.String() }

// MarshalText is String, for the same reason.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Folder is the folder for what a daemon keeps about a store on a server, in the home:
// each database and schema has one of its own. ok is false for a file, beside which such
// things lie. The folder need not be there.
func (p Place) Folder() (dir string, ok bool) {
	if p.url == "" {
		return "", false
	}
	return filepath.Join(p.home, p.on.name()), true
}

// Same reports whether both are one store as far as their names tell: one file, or one
// database and schema on one server.
func (p Place) Same(o Place) bool {
	if p.url != "" || o.url != "" {
		return p.url != "" && o.url != "" && p.on.name() == o.on.name()
	}
	one, err := os.Stat(p.path)
	other, otherErr := os.Stat(o.path)
	if err == nil && otherErr == nil {
		return os.SameFile(one, other)
	}
	a, err := filepath.Abs(p.path)
	b, otherErr := filepath.Abs(o.path)
	return err == nil && otherErr == nil && a == b
}

// HasPassword reports whether the password stands in the URL itself.
func (p Place) HasPassword() bool { return p.on.password }
