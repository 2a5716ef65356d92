package place_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/place"
)

const home = "/home/ana/.placet"

// calm takes away what the environment would add to a URL.
func calm(t *testing.T) {
	t.Helper()
	for _, name := range []string{"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGOPTIONS", "PGSSLMODE", "PLACET_DB", "PLACET_HOME"} {
		t.Setenv(name, "")
	}
}

func parse(t *testing.T, given string) place.Place {
	t.Helper()
	p, err := place.Parse(given, home)
	if err != nil {
		t.Fatalf("%s: %v", given, err)
	}
	return p
}

func folder(t *testing.T, given string) string {
	t.Helper()
	dir, ok := parse(t, given).Folder()
	if !ok {
		t.Fatalf("%s has no folder", given)
	}
	return dir
}

func TestFiles(t *testing.T) {
	calm(t)
	for given, want := range map[string]string{
		"": home + "/placet.db", "p.db": "p.db", "/var/lib/p.db": "/var/lib/p.db", "postgres": "postgres", "./host=x": "./host=x",
		"a:b": "a:b", "with blank.db": "with blank.db", "hostess.db": "hostess.db",
	} {
		p := parse(t, given)
		path, ok := p.File()
		if !ok || path != want || p.String() != want || p.HasPassword() {
			t.Errorf("%q is %q, %v, %s", given, path, ok, p)
		}
		if dir, ok := p.Folder(); ok {
			t.Errorf("%q has the folder %s", given, dir)
		}
		if says, open := p.Openness(); says != "" || open {
			t.Errorf("%q: %s", given, says)
		}
	}
}

// What is shown is the URL as it was given, without its secrets: it works on a command line.
func TestURLsAreShownWithoutSecrets(t *testing.T) {
	calm(t)
	const secret = "s3cret"
	for given, want := range map[string]string{
		"postgres://host/db":                                               "postgres://host/db",
		"postgresql://ana@host:5433/db":                                    "postgresql://ana@host:5433/db",
		"postgres://ana:s3cret@host/db":                                    "postgres://ana@host/db",
		"postgres://ana:s3cret#?%2F@host/db?sslmode=require":               "postgres://ana@host/db?sslmode=require",
		"postgres://:s3cret@host/db":                                       "postgres://@host/db",
		"postgres://ana@host/db?password=s3cret":                           "postgres://ana@host/db",
		"postgres://ana@host/db?pass%77ord=s3cret&connect_timeout=5":       "postgres://ana@host/db?connect_timeout=5",
		"postgres://ana@host/db?sslkey=/k.pem&sslpassword=s3cret":          "postgres://ana@host/db?sslkey=/k.pem",
		"postgres://ana:s3cret@h1:5432,h2:5433/db?target_session_attrs=rw": "postgres://ana@h1:5432,h2:5433/db?target_session_attrs=rw",
		"postgres://ana:s3cret@[::1]:5432/db":                              "postgres://ana@[::1]:5432/db",
		"postgres:///db?host=/var/run/postgresql&search_path=placet":       "postgres:///db?host=/var/run/postgresql&search_path=placet",
	} {
		p := parse(t, given)
		if p.String() != want {
			t.Errorf("%s is shown as %s, want %s", given, p, want)
		}
		if got := strings.Contains(given, secret); p.HasPassword() != got {
			t.Errorf("%s has a password: %v", given, p.HasPassword())
		}
		b, err := json.Marshal(map[string]any{"place": p})
		if all := fmt.Sprintf("%s %v %+v %#v %s", p, p, p, p, b); err != nil || strings.Contains(all, secret) {
			t.Errorf("%s: %s %v", given, all, err)
		}
		if again := parse(t, p.String()); !again.Same(p) || again.HasPassword() {
			t.Errorf("%s names another store than %s", p, given)
		}
		if _, ok := p.File(); ok || p.Absent() != nil {
			t.Errorf("%s is a file", given)
		}
	}
}

