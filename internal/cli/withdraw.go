package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
)

func newWithdrawCommand(a *app) *cobra.Command {
	var flags answerFlags
	c := &cobra.Command{
		Use:   "withdraw ID",
		Short: "Take back a call that has not run yet, or a job's question",
		Long: `Withdraws a pending approval, or takes back a yes that nobody has acted on: its call
is cancelled and never runs. Of a question that is withdrawn its job hears that nobody answers.`,
		Args: oneArg("ID", ""),
	}
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		st, err := a.write(ctx)
		if err != nil {
			return err
		}
		defer st.Close()
		if err := anyOfAKind(args[0]); err != nil {
			return err
		}
		found, err := a.find(ctx, st, args[0], id.Approval, id.Call, id.Question)
		if err != nil {
			return err
		}
		if strings.HasPrefix(found, id.Question) {
			return a.withdrawQuestion(c, st, found, flags)
		}
		if strings.HasPrefix(found, id.Call) {
			k, err := readCall(ctx, st, found)
			if err != nil {
				return err
			}
			if k.ApprovalID == "" {
				return decision.ErrUsage.Say("Call %s never asked for an approval, so there is nothing to withdraw.", found)
			}
			found = k.ApprovalID
		}
		after, err := operator(st).Withdraw(ctx, found, flags.name(c), flags.note)
		if stands, ok := decision.StandingOf(err); ok && stands.Status == decision.Approved {
			after, err = withdrawGranted(ctx, st, found, flags.name(c), flags.note)
		}
		if err != nil {
			return err
		}
		if a.json {
			a.emit(a.approvalObject(after))
			return nil
		}
		if k, err := readCall(ctx, st, after.CallID); err == nil && k.Status == call.Unknown {
			a.say("Approval %s is withdrawn. Its call may have run already; it is not run again.", own(after.ID))
			return nil
		}
		if after.Status == decision.Superseded {
			a.say("The yes %s is taken back; its call is cancelled.", own(after.ID))
			return nil
		}
		a.say("Approval %s is withdrawn; its call is cancelled.", own(after.ID))
		return nil
	}
	return c
}

func (a *app) withdrawQuestion(c *cobra.Command, st *store.Store, decisionID string, flags answerFlags) error {
	d, err := readQuestion(c.Context(), st, decisionID)
	if err != nil {
		return err
	}
	if d, err = operator(st).WithdrawQuestion(c.Context(), d.Owner.ID, d.ID, flags.name(c), flags.note); err != nil {
		return err
	}
	if a.json {
		a.emitQuestion(httpapi.QuestionObject(d))
		return nil
	}
	a.say("Question %s is withdrawn.", own(d.ID))
	return nil
}
