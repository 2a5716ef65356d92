package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
)

// Home is where a daemon's own files lie: beside a SQLite file, or in the folder that
// [place.Place.Folder] has for a database on a server. Daemons of one database on several
// machines, or of several users, have a home each.
type Home struct {
	store string // for people
	dir   string // the folder, where the home is one
	begin string // what the paths of its files begin with
}

// HomeOf is the home of a daemon that serves the store at p; a file's is by its real
// path. Neither store nor home need be there yet, but the folder of a file must.
func HomeOf(p place.Place) (Home, error) {
	if dir, ok := p.Folder(); ok {
		dir, err := filepath.Abs(dir)
		return Home{store: p.String(), dir: dir, begin: dir + string(filepath.Separator)}, err
	}
	db, _ := p.File()
	abs, err := filepath.Abs(db)
	if err != nil {
		return Home{}, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		var dir string
		if dir, err = filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			real = filepath.Join(dir, filepath.Base(abs))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.New(fault.Invalid, "The folder %s does not exist.", filepath.Dir(abs)).Hint("Make the folder first: mkdir -p %s.", filepath.Dir(abs)).Because(err)
		}
	}
	return Home{store: real, begin: real + "."}, err
}

// make makes the folder, where the home is one, and refuses one into which others may
// put a socket or a token.
func (h Home) make() error {
	if h.dir == "" {
		return nil
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return fault.New(fault.Invalid, "The daemon's folder %s cannot be made.", h.dir).Hint("Make it, or set PLACET_HOME to another folder.").Because(err)
	}
	fi, err := os.Stat(h.dir)
	if err != nil {
		return err
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fault.New(fault.Forbidden, "Others can write to the daemon's folder %s.", h.dir).Hint("Run chmod 700 on it, after a look at what lies there.")
	}
	return nil
}

func (h Home) lockFile() string  { return h.begin + "serve.lock" }
func (h Home) foundFile() string { return h.begin + "serve.json" }

// Socket is the Unix socket's path.
func (h Home) Socket() string { return h.begin + "sock" }

// TokenFile has the secret of the home's admin token.
func (h Home) TokenFile() string { return h.begin + "admin-token" }

// AgentTokenFile has the secret of the home's agent token, with which placet mcp acts.
func (h Home) AgentTokenFile() string { return h.begin + "agent-token" }

// JobsDir is where jobs work.
func (h Home) JobsDir() string { return h.begin + "jobs" }

// idFile has the id by which the home is told from those of other machines.
func (h Home) idFile() string { return h.begin + "home-id" }

// FindID is the home's id; fs.ErrNotExist where no daemon has served here yet.
func (h Home) FindID() (string, error) {
	s, err := readPrivate(h.idFile())
	if err == nil && !id.Has(id.Home, s) {
		err = fault.New(fault.Invalid, "The file %s does not have the id of a home.", h.idFile()).
			Hint("Restore it from a backup. Without it, delete it: the jobs that were started here then count as another home's, and are orphaned.")
	}
	return s, err
}

