package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func newShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one approval, call, run, job, question, wake target, delivery or token",
		Args:  oneArg("ID", ""),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := a.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			found, err := a.find(c.Context(), st, args[0], id.Approval, id.Call, id.Run, id.Job, id.Question, id.Target, id.Delivery, id.Token)
			if errors.Is(err, decision.ErrNotFound) {
				if only := onlyGroups(c.Context(), st, args[0]); only != nil {
					return only
				}
			}
			if err != nil {
				return err
			}
			prefix, _ := kindOf(found)
			show := map[string]func(context.Context, *store.Store, string) error{
				id.Approval: a.showApproval, id.Call: a.showCall, id.Run: a.showRun, id.Job: a.showJob, id.Question: a.showQuestion, id.Target: a.showTarget, id.Delivery: a.showDelivery, id.Token: a.showToken,
			}[prefix]
			return show(c.Context(), st, found)
		},
	}
}

// onlyGroups is the answer about the run id of calls, under which nothing of its own is stored.
func onlyGroups(ctx context.Context, st *store.Store, runID string) error {
	if !strings.HasPrefix(runID, id.Run) {
		return nil
	}
	var of []call.Call
	err := txn.View(ctx, st, func(tx call.Tx) (err error) {
		of, err = tx.Calls(call.Query{Space: event.MainSpace, RunID: runID, Limit: 1})
		return err
	})
	if err != nil || len(of) == 0 {
		return err
	}
	return decision.ErrNotFound.Say("%s only groups calls.", runID).Hint("The newest of them: placet show %s.", of[0].ID)
}

func (a *app) showApproval(ctx context.Context, st *store.Store, approvalID string) error {
	s, err := readApproval(ctx, st, approvalID)
	if err != nil {
		return err
	}
	if a.json {
		a.emit(a.approvalObject(s.Decision))
		return nil
	}
	a.review(a.out, s)
	return nil
}

func (a *app) showCall(ctx context.Context, st *store.Store, callID string) error {
	k, err := readCall(ctx, st, callID)
	if err != nil {
		return err
	}
	m := a.callMask(k)
	if a.json {
		a.emit(callObject(k.Call, k.attempts, m))
		return nil
	}
	a.reviewCall(k, m)
	return nil
}

// wholeCall is a call with what hangs below it.
type wholeCall struct {
	call.Call
	attempts  []call.Attempt
	approvals []decision.Decision // newest first
}

func readCall(ctx context.Context, st *store.Store, callID string) (k wholeCall, err error) {
	err = txn.View(ctx, st, func(tx call.Tx) error {
		c, err := tx.Call(callID)
		if err != nil {
			return err
		}
		k = wholeCall{Call: c}
		if k.attempts, err = tx.Attempts(callID); err != nil {
			return err
		}
		if c.Hosted() { // the run owns them; the latest is the one that tells
			return k.readHosted(tx)
		}
		k.approvals, err = tx.Decisions(decision.Query{Space: event.MainSpace, CallID: callID, Limit: 500})
		return err
	})
	return k, err
}

func (k *wholeCall) readHosted(tx call.Tx) error {
	if k.ApprovalID == "" {
		return nil
	}
	d, err := tx.Decision(k.ApprovalID)
	if errors.Is(err, decision.ErrNotFound) {
		return nil
	}
	k.approvals = []decision.Decision{d}
	return err
}

// callMask is the mask for all that belongs to a call. Its approvals hold the
// tool's schema; a call without one has it in the configuration, if anywhere.
func (a *app) callMask(k wholeCall) *display.Mask {
	docs := [][]byte{k.Args}
	for _, at := range k.attempts {
		docs = append(docs, at.Args)
	}
	var schemas [][]byte
	for _, d := range k.approvals {
		docs = append(docs, d.EditedArgs)
		schemas = append(schemas, requestOf(d).Tool.InputSchema)
	}
	if conf, err := a.load(); err == nil {
		if t, err := conf.Tools.Lookup(k.Tool); err == nil {
			schemas = append(schemas, t.InputSchema)
		}
	}
	m := &display.Mask{}
	for _, s := range schemas {
		m.Teach(s)
	}
	m.Learn(docs...)
	a.mask.Share(m)
	return m
}

func (a *app) reviewCall(k wholeCall, m *display.Mask) {
	p := page{a: a, to: a.out, mask: m}
	p.say("Call %s", own(k.ID))
	p.facts([]fact{
		{"status", own(k.Status)},
		{"tool", own(k.Tool)},
		{"your id", own(k.ExternalID)},
		{"run", own(k.RunID)},
		{"asked", own(stamp(k.CreatedAt) + by(k.Principal))},
		{"ended", own(stamp(k.EndedAt))},
		{"approval", own(k.ApprovalID)},
		{"kind", own(k.Kind)},
		{"message", p.foreign(k.Message)},
	})
	p.fields(fmt.Sprintf("Arguments (%s):", display.Bytes(len(k.Args))), k.Args)
	for _, at := range k.attempts {
		if at.Args != nil {
			p.fields(fmt.Sprintf("Edited arguments, which ran instead in attempt %d (%s):", at.N, display.Bytes(len(at.Args))), at.Args)
			p.say("  They are bound to the approval by %s.", own(at.EffectiveDigest))
		}
	}
	if len(k.Result) > 0 {
		p.fields(fmt.Sprintf("Result, as the tool gave it (%s):", display.Bytes(len(k.Result))), m.Scrub(k.Result))
	}
	if len(k.attempts) == 0 {
		return
	}
	p.say("")
	p.say("Attempts:")
	t := a.table("  n", "started", "ended", "outcome", "")
	for _, at := range k.attempts {
		outcome, late := string(at.Outcome), ""
		if outcome == "" {
			outcome = "running"
		}
		if at.Late {
			late = "late"
		}
		t.row(fmt.Sprintf("  %d", at.N), stamp(at.StartedAt), stamp(at.EndedAt), outcome, late)
	}
	t.print()
}
