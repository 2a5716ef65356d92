package delivery_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// to is a target of three attempts.
var to = delivery.Target{ID: "tgt_1", MaxAttempts: 3, RetryDelay: time.Second, Timeout: time.Second, MaxAge: day}

func target(change func(*delivery.Target)) delivery.Target {
	t := to
	change(&t)
	return t
}

var (
	removed  = target(func(t *delivery.Target) { t.RemovedAt = noon })
	disabled = target(func(t *delivery.Target) { t.DisabledAt, t.Disabled = noon, "It is gone." })
)

// fresh is a delivery as its event's transaction writes it.
var fresh = delivery.Delivery{
	ID: "dlv_1", TargetID: "tgt_1", Pushed: true, Ordered: true, Stream: "job:job_1", StreamSeq: 1, EventType: event.JobPaused,
	Status: delivery.Pending, Due: noon, CreatedAt: noon, GivesUpAt: noon.Add(day), Version: 1,
}

var claim = delivery.Claim{Target: to, Owner: "me", Lease: time.Minute, Token: []byte("t"), Epoch: 4}

func outcome(r delivery.Result) delivery.Settle {
	return delivery.Settle{Target: to, Fence: 1, Outcome: delivery.Outcome{Result: r, Status: 500, Message: "no"}, Jitter: 0.5}
}

// states are deliveries in every state that the machine tells apart.
func states(t testing.TB) map[string]delivery.Delivery {
	t.Helper()
	after := func(d delivery.Delivery, cmds ...delivery.Command) delivery.Delivery {
		for _, cmd := range cmds {
			ch, err := d.Step(cmd, noon)
			if err != nil {
				t.Fatal(err)
			}
			d = ch.Next
		}
		return d
	}
	waiting, late := fresh, fresh
	waiting.Due = time.Time{}
	late.GivesUpAt = noon.Add(-1)
	held := after(fresh, claim)
	lost := held
	lost.LeaseUntil = noon.Add(-1)
	again := after(held, outcome(delivery.Failed))
	again.Due, again.Fence = noon, 1
	return map[string]delivery.Delivery{
		"pending": fresh, "pending, waits for an earlier one": waiting, "pending, too old": late,
		"dispatching": held, "dispatching, lost": lost, "retrying": again,
		"delivered": after(held, outcome(delivery.Arrived)), "dead": after(held, outcome(delivery.Refused)), "dropped": after(fresh, delivery.Drop{Message: "why"}),
	}
}

var commands = map[string]delivery.Command{
	"claim":           claim,
	"claim, removed":  delivery.Claim{Target: removed, Lease: time.Minute},
	"claim, disabled": delivery.Claim{Target: disabled, Lease: time.Minute},
	"claim, settled":  delivery.Claim{Target: to, Lease: time.Minute, Settled: true},
	"claim, cleaned":  delivery.Claim{Target: to, Lease: time.Minute, Cleaned: true},
	"arrived":         outcome(delivery.Arrived),
	"failed":          outcome(delivery.Failed),
	"failed, last":    delivery.Settle{Target: target(func(t *delivery.Target) { t.MaxAttempts = 1 }), Fence: 1, Outcome: delivery.Outcome{Result: delivery.Failed}},
	"refused":         outcome(delivery.Refused),
	"gone":            outcome(delivery.Gone),
	"not sent":        outcome(delivery.NotSent),
	"arrived, other":  delivery.Settle{Target: to, Fence: 9, Outcome: delivery.Outcome{Result: delivery.Arrived}},
	"release":         delivery.Release{Fence: 1},
	"release, other":  delivery.Release{Fence: 2},
	"reclaim":         delivery.Reclaim{Target: to},
	"give up":         delivery.GiveUp{},
	"drop":            delivery.Drop{Message: "why"},
	"retry":           delivery.Retry{Target: to, By: "ana"},
	"retry, disabled": delivery.Retry{Target: disabled, By: "ana"},
	"retry, removed":  delivery.Retry{Target: removed, By: "ana"},
}

// answers of the table that recur.
var (
	ofDue = map[string]string{
		"claim": "dispatching, begun", "claim, removed": "dropped: delivery.dropped", "claim, disabled": "dead", "claim, settled": "dropped: delivery.dropped",
		"claim, cleaned": "dropped: delivery.dropped", "drop": "dropped: delivery.dropped",
	}
	ofHeld = map[string]string{
		"arrived": "delivered, ended delivered", "failed": "retrying, ended failed", "failed, last": "dead, ended failed", "refused": "dead, ended refused",
		"gone": "dead, ended gone, disables", "not sent": "pending, ended released", "release": "pending, ended released",
	}
)

