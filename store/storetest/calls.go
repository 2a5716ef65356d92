package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

func calls(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":        callReadBack,
		"bytes":            callBytes,
		"texts":            callTexts,
		"no texts":         callNoTexts,
		"times":            callTimes,
		"not found":        callNotFound,
		"ids are exact":    callIDsExact,
		"ids are unique":   callIDsUnique,
		"guards":           callGuards,
		"what is fixed":    callFixed,
		"impossible rows":  callImpossible,
		"filters":          callFilters,
		"pages":            callPages,
		"limits":           callLimits,
		"lease ended":      callLeaseEnded,
		"head and version": callHead,
	})
}

func callReadBack(w *world) {
	cs := examples()
	whole(w, append(cs, call.Call{Head: event.Head{Seq: 1}, StepID: "stp_1"})...) // one below a step: see runs.go
	for _, c := range cs {
		got := w.insertCall(c)
		if got.Head.Stream != c.Stream() || got.Head.Seq != 1 || len(got.Head.Hash) != 32 {
			w.Errorf("the head is %s", got.Head)
		}
		got.Head = event.Head{}
		w.same(c, got)
		for _, other := range []func(store.Tx) ([]call.Call, error){
			func(tx store.Tx) ([]call.Call, error) {
				return tx.Calls(call.Query{Space: c.Space, RunID: c.RunID})
			},
			func(tx store.Tx) ([]call.Call, error) { return tx.Calls(call.Query{Space: c.Space, Prefix: c.ID}) },
		} {
			w.same([]call.Call{w.call(c.ID)}, read(w, other))
		}
		if c.ExternalID != "" {
			w.same(w.call(c.ID), read(w, func(tx store.Tx) (call.Call, error) {
				return tx.CallByExternalID(c.Space, c.RunID, c.ExternalID)
			}))
		}
	}
}

func callBytes(w *world) {
	for name, b := range blobs() {
		c := examples()[2]
		c.Result = b
		if b != nil {
			c.Args = b
		}
		got := w.insertCall(c)
		if string(got.Args) != string(c.Args) || got.Args == nil || string(got.Result) != string(b) || (got.Result == nil) != (b == nil) {
			w.Errorf("%s came back as other bytes: %d of args, %d of result (nil: %t)", name, len(got.Args), len(got.Result), got.Result == nil)
		}
	}
}

func callTexts(w *world) {
	for i, s := range hard {
		c := parkedCall()
		c.RunID, c.ExternalID, c.Tool, c.Principal, c.Message = fmt.Sprint("run", i, s), s, s, s, s
		c.LeaseOwner, c.Metadata = s, map[string]string{s: s}
		got := w.insertCall(c)
		got.Head = event.Head{}
		w.same(c, got)
	}
	empty := parkedCall()
	empty.Metadata = map[string]string{}
	if got := w.insertCall(empty); got.Metadata != nil {
		w.Errorf("no metadata came back as %v", got.Metadata)
	}
}

// callTimes has what reading rounds and zones do to times (cases 057, 061).
func callTimes(w *world) {
	zones := []*time.Location{time.FixedZone("Chicago", -6*3600), time.FixedZone("Kolkata", 5*3600+1800), time.UTC}
	for i, at := range instants(w.b.Precision) {
		c := parkedCall()
		c.CreatedAt, c.NextTryAt = at.given.In(zones[i%len(zones)]), at.given.In(zones[(i+1)%len(zones)])
		got := w.insertCall(c)
		w.same([]time.Time{at.stored, at.stored}, []time.Time{got.CreatedAt, got.NextTryAt})
	}
}

type instant struct{ given, stored time.Time }

// instants are times, and what a store of that precision makes of them.
func instants(precision time.Duration) []instant {
	var is []instant
	for _, t := range []time.Time{
		time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 29, 1, 30, 0, 500, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Unix(0, 0).UTC(),
	} {
		is = append(is, instant{t, t.Truncate(precision)})
	}
	return is
}

