package job

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Defaults and limits of a supervisor.
const (
	DefaultKillAfter = 10 * time.Second
	MaxKillAfter     = time.Hour
	maxLaunches      = 5 // of one job, where none of them began
	atOnce           = 100
	passEvery        = time.Second
)

// Config says what a supervisor works with. Store, Dir and Program are required.
type Config struct {
	Store txn.Store
	// Dir is the folder of the launches' directories: of jobs of this store and this
	// machine alone. What runs there of a job that the store does not know is ended. It
	// is made where it is missing.
	Dir string
	// Home is the identity of this place among all that share the store: the jobs that
	// are started here carry it, and [Supervisor.Loop] registers it and keeps it by a
	// lease. It is made once, at random, and kept beside Dir. Default: Dir; that is for a
	// store which one machine has alone: nothing is registered, and nobody else ends this
	// home's jobs.
	Home string
	// Host names this machine to people. Default: its host name.
	Host string
	// URL is how the daemons of other homes reach the one of this, to pass on what needs
	// its files. Default: they do not.
	URL string
	// Version is this program's, told with the home. Default: none.
	Version string
	// HomeLease is how long a home counts as held without being renewed; it is renewed
	// every third of that. Default: 30 s.
	HomeLease time.Duration
	// OrphanAfter is how much longer nothing may be heard of another home until its jobs
	// are orphaned. Default: 1 min.
	OrphanAfter time.Duration
	// Program and its first arguments: followed by `job-runner DIR` it calls [Runner].
	Program []string
	// Environ gives the launch of a job more variables, such as PLACET_URL and
	// PLACET_TOKEN; the token's value is masked. It is foreign code. Default: none.
	Environ func(context.Context, Job) (map[string]string, error)
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Channels are the ways to wake targets that jobs are started with. Default: none
	// but relays.
	Channels delivery.Channels
	// Alive is told as [Supervisor.Loop] gets on: after each job that it looked at, and
	// after each pass. One that is told nothing for long hangs. Default: nobody.
	Alive func()
	// Now stamps. Default: the store's clock.
	Now func() time.Time
	// NewID makes ids from a prefix. Default: a UUIDv7.
	NewID func(prefix string) string
	// Space is the tenant. Default: main.
	Space string
	// LogLimit bounds what is kept of each stream, in bytes. Default: 10 MiB.
	LogLimit int64
	// MaxEventBytes bounds what is told of one printed line. Default: 64 KiB.
	MaxEventBytes int
	// MaxOutputs bounds how many printed lines of a job are told. Default: 100,000.
	MaxOutputs int64
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Validate says why c cannot work: [ErrUsage] naming the field, or nil.
func (c Config) Validate() error {
	switch {
	case c.Store == nil:
		return ErrUsage.Say("job.Config.Store is missing.").Hint("Set it to what sqlite.Open returned.")
	case c.Dir == "" || !filepath.IsAbs(c.Dir):
		return ErrUsage.Say("job.Config.Dir is %q; it has to be an absolute path.", c.Dir)
	case len(c.Program) == 0:
		return ErrUsage.Say("job.Config.Program is missing.").Hint("Set it to the path of placet.")
	case c.HomeLease < 0 || c.OrphanAfter < 0:
		return ErrUsage.Say("A time of job.Config is negative.").Hint("0 means its default.")
	case c.LogLimit < 0 || c.MaxEventBytes < 0 || c.MaxOutputs < 0:
		return ErrUsage.Say("A limit of job.Config is negative.").Hint("0 means its default.")
	}
	return nil
}

// Supervisor starts jobs and looks after them. It is safe for concurrent use, and
// several of them, in one process or many, may share a store, and a home on one machine: of
// one boot and one pid namespace, where one can see whether what another launched lives.
type Supervisor struct {
	conf   Config
	misuse error

	beginPatience time.Duration // of a launch
	base          []string      // the environment that every job gets

	mu        sync.Mutex
	busy      map[string]turn      // one ingest of a job at a time
	passing   map[string]bool      // jobs that a pass is still at
	followed  map[string]bool      // claims
	stops     map[string]stopOrder // by claim
	held      Home                 // as it was last registered; zero: it is not
	gaps      int                  // how often it was held anew
	deserted  map[string]bool      // jobs that were orphaned while their launch ran on
	kick      chan struct{}
	looping   bool
	runners   sync.WaitGroup // their collecting
	following sync.WaitGroup

	straying sync.Mutex // guards strays
	strays   strays
}

// NewSupervisor makes a supervisor. It starts nothing. A configuration that cannot
// work makes every method refuse with the error of [Config.Validate].
func NewSupervisor(c Config) *Supervisor {
	s := &Supervisor{
		misuse: c.Validate(), beginPatience: beginPatience, base: safeBase(os.Environ()), kick: make(chan struct{}, 1),
		busy: map[string]turn{}, passing: map[string]bool{}, followed: map[string]bool{}, stops: map[string]stopOrder{}, deserted: map[string]bool{},
	}
	c.Dir = filepath.Clean(c.Dir)
	if c.Home == "" {
		c.Home = c.Dir
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname()
	}
	if c.HomeLease == 0 {
		c.HomeLease = DefaultHomeLease
	}
	if c.OrphanAfter == 0 {
		c.OrphanAfter = DefaultOrphanAfter
	}
	if c.NewID == nil {
		c.NewID = id.New
	}
	if c.Space == "" {
		c.Space = event.MainSpace
	}
	if c.LogLimit == 0 {
		c.LogLimit = LogLimit
	}
	if c.MaxEventBytes == 0 {
		c.MaxEventBytes = MaxEventBytes
	}
	if c.MaxOutputs == 0 {
		c.MaxOutputs = MaxOutputs
	}
	if c.Alive == nil {
		c.Alive = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s.conf = c
	return s
}

// safeBase is what of our own environment every job gets: where it is and how it
// speaks, nothing that could be a secret.
func safeBase(environ []string) []string {
	var base []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR":
			base = append(base, v)
		default:
			if strings.HasPrefix(name, "LC_") {
				base = append(base, v)
			}
		}
	}
	return base
}

