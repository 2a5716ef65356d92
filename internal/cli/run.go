package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
)

func newRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Let an agent work towards a goal, step by step",
		Long: `A run is an agent's session. For each step the agent's program is started, reads
where the run stands, and says which tool it wants to call; the call is judged by
the rules of placet.yaml like any other. Where a person has to agree the run is
stored and the command ends; any later process goes on with it.`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRunStartCommand(a), newRunResumeCommand(a), newRunCancelCommand(a))
	return c
}

type runStartCommand struct {
	*app
	goal, limits, agent string
	daemon              bool
}

func newRunStartCommand(a *app) *cobra.Command {
	s := &runStartCommand{app: a}
	c := &cobra.Command{
		Use:   "start --goal TEXT [-- CMD…]",
		Short: "Start a run, and work on it until it ends or waits for a person",
		Long: `Starts a run with an agent of the configuration, or with a program and its
arguments behind --. The exit code is 0 when the goal was reached, 4 when the run
waits for a person, and 1 otherwise. The first interrupt ends the work after the
present step; a second one ends the step.`,
		Example: `  placet run start --goal "Make the checks pass." --agent fixer
  placet run start --goal "Make the checks pass." --limits '{"max_steps":20}' -- ./agent.py`,
		Args: s.args,
		RunE: func(c *cobra.Command, args []string) error { return s.run(c.Context(), args) },
	}
	f := c.Flags()
	f.StringVar(&s.goal, "goal", "", "`TEXT` that the agent is given")
	f.StringVar(&s.agent, "agent", "", "`NAME` of an agent in the configuration")
	f.StringVar(&s.limits, "limits", "", "limits as `JSON`, @FILE, or -: such as {\"max_steps\":20,\"max_elapsed_time\":\"1h\"}")
	f.BoolVar(&s.daemon, "daemon", false, "leave it to the daemon to go on with it")
	return c
}

func (s *runStartCommand) args(c *cobra.Command, args []string) error {
	behind := c.ArgsLenAtDash()
	switch {
	case behind > 0, behind < 0 && len(args) > 0:
		return use(quote(args[0])+" does not belong here.", "Write the goal behind --goal, and a program behind --.")
	case !c.Flags().Changed("goal"):
		return use("A run needs a goal.", "Add --goal TEXT.")
	case len(args) > 0 && c.Flags().Changed("agent"):
		return use("--agent and a program behind -- cannot stand together.", "Give one of them.")
	case len(args) > 0 && s.daemon:
		return use("The daemon works only with agents of its configuration.", "Add --agent NAME in place of the program, or leave --daemon out.")
	case len(args) == 0 && !c.Flags().Changed("agent"):
		return use("A run needs an agent.", "Add --agent NAME, or -- and a program.")
	}
	return nil
}

func (s *runStartCommand) run(ctx context.Context, argv []string) error {
	limits, err := s.readLimits()
	if err != nil {
		return err
	}
	conf, err := s.load()
	if err != nil {
		return err
	}
	ref := run.AgentRef{Name: s.agent, Argv: argv}
	if s.agent == "" {
		if ref.Dir, err = os.Getwd(); err != nil {
			return fault.New(fault.Invalid, "The working directory cannot be found.").Because(err)
		}
	}
	agent, err := agentOf(conf, ref)
	if err != nil {
		return err
	}
	st, err := s.create(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	w := s.working(ctx, st, conf, agent)
	if s.daemon {
		return w.leave(ctx, s.goal, limits, ref)
	}
	return w.do(func(ctx context.Context) (run.Run, error) {
		return w.driver.Start(ctx, s.goal, limits, run.As(principal()), run.By(ref))
	})
}

func (s *runStartCommand) readLimits() (run.Limits, error) {
	limits := run.DefaultLimits()
	if s.limits == "" {
		return limits, nil
	}
	text, err := s.readArgs(s.limits)
	if err != nil {
		return limits, err
	}
	if err := limits.UnmarshalJSON(text); err != nil {
		return limits, usageError{err}
	}
	var f *fault.Error
	if err := limits.Check(); errors.As(err, &f) {
		return limits, f.Hint(`Write it as in --limits '{"max_steps":20}'; what is left out keeps its default.`)
	}
	return limits, nil
}

// agentOf finds what makes a run's decisions.
func agentOf(conf *config.Config, ref run.AgentRef) (*run.ExecAgent, error) {
	argv, dir := ref.Argv, ref.Dir
	if ref.Name != "" {
		known, ok := conf.Agents[ref.Name]
		if !ok {
			return nil, noAgent(conf, ref.Name)
		}
		argv, dir = known.Argv, known.Dir
	}
	return run.NewExecAgent(argv, dir)
}

func noAgent(conf *config.Config, name string) error {
	err := run.ErrUsage.Say("The configuration has no agent %s.", quote(name))
	switch {
	case conf.Path == "":
		return err.Hint("No configuration was found: go to the folder of placet.yaml, or give --config FILE.")
	case len(conf.Agents) == 0:
		return err.Hint("Add it under agents: in %s.", conf.Path)
	}
	return err.Hint("It has %s. Another configuration is given with --config FILE.", strings.Join(sortedKeys(conf.Agents), ", "))
}

func newRunResumeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was approved, interrupted or stopped",
		Long: `Goes on with a run where it stopped: with exactly the request that was approved, or
with what an interrupted process left behind. The run knows its agent. The exit code
is that of placet run start.`,
		Args: oneArg("RUN", ""),
		RunE: func(c *cobra.Command, args []string) error { return a.resumeRun(c.Context(), args[0]) },
	}
}