func callNotFound(w *world) {
	c := w.insertCall(parkedCall())
	for name, query := range map[string]func(tx store.Tx) (call.Call, error){
		"id":       func(tx store.Tx) (call.Call, error) { return tx.Call("call_none") },
		"empty id": func(tx store.Tx) (call.Call, error) { return tx.Call("") },
		"other run": func(tx store.Tx) (call.Call, error) {
			return tx.CallByExternalID(c.Space, "other", c.ExternalID)
		},
		"other space": func(tx store.Tx) (call.Call, error) {
			return tx.CallByExternalID("other", c.RunID, c.ExternalID)
		},
		"no external id": func(tx store.Tx) (call.Call, error) { return tx.CallByExternalID(c.Space, c.RunID, "") },
	} {
		if _, err := try(w, query); !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("%s: %v", name, err)
		}
	}
	w.refused(decision.ErrNotFound, func(tx store.Tx) error { _, err := tx.Call("call_none"); return err })
}

// callIDsExact: ids that differ in case, in white space or in their normal form
// are different ids.
func callIDsExact(w *world) {
	ids := []string{"Order", "order", "ORDER", "order ", " order", "caf\u00e9", "cafe\u0301", "or_er", "or%er"}
	want := map[string]string{}
	for _, s := range ids {
		c := parkedCall()
		c.RunID, c.ExternalID = "run", s
		want[s] = w.insertCall(c).ID
	}
	for s, id := range want {
		got := read(w, func(tx store.Tx) (call.Call, error) { return tx.CallByExternalID(event.MainSpace, "run", s) })
		if got.ID != id {
			w.Errorf("%q finds the call of %q", s, got.ExternalID)
		}
	}
	w.caseOfIDs()
}

func (w *world) caseOfIDs() {
	c, d := parkedCall(), parkedCall()
	c.ID, d.ID = "call_ABC", "call_abc"
	w.insertCall(c)
	w.insertCall(d)
	if got := w.call("call_abc"); got.RunID != d.RunID {
		w.Error("an id finds the call of another case")
	}
	if _, err := try(w, func(tx store.Tx) (call.Call, error) { return tx.Call("call_Abc") }); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("an id that nothing has: %v", err)
	}
}

func callIDsUnique(w *world) {
	c := w.insertCall(parkedCall())
	again := func(change func(*call.Call)) call.Call {
		d := parkedCall()
		d.RunID, d.ExternalID = c.RunID, c.ExternalID
		change(&d)
		return d
	}
	for name, d := range map[string]call.Call{
		"same id":          again(func(d *call.Call) { d.ID, d.ExternalID = c.ID, "other" }),
		"same external id": again(func(*call.Call) {}),
	} {
		w.Log(name)
		w.refused(call.ErrCallConflict, func(tx store.Tx) error { return tx.InsertCall(d, born(d)) })
	}
	for _, d := range []call.Call{
		again(func(d *call.Call) { d.RunID = "other" }),
		again(func(d *call.Call) { d.Space = "other" }),
		again(func(d *call.Call) { d.ExternalID = "" }),
		again(func(d *call.Call) { d.ExternalID = "" }),
	} {
		w.insertCall(d)
	}
}

// callGuards: a write that names another state than the stored one writes
// nothing, whatever else the closure did.
func callGuards(w *world) {
	c := w.insertCall(examples()[1])
	for name, stale := range map[string]func(*call.Call){
		"version":       func(c *call.Call) { c.Version-- },
		"later version": func(c *call.Call) { c.Version++ },
		"status":        func(c *call.Call) { c.Status = call.Pending },
		"fence":         func(c *call.Call) { c.Fence-- },
		"later fence":   func(c *call.Call) { c.Fence++ },
	} {
		prev, next := c, c
		stale(&prev)
		next.Message = "written by the loser"
		w.Log(name)
		w.refused(decision.ErrMoved, func(tx store.Tx) error {
			return tx.PutCall(prev, next, event.New(event.CallUnknown, c.ID, "tester", struct{}{}))
		})
	}
	w.refused(nil, func(tx store.Tx) error {
		gone := parkedCall()
		return tx.PutCall(gone, gone)
	})
	next := c
	next.Message = "written"
	w.write(func(tx store.Tx) error { return tx.PutCall(c, next) })
	if got := w.call(c.ID); got.Message != "written" || got.Version != c.Version+1 {
		w.Errorf("got %q in version %d", got.Message, got.Version)
	}
}

