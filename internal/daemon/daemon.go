package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Defaults.
const (
	DefaultListen   = "127.0.0.1:7420"
	DefaultGrantTTL = 24 * time.Hour
	DefaultEvery    = 5 * time.Second
	drain           = 10 * time.Second // for work that has begun, when it is told to stop
	sweepAtOnce     = 100
	longestGrant    = 365 * 24 * time.Hour
)

// Config says what a daemon works with. DB and Conf are required.
type Config struct {
	DB   string         // path of the database; it is made where there is none
	Conf *config.Config // tools, rules, guards, agents
	// Listen is the address. Default: DefaultListen.
	Listen string
	// Hosts are further names, with their ports, that it goes by.
	Hosts []string
	// GrantTTL bounds how old a yes may be when it is acted on. Default: 24 h.
	GrantTTL time.Duration
	// MayOwn lets a principal decide what it asked for itself.
	MayOwn bool
	// Principal is the store's own user.
	Principal string
	// Program starts this program again, for jobs. Default: there are no jobs.
	Program []string
	// Every is how often it sweeps and looks for work. Default: 5 s.
	Every time.Duration
	// Ready is told once it serves.
	Ready func(Started)
	Log   *slog.Logger
}

// Started is how a daemon that serves is reached.
type Started struct {
	Found
	TokenFile string
	NoSocket  string // why there is none; empty: there is
}

func (c Config) checked() (Config, error) {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.GrantTTL == 0 {
		c.GrantTTL = DefaultGrantTTL
	}
	if c.Every == 0 {
		c.Every = DefaultEvery
	}
	if c.GrantTTL < 0 || c.GrantTTL > longestGrant {
		return c, call.ErrUsage.Say("A yes would last %s; a daemon's lasts from a moment to %s.", c.GrantTTL, longestGrant)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return c, call.ErrUsage.Say("%q is no address to listen on.", c.Listen).Hint("Write it like %s.", DefaultListen)
	}
	return c, nil
}

// Serve serves until ctx ends, and returns once everything is put down. Nothing ends
// only because a daemon was told to stop: what it cannot finish in time is found by
// the next one as if it had been killed.
func Serve(ctx context.Context, c Config) (err error) {
	if c, err = c.checked(); err != nil {
		return err
	}
	h, err := HomeOf(c.DB)
	if err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	st, err := sqlite.Open(ctx, c.DB, &sqlite.Options{Logger: c.Log})
	if err != nil {
		return err
	}
	d, err := newDaemon(ctx, c, h, st)
	if err == nil {
		err = d.serve(ctx)
	}
	return errors.Join(err, st.Close())
}

// daemon is one that is being served.
type daemon struct {
	c     Config
	home  Home
	st    *store.Store
	exec  *call.Executor
	runs  *run.Driver
	work  *continuer
	jobs  *job.Supervisor // nil: there are none
	loops []*loop
	api   *httpapi.Server
	tcp   net.Listener
	unix  net.Listener
	found Started
}

// late lets the server hear of events although the engines are made before it.
type late struct {
	to    atomic.Pointer[httpapi.Server]
	ended func(event.Event)
}

func (l *late) Observe(e event.Event) {
	if s := l.to.Load(); s != nil {
		s.Observe(e)
	}
	if l.ended != nil {
		l.ended(e)
	}
}

func newDaemon(ctx context.Context, c Config, h Home, st *store.Store) (*daemon, error) {
	d := &daemon{c: c, home: h, st: st}
	hear := &late{ended: func(e event.Event) { d.forget(context.WithoutCancel(ctx), e) }}
	agents, err := agentsOf(c.Conf)
	if err != nil {
		return nil, err
	}
	calls := call.Config{
		Store: st, Tools: c.Conf.Tools, Policy: c.Conf.Policy, Guards: c.Conf.Guards, Observer: hear, GrantTTL: c.GrantTTL, Log: c.Log,
	}
	if err := calls.Validate(); err != nil {
		return nil, err
	}
	d.exec = call.NewExecutor(calls)
	d.runs = run.NewDriver(run.Config{
		Store: st, Tools: c.Conf.Tools, Policy: c.Conf.Policy, Guards: c.Conf.Guards, Observer: hear, GrantTTL: c.GrantTTL, Log: c.Log,
		Agent: run.AgentFunc(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			a, ok := agents[in.Run.Agent.Name]
			if !ok {
				return run.Proposal{}, errNoAgent
			}
			return a.Decide(ctx, in)
		}),
	})
	d.work = newContinuer(st, c.Conf.Tools, d.exec, d.exec.Server(httpapi.Origin), d.runs, agents, c.Log)
	d.loops = []*loop{
		newLoop("sweep", c.Every, c.Log, d.sweep),
		newLoop("continue", c.Every, c.Log, d.work.pass),
	}
	home, err := h.admit(ctx, st, c.Principal)
	if err != nil {
		return nil, err
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	if c.Program != nil {
		d.jobs = job.NewSupervisor(job.Config{
			Store: st, Dir: h.JobsDir(), Program: c.Program, Environ: d.environ, Observer: hear, Log: c.Log,
		})
	}
	return d, d.makeAPI(home, hear)
}