func TestWhatNamesNoStore(t *testing.T) {
	calm(t)
	for given, want := range map[string]string{
		"mysql://ana:s3cret@host/db":              "begins with mysql://",
		"file:///p.db":                            "begins with file://",
		"POSTGRES://ana:s3cret@host/db":           "begins with POSTGRES://",
		"postgres:/db":                            "behind postgres:",
		"postgresql:s3cret":                       "behind postgres:",
		"host=db password=s3cret":                 "by keywords",
		"dbname = x":                              "by keywords",
		"postgres://ana:s3c/s3cret@host/db":       "an @ behind the host",
		"postgres://ana:s3c?s3cret@host/db?x=@":   "an @ behind the host",
		"postgres://ana:s3c%s3cret@host/db":       "a % in it",
		"postgres://ana@host/d%zz":                "a % in it",
		"postgres://ana@host/db?password=%s3cret": "a % in it",
		"postgres://ana:s3cret/db":                "a port that is no number",
		"postgres://ana:s3 cret@host/db":          "a blank",
		"postgres://ana@host/db\n":                "a blank",
	} {
		p, err := place.Parse(given, home)
		var f *fault.Error
		if !errors.Is(err, place.ErrPlace) || !errors.As(err, &f) {
			t.Errorf("%q is %s, %v", given, p, err)
			continue
		}
		says := f.Message + " " + f.Advice
		if !strings.Contains(f.Message, want) || f.Advice == "" || strings.Contains(says, "s3c") || strings.Contains(says, "%!") {
			t.Errorf("%q: %s", given, says)
		}
	}
}

// A database has one folder, however it is named and by whom; another one has another.
func TestFolders(t *testing.T) {
	calm(t)
	same := []string{
		"postgres://db.internal/placet", "postgresql://db.internal:5432/placet", "postgres://ana:s3cret@DB.internal/placet", "postgres://bo@db.internal/placet?sslmode=require",
		"postgres:///placet?host=db.internal", "postgres://db.internal/p%6cacet?connect_timeout=3", "postgres://db.internal?dbname=placet",
	}
	want := folder(t, same[0])
	if dir, name := filepath.Split(want); dir != home+"/" || !strings.HasPrefix(name, "placet-db.internal-") {
		t.Errorf("the folder is %s", want)
	}
	for _, given := range same {
		if got := folder(t, given); got != want {
			t.Errorf("%s has %s, want %s", given, got, want)
		}
	}
	seen := map[string]string{want: same[0]}
	for _, given := range []string{
		"postgres://db.internal/other", "postgres://db.internal:5433/placet", "postgres://db2.internal/placet", "postgres:///placet", "postgres://localhost/placet",
		"postgres://db.internal/placet?search_path=two", "postgres://db.internal/placet?placet_schema=two", "postgres://db.internal/placet?placet_schema=three", "postgres://db.internal/placet?options=-csearch_path%3Dthree",
		"postgres:///placet?service=x", "postgres://db.internal:5432,b/placet",
	} {
		got := folder(t, given)
		if other := seen[got]; other != "" {
			t.Errorf("%s and %s share %s", given, other, got)
		}
		seen[got] = given
	}
	for given, prefix := range map[string]string{
		"postgres://localhost/placet": "placet-", "postgres://h/..%2F..%2Fetc": "_.._etc-h-", "postgres://h/%E2%80%AE": "_-h-", "postgres://h/.hidden": "hidden-h-",
		"postgres://long.name.of.a.host.somewhere.example/a-very-long-name": "a-very-long-name-long.name.o-",
	} {
		name := filepath.Base(folder(t, given))
		if !strings.HasPrefix(name, prefix) || len(name) > 28+1+12 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			t.Errorf("%s: %s", given, name)
		}
	}
}

