package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
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
		Short: "Run a parked call that was decided",
		Long: `Runs exactly what was approved, once. It never approves by itself: a pending
approval is refused, unless --approve or --reject gives the answer.`,
		Args: cobra.ExactArgs(1),
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
	conf, err := r.load()
	if err != nil {
		return err
	}
	st, err := r.write(c.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	approvalID, err := r.find(c.Context(), st, given, id.Approval)
	if err != nil {
		return err
	}
	s, err := readApproval(c.Context(), st, approvalID)
	if err != nil {
		return err
	}
	r.maskOf(s.Decision, requestOf(s.Decision), editOf(answer))
	ex := r.executor(st, conf)
	res, err := ex.Resume(c.Context(), approvalID, answer, call.As(principal()))
	if f := (*fault.Error)(nil); errors.Is(err, tool.ErrUnknown) && errors.As(err, &f) && conf.Path == "" {
		err = f.Hint("No configuration was found: go to the folder of placet.yaml, or give --config FILE.")
	}
	err = r.answer(s.Tool, conf, res, err)
	r.finishLate(c.Context(), ex)
	return err
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
