package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/internal/display"
)

// Streams are where a command reads and writes. A prompt needs In to be a
// terminal, which only a file can be.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs one command line and returns its exit code.
func Main(args []string, s Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), heeded()...)
	defer stop()
	// The first signal is told to the command, which records how things stand; a
	// second one ends the process as it would any other.
	context.AfterFunc(ctx, stop)
	return execute(ctx, args, s)
}

// heeded are the signals that end a command. One that was ignored when the
// program started, as nohup does, stays so.
func heeded() []os.Signal {
	var list []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

func execute(ctx context.Context, args []string, s Streams) int {
	a := newApp(s)
	// A wrong command line is told before its flags are known.
	a.json = slices.Contains(beforeDashes(args), "--json")
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.helpErr
	}
	if werr := a.out.failure(); err == nil && werr != nil {
		err = werr
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(err, cause) {
		err = errInterrupted.Because(cause)
	}
	return a.exit(err)
}

func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// app is what every command is given.
type app struct {
	in   io.Reader
	out  *writer
	errs *writer
	mask *display.Mask // of what this command prints

	db     string // flags
	config string
	json   bool

	helpErr error // why there is no help about what was asked
}

func newApp(s Streams) *app {
	return &app{in: s.In, out: &writer{to: s.Out}, errs: &writer{to: s.Err}, mask: &display.Mask{}}
}

// writer remembers the first failure: a command whose answer could not be
// written has not given it. The store's goroutines write to it too.
type writer struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.to.Write(b)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// hold keeps what is written until it is let go.
func (w *writer) hold() (letGo func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to, held := w.to, &bytes.Buffer{}
	w.to = held
	return func() {
		w.mu.Lock()
		w.to = to
		w.mu.Unlock()
		_, _ = w.Write(held.Bytes())
	}
}

func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "placet",
		Short: "Make a risky action wait for a person's yes, then run exactly that, once",
		Long: `Placet parks a tool call until a person agrees, in a database: a SQLite file, or one
in PostgreSQL. The process that asked may end; any later one can decide, and any later
one that knows the tool can run it. What runs is exactly what was approved, once.

An agent's run waits in the same way, and goes on in any process.

Start with:  placet demo        a real call to decide, and an agent at work
             placet init        an example configuration for your own tools`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              subcommand,
	}
	var version bool
	root.Flags().BoolVar(&version, "version", false, "print which program this is")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if version {
			a.tellVersion()
			return nil
		}
		return c.Help()
	}
	root.SetOut(a.out)
	root.SetErr(a.errs)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return wrongUse(c, err) })
	f := root.PersistentFlags()
	f.StringVar(&a.db, "db", "", "store: the `PATH` of a SQLite file, or postgres://USER@HOST/DATABASE (default $PLACET_DB, else $PLACET_HOME/placet.db, else ~/.placet/placet.db); a password belongs in PGPASSWORD, ~/.pgpass or PLACET_DB, since others can see a command line")
	f.StringVar(&a.config, "config", "", "configuration `FILE` (default $PLACET_CONFIG, else ./placet.yaml if it is there)")
	f.BoolVar(&a.json, "json", false, "print JSON for programs, and never ask anything")
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			cmd := c(a)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newGatewayCommand(a), newJobRunnerCommand(), newMinderCommand())
	root.SetHelpCommand(newHelpCommand(root))
	root.SetUsageTemplate(oneUsage(root.UsageTemplate()))
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if a.helpErr = noSuchCommand(c); a.helpErr == nil {
			help(c, args)
		}
	})
	checkArgs(root)
	return root
}

// The groups and their commands stand in the order of use.
func init() { cobra.EnableCommandSorting = false }

// groups are the commands, in the order in which help lists them.
var groups = []struct {
	id, title string
	commands  []func(*app) *cobra.Command
}{
	{"begin", "Begin:", []func(*app) *cobra.Command{newDemoCommand, newInitCommand, newConfigCommand, newToolsCommand}},
	{"call", "Call a tool:", []func(*app) *cobra.Command{newCallCommand, newResumeCommand, newWithdrawCommand}},
	{"run", "Run an agent:", []func(*app) *cobra.Command{newRunCommand, newRunsCommand, newCancelCommand}},
	{"job", "Run jobs (with placet serve):", []func(*app) *cobra.Command{newJobCommand, newAskCommand, newDecisionsCommand, newResolveCommand, newWakeCommand, newDeliveriesCommand}},
	{"decide", "Decide:", []func(*app) *cobra.Command{newInboxCommand, newApprovalsCommand, newShowCommand, newApproveCommand, newRejectCommand}},
	{"record", "The record:", []func(*app) *cobra.Command{newEventsCommand, newVerifyCommand, newCanonCommand, newDigestCommand}},
	{"operate", "Operate:", []func(*app) *cobra.Command{newServeCommand, newMCPCommand, newTokenCommand, newDBCommand, newDoctorCommand, newVersionCommand}},
}

// checkArgs makes every complaint about arguments a usage error.
func checkArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return wrongUse(c, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		checkArgs(sub)
	}
}

// osUser is the name that decisions carry unless --by says another.
func osUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// principal is who acts on the store by holding its file (design §7).
func principal() string { return "local:" + osUser() }
