package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// spoil makes a store and then does something to its file.
func spoil(t *testing.T, do func(path string) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "placet.db")
	e, err := openEngine(context.Background(), path, Options{}, testMigrations())
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{engine: e, t: t, path: path}
	for i := range 40 {
		id := string(rune('a' + i))
		if err := b.update(context.Background(), func(h *handle) error { return writeWide(h, id) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	if err := do(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	other := func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		c, err := openConn(dsn(path, forWriting, time.Second, "mode=rwc"))
		if err != nil {
			return err
		}
		defer c.close()
		return c.script(context.Background(), `CREATE TABLE meta(k TEXT, v TEXT)`)
	}
	tests := []struct {
		name   string
		do     func(path string) error
		writes bool // refused only to those who would write
		words  []string
	}{
		{"Folder", func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, false, []string{"is a folder", "Give the path of a file"}},
		{"Symlink", func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }, false, []string{"symbolic link"}},
		{"DanglingSymlink", func(p string) error { return errors.Join(os.Remove(p), os.Symlink(p+"2", p)) }, false, []string{"symbolic link"}},
		{"GroupWritable", func(p string) error { return os.Chmod(p, 0o660) }, false, []string{"can be written by other users", "chmod 600"}},
		{"WorldWritable", func(p string) error { return os.Chmod(p, 0o606) }, false, []string{"can be written by other users", "chmod 600"}},
		{"ReadOnlyFile", func(p string) error { return os.Chmod(p, 0o400) }, true, []string{"is read-only", "chmod 600"}},
		{"ReadOnlyFolder", func(p string) error { return os.Chmod(filepath.Dir(p), 0o500) }, true, []string{"is read-only", "log beside"}},
		{"NoFolder", func(p string) error { return os.RemoveAll(filepath.Dir(p)) }, false, []string{"does not exist", "mkdir"}},
		{"NotADatabase", func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("text "), 4000), 0o600) }, false, []string{"not a SQLite database"}},
		{"Short", func(p string) error { return os.Truncate(p, 100) }, false, []string{"damaged"}},
		{"Truncated", func(p string) error { return os.Truncate(p, 5000) }, false, []string{"damaged", "placet db restore"}},
		{"TruncatedToPages", func(p string) error { return os.Truncate(p, 3*4096) }, false, []string{"damaged", "placet db restore"}},
		{"Emptied", func(p string) error { return os.Truncate(p, 0) }, false, []string{"empty"}},
		{"AnotherProgram", other, false, []string{"another program"}},
		{"SymlinkedLock", func(p string) error { return errors.Join(os.Remove(p+".write"), os.Symlink("/etc/passwd", p+".write")) }, true, []string{".write", "symbolic link"}},
		{"SymlinkedMark", func(p string) error { return errors.Join(os.Remove(p+".mark"), os.Symlink("/etc/passwd", p+".mark")) }, true, []string{".mark", "symbolic link"}},
		{"HardLink", func(p string) error { return os.Link(p, p+"2") }, false, []string{"has 2 names", "share its folder"}},
		{"Device", func(p string) error { return errors.Join(os.Remove(p), mkfifo(p)) }, false, []string{"not a regular file"}},
		{"Removed", os.Remove, false, []string{"no database at|is missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := spoil(t, tt.do)
			t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
			for _, readOnly := range []bool{false, true} {
				e, err := openEngine(context.Background(), path, Options{ReadOnly: readOnly}, testMigrations())
				if err == nil {
					e.close()
					if !tt.writes || !readOnly {
						t.Errorf("read only %v: it was opened", readOnly)
					}
					continue
				}
				if readOnly && tt.writes {
					t.Errorf("it can be read, but open said %v", err)
				}
				checkSentence(t, err, path, tt.words)
			}
		})
	}
}

func checkSentence(t *testing.T, err error, path string, words []string) {
	t.Helper()
	if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code == fault.Internal {
		t.Errorf("%v is no sentence for people", err)
	}
	if !strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("%v does not name the path", err)
	}
	for _, alternatives := range words {
		found := false
		for w := range strings.SplitSeq(alternatives, "|") {
			found = found || strings.Contains(err.Error(), w)
		}
		if !found {
			t.Errorf("%v does not say %q", err, alternatives)
		}
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	path := spoil(t, func(string) error { return nil })
	for _, ext := range []string{".next", ".write", ".mark"} {
		if err := os.Remove(path + ext); err != nil {
			t.Fatal(err)
		}
	}
	before := list(t, filepath.Dir(path))
	b := reopen(t, path, Options{ReadOnly: true})
	if !b.has("a") {
		t.Error("the row is not there")
	}
	if err := b.write("x"); !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("an update was told %v", err)
	}
	err := b.view(context.Background(), func(h *handle) error { _, err := h.Exec(`DELETE FROM note`); return err })
	if err == nil {
		t.Error("a view wrote")
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	if after := list(t, filepath.Dir(path)); after != before {
		t.Errorf("the folder went from %q to %q", before, after)
	}
	missing := filepath.Join(t.TempDir(), "none.db")
	if _, err := openEngine(context.Background(), missing, Options{ReadOnly: true}, testMigrations()); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := spoil(t, func(p string) error { return os.Chmod(p, 0o644) })
	b := reopen(t, path, Options{})
	b.mustWrite("new")
	b.has("new")
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", e.Name(), fi.Mode(), err)
		}
		seen[strings.TrimPrefix(e.Name(), "placet.db")] = true
	}
	for _, ext := range []string{"", "-wal", "-shm", ".next", ".write", ".mark"} {
		if !seen[ext] {
			t.Errorf("there is no file placet.db%s", ext)
		}
	}
}