func (s *Supervisor) clock(tx txn.Tx) time.Time {
	return txn.Clock(s.conf.Now, tx)
}

func (s *Supervisor) update(ctx context.Context, fn func(Tx) error) error {
	return event.Update(ctx, s.conf.Store, s.conf.Observer, fn)
}

func (s *Supervisor) dir(j Job) launchDir { return dirOf(s.conf.Dir, j.ID, j.Launches) }

// mine reports whether the job's launches lie in this supervisor's home.
func (s *Supervisor) mine(j Job) bool { return j.Home == s.conf.Home }

// apply judges a command on the job as it stands and returns the job afterwards.
func (s *Supervisor) apply(ctx context.Context, id string, cmd Command) (Job, error) {
	return s.applyIn(ctx, id, func(Tx) Command { return cmd })
}

// applyIn makes the command in the transaction that writes it: one that names the
// store's life has to name the one that it is written in.
func (s *Supervisor) applyIn(ctx context.Context, id string, command func(Tx) Command) (Job, error) {
	var next Job
	err := s.update(ctx, func(tx Tx) error {
		next = Job{}
		j, err := s.job(tx, id)
		if err != nil {
			return err
		}
		if err := put(tx, j, command(tx), s.clock(tx)); err != nil {
			return err
		}
		next, err = tx.Job(id)
		return err
	})
	return next, err
}

// job reads one of this supervisor's space.
func (s *Supervisor) job(tx Tx, id string) (Job, error) {
	j, err := tx.Job(id)
	if err == nil && j.Space != s.conf.Space {
		err = ErrNotFound.Say("There is no job %s.", id)
	}
	return j, err
}

// stored reads the job as it is in the store.
func (s *Supervisor) stored(ctx context.Context, id string) (j Job, err error) {
	err = txn.View(ctx, s.conf.Store, func(tx Tx) error {
		j, err = s.job(tx, id)
		return err
	})
	return j, err
}

// getPatience bounds how long a look at a job waits for another that is at it.
const getPatience = time.Second

// Get is the job as it stands: what its runner has left is taken in first, unless that
// is being done and takes long. [ErrNotFound].
func (s *Supervisor) Get(ctx context.Context, id string) (Job, error) {
	if s.misuse != nil {
		return Job{}, s.misuse
	}
	j, err := s.stored(ctx, id)
	if err != nil || j.Status.Terminal() || !s.mine(j) {
		return j, err
	}
	s.settleWithin(ctx, j, time.After(getPatience))
	return s.stored(ctx, id)
}

// List lists jobs, newest first; q.Space is the supervisor's.
func (s *Supervisor) List(ctx context.Context, q Query) (js []Job, err error) {
	if err := s.freshen(ctx); err != nil {
		return nil, err
	}
	q.Space = s.conf.Space
	err = txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
		js, err = tx.Jobs(q)
		return err
	})
	return js, err
}

// freshen brings the store up to date where no loop does.
func (s *Supervisor) freshen(ctx context.Context) error {
	if s.misuse != nil {
		return s.misuse
	}
	s.mu.Lock()
	looping := s.looping
	s.mu.Unlock()
	if looping {
		return nil
	}
	return s.Pass(ctx)
}