// What a URL leaves open is as the environment has it, as for every program of PostgreSQL's.
func TestEnvironment(t *testing.T) {
	calm(t)
	want := folder(t, "postgres://db.internal:5433/placet")
	t.Setenv("PGHOST", "db.internal")
	t.Setenv("PGPORT", "5433")
	t.Setenv("PGDATABASE", "placet")
	if got := folder(t, "postgres://"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if folder(t, "postgres://db.internal:5434/placet") == want {
		t.Error("PGPORT won over the URL")
	}
	t.Setenv("PGDATABASE", "")
	t.Setenv("PGUSER", "placet") // a database is named like its user
	if got := folder(t, "postgres://"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if says, _ := parse(t, "postgres://").Openness(); says != "" {
		t.Error(says)
	}
}

func TestNamed(t *testing.T) {
	calm(t)
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	named := func(db, want string) {
		t.Helper()
		if p, err := place.Named(db); err != nil || p.String() != want {
			t.Errorf("%q is %s, %v; want %s", db, p, err, want)
		}
	}
	named("", filepath.Join(dir, ".placet", "placet.db"))
	t.Setenv("PLACET_HOME", filepath.Join(dir, "other"))
	named("", filepath.Join(dir, "other", "placet.db"))
	p, err := place.Named("")
	if err == nil {
		err = p.Prepare()
	}
	if fi, serr := os.Stat(filepath.Join(dir, "other")); err != nil || serr != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the home: %v %v", err, serr)
	}
	t.Setenv("PLACET_DB", "postgres://ana:s3cret@h/db")
	named("", "postgres://ana@h/db")
	named("p.db", "p.db")
	t.Setenv("PLACET_HOME", "")
	t.Setenv("HOME", "")
	named("p.db", "p.db") // which needs no home
	if _, err := place.Named(""); !errors.Is(err, place.ErrPlace) {
		t.Errorf("without a home: %v", err)
	}
}

func TestOpenness(t *testing.T) {
	calm(t)
	for given, want := range map[string]struct {
		says string
		open bool
	}{
		"postgres:///db": {}, "postgres://localhost/db": {}, "postgres://127.0.0.2/db": {}, "postgres://[::1]/db": {}, "postgres:///db?host=/run": {},
		"postgres://db.internal/db?sslmode=verify-full": {}, "postgres://localhost,db.internal/db": {"sslmode=prefer", true},
		"postgres://db.internal/db": {"sslmode=prefer", true}, "postgres://10.0.0.7/db?sslmode=disable": {"sslmode=disable", true},
		"postgres://db.internal/db?sslmode=require": {"which server answers", false},
	} {
		says, open := parse(t, given).Openness()
		if open != want.open || (says == "") != (want.says == "") || !strings.Contains(says, want.says) {
			t.Errorf("%s: %q %v", given, says, open)
		}
	}
}

func TestSame(t *testing.T) {
	calm(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "p.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{path, link, true},
		{path, filepath.Join(dir, ".", "p.db"), true},
		{path, filepath.Join(dir, "q.db"), false},
		{filepath.Join(dir, "q.db"), filepath.Join(dir, "x", "..", "q.db"), true},
		{path, "postgres://h/db", false},
		{"postgres://ana@h/db", "postgres://bo:x@h:5432/db", true},
		{"postgres://h/db", "postgres://h/other", false},
	} {
		if got := parse(t, x.a).Same(parse(t, x.b)); got != x.want {
			t.Errorf("%s and %s: %v", x.a, x.b, got)
		}
	}
}

// What a server does with its own tools is refused, and says which they are.
func TestFilesOnly(t *testing.T) {
	calm(t)
	p := parse(t, "postgres://ana:s3cret@h/db")
	dest := filepath.Join(t.TempDir(), "b.db")
	for verb, err := range map[string]error{"backup": p.Backup(t.Context(), dest), "restore": p.Restore(t.Context(), dest)} {
		var f *fault.Error
		if !errors.Is(err, place.ErrServer) || !errors.As(err, &f) {
			t.Errorf("%s: %v", verb, err)
			continue
		}
		for _, want := range []string{"placet db " + verb, "postgres://ana@h/db", "pg_dump", "pg_restore", "placet db accept-restore", "docs/guide/postgres.md"} {
			if !strings.Contains(f.Message+f.Advice, want) {
				t.Errorf("%s does not say %s: %s %s", verb, want, f.Message, f.Advice)
			}
		}
	}
	if _, err := os.Stat(dest); err == nil {
		t.Error("a file was written")
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	p := place.File(path)
	if err := p.Absent(); fault.From(err).Code != fault.NotFound {
		t.Errorf("%v", err)
	}
	if _, err := p.Open(t.Context(), place.Options{ReadOnly: true}); err == nil {
		t.Error("what is not there was opened")
	}
	if err := p.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := p.Open(t.Context(), place.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	r, err := p.Check(t.Context())
	if err != nil || !r.OK() || r.Place != path || r.SQLite == nil || r.Postgres != nil || r.Schema != r.Newest || r.StoreID == "" {
		t.Errorf("%+v %v", r, err)
	}
	if err := errors.Join(p.Backup(t.Context(), path+".copy"), p.Restore(t.Context(), path+".copy")); err != nil {
		t.Error(err)
	}
	if r, err := p.Check(t.Context()); err != nil || r.Epoch < 2 || r.RestoredAt.IsZero() {
		t.Errorf("%+v %v", r, err)
	}
	if err := p.AcceptRestore(t.Context()); err == nil {
		t.Error("there was something to accept")
	}
}

// No text makes a place that shows what stands between the first colon and the @.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"p.db", "postgres://ana:s3cret@h:1/db?password=x", "postgres://a:b/c@d", "postgres://%", "host=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tail string) {
		const secret = "S3cret-Q"
		p, err := place.Parse("postgres://ana:"+secret+"@h/db"+tail, home)
		if all := fmt.Sprint(p, err); strings.Contains(strings.ReplaceAll(all, tail, ""), secret) {
			t.Error(all)
		}
		if err != nil {
			return
		}
		if dir, ok := p.Folder(); !ok || filepath.Dir(dir) != home {
			t.Errorf("the folder is %s", dir)
		}
	})
}