func with(m map[string]string, more ...string) map[string]string {
	m = maps.Clone(m)
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// table says what every command does in every state. What is not named is refused.
var table = map[string]map[string]string{
	"pending":                           ofDue,
	"pending, waits for an earlier one": {"drop": "dropped: delivery.dropped"},
	"pending, too old":                  with(ofDue, "claim", "dead", "give up", "dead"),
	"dispatching":                       ofHeld,
	"dispatching, lost":                 with(ofHeld, "reclaim", "retrying, ended reclaimed"),
	"retrying":                          with(ofDue, "retry", "retrying"),
	"delivered":                         {},
	"dead":                              {"retry": "retrying"},
	"dropped":                           {},
}

func TestEveryStateAndCommand(t *testing.T) {
	t.Parallel()
	known, err := source.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, cmd := range commands {
		listed[strings.TrimPrefix(fmt.Sprintf("%T", cmd), "delivery.")] = true
	}
	if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, known) {
		t.Fatalf("the table has the commands %v, the package %v", got, known)
	}
	all := states(t)
	if len(all) != len(table) {
		t.Fatalf("%d states, %d rows", len(all), len(table))
	}
	for name, d := range all {
		for what, cmd := range commands {
			ch, err := d.Step(cmd, noon)
			if got, want := told(ch, err), table[name][what]; got != want {
				t.Errorf("%s in state %q: %q, want %q", what, name, got, want)
			}
			if err == nil {
				sound(t, name+", "+what, d, ch)
			}
		}
	}
}

// told is what a change does, in the words of the table.
func told(ch delivery.Change, err error) string {
	switch {
	case errors.Is(err, delivery.ErrState), errors.Is(err, delivery.ErrLeaseLost):
		return ""
	case err != nil:
		return err.Error()
	}
	got := string(ch.Next.Status)
	if ch.Began != nil {
		got += ", begun"
	}
	if ch.Ended != nil {
		got += ", ended " + string(ch.Ended.Outcome)
	}
	if ch.Disable != "" {
		got += ", disables"
	}
	for _, e := range ch.Events {
		got += ": " + string(e.Type)
	}
	return got
}

// failer is *testing.T or *rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// sound holds what must be of every change, and what the store's CHECKs hold.
func sound(t failer, what string, was delivery.Delivery, ch delivery.Change) {
	t.Helper()
	d := ch.Next
	began, ended := ch.Began != nil, ch.Ended != nil
	for rule, broken := range map[string]bool{
		"the version rises by one":                 d.Version != was.Version+1,
		"what is final stays so":                   was.Status == delivery.Delivered || was.Status == delivery.Dropped,
		"what is dead is only retried":             was.Status == delivery.Dead && d.Status != delivery.Retrying,
		"the fence rises with an attempt":          d.Fence != was.Fence && !began || began && d.Fence != was.Fence+1,
		"attempts only grow, by one that ended":    d.Attempts < was.Attempts || d.Attempts > was.Attempts && !ended,
		"due while it waits":                       !d.Due.IsZero() && d.Status != delivery.Pending && d.Status != delivery.Retrying,
		"what waits anew is due":                   d.Due.IsZero() && (d.Status == delivery.Pending || d.Status == delivery.Retrying),
		"leased while it is sent":                  (d.Status == delivery.Dispatching) == d.LeaseUntil.IsZero(),
		"an attempt begins with a claim":           began != (d.Status == delivery.Dispatching),
		"an attempt ends with a claim":             ended != (was.Status == delivery.Dispatching),
		"its attempt is numbered by its fence":     began && ch.Began.N != d.Fence || ended && ch.Ended.N != was.Fence,
		"ended once it is over":                    d.Status.Open() != d.EndedAt.IsZero(),
		"who drops tells":                          (d.Status == delivery.Dropped) != (len(ch.Events) == 1),
		"a token is held or has led to the end":    d.Token != nil && d.Status != delivery.Dispatching && d.Status != delivery.Delivered,
		"what it is of never changes":              d.ID != was.ID || d.TargetID != was.TargetID || d.Stream != was.Stream || d.StreamSeq != was.StreamSeq || d.Subject != was.Subject,
		"what is given back costs nothing":         ended && ch.Ended.Outcome == delivery.Released && d.Attempts != was.Attempts,
		"what is lost costs nothing":               ended && ch.Ended.Outcome == delivery.Reclaimed && d.Attempts != was.Attempts,
		"only a person takes it out of its order":  d.Ordered != was.Ordered && was.Status != delivery.Dead,
		"what a person tries again says so":        was.Status == delivery.Dead && (d.Ordered || !d.OutOfOrder),
		"what is not over says why it is retrying": d.Status == delivery.Retrying && ended && ch.Ended.Outcome != delivery.Released && d.Message == "",
	} {
		if broken {
			t.Errorf("%s: not so: %s\n%+v\n%+v", what, rule, was, ch)
		}
	}
}

