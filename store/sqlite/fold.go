package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/txn"
)

// Folding writes the log back into the database and cuts it to nothing.
const (
	foldTurn  = time.Second            // for the lock files
	foldWait  = 50 * time.Millisecond  // for other processes' reads
	foldAgain = 200 * time.Millisecond // between two attempts
	foldStuck = 2 * time.Second        // after one that met a read which does not end
	foldLook  = 4                      // batches between two looks at the log's size
	foldRest  = 4 * foldLook           // batches between its two halves, which so are not one long wait
)

// fold keeps the log small. It runs between batches, after their callers have
// been answered: first it copies what can be copied while reads go on, then, some
// batches later, it holds up new reads for the short rest.
func (w *writer) fold() {
	w.batches++
	if w.c == nil || w.batches%foldLook != 0 {
		return
	}
	size := w.e.file.logSize()
	if size <= w.maxLog {
		w.cutAfter = 0
		return
	}
	if time.Now().Before(w.foldAfter) {
		return
	}
	if w.e.file.replaced() != nil {
		return // the log is another file's by now
	}
	if err := w.foldHalf(size > w.maxLog+w.maxLog/4); err != nil {
		w.e.o.Logger.Warn("the log beside the database could not be folded back", "path", w.e.path, "error", err)
	}
}

// foldHalf does the half whose turn it is. Where much was written since the first,
// the second does not wait any longer.
func (w *writer) foldHalf(grown bool) error {
	if w.cutAfter == 0 {
		w.cutAfter = w.batches + foldRest
		return w.copyBack()
	}
	if w.batches < w.cutAfter && !grown {
		return nil
	}
	w.cutAfter, w.foldAfter = 0, time.Now().Add(foldAgain)
	return w.cut()
}

// copyBack leaves reads alone, and other processes' writes for as long as it takes.
func (w *writer) copyBack() error {
	if w.lock.lock(w.patience(foldTurn)) != nil {
		return nil // another process writes, and will be folding too
	}
	defer w.lock.unlock()
	return w.mark.fold(w.c, w.e.path, foldPassive)
}

// patience waits for the lock files until d has passed.
func (w *writer) patience(d time.Duration) func(int) error {
	end := time.Now().Add(d)
	return func(n int) error {
		if time.Now().After(end) {
			return errLocked
		}
		nap(n)
		return nil
	}
}

func (w *writer) cut() error {
	defer w.e.gate.open()
	if !w.e.gate.shut(viewLimit) {
		w.foldAfter = time.Now().Add(foldStuck)
		return errors.New("a read has not ended for more than a second")
	}
	if !w.lock.tryLock() {
		return nil // another process writes, and will be folding too
	}
	defer w.lock.unlock()
	return w.truncate()
}

// truncate must not wait for long, because nobody reads meanwhile.
func (w *writer) truncate() (err error) {
	if err := w.busyTimeout(foldWait); err != nil {
		return err
	}
	err = w.mark.fold(w.c, w.e.path, foldTruncate)
	if back := w.busyTimeout(w.e.o.BusyTimeout); back != nil {
		w.discard(back)
	}
	return err
}

func (w *writer) busyTimeout(d time.Duration) error {
	return w.c.script(context.Background(), fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
}

// dbFile is the database file that this process has open, and its name.
type dbFile struct {
	path     string
	log      string
	dev, ino uint64
}

func identify(path string) (dbFile, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return dbFile{}, fmt.Errorf("look at %s: %w", path, err)
	}
	return dbFile{path, path + "-wal", uint64(s.Dev), s.Ino}, nil
}

// replaced tells whether another file lies at the path now, where ours would take
// commits that nobody finds again, and whether ours has got a second name.
func (f *dbFile) replaced() error {
	_, err := f.look()
	return err
}

func (f *dbFile) look() (stamp, error) {
	var s unix.Stat_t
	if err := unix.Stat(f.path, &s); err != nil {
		return stamp{}, replaced(f.path, "was removed")
	}
	return stampOf(&s), f.compare(&s)
}

func (f *dbFile) compare(s *unix.Stat_t) error {
	if s.Ino != f.ino || uint64(s.Dev) != f.dev {
		return replaced(f.path, "was replaced by another file")
	}
	if s.Nlink > 1 {
		return txn.ErrNotCommitted.Say("%s %s. Nothing was changed.", f.path, manyNames(uint64(s.Nlink))).Hint("%s", oneNameHint)
	}
	return nil
}

func (f *dbFile) logSize() int64 {
	var s unix.Stat_t
	if err := unix.Stat(f.log, &s); err != nil {
		return 0
	}
	return s.Size
}
