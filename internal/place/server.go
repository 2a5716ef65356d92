package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"unicode"

	"github.com/placet-dev/placet/fault"
)

// server is what a URL and the environment say about where a database is. Hosts and
// ports are lists with commas where there are several.
type server struct {
	host, port, dbname string
	params             map[string]string // of the URL
	password           bool
}

// parseURL reads a PostgreSQL URL as libpq does: user and password end at the first @,
// and nothing besides %XX is special in them.
func parseURL(given string) (server, error) {
	s := server{params: map[string]string{}}
	_, rest, _ := strings.Cut(given, "://")
	if strings.ContainsFunc(given, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return s, badURL("has a blank or a control character in it").Hint("Write such characters in percent, a blank as %%20.")
	}
	var who string
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		who, rest = rest[:i], rest[i+1:]
	}
	if strings.Contains(rest, "@") { // of a password with a / in it; what follows may be the rest of it
		return s, badURL("has an @ behind the host").Hint("In user and password, write / as %%2F and @ as %%40; behind the host, @ as %%40.")
	}
	rest, query, _ := strings.Cut(rest, "?")
	netloc, dbname, _ := strings.Cut(rest, "/")
	name, password, hasPassword := strings.Cut(who, ":")
	s.password = hasPassword && password != ""
	for _, text := range []*string{&name, &password, &dbname} {
		var err error
		if *text, err = url.PathUnescape(*text); err != nil {
			return s, badPercent()
		}
	}
	if err := s.readParams(query); err != nil {
		return s, err
	}
	if err := s.readHosts(netloc); err != nil {
		return s, err
	}
	s.dbname = cmp.Or(s.params["dbname"], dbname, os.Getenv("PGDATABASE"), s.params["user"], name, os.Getenv("PGUSER"), osUser())
	return s, nil
}

func badURL(why string) *fault.Error {
	return ErrPlace.Say("The URL of the PostgreSQL database %s.", why)
}

func badPercent() error {
	return badURL("has a % in it that does not stand for a character").Hint("Write the sign itself as %%25.")
}

func (s *server) readParams(query string) error {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.PathUnescape(name)
		value, valueErr := url.PathUnescape(value)
		if nameErr != nil || valueErr != nil {
			return badPercent()
		}
		if name != "" {
			s.params[name] = value
		}
	}
	s.password = s.password || s.params["password"] != "" || s.params["sslpassword"] != ""
	return nil
}

// readHosts reads HOST:PORT,HOST:PORT.
func (s *server) readHosts(netloc string) error {
	var hosts, ports []string
	for one := range strings.SplitSeq(netloc, ",") {
		host, port := one, ""
		if i := strings.LastIndex(one, ":"); i > strings.LastIndex(one, "]") {
			host, port = one[:i], one[i+1:]
		}
		if strings.Trim(port, "0123456789") != "" { // it may be half a password
			return badURL("has a port that is no number").Hint("Write it like postgres://USER@HOST:5432/DATABASE.")
		}
		host, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
		if err != nil {
			return badPercent()
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	s.host = cmp.Or(s.params["host"], strings.Trim(strings.Join(hosts, ","), ","), os.Getenv("PGHOST"))
	s.port = cmp.Or(s.params["port"], strings.Trim(strings.Join(ports, ","), ","), os.Getenv("PGPORT"), "5432")
	return nil
}

// setting is a parameter of the URL, else of the environment.
func (s server) setting(param, env string) string { return cmp.Or(s.params[param], os.Getenv(env)) }

// osUser is PostgreSQL's user, and by it the database, where nothing else is said.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// The name of a folder: something to read, then what tells databases apart. Both are
// short, since a socket's path has room for a hundred bytes.
const (
	nameRead   = 28 // bytes
	nameDigest = 6  // bytes, twice as many digits
)

// name is that of the folder for this database. It depends on host, port, database,
// schema and service, never on user or password.
func (s server) name() string {
	h := sha256.New()
	for _, part := range []string{strings.ToLower(s.host), s.port, s.dbname, s.schema(), s.setting("service", "PGSERVICE"), s.setting("options", "PGOPTIONS")} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	read := plain(s.dbname)
	if s.remote() {
		read += "-" + plain(s.host)
	}
	if len(read) > nameRead {
		read = read[:nameRead]
	}
	return read + "-" + hex.EncodeToString(h.Sum(nil)[:nameDigest])
}

// schema is what the URL says about the schema, in whichever parameters.
func (s server) schema() string {
	var said []string
	for name, value := range s.params {
		if strings.Contains(name, "schema") || name == "search_path" {
			said = append(said, name+"="+value)
		}
	}
	slices.Sort(said)
	return strings.Join(said, "&")
}

// plain keeps what every file system takes, and no dot in front, which would hide it.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return unicode.ToLower(r)
		}
		return '_'
	}, s)
	return strings.TrimLeft(s, ".-")
}

// remote reports whether a host may be another machine. None said is this one.
func (s server) remote() bool {
	for host := range strings.SplitSeq(s.host, ",") {
		switch ip := net.ParseIP(host); {
		case host == "", host[0] == '/', host[0] == '@', strings.EqualFold(host, "localhost"), ip != nil && ip.IsLoopback():
		default:
			return true
		}
	}
	return false
}

// Openness says what others on the way to the server could do, by host and sslmode; empty
// where nobody is on the way, or server and traffic are protected. open is true where
// the traffic may go without TLS.
func (p Place) Openness() (says string, open bool) {
	if !p.on.remote() {
		return "", false
	}
	switch mode := cmp.Or(p.on.setting("sslmode", "PGSSLMODE"), "prefer"); mode {
	case "verify-full":
		return "", false
	case "require", "verify-ca":
		return fmt.Sprintf("The way to %s is encrypted, but with sslmode=%s it is not made sure which server answers: add sslmode=verify-full to the URL.", p.on.host, mode), false
	default:
		return fmt.Sprintf("The way to %s may go without TLS (sslmode=%s), so that others could read and change what is approved: add sslmode=verify-full to the URL.", p.on.host, mode), true
	}
}