// callFixed: what a call is about never changes.
func callFixed(w *world) {
	c := w.insertCall(parkedCall())
	next := c
	next.Space, next.RunID, next.OwnRun, next.ExternalID, next.Tool = "other", "other", false, "other", "other"
	next.Args, next.ArgsDigest, next.Principal, next.Metadata = []byte("other"), "other", "other", nil
	next.CreatedAt, next.ContinueBy = moment(99), call.ByCaller
	next.Message = "changed"
	w.write(func(tx store.Tx) error { return tx.PutCall(c, next) })
	want := c
	want.Message, want.Version = "changed", c.Version+1
	w.same(want, w.call(c.ID))
}

// callImpossible: the rows themselves refuse what no engine may write.
func callImpossible(w *world) {
	for name, spoil := range map[string]func(*call.Call){
		"unknown status":         func(c *call.Call) { c.Status = "done" },
		"running without lease":  func(c *call.Call) { c.Status, c.Attempts = call.Running, 1 },
		"lease without running":  func(c *call.Call) { c.LeaseUntil = moment(1) },
		"ended without end":      func(c *call.Call) { c.Status = call.Succeeded },
		"end without ending":     func(c *call.Call) { c.EndedAt = moment(1) },
		"parked on nothing":      func(c *call.Call) { c.ApprovalID = "" },
		"running unattempted":    func(c *call.Call) { c.Status, c.LeaseUntil = call.Running, moment(1) },
		"continued by a stray":   func(c *call.Call) { c.ContinueBy = "anyone" },
		"without arguments":      func(c *call.Call) { c.Args = nil },
		"continued by no one":    func(c *call.Call) { c.ContinueBy = "" },
		"terminal with a lease":  func(c *call.Call) { c.Status, c.EndedAt, c.LeaseUntil = call.Failed, moment(1), moment(1) },
		"unknown but also ended": func(c *call.Call) { c.Status, c.EndedAt = call.Unknown, moment(1) },
	} {
		c := parkedCall()
		spoil(&c)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertCall(c, born(c)) })
	}
}

func callFilters(w *world) {
	var all []call.Call
	for i, c := range append(examples(), examples()...) {
		if i >= 4 {
			c.Space = "other"
		}
		c.RunID = fmt.Sprint("run", i%3)
		c.ExternalID = fmt.Sprint(i)
		all = append(all, w.insertCall(c))
	}
	for _, q := range []call.Query{
		{Space: "main"},
		{Space: "other"},
		{Space: "none"},
		{Space: "main", Status: call.Pending},
		{Space: "main", RunID: "run1"},
		{Space: "main", RunID: "run1", Status: call.Running},
		{Space: "main", Prefix: "call_"},
		{Space: "main", Prefix: "call"},
		{Space: "main", Prefix: "apr_"},
		{Space: "main", Prefix: all[1].ID[:30]},
		{Space: "main", Prefix: "CALL_"},
		{Space: "main", Prefix: "%"},
	} {
		w.same(selected(all, q), read(w, func(tx store.Tx) ([]call.Call, error) { return tx.Calls(q) }))
	}
}

// selected is what q should find: newest first.
func selected(all []call.Call, q call.Query) (cs []call.Call) {
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		if c.Space == q.Space && (q.Status == "" || c.Status == q.Status) && (q.RunID == "" || c.RunID == q.RunID) &&
			len(c.ID) >= len(q.Prefix) && c.ID[:len(q.Prefix)] == q.Prefix {
			cs = append(cs, c)
		}
	}
	return cs
}

