package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/mcpserver"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

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
	if err := h.make(); err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer unlock(lock)
	st, err := c.DB.Open(ctx, place.Options{Logger: c.Log})
	if err != nil {
		return err
	}
	d, err := newDaemon(ctx, c, h, st)
	if err == nil {
		err = d.serve(ctx)
	}
	return errors.Join(err, st.Close())
}

const sweepAtOnce = 16

// daemon is one that is being served.
type daemon struct {
	c      Config
	home   Home
	st     *store.Store
	writes *writes
	exec   *call.Executor
	runs   *run.Driver
	work   *continuer
	jobs   *job.Supervisor // nil: there are none
	api    *httpapi.Server
	mcp    *mcpserver.Server
	inbox  *inbox.Inbox

	channels   delivery.Channels
	dispatcher *delivery.Dispatcher
	delivering *pulse

	tcp   net.Listener
	unix  net.Listener
	found Started

	sweeping, continuing *loop
	deciding, jobbing    *pulse // of the follower of decisions, and of the loop over jobs
	pulses               []*pulse
}

// late lets the server hear of events although the engines are made before it.
type late struct {
	to atomic.Pointer[httpapi.Server]
}

func (l *late) Observe(e event.Event) {
	if s := l.to.Load(); s != nil {
		s.Observe(e)
	}
}