// resumeRun goes on with a run in this process.
func (a *app) resumeRun(ctx context.Context, given string) error {
	conf, err := a.load()
	if err != nil {
		return err
	}
	st, err := a.write(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	runID, err := a.findRun(ctx, st, given)
	if err != nil {
		return err
	}
	r, err := readRun(ctx, st, runID)
	if err != nil {
		return err
	}
	agent, err := continuing(conf, r.Run)
	if err != nil {
		return err
	}
	w := a.working(ctx, st, conf, agent)
	return w.do(func(ctx context.Context) (run.Run, error) { return w.driver.Resume(ctx, runID) })
}

// findRun is find for a run. The run id of calls is told apart from one that is not there.
func (a *app) findRun(ctx context.Context, st *store.Store, given string) (string, error) {
	found, err := a.find(ctx, st, given, id.Run)
	if errors.Is(err, run.ErrNotFound) {
		if only := onlyGroups(ctx, st, given); only != nil {
			return "", only
		}
	}
	return found, err
}

// continuing is the agent of a run that somebody else may have started.
func continuing(conf *config.Config, r run.Run) (*run.ExecAgent, error) {
	switch {
	case r.Flow.Name != "":
		return nil, run.ErrUsage.Say("Run %s is of the flow %s.", r.ID, quote(r.Flow.Name)).Hint("The program that defines the flow continues it.")
	case r.Agent.Name == "" && len(r.Agent.Argv) == 0:
		return nil, run.ErrUsage.Say("Run %s was started by a program that is its agent.", r.ID).Hint("That program continues it.")
	}
	return agentOf(conf, r.Agent)
}

// working is this process at work on a run.
type working struct {
	*app
	ctx    context.Context // ends at the first signal
	store  *store.Store
	driver *run.Driver
	agent  *run.ExecAgent
}

func (a *app) working(ctx context.Context, st *store.Store, conf *config.Config, agent *run.ExecAgent) working {
	d := run.NewDriver(run.Config{
		Store: st, Agent: agent, Tools: conf.Tools, Policy: conf.Policy, Guards: conf.Guards, Observer: event.ObserverFunc(a.follow), Log: a.logger(),
	})
	return working{a, ctx, st, d, agent}
}

// do works until the run waits or ends, and tells how it stands then.
func (w working) do(work func(context.Context) (run.Run, error)) error {
	ctx, done := w.interruptible()
	r, err := work(ctx)
	done()
	w.agent.Wait()
	late, stop := context.WithTimeout(context.WithoutCancel(w.ctx), lateOutcome)
	defer stop()
	_ = w.driver.Wait(late) // what comes later than that stays unknown, and is settled as such
	stopped := errors.Is(err, run.ErrStopped) || err != nil && errors.Is(err, errInterrupted)
	if err != nil && (r.ID == "" || !stopped) {
		return err
	}
	return w.tellRun(context.WithoutCancel(w.ctx), w.store, r.ID)
}

// interruptible makes the first signal end the work after the present step, and the
// second one at once. A third ends the process as it would any other.
func (w working) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.ctx))
	told := context.AfterFunc(w.ctx, func() {
		w.driver.Stop() // first: what is said is so by then
		w.note("placet: stopping after this step; once more ends the step as well")
	})
	signals := make(chan os.Signal, 2)
	if list := heeded(); len(list) > 0 { // of none, all would be meant
		signal.Notify(signals, list...)
	}
	over := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-over:
				return
			}
		}
		signal.Stop(signals)
		cancel(errInterrupted)
	}()
	return ctx, func() {
		told()
		signal.Stop(signals)
		close(over)
		cancel(nil)
	}
}

func newRunCancelCommand(a *app) *cobra.Command {
	var flags answerFlags
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run that has not ended",
		Long: `Ends a run, whoever works on it. A tool that is running is not interrupted; what
becomes of it is noted as late.`,
		Args: oneArg("RUN", ""),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.cancelRun(c.Context(), args[0], flags.name(c), flags.note)
	}
	return c
}

func (a *app) cancelRun(ctx context.Context, given, by, note string) error {
	st, err := a.write(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	runID, err := a.findRun(ctx, st, given)
	if err != nil {
		return cancelElsewhere(given, err)
	}
	if err := operator(st).Cancel(ctx, runID, by, note); err != nil {
		return err
	}
	if a.json {
		r, err := readRun(ctx, st, runID)
		if err == nil {
			a.emit(placedRun{a.runObject(r, false), thisProcess})
		}
		return err
	}
	a.say("Run %s is cancelled.", own(runID))
	a.sayWhere(thisProcess, "")
	return nil
}
