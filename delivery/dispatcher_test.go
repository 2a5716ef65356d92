package delivery_test

import (
	"context"
	"testing"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
)

// An event goes to the targets that hear of it, each once, in the order of its stream.
func TestDelivers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := w.root(), w.root()
	all, own := w.add(""), w.add(a)
	w.tell(a, event.JobPaused, 3)
	w.tell(b, event.JobPaused, 2)
	w.tell(a, event.JobUnpaused, 1) // nobody asked for it
	w.dispatch(w.s)
	w.until(8)
	w.tell(a, event.JobCompleted, 1)
	got := w.until(10)
	last := map[string]float64{}
	for _, m := range got {
		data := dataOf(t, m.Body)
		lane := m.Target.ID + data["stream"].(string)
		if n := data["stream_seq"].(float64); n <= last[lane] {
			t.Errorf("%s came after %v of its stream", m.Body, last[lane])
		} else {
			last[lane] = n
		}
	}
	for _, target := range []delivery.Target{all, own} {
		for _, d := range w.list(delivery.Query{TargetID: target.ID}) {
			d = w.becomes(d.ID, delivery.Delivered)
			as := w.attempts(d.ID)
			if d.Attempts != 1 || len(as) != 1 || as[0].Outcome != "delivered" || as[0].Status != 200 || as[0].Owner != "tester" {
				t.Errorf("%+v: %+v", d, as)
			}
		}
	}
	if len(last) != 3 || len(w.list(delivery.Query{TargetID: all.ID})) != 6 || len(w.list(delivery.Query{TargetID: own.ID})) != 4 {
		t.Errorf("%v", last)
	}
}

// What fails is tried again, later and later, under the same id and with the same body,
// until it arrives or its attempts are spent.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.MaxAttempts = 3 })
	n := 0
	w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
		if n++; n == 2 {
			return delivery.Outcome{Result: delivery.Arrived}
		}
		return delivery.Outcome{Result: delivery.Failed, Status: 500, Message: "no"}
	})
	w.dispatch(w.s)
	w.tell(s, event.JobPaused, 1)
	got := w.until(2)
	if got[0].DeliveryID != got[1].DeliveryID || string(got[0].Body) != string(got[1].Body) || got[1].Attempt != 2 || !got[1].At.After(got[0].At) {
		t.Errorf("%+v", got)
	}
	first := w.becomes(got[0].DeliveryID, delivery.Delivered)
	w.tell(s, event.JobCompleted, 1)
	got = w.until(5)
	d := w.becomes(got[4].DeliveryID, delivery.Dead)
	if d.Attempts != 3 || d.Message != "no" || first.Attempts != 2 {
		t.Errorf("%+v %+v", d, first)
	}
	if _, err := w.desk.Retry(w.ctx, first.ID, "ana"); err == nil {
		t.Error("what has arrived was tried again")
	}
	w.sink.then(nil)
	if d, err := w.desk.Retry(w.ctx, d.ID, "ana"); err != nil || !d.OutOfOrder || d.Status != delivery.Retrying {
		t.Errorf("%+v %v", d, err)
	}
	if d := w.becomes(d.ID, delivery.Delivered); d.Attempts != 4 || len(w.attempts(d.ID)) != 4 || d.TargetID != target.ID {
		t.Errorf("%+v", d)
	}
}