// ID is the home's id. It is made the first time, at random, and never changes: two
// machines may have homes of the same path.
func (h Home) ID() (string, error) {
	s, err := h.FindID()
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := makePrivate(h.idFile(), []byte(id.New(id.Home)+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("write the id of the home of %s: %w", h.store, err)
	}
	return h.FindID()
}

// ErrServed: another daemon has the store.
var ErrServed = fault.Sentinel(fault.Conflict, "already_served", "Another placet serve has this store.")

// glances is how often the lock is tried for: whoever looks whether a daemon serves
// holds it for a moment, too.
const glances = 20

// lock takes the home until it is unlocked.
func (h Home) lock() (*os.File, error) {
	f, err := os.OpenFile(h.lockFile(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take the lock of %s: %w", h.store, err)
	}
	for range glances {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err == nil {
		_ = os.Remove(h.foundFile()) // of one that was killed: who sees the lock held believes it
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, h.served()
	}
	return nil, fmt.Errorf("lock %s: %w", h.lockFile(), err)
}

// served says who has the home, where that one has told already.
func (h Home) served() error {
	err := ErrServed.Say("Another placet serve has the store %s.", h.store)
	other := "another store is given with --db"
	if h.dir != "" {
		err = ErrServed.Say("Another placet serve has the store %s from the home %s.", h.store, h.dir)
		other += ", and a second daemon on this one gets a PLACET_HOME of its own"
	}
	if f, found := h.Find(); found == nil && f.PID > 0 {
		return err.Hint("It is process %d, at %s. Use that one, or stop it first; %s.", f.PID, f.URL, other)
	}
	return err.Hint("It has only begun, or placet db copy is at work. Try again in a moment.")
}

// unlock gives a lock back. Closing the file alone would not, while a child that is
// being forked has it open.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // closing gives it back as well
	f.Close()
}

// Served reports whether a daemon has the store now: then its discovery file is true.
func (h Home) Served() bool {
	f, err := os.OpenFile(h.lockFile(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unlock(f)
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}

// Hold keeps daemons off the store at p until it is given back: one that starts meanwhile
// is refused. It is [ErrServed] where a daemon on this machine has the store now. For a
// store on a server that is looked for in this user's home only; other homes and other
// machines are the server's to know. Where no home can be yet, there is nothing to hold.
func Hold(p place.Place) (giveBack func(), err error) {
	h, err := HomeOf(p)
	if err == nil && h.dir != "" {
		_, err = os.Stat(h.dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	lock, err := h.lock()
	if err != nil {
		return nil, err
	}
	return func() { unlock(lock) }, nil
}

// Found is how a daemon is reached. It never has a token.
type Found struct {
	URL    string `json:"url"`
	PID    int    `json:"pid"`
	Socket string `json:"socket,omitempty"`
}

// Find says how the daemon is reached that has the store now.
func (h Home) Find() (Found, error) {
	if !h.Served() {
		return Found{}, fs.ErrNotExist
	}
	b, err := os.ReadFile(h.foundFile())
	if err != nil {
		return Found{}, err
	}
	var f Found
	return f, json.Unmarshal(b, &f)
}

func (h Home) tell(f Found) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return writePrivate(h.foundFile(), append(b, '\n'))
}

// writePrivate replaces a file by a whole one that only its owner reads.
func writePrivate(path string, b []byte) error {
	name, err := private(filepath.Dir(path), b)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	return os.Rename(name, path)
}

// makePrivate makes such a file, durably, where there is none: fs.ErrExist.
func makePrivate(path string, b []byte) error {
	dir := filepath.Dir(path)
	name, err := private(dir, b)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	if err := os.Link(name, path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// private writes a whole file of another name, for its place to be taken by it.
func private(dir string, b []byte) (name string, err error) {
	f, err := os.CreateTemp(dir, ".placet-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// Token reads the home's admin token. A file that others can read is refused.
func (h Home) Token() (string, error) { return readPrivate(h.TokenFile()) }

// AgentToken reads the home's agent token, in the same way.
func (h Home) AgentToken() (string, error) { return readPrivate(h.AgentTokenFile()) }

func readPrivate(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Forbidden, "Others can read %s.", path).Hint("Run chmod 600 on it, and revoke the token if somebody may have read it.")
	}
	b := make([]byte, 1024)
	n, err := f.Read(b)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b[:n])), nil
}

// admit makes sure that the home has an admin token that is good, and returns it.
func (h Home) admit(ctx context.Context, st *store.Store, principal string) (token.Token, error) {
	return keepToken(ctx, st, h.TokenFile(), token.New{Space: event.MainSpace, Scope: token.Admin, Name: "home", Principal: principal})
}

// admitAgents makes sure that the home has an agent token that is good. Its principal is
// not the store's own user: that one may decide what it asked for, and an agent's wishes
// should be told apart from theirs.
func (h Home) admitAgents(ctx context.Context, st *store.Store, principal string) error {
	_, err := keepToken(ctx, st, h.AgentTokenFile(), token.New{Space: event.MainSpace, Scope: token.Agent, Name: "mcp", Principal: principal + "/mcp"})
	return err
}

// keepToken is the token whose secret lies in a file. Where there is none, or it is good
// no more, another is made.
func keepToken(ctx context.Context, st *store.Store, path string, n token.New) (token.Token, error) {
	secret, err := readPrivate(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return token.Token{}, err
	}
	if err == nil {
		t, err := token.Find(ctx, st, n.Space, secret)
		if err == nil && t.Scope == n.Scope || err != nil && !errors.Is(err, token.ErrUnauthenticated) {
			return t, err
		}
	}
	t, secret, err := token.Create(ctx, st, n)
	if err != nil {
		return t, err
	}
	return t, writePrivate(path, []byte(secret+"\n"))
}

// maxSocketPath is what a socket's address has room for everywhere.
const maxSocketPath = 100

// socket is a listener at path.
type socket struct {
	*net.UnixListener
	path string
}

func (s socket) Close() error {
	err := s.UnixListener.Close()
	if err == nil { // not a second time: by then it may be another daemon's
		_ = os.Remove(s.path) // what is left the next one replaces
	}
	return err
}

// listenSocket listens where only the store's user reaches. The lock is held, so what
// lies there is nobody's. The socket is made in a folder that nobody else can enter, and
// comes to its place when nobody else can connect any more: the umask, which would do
// the same, is the whole process's.
func (h Home) listenSocket() (net.Listener, error) {
	path := h.Socket()
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path %s is too long for a socket", path)
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("%s is there, and is not a socket", path)
	}
	dir := path + "d" // short: the address in it has hardly more room
	defer os.RemoveAll(dir)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	hidden := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: hidden})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(hidden, 0o600), os.Rename(hidden, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return socket{l, path}, nil
}