// Whatever happens to a delivery, in whatever order, the rules hold.
func TestAnySequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, now, fence, budget := fresh, noon, int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(2*time.Hour)).Draw(t, "later")))
			cmd := anyCommand(t, d)
			ch, err := d.Step(cmd, now)
			if err != nil {
				continue
			}
			what := fmt.Sprintf("%T", cmd)
			sound(t, what, d, ch)
			if _, retried := cmd.(delivery.Retry); retried && d.Status == delivery.Dead {
				budget = d.Attempts
			}
			if ch.Next.Status == delivery.Retrying && ch.Next.Attempts-budget >= 3 && ch.Next.Attempts > d.Attempts {
				t.Errorf("%s: attempt %d of 3 is followed by another", what, ch.Next.Attempts-budget)
			}
			if _, claims := cmd.(delivery.Claim); claims && ch.Began != nil && (now.Before(d.Due) || now.After(d.GivesUpAt)) {
				t.Errorf("claimed at %s: %+v", now, d)
			}
			if ch.Next.Fence < fence {
				t.Errorf("fence %d after %d", ch.Next.Fence, fence)
			}
			d, fence = ch.Next, ch.Next.Fence
		}
	})
}

func anyCommand(t *rapid.T, d delivery.Delivery) delivery.Command {
	fence := d.Fence - int64(rapid.IntRange(0, 1).Draw(t, "stale"))
	of := rapid.SampledFrom([]delivery.Target{to, to, to, to, disabled, removed}).Draw(t, "target")
	c := claim
	c.Target, c.Settled = of, rapid.IntRange(0, 9).Draw(t, "settled") == 0
	s := outcome(rapid.SampledFrom([]delivery.Result{delivery.Arrived, delivery.Failed, delivery.Failed, delivery.Failed, delivery.Refused, delivery.Gone, delivery.NotSent}).Draw(t, "result"))
	s.Fence, s.Jitter, s.Outcome.RetryAfter = fence, rapid.Float64Range(0, 1).Draw(t, "jitter"), time.Duration(rapid.IntRange(0, int(2*time.Hour)).Draw(t, "retry after"))
	return rapid.SampledFrom([]delivery.Command{
		c, c, c, s, s, s, delivery.Release{Fence: fence}, delivery.Reclaim{Target: of}, delivery.GiveUp{}, delivery.Drop{Message: "why"}, delivery.Retry{Target: of, By: "ana"},
	}).Draw(t, "command")
}

// The wait doubles from attempt to attempt, spread by a fifth to either side, and is
// bounded; a receiver may ask for more, but not for more than the delivery has to live.
func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		of := to
		of.MaxAttempts = 100
		of.RetryDelay = time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(delivery.MaxRetryDelay)).Draw(t, "first"))
		of.MaxAge = time.Duration(rapid.Int64Range(int64(time.Second), int64(delivery.MaxMaxAge)).Draw(t, "age"))
		failures := rapid.IntRange(1, 99).Draw(t, "failures")
		budget := rapid.IntRange(0, 50).Draw(t, "budget")
		asked := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "retry after"))
		if rapid.Bool().Draw(t, "silent") {
			asked = 0
		}
		jitter := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "jitter")
		d := fresh
		d.Attempts, d.Budget = int64(budget+failures-1), int64(budget)
		held, err := d.Step(delivery.Claim{Target: of, Lease: time.Minute}, noon)
		if err != nil {
			t.Fatal(err)
		}
		ch, err := held.Next.Step(delivery.Settle{Target: of, Fence: 1, Jitter: jitter, Outcome: delivery.Outcome{Result: delivery.Failed, RetryAfter: asked}}, noon)
		if err != nil || ch.Next.Status != delivery.Retrying {
			t.Fatalf("%+v %v", ch, err)
		}
		whole := min(float64(of.RetryDelay)*math.Pow(2, float64(failures-1)), float64(delivery.LongestRetryDelay))
		want := max(time.Duration(whole*(0.8+0.4*jitter)), min(asked, of.MaxAge))
		if got := ch.Next.Due.Sub(noon); (got - want).Abs() > time.Microsecond {
			t.Errorf("waits %s, want %s", got, want)
		}
	})
}

// What is lost waits longer each time, and never spends its attempts.
func TestReclaimWaitsLonger(t *testing.T) {
	t.Parallel()
	d, now, last := fresh, noon, time.Duration(0)
	for n := range 20 {
		ch, err := d.Step(claim, now)
		if err != nil {
			t.Fatal(err)
		}
		now = ch.Next.LeaseUntil.Add(time.Microsecond)
		if ch, err = ch.Next.Step(delivery.Reclaim{Target: to}, now); err != nil || ch.Next.Attempts != 0 {
			t.Fatalf("%+v %v", ch, err)
		}
		wait := ch.Next.Due.Sub(now)
		if wait < last || wait == last && n < 9 {
			t.Errorf("reclaim %d waits %s after %s", n, wait, last)
		}
		d, now, last = ch.Next, ch.Next.Due, wait
		d.GivesUpAt = now.Add(day)
	}
}