// Case 086: a setting that holds on one connection holds on all.
func TestSettings(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	_, stop := b.watch()
	defer stop()
	eventually(t, func() bool { return len(b.watcher.kick) == 0 })
	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0",
		"busy_timeout": "5000", "cell_size_check": "1", "temp_store": "2", "page_size": "4096",
	}
	check := func(name string, c *conn, queryOnly string) {
		want["query_only"] = queryOnly
		for s, v := range want {
			got, err := c.one(context.Background(), `PRAGMA `+s)
			if err != nil || got != v {
				t.Errorf("%s has %s = %s (%v), want %s", name, s, got, err, v)
			}
		}
	}
	err := b.update(context.Background(), func(h *handle) error { check("the writer", h.c, "0"); return nil })
	if err != nil {
		t.Error(err)
	}
	readers := map[*conn]bool{}
	deep(t, b, b.o.Readers, func(h *handle) { readers[h.c] = true; check("a reader", h.c, "1") })
	if len(readers) != b.o.Readers {
		t.Errorf("%d connections read, want %d", len(readers), b.o.Readers)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
}

// deep opens n views at one time.
func deep(t *testing.T, b *bundle, n int, do func(*handle)) {
	t.Helper()
	if n == 0 {
		return
	}
	err := b.view(context.Background(), func(h *handle) error { do(h); deep(t, b, n-1, do); return nil })
	if err != nil {
		t.Error(err)
	}
}

func TestSQLiteVersion(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{"3.51.3": true, "3.54.1": true, "4.0.0": true, "3.51.2": false, "3.40.1": false, "3.9.99": false} {
		if got := versionOK(v) == nil; got != want {
			t.Errorf("version %s is accepted: %v", v, got)
		}
	}
	if err := checkVersion(); err != nil {
		t.Error(err)
	}
}

// A newer schema is read and written as far as it says itself.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		more        string
		read, write bool
	}{
		{"Adds", `ALTER TABLE note ADD COLUMN x TEXT`, true, true},
		{"Tightens", `UPDATE meta SET min_writer = 2`, true, false},
		{"Breaks", `UPDATE meta SET min_writer = 2, min_reader = 2`, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "placet.db")
			newer := reopen(t, path, Options{}, tt.more)
			newer.mustWrite("a")
			for _, readOnly := range []bool{false, true} {
				e, err := openEngine(context.Background(), path, Options{ReadOnly: readOnly}, testMigrations())
				if (err == nil) != tt.read {
					t.Fatalf("an older program's open said %v", err)
				}
				if err != nil {
					checkNewer(t, err)
					continue
				}
				older := &bundle{engine: e, t: t, path: path}
				if !older.has("a") {
					t.Error("the older program does not see the row")
				}
				if err := older.write("b"); !readOnly && (err == nil) != tt.write {
					t.Errorf("an older program's update was told %v", err)
				} else if !readOnly && err != nil {
					checkNewer(t, err)
				}
				if err := e.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func checkNewer(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrNewer) || !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("%v is not ErrNewer", err)
	}
	for _, w := range []string{"schema 2", "this program is of schema 1", "newer Placet"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

// A program that is running when a newer one changes the schema stops at once.
func TestOlderProcessStops(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "placet.db")
	older := reopen(t, path, Options{})
	older.mustWrite("a")
	newer := reopen(t, path, Options{}, `CREATE TABLE other(x INTEGER) STRICT`, `UPDATE meta SET min_writer = 3`)
	if err := older.write("b"); !errors.Is(err, ErrNewer) {
		t.Errorf("told %v", err)
	}
	if !older.has("a") || older.has("b") {
		t.Error("it does not read what is there")
	}
	newer.mustWrite("c")
	newer.sound()
}

func TestOlderSchemaIsNotReadOnly(t *testing.T) {
	t.Parallel()
	path := spoil(t, func(string) error { return nil })
	_, err := openEngine(context.Background(), path, Options{ReadOnly: true}, testMigrations(`CREATE TABLE other(x INTEGER) STRICT`))
	if err == nil || !strings.Contains(err.Error(), "placet db migrate") {
		t.Errorf("told %v", err)
	}
}

func TestOpenNamesBadSteps(t *testing.T) {
	t.Parallel()
	steps := fstest.MapFS{"0001_a.sql": {}, "0001_b.sql": {}}
	_, err := openEngine(context.Background(), filepath.Join(t.TempDir(), "placet.db"), Options{}, fs.FS(steps))
	if err == nil || !strings.Contains(err.Error(), "0001_a.sql") || !strings.Contains(err.Error(), "0001_b.sql") {
		t.Errorf("told %v", err)
	}
}

// Odd names reach SQLite as they are.
func TestPathsWithMarks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a?b#c%20d &e;f.db")
	b := reopen(t, path, Options{})
	b.mustWrite("a")
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path + "-wal"); err != nil {
		t.Error(err)
	}
}
