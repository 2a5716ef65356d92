package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/job"
)

type serveCommand struct {
	*app
	listen   string
	hosts    []string
	grantTTL time.Duration
	mayOwn   bool
	private  bool
	http     bool

	advertise   string
	orphanAfter time.Duration
}

func newServeCommand(a *app) *cobra.Command {
	s := &serveCommand{app: a}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store over HTTP, carry out what is approved, look after jobs",
		Long: `Serves the store over HTTP and a Unix socket, until it is interrupted. A SQLite file
has one daemon, whose files lie beside it. A PostgreSQL database has any number: each
keeps its files in a folder of PLACET_HOME (~/.placet), which is one daemon's alone.
Calls that came in over HTTP run by themselves once a person has agreed; those of
placet call wait for placet resume as ever. Agents and reviewers need tokens:
see placet token create.`,
		Example: `  placet serve
  placet token create --scope agent --name ci`,
		Args: noArgs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if s.grantTTL <= 0 {
				return use("--grant-ttl has to be longer than nothing: a yes could never be used.", "Write it like --grant-ttl 90m.")
			}
			if s.orphanAfter <= 0 {
				return use("--orphan-after has to be longer than nothing: a machine that is only slow would lose its jobs.", "Write it like --orphan-after 10m.")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return s.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&s.listen, "listen", daemon.DefaultListen, "`ADDRESS` to listen on; beyond loopback put TLS in front of it")
	f.StringSliceVar(&s.hosts, "host", nil, "further `NAME:PORT` that it goes by; requests for other names are refused")
	f.DurationVar(&s.grantTTL, "grant-ttl", daemon.DefaultGrantTTL, "how long a yes to what the daemon runs may stay unused, a `TIME` such as 90m")
	f.StringVar(&s.advertise, "advertise", "", "`URL` at which the daemons of other machines on this store reach this one, to pass on what needs the files of its jobs")
	f.DurationVar(&s.orphanAfter, "orphan-after", job.DefaultOrphanAfter, "how long after its lease ended the jobs of another machine are orphaned, a `TIME` such as 10m")
	f.BoolVar(&s.private, "wake-private", false, "let webhooks go to private addresses, such as 10.0.0.7")
	f.BoolVar(&s.http, "wake-http", false, "let webhooks go to http:// addresses beyond this machine")
	f.BoolVar(&s.mayOwn, "may-own", false, "let principals decide what they asked for themselves")
	return c
}

func (s *serveCommand) run(ctx context.Context) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	p, err := s.placeToMake()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fault.New(fault.Unavailable, "This program's own file cannot be found, so it could start no jobs.").Because(err)
	}
	if says := s.passwordShows(); says != "" {
		s.note("%s", own(says))
	}
	if conf.Path == "" {
		s.note("No configuration was found, so there are no tools: run placet init, or give --config FILE.")
	}
	return daemon.Serve(ctx, daemon.Config{
		DB: p, Conf: conf, Listen: s.listen, Hosts: s.hosts, GrantTTL: s.grantTTL, MayOwn: s.mayOwn, WakePrivate: s.private, WakeHTTP: s.http, Advertise: s.advertise, OrphanAfter: s.orphanAfter, Principal: principal(),
		Version: buildVersion().Version, Program: []string{program}, Ready: s.told, Log: s.logger(),
	})
}

// told says how the daemon is reached.
func (s *serveCommand) told(d daemon.Started) {
	if s.json {
		s.emitMasked(encode(struct {
			daemon.Found
			TokenFile string   `json:"token_file"`
			Warnings  []string `json:"warnings,omitempty"`
		}{d.Found, d.TokenFile, d.Warnings}))
		return
	}
	s.say("Placet serves at %s (process %d).", own(d.URL), d.PID)
	s.say("  inbox        %s, for people to decide; a token to sign in with: %s", own(d.URL+"/"), own(s.withGlobals("token", "create", "--scope", "reviewer", "--name", "NAME")))
	if d.Socket != "" {
		s.say("  socket       %s", own(d.Socket))
	}
	s.say("  admin token  %s", own(d.TokenFile))
	s.say("  agents need tokens of their own: %s", own(s.withGlobals("token", "create", "--scope", "agent", "--name", "NAME")))
	for _, w := range d.Warnings {
		s.note("%s", own(w))
	}
	s.note("An agent that runs as uid %d can read that file and decide for itself: give it another user.", os.Getuid())
}