func newDaemon(ctx context.Context, c Config, h Home, st *store.Store) (*daemon, error) {
	d := &daemon{c: c, home: h, st: st, writes: &writes{st: st}}
	hear := &late{}
	if err := d.makeEngines(hear); err != nil {
		return nil, err
	}
	if err := d.writes.try(ctx); err != nil {
		c.Log.Error("the store takes no writes", "error", err)
	}
	home, err := h.admit(ctx, st, c.Principal)
	if err == nil {
		err = h.admitAgents(ctx, st, c.Principal)
	}
	if err != nil {
		return nil, err
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	d.makeLoops()
	d.makeDispatcher(hear)
	if err := errors.Join(d.makeJobs(hear), d.makeAPI(ctx, home, hear), d.hold(ctx)); err != nil {
		d.hangUp()
		return nil, err
	}
	d.found.Warnings = append(d.warnings(), d.lookOver(ctx)...)
	return d, nil
}

// hangUp closes what was listened on.
func (d *daemon) hangUp() {
	for _, l := range []net.Listener{d.tcp, d.unix} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// warnings are what whoever starts the daemon should know.
func (d *daemon) warnings() (all []string) {
	for _, w := range []string{d.writes.warning(), d.killsJobs(), d.tellsTokens()} {
		if w != "" {
			all = append(all, w)
		}
	}
	return all
}

// lookingOver bounds how long a server is looked over at the start.
const lookingOver = 10 * time.Second

// lookOver is what whoever starts the daemon should know about the server that the store
// is on, such as that it has no synchronous standby: at most once across a failover needs
// one. A file has nothing of the sort, and its whole check would take too long here.
func (d *daemon) lookOver(ctx context.Context) []string {
	if _, file := d.c.DB.File(); file {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookingOver)
	defer cancel()
	r, err := d.c.DB.Check(ctx)
	if err != nil {
		return []string{"The server could not be looked over: " + fault.From(err).Message + " placet db check tries again."}
	}
	return slices.Concat(r.Problems, r.Warnings)
}

// tellsTokens warns where other daemons would send tokens to this one unencrypted.
func (d *daemon) tellsTokens() string {
	u, err := url.Parse(d.c.Advertise)
	if err != nil || u.Scheme != "http" {
		return ""
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() || u.Hostname() == "localhost" {
		return ""
	}
	return fmt.Sprintf("Other daemons send tokens to %s unencrypted: put TLS in front of this one, and advertise an https:// address.", d.c.Advertise)
}

func (d *daemon) makeEngines(hear event.Observer) error {
	c := d.c
	agents, err := agentsOf(c.Conf)
	if err != nil {
		return err
	}
	calls := call.Config{
		Store: d.st, Tools: c.Conf.Tools, Policy: c.Conf.Policy, Guards: c.Conf.Guards, Observer: hear, GrantTTL: c.GrantTTL, Lease: c.Lease, Log: c.Log,
	}
	if err := calls.Validate(); err != nil {
		return err
	}
	d.exec = call.NewExecutor(calls)
	d.runs = run.NewDriver(run.Config{
		Store: d.st, Tools: c.Conf.Tools, Policy: c.Conf.Policy, Guards: c.Conf.Guards, Observer: hear, GrantTTL: c.GrantTTL, LeaseTTL: c.Lease, Log: c.Log,
		Agent: run.AgentFunc(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			a, ok := agents[in.Run.Agent.Name]
			if !ok {
				return run.Proposal{}, errNoAgent
			}
			return a.Decide(ctx, in)
		}),
	})
	d.work = newContinuer(d, agents)
	return nil
}

func (d *daemon) makeLoops() {
	d.sweeping, d.continuing = newLoop("sweep", d.c, d.sweep), newLoop("continue", d.c, d.work.pass)
	d.deciding = newPulse("decisions", d.c.Every, d.c)
	d.pulses = []*pulse{d.sweeping.pulse, d.continuing.pulse, d.deciding}
}

// passOfJobs is how often the loop over jobs comes round.
const passOfJobs = time.Second

func (d *daemon) makeJobs(hear event.Observer) (err error) {
	if d.c.Program == nil {
		return nil
	}
	d.jobbing = newPulse("jobs", passOfJobs, d.c)
	d.pulses = append(d.pulses, d.jobbing)
	c := job.Config{
		Store: d.st, Dir: d.home.JobsDir(), Program: d.c.Program, Environ: d.environ, Channels: d.channels, Observer: hear, Alive: d.jobbing.beat, Log: d.c.Log,
		URL: d.c.Advertise, Version: d.c.Version, OrphanAfter: d.c.OrphanAfter,
	}
	if c.Home, err = d.home.ID(); err != nil {
		return err
	}
	d.jobs = job.NewSupervisor(c)
	return c.Validate()
}

// hold registers the home before anybody is told that the daemon serves. A store that takes
// no writes is served nevertheless; a home that another machine has is not.
func (d *daemon) hold(ctx context.Context) error {
	if d.jobs == nil {
		return nil
	}
	err := d.jobs.Hold(ctx)
	if errors.Is(err, job.ErrHomeTaken) {
		err = d.holdLater(ctx, err)
	}
	if err != nil && !errors.Is(err, job.ErrHomeTaken) {
		d.c.Log.Error("the home is not held, so no jobs are looked after; it is tried again", "error", err)
		return nil
	}
	return err
}

// holdAgain is how often a home is tried for that another has.
const holdAgain = time.Second

// holdLater tries for a home that is taken until the lease has ended which it is held by:
// that may be this machine's own, of before it crashed and was started anew. One that is
// renewed is another machine's.
func (d *daemon) holdLater(ctx context.Context, taken error) error {
	d.c.Log.Warn("the home is taken; it is tried for until that lease has ended", "error", taken)
	end := time.Now().Add(job.DefaultHomeLease + holdAgain)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(holdAgain):
		}
		err := d.jobs.Hold(ctx)
		if !errors.Is(err, job.ErrHomeTaken) || !sameHolder(err, taken) || time.Now().After(end) {
			return err
		}
	}
}

// sameHolder reports whether a home is taken as it was before: its lease was not renewed.
func sameHolder(err, before error) bool {
	return bytes.Equal(fault.From(err).Details, fault.From(before).Details)
}

