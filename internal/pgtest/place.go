package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	placePrefix = "placet-pg-"
	lockSuffix  = ".lock"
)

// place is a folder that has an owner: whoever holds the lock on the file beside
// it. The system lets go of the lock when the owner dies, which is how the next
// one knows what was left behind.
type place struct {
	dir  string
	lock *os.File
}

// newPlace makes a folder below parent, and removes those whose owners died.
func newPlace(parent string) (*place, error) {
	sweep(parent)
	for {
		lock, err := os.CreateTemp(parent, placePrefix+"*"+lockSuffix)
		if err != nil {
			return nil, err
		}
		p := &place{dir: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
		if err := flock(lock); err == nil && sameFile(lock) {
			return p, p.make()
		}
		lock.Close() // someone else's sweep came between making the file and locking it
	}
}

func (p *place) make() error {
	err := os.Mkdir(p.dir, 0o700)
	if err == nil {
		err = giveAway(p.dir)
	}
	if err != nil {
		return errors.Join(err, p.remove())
	}
	return nil
}

// remove takes the folder first, so that its lock stands as long as it does.
func (p *place) remove() error {
	err := errors.Join(os.RemoveAll(p.dir), os.Remove(p.lock.Name()))
	p.lock.Close()
	return err
}

// reachable is where another user may follow us to: root's own temporary folder
// need not be such a place.
func reachable() string {
	dir := os.TempDir()
	if os.Geteuid() != 0 {
		return dir
	}
	for up := dir; up != filepath.Dir(up); up = filepath.Dir(up) {
		if at, err := os.Stat(up); err != nil || at.Mode()&0o001 == 0 {
			return "/tmp"
		}
	}
	return dir
}

// sweep removes the folders whose owners died. A server of such a folder is on its
// way out: it was sent a signal when its owner died, and where the system knows no
// such signal it ends within a minute of missing its files.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, placePrefix+"*"+lockSuffix)) // its only error is a bad pattern
	for _, name := range locks {
		// Another user's, or gone already: not ours to remove.
		lock, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if flock(lock) == nil && sameFile(lock) {
			_ = (&place{dir: strings.TrimSuffix(name, lockSuffix), lock: lock}).remove() // the next one tries again
		}
		lock.Close()
	}
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sameFile says whether the name still means the file that is open.
func sameFile(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// giveAway makes path the property of the user that servers run as.
func giveAway(path string) error {
	uid, gid, err := serverUser()
	if err != nil || uid < 0 {
		return err
	}
	if err := os.Chown(path, uid, gid); err != nil {
		return fmt.Errorf("hand %s to PostgreSQL's user: %w", path, err)
	}
	return nil
}