// environ gives a job the way to ask: a token that is good for this job only, and for
// as long as it runs. What an earlier launch was given is good no more.
func (d *daemon) environ(ctx context.Context, j job.Job) (map[string]string, error) {
	who := j.Principal
	if who == "" {
		who = "job:" + j.ID
	}
	var secret string
	err := txn.Update(ctx, d.st, func(tx token.Tx) (err error) {
		if err := token.RevokeJobs(tx, j.Space, j.ID); err != nil {
			return err
		}
		_, secret, err = token.Issue(tx, token.New{Space: j.Space, Scope: token.Agent, Name: j.ID, Principal: who, JobID: j.ID})
		return err
	})
	return map[string]string{"PLACET_URL": d.found.URL, "PLACET_TOKEN": secret}, err
}

// forget revokes the tokens of jobs that have ended. They are good for nothing before that.
func (d *daemon) forget(ctx context.Context, e event.Event) {
	if !job.Status(e.Type).Terminal() {
		return
	}
	err := txn.Update(ctx, d.st, func(tx token.Tx) error { return token.RevokeJobs(tx, e.Space, strings.TrimPrefix(e.Stream, "job:")) })
	if err != nil {
		d.c.Log.Warn("the tokens of a job that has ended could not be revoked; they are refused all the same", "job", e.Stream, "error", err)
	}
}

func agentsOf(c *config.Config) (map[string]run.Agent, error) {
	agents := map[string]run.Agent{}
	for name, a := range c.Agents {
		e, err := run.NewExecAgent(a.Argv, a.Dir)
		if err != nil {
			return nil, err
		}
		agents[name] = e
	}
	return agents, nil
}

func (d *daemon) listen() (err error) {
	if d.tcp, err = net.Listen("tcp", d.c.Listen); err != nil {
		return fault.New(fault.Conflict, "%s cannot be listened on.", d.c.Listen).Hint("Choose another address with --listen.").Because(err)
	}
	d.found = Started{Found: Found{URL: "http://" + d.tcp.Addr().String(), PID: os.Getpid()}, TokenFile: d.home.TokenFile()}
	if d.unix, err = d.home.listenSocket(); err != nil {
		d.found.NoSocket = err.Error()
		d.c.Log.Warn("there is no socket; clients use the address", "error", err)
		return nil
	}
	d.found.Socket = d.home.Socket()
	return nil
}

func (d *daemon) makeAPI(home token.Token, hear *late) (err error) {
	d.api, err = httpapi.New(httpapi.Config{
		Store: d.st, Calls: d.exec, Jobs: d.jobs, Tools: d.c.Conf.Tools, Observer: hear, URL: d.found.URL, Hosts: d.hosts(), MayOwn: d.c.MayOwn,
		Home: home.ID, Continue: d.work.tryRun, Ready: d.ready, Log: d.c.Log,
	})
	hear.to.Store(d.api)
	return err
}

// hosts are the names that the daemon goes by: its address and, on loopback, what
// loopback is called.
func (d *daemon) hosts() []string {
	hosts := append([]string{d.tcp.Addr().String()}, d.c.Hosts...)
	if a, ok := d.tcp.Addr().(*net.TCPAddr); ok && (a.IP.IsLoopback() || a.IP.IsUnspecified()) {
		for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
			hosts = append(hosts, fmt.Sprintf("%s:%d", name, a.Port))
		}
	}
	if name, port, err := net.SplitHostPort(d.c.Listen); err == nil && name != "" && port != "0" {
		hosts = append(hosts, d.c.Listen)
	}
	return hosts
}

var errNotReady = fault.Sentinel(fault.Unavailable, "not_ready", "The daemon is not ready.")

func (d *daemon) ready(ctx context.Context) error {
	for _, l := range d.loops {
		if err := l.hangs(); err != nil {
			return errNotReady.Say("Not ready: %s.", err)
		}
	}
	_, err := token.List(ctx, d.st, token.Query{Space: event.MainSpace, Limit: 1})
	return err
}

// sweep ends what is overdue and looks after lost attempts.
func (d *daemon) sweep(ctx context.Context) error {
	for {
		n, err := d.exec.Sweep(ctx, sweepAtOnce)
		if err != nil || n < sweepAtOnce {
			return err
		}
	}
}

// Limits of a connection. Bodies, answers and long polls have time limits of their
// own in httpapi; requestTimeout is only for a body that nobody there looks at.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeader      = 64 << 10
)

func (d *daemon) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: d.api, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(d.c.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 2)
	for _, l := range []net.Listener{d.tcp, d.unix} {
		if l != nil {
			go func() { failed <- server.Serve(l) }()
		}
	}
	working, stop := context.WithCancel(context.Background())
	defer stop()
	var loops sync.WaitGroup
	for _, l := range d.loops {
		loops.Go(func() { l.run(working) })
	}
	if d.jobs != nil {
		loops.Go(func() { _ = d.jobs.Loop(working) })
	}
	loops.Go(func() { d.work.follow(working, d.loops[1].poke) })
	if err := d.home.tell(d.found.Found); err != nil {
		return err
	}
	defer os.Remove(d.home.foundFile())
	if d.c.Ready != nil {
		d.c.Ready(d.found)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	d.putDown(server)
	stop()
	loops.Wait()
	return err
}

// putDown tells whoever waits, lets nothing new begin, and gives what has begun so long.
func (d *daemon) putDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	d.runs.Stop()
	var all sync.WaitGroup
	for _, end := range []func(context.Context) error{d.api.Shutdown, d.work.stop, d.runs.Wait, d.exec.Wait} {
		all.Go(func() { _ = end(ctx) }) // what is not done by then is left as it stands
	}
	all.Go(func() {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	})
	all.Wait()
}
