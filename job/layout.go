package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
)

// Layout is the version of a launch's directory. It only ever gains files and
// fields, so that a runner of an earlier release and a supervisor of a later one
// understand each other.
//
//	claim     the launch's token; another one: this launch must not begin
//	lock      locked by the runner as long as it lives
//	identity  who the runner is, before the command starts; then also who its leader is
//	out, err  what the command printed, masked
//	events    what it printed to be told, and what the runner has to tell: a line each
//	status    how it ended; the last that is written
//	ctl       socket by which a supervisor talks to the runner
const Layout = 1

const (
	claimFile    = "claim"
	lockFile     = "lock"
	identityFile = "identity"
	outFile      = "out"
	errFile      = "err"
	eventsFile   = "events"
	statusFile   = "status"
	ctlFile      = "ctl"
	runnerLog    = "runner.log" // what a runner says that cannot even begin
)

// order is what a runner is told on its standard input: no secret of it lies on disk.
type order struct {
	V             int
	JobID         string
	Claim         string
	Mark          string // in the environment of everything that the command starts
	Argv          []string
	Cwd           string
	Env           []string
	Secrets       []string // values to mask
	Timeout       time.Duration
	KillAfter     time.Duration
	LogLimit      int64
	MaxOutputs    int64
	MaxEventBytes int
}

// identity says who works in a launch's directory.
type identity struct {
	V         int       `json:"v"`
	Claim     string    `json:"claim"`
	Runner    string    `json:"runner"`
	Session   string    `json:"session,omitempty"` // the process that leads the runner's session
	Mark      string    `json:"mark"`
	Leader    string    `json:"leader,omitempty"` // of the command's process group; empty: not started yet
	StartedAt time.Time `json:"started_at,omitzero"`
}

// status says how a launch ended. Everything else has been written before it.
type status struct {
	V         int       `json:"v"`
	Claim     string    `json:"claim"`
	Runner    string    `json:"runner"`
	Status    Status    `json:"status"`
	ExitCode  int       `json:"exit_code"`
	Signal    string    `json:"signal,omitempty"`
	Failure   string    `json:"failure,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"` // zero: it never began
	EndedAt   time.Time `json:"ended_at"`
}

// The kinds of records in a launch's events.
const (
	kindOutput        = "output"
	kindLogTruncated  = "log_truncated"
	kindCaptureFailed = "log_capture_failed"
	kindDropped       = "output_dropped"
)

// record is one line of a launch's events.
type record struct {
	Kind   string         `json:"kind"`
	Output *outputPayload `json:"output,omitempty"`
	Stream string         `json:"stream,omitempty"`
	Limit  int64          `json:"limit,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// launchDir is the directory of one launch.
type launchDir string

func dirOf(home, jobID string, launch int64) launchDir {
	return launchDir(filepath.Join(home, jobID, strconv.FormatInt(launch, 10)))
}

func (d launchDir) file(name string) string { return filepath.Join(string(d), name) }

// errBegunEarlier: the directory is of a launch that has begun.
var errBegunEarlier = errors.New("its folder shows that a command began there before")

// prepare makes the directory, with the claim in it. One in which a launch has begun
// is left as it is.
func (d launchDir) prepare(claim string) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	if earlier, err := d.begun(); err != nil || earlier != "" {
		return errors.Join(errBegunEarlier, err)
	}
	return writeWhole(d.file(claimFile), []byte(claim))
}

// writeWhole replaces a file at once.
func writeWhole(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeWhole(path, b)
}

// readJSON reads a file that may not be there yet; found is false then.
func readJSON(path string, to any) (found bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// claimed reports whether the launch may still begin, or has.
func (d launchDir) claimed(token string) (bool, error) {
	b, err := os.ReadFile(d.file(claimFile))
	return err == nil && string(b) == token, err
}

// voidClaim is what stands in a claim that must not begin any more.
const voidClaim = "void"

func (d launchDir) identity(token string) (id identity, found bool, err error) {
	found, err = readJSON(d.file(identityFile), &id)
	return id, found && id.Claim == token, err
}

// begun is the claim of the launch whose command began here, or may have; empty: there
// is none.
func (d launchDir) begun() (claim string, err error) {
	var id identity
	var st status
	if found, err := readJSON(d.file(identityFile), &id); err != nil || found {
		return id.Claim, err
	}
	_, err = readJSON(d.file(statusFile), &st)
	return st.Claim, err
}

func (d launchDir) status(token string) (s status, found bool, err error) {
	found, err = readJSON(d.file(statusFile), &s)
	return s, found && s.Claim == token, err
}

// lock takes the launch's lock if nobody has it. nil: somebody has.
func (d launchDir) lock() (*os.File, error) {
	f, err := os.OpenFile(d.file(lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// self is this process as others name it.
func self() string { return process.Self().String() }
