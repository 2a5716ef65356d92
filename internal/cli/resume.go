package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

type resumeCommand struct {
	*app
	flags           answerFlags
	approve, reject bool
}

func newResumeCommand(a *app) *cobra.Command {
	r := &resumeCommand{app: a}
	c := &cobra.Command{
		Use:   "resume ID",
		Short: "Run a parked call that was decided, or go on with a run",
		Long: `Runs exactly what was approved, once. It never approves by itself: a pending
approval is refused, unless --approve or --reject gives the answer. With the id of
a call whose outcome is unknown it asks again what became of it. With the id of a run
it is placet run resume.`,
		Args: oneArg("ID", ""),
		RunE: func(c *cobra.Command, args []string) error { return r.run(c, args[0]) },
	}
	r.flags.add(c)
	r.flags.addEdit(c)
	c.Flags().BoolVar(&r.approve, "approve", false, "say yes first, if nobody has decided")
	c.Flags().BoolVar(&r.reject, "reject", false, "say no first, if nobody has decided")
	return c
}

func (r *resumeCommand) run(c *cobra.Command, given string) error {
	answer, err := r.answerGiven(c)
	if err != nil {
		return err
	}
	if strings.HasPrefix(given, id.Run) {
		if answer != nil {
			return use("A run is not answered.", "Decide its approval with placet approve or placet reject, then resume the run.")
		}
		return r.resumeRun(c.Context(), given)
	}
	conf, err := r.load()
	if err != nil {
		return err
	}
	st, err := r.write(c.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	found, err := r.find(c.Context(), st, given, id.Approval, id.Call, id.Run)
	if err == nil && answer != nil {
		err = wholly(given, found)
	}
	if err != nil {
		return err
	}
	if err := ofRun(c.Context(), st, found); err != nil {
		return err
	}
	ex := r.executor(st, conf)
	name, res, err := r.goOn(c.Context(), st, ex, found, answer)
	switch {
	case errors.Is(err, tool.ErrUnknown):
		err = noTool(conf, err)
	case errors.Is(err, tool.ErrInvalidArguments) && r.flags.edit != "":
		err = editUnfit(r.flags.edit, err)
	}
	err = r.answer(c.Context(), st, name, conf, res, err)
	r.finishLate(c.Context(), ex)
	return err
}

// ofRun refuses what belongs to a run: that is resumed as a whole.
func ofRun(ctx context.Context, st *store.Store, found string) error {
	runID, what := "", "Approval"
	if strings.HasPrefix(found, id.Call) {
		k, err := readCall(ctx, st, found)
		if err != nil {
			return err
		}
		if k.Hosted() {
			runID, what = k.RunID, "Call"
		}
	} else {
		s, err := readApproval(ctx, st, found)
		if err != nil {
			return err
		}
		if s.Owner.Kind == decision.OwnerRun {
			runID = s.Owner.ID
		}
	}
	if runID == "" {
		return nil
	}
	refused := decision.ErrUsage.Say("%s %s belongs to run %s.", what, found, runID)
	w, err := readRun(ctx, st, runID)
	switch {
	case err != nil:
		return err
	case w.Status.Terminal():
		return refused.Hint("That run has ended: placet show %s.", runID)
	}
	return refused.Hint("Go on with the run: placet run resume %s.", runID)
}

// goOn resumes an approval, or the call of that id.
func (r *resumeCommand) goOn(ctx context.Context, st *store.Store, ex *call.Executor, found string, answer *decision.Answer) (string, call.Result, error) {
	approvalID := found
	if strings.HasPrefix(found, id.Call) {
		k, err := readCall(ctx, st, found)
		if err != nil {
			return "", call.Result{}, err
		}
		if approvalID = k.waitsOn(); approvalID == "" {
			if answer != nil {
				return "", call.Result{}, decision.ErrUsage.Say("Call %s does not wait for an answer.", found).
					Hint("Leave --approve and --reject out.")
			}
			res, err := ex.RunCall(ctx, k.RunID, k.ID, k.Tool, k.Args, call.As(principal()))
			return k.Tool, res, err
		}
	}
	s, err := readApproval(ctx, st, approvalID)
	if err != nil {
		return "", call.Result{}, err
	}
	r.maskOf(s.Decision, s.Request, editOf(answer))
	res, err := ex.Resume(ctx, approvalID, answer, call.As(principal()))
	return s.Tool, res, err
}

// waitsOn is the call's latest approval while it is not used up.
func (k wholeCall) waitsOn() string {
	for _, d := range k.approvals {
		if d.ID == k.ApprovalID && (d.Status == decision.Pending || d.Status == decision.Approved || d.Status == decision.Rejected) {
			return d.ID
		}
	}
	return ""
}

// noTool says what to do about a tool that the configuration does not have,
// unless the error names one that was meant.
func noTool(conf *config.Config, err error) error {
	var f *fault.Error
	switch {
	case !errors.As(err, &f) || f.Advice != "":
		return err
	case conf.Path == "":
		return f.Hint("No configuration was found: run placet init, go to the folder of placet.yaml, or give --config FILE.")
	}
	return f.Hint("See placet tools, or give another configuration with --config FILE.")
}

// answerGiven is the answer in the flags, nil for none. A part of one is refused:
// a note without a yes or a no would be lost.
func (r *resumeCommand) answerGiven(c *cobra.Command) (*decision.Answer, error) {
	if err := notBoth(c, "approve", "reject"); err != nil {
		return nil, err
	}
	f := c.Flags()
	switch {
	case r.reject && f.Changed("edit"):
		return nil, use("A rejection has no edited arguments.", "Leave --edit out, or write --approve.")
	case !r.approve && !r.reject && (f.Changed("edit") || f.Changed("by") || f.Changed("note")):
		return nil, use("--by, --note and --edit belong to an answer, and none was given.", "Add --approve or --reject, or leave them out.")
	case !r.approve && !r.reject:
		return nil, nil
	}
	edited, err := r.readEdit(r.flags.edit)
	if err != nil {
		return nil, err
	}
	a := &decision.Answer{Approved: r.approve, By: r.flags.name(c), Note: r.flags.note, EditedArgs: edited}
	return a, decision.CheckAnswer(*a)
}

func editOf(a *decision.Answer) []byte {
	if a == nil {
		return nil
	}
	return a.EditedArgs
}