// environ gives a job the way to ask: a token that is good for this job only, and for
// as long as it runs. What an earlier launch was given is good no more.
func (d *daemon) environ(ctx context.Context, j job.Job) (map[string]string, error) {
	who := j.Principal
	if who == "" {
		who = "job:" + j.ID
	}
	var secret string
	err := txn.Update(ctx, d.st, func(tx store.Tx) error {
		now, err := tx.Job(j.ID)
		if err == nil && (now.Claim != j.Claim || now.Status.Terminal()) {
			err = job.ErrClaimLost // nobody would revoke it
		}
		if err != nil {
			return err
		}
		if err := token.RevokeJobs(tx, j.Space, j.ID); err != nil {
			return err
		}
		_, secret, err = token.Issue(tx, token.New{Space: j.Space, Scope: token.Agent, Name: j.ID, Principal: who, JobID: j.ID})
		return err
	})
	return map[string]string{"PLACET_URL": d.found.URL, "PLACET_TOKEN": secret}, err
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
		return fault.New(fault.Conflict, "%s cannot be listened on.", d.c.Listen).Hint("Choose another address, such as --listen 127.0.0.1:7421.").Because(err)
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

func (d *daemon) makeAPI(ctx context.Context, home token.Token, hear *late) (err error) {
	d.api, err = httpapi.New(httpapi.Config{
		Store: d.st, Calls: d.exec, Jobs: d.jobs, Tools: d.c.Conf.Tools, Channels: d.channels, Observer: hear, URL: d.found.URL, Hosts: d.hosts(), MayOwn: d.c.MayOwn,
		Home: home.ID, Continue: d.work.resumeRun, Ready: d.ready, Log: d.c.Log,
	})
	if err != nil {
		return err
	}
	hear.to.Store(d.api)
	d.mcp = mcpserver.New(mcpserver.Config{Door: d.doorOf, Version: d.c.Version, Log: d.c.Log})
	d.api.Mount("/mcp", "mcp", d.mcp.Handler())
	cookie, err := d.cookie(ctx)
	if err != nil {
		return err
	}
	d.inbox, err = inbox.New(inbox.Config{
		Store: d.st, Door: func(t token.Token) inbox.Door { return d.api.As(t) }, Cookie: cookie, Log: d.c.Log,
		MayOwn: func(t token.Token) bool { return d.c.MayOwn || t.ID == home.ID }, Unserved: d.work.unserved.why, Writes: d.writes.refusal,
	})
	if err != nil {
		return err
	}
	d.api.Pages(d.inbox)
	for _, p := range d.pulses {
		d.api.Gauge("placet_loop_age_seconds", "How long ago a loop of the daemon came round.", map[string]string{"loop": p.name},
			func() float64 { return p.age().Seconds() })
	}
	d.api.Gauge("placet_work_under_way", "Calls and runs that the daemon goes on with now.", nil, func() float64 { return float64(len(d.work.slots)) })
	d.api.Gauge("placet_deliveries_under_way", "Attempts to bring an event to a wake target that are made now.", nil, func() float64 { return float64(d.dispatcher.AtWork()) })
	d.api.Gauge("placet_work_unserved", "Approved calls and runs that this daemon could not carry out for a minute: tool or agent is missing.", nil,
		func() float64 { return float64(d.work.unserved.count()) })
	return nil
}

// cookie names the cookie of whoever signs in. Browsers hold cookies by host alone and not
// by port: inboxes of two stores on one machine need two names, and those of one store one,
// by whatever address each of them knows it. What was restored or copied from a store knows
// none of its sign-ins, and takes another name.
func (d *daemon) cookie(ctx context.Context) (string, error) {
	id, epoch, err := d.st.Life(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", id, epoch))
	return "placet-" + hex.EncodeToString(sum[:4]), nil
}

// doorOf is the API in this process, with the rights of who sent a request to /mcp.
func (d *daemon) doorOf(h http.Header) mcpserver.Door {
	_, secret, _ := strings.Cut(h.Get("Authorization"), " ")
	return d.api.Inside(secret)
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
	if name, err := advertised(d.c.Advertise); err == nil && name != "" {
		hosts = append(hosts, name)
	}
	if name, port, err := net.SplitHostPort(d.c.Listen); err == nil && name != "" && port != "0" {
		hosts = append(hosts, d.c.Listen)
	}
	return hosts
}

// sweep ends what is overdue and looks after lost attempts.
func (d *daemon) sweep(ctx context.Context) error {
	if err := d.writes.try(ctx); err != nil {
		return err
	}
	for {
		n, err := d.exec.Sweep(ctx, sweepAtOnce)
		if err != nil || n < sweepAtOnce {
			return errors.Join(err, d.sweepSignIns(ctx))
		}
		d.sweeping.getsOn()
	}
}

// sweepSignIns deletes those that are over, so many at a time.
func (d *daemon) sweepSignIns(ctx context.Context) error {
	const some = 500
	for {
		n, err := token.SweepSignIns(ctx, d.st, some)
		if err != nil || n < some {
			return err
		}
		d.sweeping.getsOn()
	}
}
