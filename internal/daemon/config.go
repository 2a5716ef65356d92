package daemon

import (
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/place"
)

// Defaults.
const (
	DefaultListen   = "127.0.0.1:7420"
	DefaultGrantTTL = 24 * time.Hour
	DefaultEvery    = 5 * time.Second
	DefaultDrain    = 10 * time.Second
	longestGrant    = 365 * 24 * time.Hour
	defaultAtWork   = 256
)

// Config says what a daemon works with. DB and Conf are required.
type Config struct {
	DB   place.Place    // where the store is; it is made where there is none
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
	// Version is this program's, told to MCP clients.
	Version string
	// Program starts this program again, for jobs. Default: there are no jobs.
	Program []string
	// WakePrivate lets webhooks go to private addresses, WakeHTTP without TLS.
	WakePrivate, WakeHTTP bool
	// Advertise is the URL at which the daemons of other machines on the same store reach
	// this one. Default: none; what needs a job's files is asked for here then.
	Advertise string
	// OrphanAfter is how long after its lease has ended the jobs of another machine's
	// daemon are orphaned. Default: job.DefaultOrphanAfter.
	OrphanAfter time.Duration
	// Every is how often it sweeps and looks for work. Default: 5 s.
	Every time.Duration
	// Drain bounds how long it waits for what has begun when it is told to stop; what
	// takes longer is left as it stands. Default: 10 s.
	Drain time.Duration
	// Lease is how long a call's attempt is claimed without renewal. Default:
	// call.DefaultLease.
	Lease time.Duration
	// Now is the clock by which loops are found to hang, and work that nobody can do.
	// Default: time.Now.
	Now func() time.Time
	// Ready is told once it serves.
	Ready func(Started)
	Log   *slog.Logger

	channels delivery.Channels // of tests; nil: the real ones
	atWork   int               // how much is at work at once; of tests
	before   func(loop string) // see pulse; of tests
}

// Started is how a daemon that serves is reached.
type Started struct {
	Found
	TokenFile string
	NoSocket  string // why there is none; empty: there is
	// Warnings are what its operator should know, each with what to do.
	Warnings []string
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
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.atWork == 0 {
		c.atWork = defaultAtWork
	}
	if c.GrantTTL < 0 || c.GrantTTL > longestGrant {
		return c, call.ErrUsage.Say("A yes would last %s; a daemon's lasts from a moment to %s.", c.GrantTTL, longestGrant)
	}
	if c.Every < 0 || c.Drain < 0 {
		return c, call.ErrUsage.Say("A daemon cannot look every %s, or stop within %s.", c.Every, c.Drain)
	}
	if c.OrphanAfter < 0 {
		return c, call.ErrUsage.Say("Jobs cannot be orphaned %s after their machine was lost.", c.OrphanAfter)
	}
	if _, err := advertised(c.Advertise); err != nil {
		return c, err
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return c, call.ErrUsage.Say("%q is no address to listen on.", c.Listen).Hint("Write it like %s.", DefaultListen)
	}
	return c, nil
}

// advertised is the host of the URL that other daemons are told; empty: they are told none.
func advertised(address string) (host string, err error) {
	if address == "" {
		return "", nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", call.ErrUsage.Say("%q is no address that other daemons can be told.", address).Hint("Write it like https://build-7.internal:7420, with nothing behind the host.")
	}
	return u.Host, nil
}
