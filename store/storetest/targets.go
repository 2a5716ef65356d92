package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
)

func targets(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":            targetReadBack,
		"texts":                targetTexts,
		"guard":                targetGuard,
		"lists":                targetLists,
		"match":                targetsMatch,
		"printed":              targetsAndPrinted,
		"not in use":           targetsNotInUse,
		"at most so many":      targetsAtMost,
		"of the ended":         targetsOfTheEnded,
		"leave nothing":        targetsLeaveNothing,
		"with its root":        targetWithItsRoot,
		"behind what was told": targetBehindEvents,
		"other handle":         targetOnOtherHandle,
		"taken back":           targetTakenBack,
		"batches":              targetsInBatches,
		"earlier life":         targetsOfEarlierLife,
	})
}

// hook is a target with every field that one can have.
func hook() delivery.Target {
	return delivery.Target{
		ID: id.New(id.Target), Space: event.MainSpace, Kind: delivery.KindWebhook, Name: "ours", Events: []string{string(event.JobPaused), "output:done"}, Principal: "agent:ana",
		URL: "https://example.com/hook?a=b", Headers: map[string]string{"X-A": "é"}, Secret: []byte{0, 1}, OldSecret: []byte{2}, OldUntil: moment(9),
		MaxAttempts: 3, RetryDelay: time.Millisecond, Timeout: time.Second, MaxAge: time.Hour, Unordered: true, CreatedAt: moment(0), Version: 1,
	}
}

func program() delivery.Target {
	t := hook()
	t.Kind, t.URL, t.Headers, t.Secret, t.OldSecret, t.OldUntil, t.Unordered = delivery.KindCommand, "", nil, nil, nil, time.Time{}, false
	t.Stream, t.Command = "job:job_1", []string{"notify-send", "", "é"}
	return t
}

// relay is a target that hears of jobs' pauses, in order.
func relay(stream string) delivery.Target {
	t := program()
	t.Kind, t.Command, t.Stream, t.Name, t.Events = delivery.KindRelay, nil, stream, "", []string{string(event.JobPaused)}
	return t
}

// addTarget adds one now, so that it hears of what is told from now on.
func (w *world) addTarget(t delivery.Target) delivery.Target {
	w.Helper()
	w.write(func(tx store.Tx) error {
		t.CreatedAt = tx.Now()
		return tx.InsertTarget(t)
	})
	return t
}

func (w *world) target(id string) delivery.Target {
	w.Helper()
	return read(w, func(tx store.Tx) (delivery.Target, error) { return tx.Target(id) })
}

func (w *world) putTarget(prev delivery.Target, change func(*delivery.Target)) delivery.Target {
	w.Helper()
	next := prev
	change(&next)
	w.write(func(tx store.Tx) error { return tx.PutTarget(prev, next) })
	next.Version = prev.Version + 1
	return next
}

func targetReadBack(w *world) {
	off := program()
	off.DisabledAt, off.Disabled, off.RemovedAt = moment(1), "It is gone.", moment(2)
	all := []delivery.Target{hook(), program(), relay(""), off}
	whole(w, all...)
	for _, t := range all {
		t = w.addTarget(t)
		w.same(t, w.target(t.ID))
		next := w.putTarget(t, func(t *delivery.Target) {
			t.Name, t.Events, t.URL, t.Headers, t.Command = "new", []string{string(event.JobCompleted)}, "https://example.org", map[string]string{"B": "c"}, []string{"x"}
			t.Secret, t.OldSecret, t.OldUntil = []byte{7}, t.Secret, moment(20)
			if t.OldSecret == nil {
				t.OldUntil = time.Time{}
			}
			t.MaxAttempts, t.RetryDelay, t.Timeout, t.MaxAge, t.Unordered = 9, 9*time.Second, 8*time.Second, 7*time.Hour, !t.Unordered
			t.DisabledAt, t.Disabled, t.RemovedAt = moment(3), "why", moment(4)
		})
		w.same(next, w.target(t.ID))
		back := w.putTarget(next, func(t *delivery.Target) {
			t.DisabledAt, t.Disabled, t.RemovedAt, t.Headers = time.Time{}, "", time.Time{}, nil
		})
		w.same(back, w.target(t.ID))
	}
	if _, err := try(w, func(tx store.Tx) (delivery.Target, error) { return tx.Target("tgt_none") }); !errors.Is(err, delivery.ErrNotFound) {
		w.Errorf("no such target: %v", err)
	}
}