// callPages walks pages of ten over 25 calls of one time while more come in
// (case 157): each of the 25 is seen once, in order.
func callPages(w *world) {
	var want []string
	for range 25 {
		want = append([]string{w.insertCall(parkedCall()).ID}, want...)
	}
	var got []string
	for after := ""; ; {
		page := read(w, func(tx store.Tx) ([]call.Call, error) {
			return tx.Calls(call.Query{Space: event.MainSpace, After: after, Limit: 10})
		})
		if len(page) == 0 {
			break
		}
		if len(got) > len(want) {
			w.Fatal("the pages do not end")
		}
		for _, c := range page {
			got, after = append(got, c.ID), c.ID
		}
		w.insertCall(parkedCall())
	}
	w.same(want, got)
}

func callLimits(w *world) {
	w.skipRace()
	w.write(func(tx store.Tx) error {
		for range 501 {
			c := parkedCall()
			if err := tx.InsertCall(c, born(c)); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]int{0: 50, 1: 1, 500: 500, 501: 500, 1 << 30: 500} {
		cs := read(w, func(tx store.Tx) ([]call.Call, error) {
			return tx.Calls(call.Query{Space: event.MainSpace, Limit: limit})
		})
		if len(cs) != want {
			w.Errorf("limit %d: %d calls, want %d", limit, len(cs), want)
		}
	}
}

func callLeaseEnded(w *world) {
	now := moment(100)
	insert := func(until time.Time, epoch int64, status call.Status) string {
		c := examples()[1]
		c.LeaseUntil, c.Epoch, c.Status = until, epoch, status
		if status != call.Running {
			c.LeaseUntil = time.Time{}
		}
		return w.insertCall(c).ID
	}
	second, first := insert(moment(99), 1, call.Running), insert(moment(50), 1, call.Running)
	insert(moment(100), 1, call.Running) // exactly at the instant it still holds
	insert(moment(101), 1, call.Running)
	insert(moment(50), 1, call.Unknown)
	earlier := insert(moment(500), 0, call.Running) // of an earlier life of the store
	ids := func(limit int) (ids []string) {
		for _, c := range read(w, func(tx store.Tx) ([]call.Call, error) { return tx.LeaseEnded("main", now, "", limit) }) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	w.same([]string{second, first, earlier}, ids(0))
	w.same([]string{second, first}, ids(2))
}

// callHead: the head in the row moves with the log, and every write raises the version.
func callHead(w *world) {
	c := w.insertCall(parkedCall())
	w.write(func(tx store.Tx) error {
		return tx.Append(c.Stream(), event.New(event.ResumeRefused, c.ID, "tester", struct{}{}))
	})
	got := w.call(c.ID)
	if got.Head.Seq != 2 || got.Version == c.Version {
		w.Errorf("head %d, version %d after an event", got.Head.Seq, got.Version)
	}
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutCall(c, c) }) // read before that event
	w.write(func(tx store.Tx) error {
		now, err := tx.Call(c.ID)
		if err != nil {
			return err
		}
		if err := tx.PutCall(now, now, event.New(event.CallUnknown, c.ID, "tester", struct{}{})); err != nil {
			return err
		}
		head, err := tx.Head(c.Stream())
		if err == nil && head.Seq != 3 {
			err = fmt.Errorf("within the closure the head is %d", head.Seq)
		}
		return err
	})
	last := read(w, func(tx store.Tx) (event.Head, error) { return tx.Head(c.Stream()) })
	w.same(last, w.call(c.ID).Head)
}

// callNoTexts: what is no text is refused, or comes back as it was (case 106).
func callNoTexts(w *world) {
	for _, s := range noTexts {
		for name, put := range map[string]func(*call.Call){
			"external id": func(c *call.Call) { c.ExternalID = s },
			"principal":   func(c *call.Call) { c.Principal = s },
			"message":     func(c *call.Call) { c.Message = s },
			"metadata":    func(c *call.Call) { c.Metadata = map[string]string{"k": s} },
			"its keys":    func(c *call.Call) { c.Metadata = map[string]string{s: "v"} },
		} {
			c := parkedCall()
			put(&c)
			if w.update(func(tx store.Tx) error { return tx.InsertCall(c, born(c)) }) != nil {
				continue
			}
			got := w.call(c.ID)
			got.Head = event.Head{}
			w.Logf("%s %q", name, s)
			w.same(c, got)
		}
	}
}
