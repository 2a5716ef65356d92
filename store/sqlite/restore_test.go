package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/txn"
)

func testAdmin(t *testing.T, path string, more ...string) *admin {
	t.Helper()
	a, err := newAdmin(path, testMigrations(more...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (b *bundle) backupTo(name string) string {
	b.t.Helper()
	dest := filepath.Join(b.t.TempDir(), name)
	if err := testAdmin(b.t, b.path).backup(context.Background(), dest); err != nil {
		b.t.Fatal(err)
	}
	return dest
}

// copyFile is what a person does with cp.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// life reads which life of the store a view sees.
func (b *bundle) life() (epoch int64, at, to time.Time) {
	b.t.Helper()
	err := b.view(context.Background(), func(h *handle) error {
		epoch = h.Epoch()
		at, to = h.restored()
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return epoch, at, to
}

func (b *bundle) refusesAsRestored() {
	b.t.Helper()
	ran := false
	err := b.update(context.Background(), func(h *handle) error { ran = true; return nil })
	if !errors.Is(err, txn.ErrRestored) || ran || !strings.Contains(err.Error(), "placet db") || !strings.Contains(err.Error(), b.path) {
		b.t.Errorf("an update was told %v, its closure ran: %v", err, ran)
	}
}

func (b *bundle) shut() {
	b.t.Helper()
	if err := b.close(); err != nil {
		b.t.Fatal(err)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a", "b")
	dest := b.backupTo("backup.db")
	b.mustWrite("c")
	fi, err := os.Stat(dest)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", fi, err)
	}
	if names := list(t, filepath.Dir(dest)); names != "backup.db" {
		t.Errorf("beside the backup lies %s", names)
	}
	if err := testAdmin(t, b.path).backup(context.Background(), dest); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over an existing file: %v", err)
	}
	if err := testAdmin(t, b.path+"x").backup(context.Background(), dest+"2"); err == nil || !strings.Contains(err.Error(), "no database at") {
		t.Errorf("of a missing store: %v", err)
	}
	old := reopen(t, dest, Options{ReadOnly: true})
	if !old.has("a") || !old.has("b") || old.has("c") {
		t.Error("the backup is not of its moment")
	}
	old.sound()
}

// While others write, a backup is of one moment.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := b.write(fmt.Sprint(i)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range 5 {
		old := reopen(t, b.backupTo(fmt.Sprint(i)), Options{ReadOnly: true})
		old.sound()
	}
	close(stop)
	<-done
}

// A backup that is put back by cp is noticed, can be read, and accepted.
func TestCopiedBackIsNoticed(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	b.mustWrite("b")
	b.shut()
	copyFile(t, backup, b.path)

	again := reopen(t, b.path, Options{})
	again.refusesAsRestored()
	if !again.has("a") || again.has("b") {
		t.Error("it does not read what is there")
	}
	other := reopen(t, b.path, Options{})
	other.refusesAsRestored() // looking at it did not heal it
	if err := testAdmin(t, b.path).accept(context.Background()); err != nil {
		t.Fatal(err)
	}
	// Those who have it open go on.
	again.mustWrite("c")
	other.mustWrite("d")
	epoch, at, to := again.life()
	if epoch != 3 || at.IsZero() || !to.Before(at) {
		t.Errorf("epoch %d, restored at %v to %v", epoch, at, to)
	}
	if first := again.number(`SELECT seq FROM note WHERE id = 'c'`); first != 3 {
		t.Errorf("event %d was told again for something else", first) // 2 was b
	}
	err := testAdmin(t, b.path).accept(context.Background())
	if err == nil || !strings.Contains(err.Error(), "nothing to accept") {
		t.Errorf("accepting again: %v", err)
	}
}

// Writes without an event count too.
func TestCopiedBackWithoutEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	err := b.update(context.Background(), func(h *handle) error {
		_, err := h.Exec(`UPDATE note SET body = x'01'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.shut()
	copyFile(t, backup, b.path)
	reopen(t, b.path, Options{}).refusesAsRestored()
}

func TestRestore(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	b.mustWrite("b", "c")
	woken, stop := b.watch("run:1")
	defer stop()
	b.settle(woken)
	if err := testAdmin(t, b.path).restore(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	<-woken // the watchers look again: everything may be different
	if !b.has("a") || b.has("b") || b.has("c") {
		t.Error("the open store does not show the restored one")
	}
	b.mustWrite("d") // the open store goes on with the new epoch
	if epoch, at, to := b.life(); epoch != 3 || at.IsZero() || !to.Before(at) {
		t.Errorf("epoch %d, restored at %v to %v", epoch, at, to)
	}
	if seq := b.number(`SELECT seq FROM note WHERE id = 'd'`); seq != 4 {
		t.Errorf("the next event is %d, and 3 was acknowledged", seq)
	}
	if names := list(t, filepath.Dir(b.path)); strings.Contains(names, "copy") {
		t.Errorf("the folder holds %s", names)
	}
	b.shut()
	again := reopen(t, b.path, Options{})
	again.mustWrite("e")
	if r, err := testAdmin(t, b.path).check(context.Background()); err != nil || !r.OK() || r.Mark != "agrees" || r.Epoch != 3 {
		t.Errorf("check: %+v, %v", r, err)
	}
}

func TestRestoreWithoutAStore(t *testing.T) {
	t.Parallel()
	tests := map[string]func(path string) error{
		"Missing":     os.Remove,
		"MissingMark": func(p string) error { return errors.Join(os.Remove(p), os.Remove(p+".mark")) },
		"Empty":       func(p string) error { return os.Truncate(p, 0) },
		"Damaged":     func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("no database", 1000)), 0o600) },
		"Truncated":   func(p string) error { return os.Truncate(p, 5000) },
		"StrayLog": func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p+"-wal", []byte("stray"), 0o600))
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.mustWrite("a")
			backup := b.backupTo("backup.db")
			b.mustWrite("b")
			b.shut()
			if err := do(b.path); err != nil {
				t.Fatal(err)
			}
			if err := testAdmin(t, b.path).restore(context.Background(), backup); err != nil {
				t.Fatal(err)
			}
			again := reopen(t, b.path, Options{})
			if !again.has("a") || again.has("b") {
				t.Error("the backup is not what is there")
			}
			again.mustWrite("c")
			want := int64(3)
			if name == "MissingMark" { // nobody is left who knows of b
				want = 2
			}
			if seq := again.number(`SELECT seq FROM note WHERE id = 'c'`); seq != want {
				t.Errorf("the next event is %d, want %d", seq, want)
			}
			if epoch, _, _ := again.life(); epoch != 3 { // the backup's is 2
				t.Errorf("epoch %d", epoch)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	good := b.backupTo("good.db")
	damaged := b.backupTo("damaged.db")
	if err := os.Truncate(damaged, 3*4096); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := setup(t, Options{})
	other.mustWrite("other")
	newer := reopen(t, filepath.Join(t.TempDir(), "newer.db"), Options{}, `CREATE TABLE other(x INTEGER) STRICT`)
	newer.mustWrite("n")
	for from, words := range map[string]string{
		damaged:                         "damaged",
		text:                            "not a SQLite database",
		filepath.Join(t.TempDir(), "x"): "no database at",
		b.path:                          "is the store itself",
		other.backupTo("other.db"):      "move " + b.path + " away first",
		newer.path:                      "newer than this program's 1",
	} {
		err := testAdmin(t, b.path).restore(context.Background(), from)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("restoring %s: %v, want %q", from, err, words)
		}
	}
	if epoch, _, _ := b.life(); epoch != 1 || !b.has("a") {
		t.Error("a refused restore did something")
	}
	b.mustWrite("b")
	// A store in which nothing has happened yet may become another.
	fresh := setup(t, Options{})
	if err := testAdmin(t, fresh.path).restore(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	if !fresh.has("a") {
		t.Error("the fresh store was not replaced")
	}
	fresh.mustWrite("c")
}

// A backup of an older schema comes back with this program's.
func TestRestoreOlderSchema(t *testing.T) {
	t.Parallel()
	path := oldStore(t, 5)
	backup := filepath.Join(t.TempDir(), "old.db")
	if err := testAdmin(t, path).backup(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	b := reopen(t, path, Options{}, secondStep)
	b.mustWrite("new")
	if err := testAdmin(t, path, secondStep).restore(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	if n := b.number(`SELECT count(*) FROM moved`); n != 5 {
		t.Errorf("%d rows of the newer schema", n)
	}
	b.mustWrite("newer")
}

// Killed between the copy and the mark, it is noticed and can be accepted.
func TestRestoreWithoutItsMark(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	b.mustWrite("b")
	b.shut()
	mark, err := os.ReadFile(b.path + ".mark")
	if err != nil {
		t.Fatal(err)
	}
	a := testAdmin(t, b.path)
	if err := a.restore(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.path+".mark", mark, 0o600); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, b.path, Options{})
	again.refusesAsRestored()
	if r, err := a.check(context.Background()); err != nil || r.OK() || !strings.Contains(r.Mark, "epoch") {
		t.Errorf("check: %+v, %v", r, err)
	}
	if err := a.accept(context.Background()); err != nil {
		t.Fatal(err)
	}
	again.mustWrite("c")
	if epoch, _, _ := again.life(); epoch != 4 { // backup 2, restored 3
		t.Errorf("epoch %d", epoch)
	}
}

func childRestores(args []string) error {
	a, err := newAdmin(args[0], testMigrations())
	if err != nil {
		return err
	}
	return a.restore(context.Background(), args[1])
}

// Killed at any moment, db restore leaves the old store or the restored one in
// a new epoch; in between, nothing is written to it unnoticed.
func TestKilledRestore(t *testing.T) {
	t.Parallel()
	rounds := 30
	if raceEnabled {
		rounds = 3
	}
	outcomes := map[string]int{}
	for range rounds {
		outcomes[killRestore(t)]++
	}
	t.Logf("outcomes: %v", outcomes)
}

func killRestore(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "placet.db")
	makeOld(t, path, 100)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := testAdmin(t, path).backup(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	b := reopen(t, path, Options{})
	b.mustWrite("later")
	b.shut()
	c := start(t, "restore", path, backup)
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // to land anywhere: nothing is waited for
	c.kill()

	b = reopen(t, path, Options{})
	defer b.shut()
	old, epoch := b.has("later"), b.number(`SELECT epoch FROM meta`)
	if old != (epoch == 1) || b.number(countNotesSQL) < 100 {
		t.Errorf("epoch %d has the old row: %v", epoch, old)
	}
	err := b.write("after")
	switch {
	case old && err == nil:
		b.sound()
		return "old"
	case !old && err == nil:
		return "restored"
	case !old && errors.Is(err, txn.ErrRestored):
		return "noticed"
	}
	t.Errorf("epoch %d, the old row is there: %v, and an update was told %v", epoch, old, err)
	return "wrong"
}

func TestLostMark(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(mark string) error{
		"Removed": os.Remove,
		"Emptied": func(p string) error { return os.Truncate(p, 0) },
		"Garbage": func(p string) error { return os.WriteFile(p, make([]byte, markSize), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.mustWrite("a")
			if err := do(b.path + ".mark"); err != nil {
				t.Fatal(err)
			}
			b.mustWrite("b") // while open
			if k, ok, err := lookMark(b.path); err != nil || !ok || k.seq != 2 {
				t.Errorf("the mark is %+v, %v, %v", k, ok, err)
			}
			b.shut()
			if err := do(b.path + ".mark"); err != nil {
				t.Fatal(err)
			}
			// Closed, nobody knows any more how far it had come.
			again, a := reopen(t, b.path, Options{}), testAdmin(t, b.path)
			again.refusesAsRestored()
			reopen(t, b.path, Options{}).refusesAsRestored() // looking at it did not heal it
			if !again.has("a") || !again.has("b") {
				t.Error("it cannot be read")
			}
			if r, err := a.check(context.Background()); err != nil || r.OK() || r.Mark != "none" {
				t.Errorf("check: %+v, %v", r, err)
			}
			if err := a.accept(context.Background()); err != nil {
				t.Fatal(err)
			}
			again.mustWrite("c")
			if epoch, _, to := again.life(); epoch != 2 || to.IsZero() {
				t.Errorf("epoch %d, restored to %v", epoch, to)
			}
		})
	}
}

// A process that ended before it wrote the mark of a new store bricks nothing.
func TestNewStoreWithoutMark(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.shut()
	if err := os.Truncate(b.path+".mark", 0); err != nil {
		t.Fatal(err)
	}
	reopen(t, b.path, Options{}).mustWrite("a")
}

// A process whose mark is lost goes on only if nobody wrote since it last looked.
func TestLostMarkAmongProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	other := reopen(t, b.path, Options{})
	other.mustWrite("b")
	if err := os.Remove(b.path + ".mark"); err != nil {
		t.Fatal(err)
	}
	b.refusesAsRestored()
	other.mustWrite("c")
	b.mustWrite("d")
}

// A store that was moved without its mark, or a backup that is used where it lies,
// does nothing more without a word from its operator.
func TestUsedInPlace(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	b.mustWrite("b")
	b.shut()
	moved := filepath.Join(t.TempDir(), "moved.db")
	if err := os.Rename(b.path, moved); err != nil {
		t.Fatal(err)
	}
	for path, epoch := range map[string]int64{moved: 2, backup: 3} { // a backup is in its next life already
		used := reopen(t, path, Options{})
		used.refusesAsRestored()
		if !used.has("a") {
			t.Error("it cannot be read")
		}
		if err := testAdmin(t, path).accept(context.Background()); err != nil {
			t.Fatal(err)
		}
		used.mustWrite("c")
		if now, _, _ := used.life(); now != epoch {
			t.Errorf("%s is in epoch %d, want %d", path, now, epoch)
		}
		used.shut()
	}
	// Beside the mark of a new store it is noticed too.
	fresh := setup(t, Options{})
	fresh.shut()
	if err := os.Rename(moved, fresh.path); err != nil {
		t.Fatal(err)
	}
	reopen(t, fresh.path, Options{}).refusesAsRestored()
}

// A store in which nothing has happened can be thrown away without a word.
func TestRemovedBeforeAnyUse(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.shut()
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, b.path, Options{})
	again.mustWrite("a")
	again.shut()
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	_, err := openEngine(context.Background(), b.path, Options{}, testMigrations())
	if !errors.Is(err, txn.ErrRestored) || !strings.Contains(err.Error(), b.path+".mark") {
		t.Errorf("after it was used: %v", err)
	}
}

func TestReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(path, backup string) error{
		"Replaced": func(p, backup string) error {
			return errors.Join(os.Remove(p+"-wal"), os.Remove(p+"-shm"), os.Rename(backup, p))
		},
		"Removed": func(p, _ string) error { return os.Remove(p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.mustWrite("a")
			backup := b.backupTo("backup.db")
			b.mustWrite("b")
			if !b.has("b") {
				t.Error("it is not there")
			}
			if err := do(b.path, backup); err != nil {
				t.Fatal(err)
			}
			b.refusesAsRestored()
			if !b.has("b") {
				t.Error("reads end too")
			}
			e, err := openEngine(context.Background(), b.path, Options{}, testMigrations())
			if name == "Removed" && !errors.Is(err, txn.ErrRestored) {
				t.Errorf("opening a store that was removed: %v", err)
			}
			if name == "Replaced" {
				if err != nil {
					t.Fatal(err)
				}
				other := &bundle{engine: e, t: t, path: b.path}
				other.refusesAsRestored()
				if !other.has("a") || other.has("b") {
					t.Error("what lies there now is not read")
				}
				other.shut()
			}
		})
	}
}

// A second name for an open store ends its updates until it is gone again.
func TestSecondNameWhileOpen(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	other := b.path + "2"
	if err := os.Link(b.path, other); err != nil {
		t.Fatal(err)
	}
	if err := b.write("b"); !errors.Is(err, txn.ErrNotCommitted) || !strings.Contains(err.Error(), "has 2 names") {
		t.Errorf("an update was told %v", err)
	}
	if err := testAdmin(t, other).backup(context.Background(), other+"-copy"); err == nil || !strings.Contains(err.Error(), "has 2 names") {
		t.Errorf("a backup by the other name: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	b.mustWrite("b")
}

// A file that is mounted by itself is refused under the name that it is mounted at.
func TestMountedFile(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	at := filepath.Join(t.TempDir(), "placet.db")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mount", "--bind", b.path, at).Run(); err != nil {
		t.Skip("a file cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", at).Run() })
	_, err := openEngine(context.Background(), at, Options{}, testMigrations())
	if err == nil || !strings.Contains(err.Error(), "Mount the folder") {
		t.Errorf("open said %v", err)
	}
	b.mustWrite("b")
}

// Backups may be linked, as programs do that keep many of them.
func TestRestoreOfLinkedBackup(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	backup := b.backupTo("backup.db")
	if err := os.Link(backup, backup+"2"); err != nil {
		t.Fatal(err)
	}
	if err := testAdmin(t, b.path).restore(context.Background(), backup); err != nil {
		t.Fatal(err)
	}
	b.mustWrite("b")
}

// A process remembers what it saw even where the mark is gone.
func TestWentBackUnderAnOpenStore(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a", "b")
	c, err := openConn(dsn(b.path, forWriting, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.script(context.Background(), `DELETE FROM note WHERE id = 'b'; DELETE FROM event WHERE seq = 2; UPDATE meta SET next_seq = 2`); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(b.path + ".mark"); err != nil {
		t.Fatal(err)
	}
	b.refusesAsRestored()
	b.refusesAsRestored()
	if err := testAdmin(t, b.path).accept(context.Background()); err != nil {
		t.Fatal(err) // it wrote what it knows into the mark
	}
	b.mustWrite("c")
	if seq := b.number(`SELECT seq FROM note WHERE id = 'c'`); seq != 3 {
		t.Errorf("event %d was told before", seq)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a", "b")
	r, err := testAdmin(t, b.path).check(context.Background())
	if err != nil || !r.OK() || r.Mark != "agrees" || r.Events != 2 || r.Epoch != 1 || r.Schema != 1 || r.Settings["journal_mode"] != "wal" || r.LastAt.IsZero() || r.Bytes == 0 {
		t.Errorf("a sound store: %+v, %v", r, err)
	}
	if _, err := testAdmin(t, b.path+"x").check(context.Background()); err == nil || !strings.Contains(err.Error(), b.path+"x") {
		t.Errorf("a missing store: %v", err)
	}
	c, err := openConn(dsn(b.path, forWriting, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.script(context.Background(), `PRAGMA foreign_keys = 0; DELETE FROM event WHERE seq = 1`); err != nil {
		t.Fatal(err)
	}
	if r, err := testAdmin(t, b.path).check(context.Background()); err != nil || r.OK() || !strings.Contains(strings.Join(r.Problems, " "), "points to a row of event") {
		t.Errorf("a row that points to nothing: %+v, %v", r, err)
	}
}

func TestMarkFormat(t *testing.T) {
	t.Parallel()
	k := mark{strings.Repeat("f", 32), 1 << 40, 1 << 60, 1 << 61, stamp{1 << 60, 1 << 62}}
	raw := k.raw()
	if got, ok := parseMark(raw); !ok || got != k {
		t.Errorf("%q reads as %+v, %v", raw, got, ok)
	}
	for i := range raw {
		bad := raw
		bad[i] ^= 1
		if got, ok := parseMark(bad); ok && got != k {
			t.Errorf("with byte %d wrong it reads as %+v", i, got)
		}
	}
}
