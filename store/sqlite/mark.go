package sqlite

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/txn"
)

// mark is how far the store has come, as it was told to callers. It lies beside
// the database, so that a database which is put back by copying a file is found
// to have less than what people and programs have already acted upon.
type mark struct {
	store  string
	epoch  int64
	seq    int64 // the highest event number
	lastAt int64 // the latest time of a commit
}

func (m meta) mark() mark { return mark{m.store, m.epoch, m.nextSeq - 1, m.lastAt} }

// wentBack says in what a store falls short of k; "" if it does not. Within one
// epoch everything only grows, and only our own commands raise the epoch: in the
// store and in the mark.
func (m meta) wentBack(k mark) string {
	switch {
	case m.store != k.store:
		return fmt.Sprintf("it is store %s, and store %s was here before", m.store, k.store)
	case m.epoch != k.epoch:
		return fmt.Sprintf("it is in epoch %d, and epoch %d was acknowledged", m.epoch, k.epoch)
	case m.nextSeq-1 < k.seq:
		return fmt.Sprintf("its last event is %d, and event %d was acknowledged", m.nextSeq-1, k.seq)
	case m.lastAt < k.lastAt:
		return "its last commit is older than the last that was acknowledged"
	}
	return ""
}

func restored(path, why string) error {
	return txn.ErrRestored.Say("%s went back in time: %s. Nothing was changed.", path, why).
		Hint("If that is meant, run placet db accept-restore; what was approved before then needs a new yes.")
}

// markFile is the file <db>.mark. It is written and read under the write lock.
// It is not flushed: losing it costs the notice, never a fact.
type markFile struct {
	path string
	f    *os.File
	buf  [markSize]byte
}

// markSize fits one write, so that a killed process leaves the old or the new.
const (
	markSize   = 128
	markFormat = "placet-mark 1 %s %d %d %d"
)

func openMark(path string) (*markFile, error) {
	m := &markFile{path: path + ".mark"}
	var err error
	m.f, err = openPrivate(m.path)
	return m, err
}

func (m *markFile) close() { m.f.Close() }

// read returns the mark; ok is false where there is none, or none that makes
// sense: a power cut may leave that, and it must not stop the store.
func (m *markFile) read() (k mark, ok bool, err error) {
	if err := m.follow(); err != nil {
		return k, false, err
	}
	n, err := m.f.ReadAt(m.buf[:], 0)
	if err != nil && err != io.EOF {
		return k, false, fmt.Errorf("read %s: %w", m.path, err)
	}
	k, ok = parseMark(m.buf[:n])
	return k, ok, nil
}

// follow opens the file again where it was removed or put in another's place.
func (m *markFile) follow() error {
	var open, named unix.Stat_t
	if err := unix.Fstat(int(m.f.Fd()), &open); err != nil {
		return fmt.Errorf("look at %s: %w", m.path, err)
	}
	if err := unix.Lstat(m.path, &named); err == nil && named.Ino == open.Ino && named.Dev == open.Dev {
		return nil
	}
	f, err := openPrivate(m.path)
	if err != nil {
		return err
	}
	m.f.Close()
	m.f = f
	return nil
}

func (m *markFile) write(k mark) error {
	if _, err := m.f.WriteAt(k.bytes(), 0); err != nil {
		return fmt.Errorf("write %s: %w", m.path, err)
	}
	return nil
}

// writeDurably is for our own commands, which raise the epoch.
func (m *markFile) writeDurably(k mark) error {
	if err := m.write(k); err != nil {
		return err
	}
	return m.f.Sync()
}

func (k mark) bytes() []byte {
	s := fmt.Sprintf(markFormat, k.store, k.epoch, k.seq, k.lastAt)
	s = fmt.Sprintf("%s %08x", s, crc32.ChecksumIEEE([]byte(s)))
	return []byte(fmt.Sprintf("%-*s\n", markSize-1, s))
}

func parseMark(b []byte) (k mark, ok bool) {
	s := strings.TrimSpace(string(b))
	i := strings.LastIndexByte(s, ' ')
	if len(b) != markSize || i < 0 || s[i+1:] != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s[:i]))) {
		return k, false
	}
	n, err := fmt.Sscanf(s[:i], markFormat, &k.store, &k.epoch, &k.seq, &k.lastAt)
	return k, err == nil && n == 4
}

// replaced is about a file that changed under an open store.
func replaced(path, what string) error {
	return txn.ErrRestored.Say("The database file %s %s while it was open. Nothing was changed.", path, what).
		Hint("Stop every process that uses it, put the right file in place and start again; to go back to a backup, use placet db restore FILE.")
}
