package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFiles are one engine's place among the processes that write one database:
// take next, then write, give next back. SQLite's own lock has no queue: beside
// a busy writer, another process got four writes in 13 s. Whoever holds next is
// the next to write, and the busy one has to queue behind it.
//
// They order writers and protect nothing: SQLite's lock stays the truth.
type lockFiles struct{ next, write *os.File }

func openLockFiles(path string) (*lockFiles, error) {
	next, err := openPrivate(path + ".next")
	if err != nil {
		return nil, err
	}
	write, err := openPrivate(path + ".write")
	if err != nil {
		next.Close()
		return nil, err
	}
	return &lockFiles{next, write}, nil
}

// openPrivate opens a file beside the database, 0600, and never through a symlink.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, refuse(path, "is a symbolic link").Hint("Remove it: Placet makes this file itself.")
	}
	if err != nil {
		return nil, refuse(path, "cannot be opened").Hint("It lies beside the database and must belong to the user who runs Placet.").Because(err)
	}
	return f, nil
}

// lock takes the write lock. While another process has it, pause is called
// again and again, with a count; lock gives up with pause's error and holds
// nothing. A blocking flock could not be given up, so we ask repeatedly.
func (l *lockFiles) lock(pause func(n int) error) error {
	if err := flock(l.next, pause); err != nil {
		return err
	}
	defer unflock(l.next)
	return flock(l.write, pause)
}

// tryLock takes the write lock if nobody has it or waits for it.
func (l *lockFiles) tryLock() bool {
	return l.lock(func(int) error { return unix.EWOULDBLOCK }) == nil
}

func (l *lockFiles) unlock() { unflock(l.write) }

func (l *lockFiles) close() {
	l.next.Close()
	l.write.Close()
}

func flock(f *os.File, pause func(n int) error) error {
	for n := 0; ; n++ {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			if err := pause(n); err != nil {
				return err
			}
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// unflock cannot fail in a way that anyone could mend; the kernel releases the
// lock with the process at the latest.
func unflock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