func targetTexts(w *world) {
	for i, s := range hard {
		t := hook()
		t.Space, t.Stream, t.Name, t.Principal, t.URL, t.Disabled, t.DisabledAt = s, s, s, s, s, s, moment(1)
		t.Events, t.Headers, t.Command = []string{s}, map[string]string{s: s}, []string{s}
		t = w.addTarget(t)
		w.same(t, w.target(t.ID))
		w.same([]delivery.Target{t}, read(w, func(tx store.Tx) ([]delivery.Target, error) {
			return tx.Targets(delivery.TargetQuery{Space: s, Stream: s, Name: s, Principal: s})
		}))
		if i > 3 {
			continue
		}
		for name, b := range blobs() { // nil is none, and then there is no old one
			t := hook()
			if t.Secret = b; b == nil {
				t.OldSecret, t.OldUntil = nil, time.Time{}
			} else {
				t.OldSecret = b
			}
			w.addTarget(t)
			if got := w.target(t.ID); string(got.Secret) != string(b) {
				w.Errorf("%s: the secret came back as %q", name, got.Secret)
			}
		}
	}
}

// targetGuard: whoever judged on another version writes nothing.
func targetGuard(w *world) {
	t := w.addTarget(hook())
	next := t
	next.Name = "new"
	stale := t
	stale.Version++
	w.refused(delivery.ErrMoved, func(tx store.Tx) error { return tx.PutTarget(stale, next) })
	gone := t
	gone.ID = "tgt_none"
	w.refused(delivery.ErrMoved, func(tx store.Tx) error { return tx.PutTarget(gone, next) })
	w.refused(nil, func(tx store.Tx) error { return tx.InsertTarget(t) })
	w.same(t, w.target(t.ID))
}

func targetLists(w *world) {
	var all []delivery.Target // the newest first
	for i := range 12 {
		t := hook()
		t.ID, t.Principal, t.Name = fmt.Sprintf("tgt_%02d", i), []string{"ana", "bo"}[i%2], []string{"x", "y", ""}[i%3]
		if i%4 == 0 {
			t.Stream = "job:job_1"
		}
		if i%6 == 0 {
			t.Kind = delivery.KindRelay
		}
		w.addTarget(t)
		all = append([]delivery.Target{t}, all...)
	}
	gone := hook()
	gone.ID, gone.RemovedAt = "tgt_99", moment(1)
	w.addTarget(gone)
	other := hook()
	other.Space = "other"
	w.addTarget(other)
	for name, c := range map[string]struct {
		q    delivery.TargetQuery
		want func(delivery.Target) bool
	}{
		"all":       {delivery.TargetQuery{}, func(delivery.Target) bool { return true }},
		"stream":    {delivery.TargetQuery{Stream: "job:job_1"}, func(t delivery.Target) bool { return t.Stream != "" }},
		"global":    {delivery.TargetQuery{Global: true}, func(t delivery.Target) bool { return t.Stream == "" }},
		"principal": {delivery.TargetQuery{Principal: "bo"}, func(t delivery.Target) bool { return t.Principal == "bo" }},
		"name":      {delivery.TargetQuery{Name: "y"}, func(t delivery.Target) bool { return t.Name == "y" }},
		"kind":      {delivery.TargetQuery{Kind: delivery.KindRelay}, func(t delivery.Target) bool { return t.Kind == delivery.KindRelay }},
		"after":     {delivery.TargetQuery{After: "tgt_05"}, func(t delivery.Target) bool { return t.ID < "tgt_05" }},
		"prefix":    {delivery.TargetQuery{Prefix: "tgt_1"}, func(t delivery.Target) bool { return strings.HasPrefix(t.ID, "tgt_1") }},
	} {
		c.q.Space = event.MainSpace
		var want []delivery.Target
		for _, t := range all {
			if c.want(t) {
				want = append(want, t)
			}
		}
		for _, page := range []int{0, 1, 5} {
			got := pages(w, page, func(tx store.Tx, after string, limit int) ([]delivery.Target, error) {
				q := c.q
				q.Limit = limit
				if after != "" {
					q.After = after
				}
				return tx.Targets(q)
			}, func(t delivery.Target) string { return t.ID })
			if len(got) != len(want) || len(got) > 0 && got[0].ID != want[0].ID {
				w.Errorf("%s by %d: %d, want %d", name, page, len(got), len(want))
			}
		}
	}
}