// Pause keeps a queued job from being launched. Once more is fine.
func (s *Supervisor) Pause(ctx context.Context, id, by string) (Job, error) {
	if err := s.may(by); err != nil {
		return Job{}, err
	}
	return s.apply(ctx, id, Pause{By: by})
}

// Resume lets a paused job be launched, and launches it if nothing else holds it up.
func (s *Supervisor) Resume(ctx context.Context, id, by string) (Job, error) {
	if err := s.may(by); err != nil {
		return Job{}, err
	}
	j, err := s.applyIn(ctx, id, func(tx Tx) Command { return Resume{By: by, Epoch: tx.Epoch()} })
	if err != nil || !s.mine(j) {
		return j, err
	}
	s.settle(ctx, j)
	return s.stored(ctx, id)
}

func (s *Supervisor) may(by string) error {
	if s.misuse != nil {
		return s.misuse
	}
	return checkBy(by)
}

// Pass looks once after every job of the home: it takes in what runners have left,
// launches what is due, finds lost runners, carries stops out. It returns the first
// error that is not one job's own.
func (s *Supervisor) Pass(ctx context.Context) error {
	if s.misuse != nil {
		return s.misuse
	}
	var slow sync.WaitGroup
	defer slow.Wait()
	return s.pass(ctx, &slow, func(Job) {})
}

// pass also tells of each launch that there is then. What takes long with one job goes
// on in slow, so that the others have their turn.
func (s *Supervisor) pass(ctx context.Context, slow *sync.WaitGroup, launched func(Job)) error {
	if err := s.endStrays(ctx); err != nil && ctx.Err() == nil {
		s.conf.Log.Warn("jobs that the store does not know were not looked for; it is tried again", "error", err)
	}
	for after := ""; ; {
		js, last, err := s.toDo(ctx, after)
		if err != nil || last == "" {
			return err
		}
		for _, j := range js {
			s.settleSoon(ctx, slow, j, launched)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		after = last
	}
}

// toDo lists those of the next jobs that there is something to do about: not the
// queued ones that something still holds up. last is empty behind the last one.
func (s *Supervisor) toDo(ctx context.Context, after string) (js []Job, last string, err error) {
	err = txn.View(ctx, s.conf.Store, func(tx Tx) error {
		js, last = nil, ""
		all, err := tx.ActiveJobs(s.conf.Home, after, atOnce)
		if err != nil {
			return err
		}
		for _, j := range all {
			last = j.ID
			if j.Status == Queued {
				due, cmd, err := s.due(tx, j)
				if err != nil {
					return err
				}
				if !due && cmd == nil && j.Epoch >= tx.Epoch() {
					continue
				}
			}
			js = append(js, j)
		}
		return nil
	})
	return js, last, err
}

// jobPatience is how long a pass waits for one job before it goes on with the next.
const jobPatience = 250 * time.Millisecond

// settleSoon settles a job, and goes on without waiting where that takes long.
func (s *Supervisor) settleSoon(ctx context.Context, slow *sync.WaitGroup, j Job, launched func(Job)) {
	s.mu.Lock()
	already := s.passing[j.ID]
	s.passing[j.ID] = true
	s.mu.Unlock()
	if already {
		return
	}
	done := make(chan struct{})
	slow.Go(func() {
		defer close(done)
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.passing, j.ID)
		}()
		s.settle(ctx, j)
		if ctx.Err() == nil {
			launched(j)
		}
	})
	timer := time.NewTimer(jobPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// settle brings one job of ours up to date. What goes wrong with it is its own: it is
// logged and tried again.
func (s *Supervisor) settle(ctx context.Context, j Job) { s.settleWithin(ctx, j, nil) }

// settleWithin leaves the job as it is where another is at it until late.
func (s *Supervisor) settleWithin(ctx context.Context, j Job, late <-chan time.Time) {
	turn := s.oneAtATime(j.ID)
	select {
	case turn <- struct{}{}:
	case <-late:
		return
	case <-ctx.Done():
		return
	}
	defer turn.end()
	err := s.bringIn(ctx, j.ID)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrClaimLost) || errors.Is(err, ErrNotFound) {
		return
	}
	s.conf.Log.Warn("a job could not be brought up to date; it is tried again", "job", j.ID, "error", err)
}

// turn is held by whoever brings a job up to date: a send begins it.
type turn chan struct{}

func (t turn) end() { <-t }

func (s *Supervisor) oneAtATime(id string) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] == nil {
		s.busy[id] = make(turn, 1)
	}
	return s.busy[id]
}

// forget drops what was remembered of a job that has ended.
func (s *Supervisor) forget(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, j.ID)
	delete(s.stops, j.Claim)
}

func (s *Supervisor) poke() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
