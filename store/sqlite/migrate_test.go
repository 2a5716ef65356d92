package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// secondStep moves every note; slowStep takes long enough to be killed in.
const (
	secondStep = `
CREATE TABLE moved(id TEXT PRIMARY KEY, body BLOB) STRICT;
INSERT INTO moved SELECT id, body FROM note;
`
	slowStep = secondStep + `
INSERT INTO moved SELECT 'x' || i, zeroblob(3000) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n);
DELETE FROM moved WHERE id LIKE 'x%';
`
)

// oldStore is a store of schema 1 with some notes in it.
func oldStore(t *testing.T, notes int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "placet.db")
	makeOld(t, path, notes)
	return path
}

func makeOld(t *testing.T, path string, notes int) {
	t.Helper()
	e, err := openEngine(context.Background(), path, Options{}, testMigrations())
	if err != nil {
		t.Fatal(err)
	}
	err = e.update(context.Background(), func(h *handle) error {
		for i := range notes {
			if err := write(h, fmt.Sprint("old-", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, e.close()); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	path := oldStore(t, 5)
	b := reopen(t, path, Options{}, secondStep)
	if n := b.number(`SELECT count(*) FROM moved`); n != 5 {
		t.Errorf("%d notes were moved", n)
	}
	if n := b.number(`SELECT schema FROM meta`); n != 2 {
		t.Errorf("the schema is %d", n)
	}
	b.mustWrite("new")
	b.sound()
	backup := path + ".before-2"
	if fi, err := os.Stat(backup); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("the backup: %v, %v", fi, err)
	}
	old := reopen(t, backup, Options{})
	if n := old.number(countNotesSQL); n != 5 {
		t.Errorf("the backup has %d notes", n)
	}
	old.sound()
}

func TestNewStoreIsNotBackedUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "placet.db")
	b := reopen(t, path, Options{}, secondStep)
	if n := b.number(`SELECT schema FROM meta`); n != 2 {
		t.Errorf("the schema is %d", n)
	}
	if names := list(t, filepath.Dir(path)); strings.Contains(names, "before") {
		t.Errorf("the folder holds %s", names)
	}
}

func TestFailedMigrationLeavesAllAsItWas(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{
		"Error":     `CREATE TABLE half(x INTEGER) STRICT; INSERT INTO nothing VALUES (1)`,
		"Constrain": `CREATE TABLE half(x INTEGER) STRICT; INSERT INTO note SELECT id, seq, body FROM note`,
		"Commits":   `CREATE TABLE half(x INTEGER) STRICT; ROLLBACK; CREATE TABLE quarter(x INTEGER) STRICT`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := oldStore(t, 5)
			_, err := openEngine(context.Background(), path, Options{}, testMigrations(step))
			if err == nil || !strings.Contains(err.Error(), "0002_more.sql") || !strings.Contains(err.Error(), path) {
				t.Errorf("told %v", err)
			}
			b := reopen(t, path, Options{})
			if n := b.number(`SELECT count(*) FROM sqlite_schema WHERE name = 'half'`); n != 0 {
				t.Error("half of the step stayed")
			}
			b.mustWrite("on")
			b.sound()
		})
	}
}

func childMigrates(args []string) error {
	e, err := openEngine(context.Background(), args[0], Options{BusyTimeout: time.Minute}, testMigrations(args[1]))
	if err != nil {
		return err
	}
	return errors.Join(e.update(context.Background(), noteWriter(fmt.Sprint("new-", os.Getpid()))), e.close())
}

// Case 166: eight at once upgrade one old store.
func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	path := oldStore(t, 5)
	var children []*child
	for range 4 {
		children = append(children, start(t, "migrate", path, secondStep))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			e, err := openEngine(context.Background(), path, Options{BusyTimeout: time.Minute}, testMigrations(secondStep))
			if err == nil {
				err = e.close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, c := range children {
		c.rest()
		if !c.cmd.ProcessState.Success() {
			t.Errorf("a child ended with %v", c.cmd.ProcessState)
		}
	}
	b := reopen(t, path, Options{}, secondStep)
	if moved, notes := b.number(`SELECT count(*) FROM moved`), b.number(countNotesSQL); moved != 5 || notes != 9 {
		t.Errorf("%d notes were moved, %d are there", moved, notes)
	}
	b.sound()
}

// A killed upgrade is completed by the next start, and its backup is whole.
func TestKilledMigration(t *testing.T) {
	t.Parallel()
	rounds := 20
	if raceEnabled {
		rounds = 3
	}
	halfway := 0
	for range rounds {
		path := oldStore(t, 200)
		c := start(t, "migrate", path, slowStep)
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // to land anywhere: nothing is waited for
		c.kill()
		if fi, err := os.Stat(path + ".before-2"); err == nil {
			checkBackup(t, path+".before-2", fi)
			halfway++
		}
		b := reopen(t, path, Options{}, slowStep)
		if n := b.number(`SELECT count(*) FROM moved`); n != 200 {
			t.Errorf("%d of 200 notes were moved", n)
		}
		b.sound()
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d were killed after their backup was whole", halfway, rounds)
}

func checkBackup(t *testing.T, path string, fi os.FileInfo) {
	t.Helper()
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v", fi.Mode())
	}
	old := reopen(t, path, Options{ReadOnly: true})
	if n := old.number(countNotesSQL); n != 200 {
		t.Errorf("the backup has %d notes", n)
	}
	old.sound()
	if err := old.close(); err != nil {
		t.Error(err)
	}
}

// upTo are the first n migrations.
func upTo(t *testing.T, n int) fs.FS {
	t.Helper()
	steps := fstest.MapFS{}
	for _, name := range migrationNames(t)[:n] {
		sql, err := fs.ReadFile(migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		steps[name] = &fstest.MapFile{Data: sql}
	}
	return steps
}

// newestBackup is how the name ends of what is kept before the last migration.
func newestBackup(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(".before-%d", len(migrationNames(t)))
}

func migrationNames(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	return names
}