// pages reads a list page by page; 0: as it comes.
func pages[T any](w *world, limit int, list func(tx store.Tx, after string, limit int) ([]T, error), idOf func(T) string) (all []T) {
	w.Helper()
	for after := ""; ; {
		page := read(w, func(tx store.Tx) ([]T, error) { return list(tx, after, limit) })
		all = append(all, page...)
		if len(page) == 0 || limit == 0 {
			return all
		}
		after = idOf(page[len(page)-1])
	}
}

// heard lists what was told to each target: type and place in the stream.
func (w *world) heard(targetID string) (heard []string) {
	w.Helper()
	ds := read(w, func(tx store.Tx) ([]delivery.Delivery, error) {
		return tx.Deliveries(delivery.Query{Space: event.MainSpace, TargetID: targetID, Limit: 500})
	})
	for i := len(ds) - 1; i >= 0; i-- {
		heard = append(heard, fmt.Sprintf("%s %d", ds[i].EventType, ds[i].StreamSeq))
	}
	return heard
}

// tells is an event of a job in the noun tests.
func tells(t event.Type, j job.Job, payload any) event.Event {
	if payload == nil {
		payload = map[string]string{"job_id": j.ID}
	}
	return event.New(t, j.ID, "tester", payload)
}

// targetsMatch: types match exactly; a target hears of its own root, or of every root of
// its space.
func targetsMatch(w *world) {
	a, b, other := queuedJob(), queuedJob(), queuedJob()
	other.Space = "other"
	for _, j := range []job.Job{a, b, other} {
		w.insertJob(j)
	}
	all, own, elsewhere, similar := relay(""), relay(a.Stream()), relay(""), relay("")
	elsewhere.Space = "other"
	similar.Events = []string{"pause", "PAUSED", "job.paused", " " + string(event.JobPaused), string(event.JobPaused) + "%", ""}
	for _, t := range []delivery.Target{all, own, elsewhere, similar} {
		w.addTarget(t)
	}
	for _, j := range []job.Job{a, b, other} {
		w.write(func(tx store.Tx) error {
			return tx.Append(j.Stream(), tells(event.JobPaused, j, nil), tells(event.JobUnpaused, j, nil), tells(event.JobPaused, j, nil))
		})
	}
	twice := []string{"paused 2", "paused 4"}
	w.same(append(append([]string{}, twice...), twice...), w.heard(all.ID))
	w.same(twice, w.heard(own.ID))
	w.same([]string(nil), w.heard(similar.ID))
	ds := read(w, func(tx store.Tx) ([]delivery.Delivery, error) { return tx.Deliveries(delivery.Query{Space: "other"}) })
	if len(ds) != 2 || ds[0].TargetID != elsewhere.ID {
		w.Errorf("of the other space: %+v", ds)
	}
	CheckInvariants(w.T, w.s)
}

