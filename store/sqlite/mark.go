package sqlite

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
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
	main   stamp // how the database file was left by the last fold
}

func (m meta) mark() mark {
	return mark{store: m.store, epoch: m.epoch, seq: m.nextSeq - 1, lastAt: m.lastAt}
}

// life is the part that the store's own row is compared with.
func (k mark) life() mark {
	k.main = stamp{}
	return k
}

// noMark is said of a store that has been used and has no mark: a file that was
// moved or copied to where it lies, such as a backup used in place.
const noMark = "it has been used, and no mark that can be read lies beside it, so nobody can tell what was acknowledged since"

// wentBack says in what a store falls short of k, its mark where there is one; ""
// if it does not. Within one epoch everything only grows, and only our own commands
// raise the epoch: in the store and in the mark.
func (m meta) wentBack(k mark, marked bool) string {
	switch {
	case m.lastAt == 0 && k.lastAt == 0: // nothing was ever acknowledged
		return ""
	case !marked:
		return noMark
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
	if why == noMark {
		return txn.ErrRestored.Say("%s may have gone back in time: %s. Nothing was changed.", path, why).
			Hint("If it was moved, move the .mark file of its old place too, to %s.mark. If it is meant to be used as it is, run placet db accept-restore; what was approved before then needs a new yes.", filepath.Base(path))
	}
	return txn.ErrRestored.Say("%s went back in time: %s. Nothing was changed.", path, why).
		Hint("If that is meant, run placet db accept-restore; what was approved before then needs a new yes.")
}

// markFile is the file <db>.mark. It is written and read under the write lock.
// It is flushed when it is made, before anything is acknowledged: a store that has
// been used and has none is refused. Later it is not: losing what was written last
// costs the notice of a step back by so much, never a fact.
type markFile struct {
	path string
	f    *os.File
	ino  uint64

	// What was last read or written, so that an unchanged file is not parsed.
	raw  [markSize]byte
	last mark
	ok   bool
}

// markSize fits one write, so that a killed process leaves the old or the new.
const (
	markSize = 192
	markHead = "placet-mark 2"

	oldMarkHead = "placet-mark 1"
)

func openMark(path string) (*markFile, error) {
	m := &markFile{path: path + ".mark"}
	return m, m.open()
}

func (m *markFile) open() error {
	f, err := openPrivate(m.path)
	if err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		f.Close()
		return fmt.Errorf("look at %s: %w", m.path, err)
	}
	m.close()
	m.f, m.ino = f, s.Ino
	return nil
}

func (m *markFile) close() {
	if m.f != nil {
		m.f.Close()
	}
}

// read returns the mark; ok is false where there is none, or none that makes
// sense: a process that ended between making the file and writing it leaves that.
func (m *markFile) read() (k mark, ok bool, err error) {
	if err := m.follow(); err != nil {
		return k, false, err
	}
	var raw [markSize]byte
	if _, err := m.f.ReadAt(raw[:], 0); err != nil && err != io.EOF {
		return k, false, fmt.Errorf("read %s: %w", m.path, err)
	}
	if raw != m.raw || !m.ok {
		m.raw = raw
		m.last, m.ok = parseMark(raw)
	}
	return m.last, m.ok, nil
}

// follow opens the file again where it was removed or another was put in its place.
func (m *markFile) follow() error {
	var named unix.Stat_t
	if err := unix.Lstat(m.path, &named); err == nil && named.Ino == m.ino {
		return nil
	}
	return m.open()
}

func (m *markFile) write(k mark) error {
	raw := k.raw()
	if _, err := m.f.WriteAt(raw[:], 0); err != nil {
		m.ok = false
		return fmt.Errorf("write %s: %w", m.path, err)
	}
	m.raw, m.last, m.ok = raw, k, true
	return nil
}

// writeDurably is for a new mark and for our own commands, which raise the epoch.
func (m *markFile) writeDurably(k mark) error {
	if err := m.write(k); err != nil {
		return err
	}
	if err := m.f.Sync(); err != nil {
		return fmt.Errorf("flush %s: %w", m.path, err)
	}
	return syncFolder(filepath.Dir(m.path))
}

// raw is the line that a mark is kept as: words, a checksum over them, padding.
func (k mark) raw() (raw [markSize]byte) {
	b := append(raw[:0], markHead...)
	b = append(append(b, ' '), k.store...)
	for _, n := range []int64{k.epoch, k.seq, k.lastAt, k.main.size, k.main.mtime} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	b = strconv.AppendUint(append(b, ' '), uint64(crc32.ChecksumIEEE(b)), 16)
	for i := len(b); i < markSize-1; i++ {
		raw[i] = ' '
	}
	raw[markSize-1] = '\n'
	return raw
}

func parseMark(raw [markSize]byte) (k mark, ok bool) {
	s := strings.TrimRight(string(raw[:]), " \n\x00")
	i := strings.LastIndexByte(s, ' ')
	if i < 0 || s[i+1:] != strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(s[:i]))), 16) {
		return k, false
	}
	s = s[:i]
	if old, ok := strings.CutPrefix(s, oldMarkHead); ok { // it did not say how the file was left
		s = markHead + old + " 0 0"
	}
	n, err := fmt.Sscanf(s, markHead+" %s %d %d %d %d %d", &k.store, &k.epoch, &k.seq, &k.lastAt, &k.main.size, &k.main.mtime)
	if err != nil || n != 6 {
		return mark{}, false
	}
	return k, true
}

// replaced is about a file that changed under an open store.
func replaced(path, what string) error {
	return txn.ErrRestored.Say("The database file %s %s while it was open. Nothing was changed.", path, what).
		Hint("Stop every process that uses it, put the right file in place and start again; to go back to a backup, use placet db restore FILE.")
}
