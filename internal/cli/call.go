package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/config"
)

type callCommand struct {
	*app
	args, run, call, key string
	wait                 time.Duration
}

func newCallCommand(a *app) *cobra.Command {
	k := &callCommand{app: a}
	c := &cobra.Command{
		Use:   "call TOOL",
		Short: "Call a tool; where a person has to agree, park the call and return",
		Long: `Calls a tool of the configuration. Where a person has to agree, the call is parked:
this command ends with exit code 4 and says how to go on. It never asks anything
itself.`,
		Args: oneArg("TOOL", "its arguments go in --args JSON"),
		RunE: func(c *cobra.Command, args []string) error { return k.do(c, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&k.args, "args", "{}", "arguments as `JSON`, @FILE, or - for standard input")
	f.StringVar(&k.run, "run", "", "run `ID` under which calls are counted together")
	f.StringVar(&k.call, "call", "", "call `ID` of your own, unique in the run: a repeat is the same call")
	f.StringVar(&k.key, "idempotency-key", "", "`KEY`: a repeat with it is answered with the first call")
	f.DurationVar(&k.wait, "wait", 0, "wait so long for a person, then run it (such as `30s`)")
	return c
}

func (k *callCommand) do(c *cobra.Command, tool string) error {
	if err := k.check(c); err != nil {
		return err
	}
	args, err := k.readArgs(k.args)
	if err != nil {
		return err
	}
	conf, err := k.load()
	if err != nil {
		return err
	}
	k.knowTool(conf, tool, args)
	if done, err := k.refuseUnknown(c.Context(), conf, tool, args); done {
		return err
	}
	st, err := k.create(c.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	ex := k.executor(st, conf)
	res, err := k.start(c, ex, tool, args)
	var parked *call.PendingError
	if k.wait > 0 && errors.As(err, &parked) {
		w := waiter{app: k.app, store: st, conf: conf, ex: ex, tool: tool, until: time.Now().Add(k.wait)}
		return w.do(c.Context(), parked)
	}
	err = k.answer(c.Context(), st, tool, conf, res, err)
	k.finishLate(c.Context(), ex)
	return err
}

func (k *callCommand) check(c *cobra.Command) error {
	if err := notBoth(c, "call", "idempotency-key"); err != nil {
		return err
	}
	f := c.Flags()
	switch {
	case f.Changed("call") && !f.Changed("run"):
		return use("--call needs --run: a call's id is unique in its run.", "Add --run ID.")
	case f.Changed("wait") && k.wait <= 0:
		return use("--wait has to be longer than nothing.", "Write it like --wait 30s.")
	case f.Changed("idempotency-key") && k.key == "":
		return use("--idempotency-key is empty.", "Leave it out, or give a key.")
	case f.Changed("run") && k.run == "", f.Changed("call") && k.call == "":
		return use("--run and --call cannot be empty.", "Leave them out, or give ids.")
	}
	return nil
}

// refuseUnknown answers for a tool that is not there before a database is made.
// A call that was made before may have its outcome even so.
func (k *callCommand) refuseUnknown(ctx context.Context, conf *config.Config, name string, args []byte) (bool, error) {
	p, err := k.place()
	if err != nil {
		return true, err
	}
	_, missing := conf.Tools.Lookup(name)
	if missing == nil || (k.call != "" || k.key != "") && p.Absent() == nil {
		return false, nil
	}
	return true, k.answer(ctx, nil, name, conf, call.Result{Status: call.Invalid, Kind: call.KindInvalidArguments, Args: args}, nil)
}

func (k *callCommand) start(c *cobra.Command, ex *call.Executor, tool string, args []byte) (call.Result, error) {
	opts := []call.Option{call.As(principal())}
	if k.call != "" {
		return ex.RunCall(c.Context(), k.run, k.call, tool, args, opts...)
	}
	if k.run != "" {
		opts = append(opts, call.InRun(k.run))
	}
	if k.key != "" {
		opts = append(opts, call.WithIdempotencyKey("call", k.key))
	}
	return ex.Call(c.Context(), tool, args, opts...)
}

// knowTool makes this command's texts hide what the tool's schema marks as secret.
func (a *app) knowTool(conf *config.Config, tool string, docs ...[]byte) {
	var schema []byte
	if t, err := conf.Tools.Lookup(tool); err == nil {
		schema = t.InputSchema
	}
	a.newMask(schema, docs...)
}

// lateOutcome is how long a command stays for a tool that outlived its time
// limit: its outcome is worth recording, and the answer is already given.
const lateOutcome = 5 * time.Second

func (a *app) finishLate(ctx context.Context, ex *call.Executor) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lateOutcome)
	defer stop()
	_ = ex.Wait(ctx) // what comes later than that stays unknown, and is settled as such
}