// targetsAndPrinted: what a job prints matches by its name and in no other way: it
// cannot call itself what people are asked, or what becomes of the job.
func targetsAndPrinted(w *world) {
	j := queuedJob()
	w.insertJob(j)
	life, prints := relay(""), relay(j.Stream())
	life.Events = nil
	for _, t := range event.Types() {
		life.Events = append(life.Events, string(t))
	}
	prints.Events = []string{"output:done", "output:decision_resolved"}
	w.addTarget(life)
	w.addTarget(prints)
	w.write(func(tx store.Tx) error {
		for _, name := range []string{"decision_resolved", "approval.requested", string(event.JobCompleted), "done", "Done", "done ", "output:done", ""} {
			if err := tx.Append(j.Stream(), tells(event.JobOutput, j, map[string]string{"type": name})); err != nil {
				return err
			}
		}
		for _, payload := range []string{`"done"`, `{}`, `{"type":1}`, `null`} {
			e := tells(event.JobOutput, j, nil)
			e.Payload = []byte(payload)
			if err := tx.Append(j.Stream(), e); err != nil {
				return err
			}
		}
		return nil
	})
	w.same([]string(nil), w.heard(life.ID))
	w.same([]string{"job.output 2", "job.output 5"}, w.heard(prints.ID))
}

func targetsNotInUse(w *world) {
	j := queuedJob()
	w.insertJob(j)
	t := w.addTarget(relay(""))
	tell := func() {
		w.Helper()
		w.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
	}
	tell()
	t = w.putTarget(t, func(t *delivery.Target) { t.DisabledAt, t.Disabled = moment(1), "why" })
	tell()
	t = w.putTarget(t, func(t *delivery.Target) { t.DisabledAt, t.Disabled = time.Time{}, "" })
	tell()
	t = w.putTarget(t, func(t *delivery.Target) { t.Events = []string{string(event.JobUnpaused)} })
	tell()
	t = w.putTarget(t, func(t *delivery.Target) { t.Events, t.RemovedAt = []string{string(event.JobPaused)}, moment(1) })
	tell()
	w.same([]string{"paused 2", "paused 4"}, w.heard(t.ID))
}

