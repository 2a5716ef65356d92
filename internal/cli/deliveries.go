package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func newDeliveriesCommand(a *app) *cobra.Command {
	var q httpapi.DeliveryQuery
	var of, run, to, status string
	c := &cobra.Command{
		Use:   "deliveries",
		Short: "List what is sent to wake targets, newest first",
		Long: `Lists deliveries: each is one event for one wake target. A dead one was given up; try it
again with placet deliveries retry.`,
		Args: noArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if status == "all" {
				return nil
			}
			return oneOf("status", status, delivery.Statuses(), &q.Status)
		},
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) (err error) {
			if q.JobID, q.RunID, err = d.rootsOf(ctx, of, run); err != nil {
				return err
			}
			if to != "" {
				if q.TargetID, err = d.targetID(ctx, to); err != nil {
					return err
				}
			}
			return a.listDeliveries(ctx, d, q)
		}),
	}
	f := c.Flags()
	f.StringVar(&status, "status", "all", "only those of this `WORD`: "+wordList(delivery.Statuses())+"; or all")
	f.StringVar(&of, "job", "", "only those of this `JOB`")
	f.StringVar(&run, "run", "", "only those of this `RUN`")
	f.StringVar(&to, "target", "", "only those to this `TARGET`")
	c.AddCommand(newDeliveryShowCommand(a), newDeliveryRetryCommand(a))
	return c
}

func (a *app) listDeliveries(ctx context.Context, d reached, q httpapi.DeliveryQuery) error {
	q.Limit = listedAtOnce
	t := a.table("id", "status", "made", "event", "attempts", "to", "")
	dead, to := "", targetNames{}
	for {
		l, err := d.Deliveries(ctx, q)
		if err != nil {
			return err
		}
		for _, one := range l.Deliveries {
			if a.json {
				a.emit(one)
				continue
			}
			if one.Status == delivery.Dead && dead == "" {
				dead = one.DeliveryID
			}
			t.row(one.DeliveryID, string(one.Status), ago(time.Now(), one.CreatedAt), string(one.Type), fmt.Sprint(one.Attempts), to.of(ctx, a, d, one.TargetID), startOf(a.line(one.Message), 60))
		}
		if q.After = l.Next; q.After == "" {
			break
		}
	}
	t.list()
	if dead != "" {
		a.note("Try a dead one again: %s", own(a.withGlobals("deliveries", "retry", dead)))
	}
	return nil
}

// targetNames are names of targets, by their ids.
type targetNames map[string]string

// of is what people call the target: its name, or where it sends; of one that cannot be
// read, its id.
func (ns targetNames) of(ctx context.Context, a *app, d reached, targetID string) string {
	if _, known := ns[targetID]; !known {
		ns[targetID] = targetID
		if t, err := d.GetWakeTarget(ctx, targetID); err == nil {
			ns[targetID] = startOf(a.line(cmp.Or(t.Name, targetTo(t), targetID)), 48)
		}
	}
	return ns[targetID]
}

// ofDelivery runs fn with a daemon and the whole id of the delivery that the argument begins.
func (a *app) ofDelivery(fn func(ctx context.Context, d reached, deliveryID string) error) func(*cobra.Command, []string) error {
	return a.asked(func(ctx context.Context, d reached, args []string) error {
		deliveryID, err := d.deliveryID(ctx, args[0])
		if err != nil {
			return err
		}
		return fn(ctx, d, deliveryID)
	})
}

func newDeliveryShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show DELIVERY",
		Short: "Show a delivery and all attempts at it",
		Args:  oneArg("DELIVERY", "placet deliveries lists them"),
		RunE: a.ofDelivery(func(ctx context.Context, d reached, deliveryID string) error {
			one, err := d.GetDelivery(ctx, deliveryID)
			if err != nil {
				return err
			}
			as, err := d.DeliveryAttempts(ctx, deliveryID)
			return a.tellDelivery(one, as.Attempts, err)
		}),
	}
}

func newDeliveryRetryCommand(a *app) *cobra.Command {
	var who string
	c := &cobra.Command{
		Use:   "retry DELIVERY",
		Short: "Try a dead delivery again, out of its order, or one that is retrying at once",
		Args:  oneArg("DELIVERY", "placet deliveries --status dead lists them"),
		RunE: changing(a.ofDelivery(func(ctx context.Context, d reached, deliveryID string) error {
			one, err := d.RetryDelivery(ctx, deliveryID, who)
			if err != nil {
				return err
			}
			as, err := d.DeliveryAttempts(ctx, deliveryID)
			return a.tellDelivery(one, as.Attempts, err)
		})),
	}
	c.Flags().StringVar(&who, "by", osUser(), "`NAME` of who wants it")
	return c
}

// tellDelivery prints a delivery as it stands.
func (a *app) tellDelivery(d delivery.DeliveryObject, as []delivery.AttemptObject, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		a.emit(struct {
			delivery.DeliveryObject
			All []delivery.AttemptObject `json:"attempt_list"`
		}{d, as})
		return nil
	}
	order := ""
	if d.OutOfOrder {
		order = "out of it: it was tried again by hand"
	}
	p := page{a: a, to: a.out, mask: a.mask}
	p.say("Delivery %s", own(d.DeliveryID))
	p.facts([]fact{
		{"status", own(d.Status)},
		{"because", p.foreign(d.Message)},
		{"event", own(fmt.Sprintf("%s, number %d of %s", d.Type, d.StreamSeq, d.Stream))},
		{"to", own(d.TargetID)},
		{"order", own(order)},
		{"made", own(d.CreatedAt)},
		{"next try", own(d.NextTryAt)},
		{"ended", own(d.EndedAt)},
	})
	if len(as) == 0 {
		return nil
	}
	a.tellAttempts(p, as)
	return nil
}

func (a *app) tellAttempts(p page, as []delivery.AttemptObject) {
	p.say("")
	p.say("Attempts:")
	t := a.table("  n", "started", "ended", "outcome", "status", "")
	for _, one := range as {
		outcome, status := string(one.Outcome), ""
		if outcome == "" {
			outcome = "under way"
		}
		if one.Status != 0 {
			status = fmt.Sprint(one.Status)
		}
		t.row(fmt.Sprintf("  %d", one.Attempt), one.StartedAt, one.EndedAt, outcome, status, startOf(a.line(one.Message), 80))
	}
	t.print()
}

func (a *app) showTarget(ctx context.Context, st *store.Store, targetID string) error {
	k := delivery.Desk{Store: st, Space: event.MainSpace}
	t, err := k.Target(ctx, targetID)
	return a.tellTarget(t.Object(), err)
}

func (a *app) showDelivery(ctx context.Context, st *store.Store, deliveryID string) error {
	var d delivery.Delivery
	var as []delivery.Attempt
	err := txn.View(ctx, st, func(tx delivery.Tx) (err error) {
		if d, err = tx.Delivery(deliveryID); err != nil {
			return err
		}
		as, err = tx.DeliveryAttempts(deliveryID)
		return err
	})
	objects := make([]delivery.AttemptObject, len(as))
	for i, one := range as {
		objects[i] = one.Object()
	}
	return a.tellDelivery(d.Object(), objects, err)
}
