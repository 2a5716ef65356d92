package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/txn"
)

var longAgo = time.Unix(1_000_000_000, 0)

// fill makes the store larger than what a few later commits touch.
func (b *bundle) fill(prefix string, n int) {
	b.t.Helper()
	for i := range n {
		id := fmt.Sprint(prefix, i)
		if err := b.update(context.Background(), func(h *handle) error { return writeWide(h, id) }); err != nil {
			b.t.Fatal(err)
		}
	}
}

// wreck is what a process leaves behind that is killed now.
func (b *bundle) wreck() string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "placet.db")
	for _, ext := range []string{"", "-wal", ".mark"} {
		fi, err := os.Stat(b.path + ext)
		if err != nil {
			b.t.Fatal(err)
		}
		copyFile(b.t, b.path+ext, path+ext)
		if err := os.Chtimes(path+ext, fi.ModTime(), fi.ModTime()); err != nil {
			b.t.Fatal(err)
		}
	}
	return path
}

// older is a store with a log, and a copy of its file from before.
func older(t *testing.T) (b *bundle, old string) {
	t.Helper()
	b = setup(t, Options{})
	b.fill("old", 50)
	b.shut()
	old = filepath.Join(t.TempDir(), "old.db")
	copyFile(t, b.path, old)
	b = reopen(t, b.path, Options{})
	b.fill("mid", 20)
	b.shut() // folds
	b = reopen(t, b.path, Options{})
	b.mustWrite("new")
	return b, old
}

// The log that a killed process leaves is used; beside another file it is not.
func TestCopiedOverBesideALog(t *testing.T) {
	t.Parallel()
	b, old := older(t)
	whole := reopen(t, b.wreck(), Options{})
	if !whole.has("new") || !whole.has("mid3") {
		t.Error("the log was not used")
	}
	whole.mustWrite("more")

	path := b.wreck()
	copyFile(t, old, path)
	if r, err := testAdmin(t, path).check(context.Background()); err != nil || r.OK() {
		t.Errorf("check: %+v, %v", r, err)
	}
	look, err := openEngine(context.Background(), path, Options{ReadOnly: true}, testMigrations())
	if err == nil { // a mixture may be unreadable, and reading folds nothing
		_ = look.close()
	}
	for range 2 { // looking at it heals nothing
		e, err := openEngine(context.Background(), path, Options{}, testMigrations())
		if err != nil {
			t.Fatal(err)
		}
		mixed := &bundle{engine: e, t: t, path: path}
		mixed.refusesAsRestored()
		mixed.shut()
	}
	backup := whole.backupTo("backup.db")
	if err := testAdmin(t, path).restore(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, path, Options{})
	again.mustWrite("again")
	again.sound()
}

// cp keeps the file's identity, so an open store sees only that it was changed.
func TestCopiedOverWhileOpen(t *testing.T) {
	t.Parallel()
	b, old := older(t)
	other := reopen(t, b.path, Options{})
	other.mustWrite("other")
	copyFile(t, old, b.path)
	b.refusesAsRestored()
	other.refusesAsRestored()
	err := b.write("x")
	if !errors.Is(err, txn.ErrRestored) || !strings.Contains(err.Error(), "changed by something else") {
		t.Errorf("an update was told %v", err)
	}
	_ = b.close()
	_ = other.close()
	if e, err := openEngine(context.Background(), b.path, Options{}, testMigrations()); err == nil {
		again := &bundle{engine: e, t: t, path: b.path}
		again.refusesAsRestored()
		again.shut()
	}
}

// A file that is whole although its time was changed is taken back by accept-restore.
func TestTouched(t *testing.T) {
	t.Parallel()
	b, _ := older(t)
	path := b.wreck()
	if err := os.Chtimes(path, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, path, Options{})
	again.refusesAsRestored()
	if err := testAdmin(t, path).accept(context.Background()); err != nil {
		t.Fatal(err)
	}
	again.mustWrite("again")
	if !again.has("new") {
		t.Error("the log was not used")
	}
	if err := testAdmin(t, path).accept(context.Background()); err == nil {
		t.Error("there was nothing more to accept")
	}
}

// A process that is killed while it folds leaves a file of which nothing is known,
// and the store goes on.
func TestKilledWhileFolding(t *testing.T) {
	t.Parallel()
	b, _ := older(t)
	m, err := openMark(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	k, ok, err := m.read()
	if err != nil || !ok || k.main == (stamp{}) {
		t.Fatalf("the mark is %+v, %v, %v", k, ok, err)
	}
	if err := m.folding(k); err != nil {
		t.Fatal(err)
	}
	path := b.wreck()
	if err := os.Chtimes(path, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, path, Options{})
	again.mustWrite("again")
	if k, _, _ := lookMark(path); k.main == (stamp{}) {
		t.Error("opening did not find out how the file is")
	}
}

// The mark agrees with the file after every fold, whoever makes it.
func TestStampAfterFolds(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxLog = 1
	other := reopen(t, b.path, Options{})
	for i := range 40 {
		b.mustWrite(fmt.Sprint("a", i))
		other.mustWrite(fmt.Sprint("b", i))
		reading := reopen(t, b.path, Options{ReadOnly: true})
		if !reading.has(fmt.Sprint("b", i)) {
			t.Error("it is not there")
		}
		reading.shut()
	}
	b.shut()
	other.mustWrite("c")
	other.shut()
	again := reopen(t, b.path, Options{})
	again.mustWrite("d")
	again.sound()
}