// targetsAtMost: no event is heard of by more than the limit, whichever way targets come
// into use.
func targetsAtMost(w *world) {
	desk := w.wakeDesk()
	add := func(stream string) (delivery.Target, error) {
		return desk.Add(w.ctx, stream, "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.JobPaused)}}, nil)
	}
	j := queuedJob()
	w.insertJob(j)
	fill := func(stream string, n int) (last delivery.Target) {
		for range n {
			t, err := add(stream)
			if err != nil {
				w.Fatal(err)
			}
			last = t
		}
		return last
	}
	last := fill("", 60)
	fill(j.Stream(), 40)
	for _, stream := range []string{"", j.Stream()} {
		if _, err := add(stream); !errors.Is(err, delivery.ErrTooManyTargets) {
			w.Errorf("one more on %q: %v", stream, err)
		}
	}
	fill("job:other", 40)
	w.putTarget(last, func(t *delivery.Target) { t.DisabledAt, t.Disabled = moment(1), "why" })
	mine := fill(j.Stream(), 1)
	if _, err := desk.Enable(w.ctx, last.ID); !errors.Is(err, delivery.ErrTooManyTargets) {
		w.Errorf("in use again, although its place is taken: %v", err)
	}
	if _, err := desk.Remove(w.ctx, mine.ID); err != nil {
		w.Fatal(err)
	}
	for range 2 { // one that is in use stays so
		if _, err := desk.Enable(w.ctx, last.ID); err != nil {
			w.Errorf("in use again: %v", err)
		}
	}
	w.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
	w.same(100, len(read(w, func(tx store.Tx) ([]delivery.Delivery, error) {
		return tx.Deliveries(delivery.Query{Space: event.MainSpace, Limit: 500})
	})))
}

// targetsOfTheEnded: those of a root that has ended hear of nothing, and keep no place.
func targetsOfTheEnded(w *world) {
	desk := w.wakeDesk()
	j := endedJob()
	w.insertJob(j)
	for _, c := range []struct {
		stream string
		n      int
	}{{j.Stream(), 100}, {"", 100}} {
		for i := range c.n {
			if _, err := desk.Add(w.ctx, c.stream, "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.JobPaused)}}, nil); err != nil {
				w.Fatalf("number %d on %q: %v", i, c.stream, err)
			}
		}
	}
}

func (w *world) wakeDesk() delivery.Desk {
	return delivery.Desk{Store: w.s, Space: event.MainSpace}
}

// targetWithItsRoot: a target that comes with its root hears of the root's first events.
func targetWithItsRoot(w *world) {
	for _, first := range []string{"root", "target"} {
		j := queuedJob()
		t := relay(j.Stream())
		t.Events = append(t.Events, string(event.JobQueued))
		w.write(func(tx store.Tx) error {
			if first == "target" {
				if err := tx.InsertTarget(t); err != nil {
					return err
				}
			}
			if err := tx.InsertJob(job.Change{Next: j, Events: []event.Event{tells(event.JobQueued, j, nil)}}); err != nil {
				return err
			}
			if first == "root" {
				if err := tx.InsertTarget(t); err != nil {
					return err
				}
			}
			return tx.Append(j.Stream(), tells(event.JobPaused, j, nil))
		})
		want := []string{"queued 1", "paused 2"}
		if first == "root" {
			want = want[1:]
		}
		w.same(want, w.heard(t.ID))
	}
}

// targetBehindEvents: in one transaction a target hears of what is told after it was
// added or changed, and of nothing that was told before.
func targetBehindEvents(w *world) {
	j := queuedJob()
	w.insertJob(j)
	t, late := w.addTarget(relay("")), relay(j.Stream())
	w.write(func(tx store.Tx) error {
		tell := func() error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) }
		off := t
		off.DisabledAt, off.Disabled, off.Version = moment(1), "why", 2
		for _, step := range []func() error{
			tell, func() error { return tx.InsertTarget(late) }, tell, func() error { return tx.PutTarget(t, off) }, tell,
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	w.same([]string{"paused 2", "paused 3"}, w.heard(t.ID))
	w.same([]string{"paused 3", "paused 4"}, w.heard(late.ID))
}

// targetOnOtherHandle: what one process changes is heard of by the other's next event.
func targetOnOtherHandle(w *world) {
	other := w.with(w.open(Options{}))
	j := queuedJob()
	w.insertJob(j)
	seq := int64(1)
	for round := range rounds(40) {
		adds, tells1 := w, other
		if round%2 == 1 {
			adds, tells1 = other, w
		}
		tell := func() string {
			tells1.Helper()
			tells1.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
			seq++
			return fmt.Sprintf("paused %d", seq)
		}
		stream := ""
		if round%3 == 0 {
			stream = j.Stream()
		}
		tell()
		t := adds.addTarget(relay(stream))
		want := []string{tell()}
		t = adds.putTarget(t, func(t *delivery.Target) { t.DisabledAt, t.Disabled = moment(1), "why" })
		tell()
		t = adds.putTarget(t, func(t *delivery.Target) { t.DisabledAt, t.Disabled = time.Time{}, "" })
		want = append(want, tell())
		adds.putTarget(t, func(t *delivery.Target) { t.RemovedAt = moment(1) })
		tell()
		w.same(want, w.heard(t.ID))
	}
}

// targetTakenBack: a change that is taken back was never heard of, and hides no other.
func targetTakenBack(w *world) {
	j := queuedJob()
	w.insertJob(j)
	enough := errors.New("enough")
	kept := w.addTarget(relay(""))
	seq := int64(1)
	var want []string
	for _, v := range []*world{w, w.with(w.open(Options{Once: true}))} {
		never := relay("")
		if err := v.update(func(tx store.Tx) error {
			if err := tx.InsertTarget(never); err != nil {
				return err
			}
			off := kept
			off.RemovedAt = moment(1)
			if err := tx.PutTarget(kept, off); err != nil {
				return err
			}
			if err := tx.Append(j.Stream(), tells(event.JobPaused, j, nil)); err != nil {
				return err
			}
			if _, err := tx.Events(event.Query{Stream: j.Stream()}); err != nil { // writes what was held back
				return err
			}
			return enough
		}); err != enough {
			w.Errorf("told %v", err)
		}
		v.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
		seq++
		want = append(want, fmt.Sprintf("paused %d", seq))
		w.same(want, w.heard(kept.ID))
		w.same([]string(nil), w.heard(never.ID))
	}
}

// targetsInBatches: closures that share a commit add, take back and tell at one moment.
// Whoever was added before an event hears of it; whoever was taken back never does.
func targetsInBatches(w *world) {
	handles := []*world{w.with(w.open(Options{Once: true})), w.with(w.open(Options{Once: true}))}
	j := queuedJob()
	w.insertJob(j)
	enough := errors.New("enough")
	for range rounds(30) {
		together(12, func(i int) {
			v := handles[i%2]
			t := relay("")
			switch i % 3 {
			case 0: // tells by itself
				v.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
			case 1: // adds, and tells in the same transaction
				v.write(func(tx store.Tx) error {
					t.CreatedAt = tx.Now()
					if err := tx.InsertTarget(t); err != nil {
						return err
					}
					return tx.Append(j.Stream(), tells(event.JobPaused, j, nil))
				})
				if n := len(v.heard(t.ID)); n < 1 {
					v.Errorf("a target did not hear of its own transaction's event")
				}
				v.putTarget(t, func(t *delivery.Target) { t.RemovedAt = moment(1) })
			case 2: // is taken back
				if err := v.update(func(tx store.Tx) error { return errors.Join(tx.InsertTarget(t), enough) }); !errors.Is(err, enough) {
					v.Errorf("told %v", err)
				}
				if n := len(v.heard(t.ID)); n > 0 {
					v.Errorf("a target that never was has heard of %d events", n)
				}
			}
		})
	}
	CheckInvariants(w.T, w.s)
}

// targetsOfEarlierLife: a store that was put back has the targets that it had then, also
// for a process that knew the later ones.
func targetsOfEarlierLife(w *world) {
	w.skipWithout(w.place.Backup != nil, "a backup")
	j := queuedJob()
	w.insertJob(j)
	first := w.addTarget(relay(""))
	restore, err := w.place.Backup(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	w.putTarget(first, func(t *delivery.Target) { t.RemovedAt = moment(1) })
	later := w.addTarget(relay(""))
	tell := func() {
		w.Helper()
		w.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
	}
	tell()
	w.same([]string{"paused 2"}, w.heard(later.ID))
	w.close()
	if err := restore(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.s = w.open(Options{})
	tell()
	w.same([]string{"paused 2"}, w.heard(first.ID))
	w.same([]string(nil), w.heard(later.ID))
	again := w.addTarget(relay(""))
	tell()
	w.same([]string{"paused 3"}, w.heard(again.ID))
	CheckInvariants(w.T, w.s)
}

// targetsLeaveNothing: one that is removed before anything was for it leaves no row; any
// other stays, for who looks at its deliveries.
func targetsLeaveNothing(w *world) {
	desk := w.wakeDesk()
	j := queuedJob()
	w.insertJob(j)
	add := func() delivery.Target {
		t, err := desk.Add(w.ctx, j.Stream(), "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.JobPaused)}}, nil)
		if err != nil {
			w.Fatal(err)
		}
		return t
	}
	used := add()
	w.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
	unused := add()
	for _, t := range []delivery.Target{used, unused} {
		if got, err := desk.Remove(w.ctx, t.ID); err != nil || got.RemovedAt.IsZero() {
			w.Errorf("%+v %v", got, err)
		}
		if _, err := desk.Target(w.ctx, t.ID); !errors.Is(err, delivery.ErrNotFound) {
			w.Errorf("it is there still: %v", err)
		}
	}
	w.same(used.ID, w.target(used.ID).ID)
	if _, err := try(w, func(tx store.Tx) (delivery.Target, error) { return tx.Target(unused.ID) }); !errors.Is(err, delivery.ErrNotFound) {
		w.Errorf("its row is there still: %v", err)
	}
}
