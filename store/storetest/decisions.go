package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
)

func decisions(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":       decisionReadBack,
		"bytes":           decisionBytes,
		"texts":           decisionTexts,
		"no texts":        decisionNoTexts,
		"times":           decisionTimes,
		"not found":       decisionNotFound,
		"ids":             decisionIDs,
		"guards":          decisionGuards,
		"what is fixed":   decisionFixed,
		"impossible rows": decisionImpossible,
		"votes":           decisionVotes,
		"owners":          decisionOwners,
		"reason":          decisionReason,
		"filters":         decisionFilters,
		"pages":           decisionPages,
		"due":             decisionDue,
	})
}

func decisionReadBack(w *world) {
	c := w.insertCall(parkedCall())
	full := spentDecision(pendingDecision(c))
	answered, withdrawn := answeredQuestion(c), takenBack(c)
	whole(w, full, pendingDecision(c), answered, withdrawn)
	bare := decision.Decision{
		ID: "apr_bare", Space: c.Space, Type: decision.Question, Owner: c.Root(), N: 3, Needs: 1, Status: decision.Pending,
		CreatedAt: moment(0), Version: 1,
	}
	second := pendingDecision(c)
	second.N = 2
	for _, d := range []*decision.Decision{&full, &second, &bare, &answered, &withdrawn} {
		got := w.insertDecision(*d)
		d.Version = got.Version // it only ever grows
		w.same(*d, got)
	}
	for _, d := range []decision.Decision{full, second, bare, answered, withdrawn} {
		w.same(d, read(w, func(tx store.Tx) (decision.Decision, error) { return tx.LockDecision(d.ID) }))
		w.same([]decision.Decision{d}, read(w, func(tx store.Tx) ([]decision.Decision, error) {
			return tx.Decisions(decision.Query{Space: d.Space, Prefix: d.ID})
		}))
	}
	w.same(answered, read(w, func(tx store.Tx) (decision.Decision, error) {
		return tx.DecisionByKey(answered.Owner, answered.IdempotencyKey)
	}))
	w.write(func(tx store.Tx) error { // read in the transaction that writes, too
		got, err := tx.LockDecision(full.ID)
		w.same(full, got)
		return err
	})
	next := spentDecision(second)
	w.write(func(tx store.Tx) error { return tx.PutDecision(second, decision.Change{Next: next}) })
	next.Version = second.Version + 1
	w.same(next, w.decision(second.ID))
}

func decisionBytes(w *world) {
	c := w.insertCall(parkedCall())
	n := int64(0)
	for name, b := range blobs() {
		n++
		d := spentDecision(pendingDecision(c))
		d.N, d.Capability, d.Presentation, d.Request, d.EditedArgs = n, b, b, b, b
		if b == nil {
			d.EditedDigest = ""
		}
		w.Log(name)
		w.stored(d)
	}
}

// stored inserts d and wants it back as it is, but for its version.
func (w *world) stored(d decision.Decision) {
	w.Helper()
	got := w.insertDecision(d)
	d.Version = got.Version
	w.same(d, got)
}

func decisionTexts(w *world) {
	c := w.insertCall(parkedCall())
	for i, s := range hard {
		d := spentDecision(pendingDecision(c))
		d.N = int64(i + 1)
		d.Kind, d.Digest, d.SpecDigest, d.ArgsDigest, d.SpentDigest, d.Reason = s, s, s, s, s, s
		d.RunID, d.CallID, d.StepID, d.Node, d.Tool, d.RequestedBy = s, s, s, s, s, s
		d.DecidedBy, d.DecidedPrincipal, d.Note, d.EditedDigest, d.EffectiveDigest = s, s, s, s, s
		d.Metadata = map[string]string{s: s}
		w.stored(d)
	}
}

func decisionTimes(w *world) {
	c := w.insertCall(parkedCall())
	for i, at := range instants(w.b.Precision) {
		d := spentDecision(pendingDecision(c))
		d.N = int64(i + 1)
		for _, t := range []*time.Time{&d.CreatedAt, &d.ExpiresAt, &d.DecidedAt, &d.GrantExpiresAt, &d.SettledAt, &d.ConsumedAt} {
			*t = at.given.In(time.FixedZone("Chicago", -6*3600))
		}
		d.GrantTTL = w.b.Precision + w.b.Precision/2 // never rounded down: 0 is no limit
		got := w.insertDecision(d)
		for _, t := range []*time.Time{&d.CreatedAt, &d.ExpiresAt, &d.DecidedAt, &d.GrantExpiresAt, &d.SettledAt, &d.ConsumedAt} {
			*t = at.stored
		}
		d.GrantTTL, d.Version = 2*w.b.Precision, got.Version
		w.same(d, got)
	}
}

func decisionNotFound(w *world) {
	for _, id := range []string{"", "apr_none", "%"} {
		for _, query := range []func(tx store.Tx) (decision.Decision, error){
			func(tx store.Tx) (decision.Decision, error) { return tx.Decision(id) },
			func(tx store.Tx) (decision.Decision, error) { return tx.LockDecision(id) },
		} {
			if _, err := try(w, query); !errors.Is(err, decision.ErrNotFound) {
				w.Errorf("%q: %v", id, err)
			}
			w.refused(decision.ErrNotFound, func(tx store.Tx) error { _, err := query(tx); return err })
		}
	}
}

// decisionIDs: an id is used once, and so is a number of one owner; an approval
// needs the root that it hangs below.
func decisionIDs(w *world) {
	c, other := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	d := w.insertDecision(pendingDecision(c))
	for name, change := range map[string]func(*decision.Decision){
		"same id":           func(n *decision.Decision) { n.ID, n.N = d.ID, 2 },
		"same id elsewhere": func(n *decision.Decision) { n.ID, n.Owner = d.ID, other.Root() },
		"same number":       func(*decision.Decision) {},
		"no root": func(n *decision.Decision) {
			n.Owner = decision.Ref{Kind: decision.OwnerCall, ID: "call_none"}
		},
	} {
		n := pendingDecision(c)
		change(&n)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertDecision(n, asked(n)) })
	}
	upper, lower := pendingDecision(c), pendingDecision(c)
	upper.ID, upper.N, lower.ID, lower.N = "apr_ABC", 2, "apr_abc", 3
	w.insertDecision(upper)
	w.insertDecision(lower)
	w.same(lower, w.decision("apr_abc"))
}

func decisionGuards(w *world) {
	d := w.insertDecision(pendingDecision(w.insertCall(parkedCall())))
	for name, stale := range map[string]func(*decision.Decision){
		"version":       func(d *decision.Decision) { d.Version-- },
		"later version": func(d *decision.Decision) { d.Version++ },
		"status":        func(d *decision.Decision) { d.Status = decision.Approved },
		"digest":        func(d *decision.Decision) { d.Digest = "digesT" },
		"no digest":     func(d *decision.Decision) { d.Digest = "" },
		"id":            func(d *decision.Decision) { d.ID = "apr_none" },
	} {
		prev := d
		stale(&prev)
		w.Log(name)
		w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutDecision(prev, yes(d)) })
	}
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
	if got := w.decision(d.ID); got.Status != decision.Approved || got.Version != d.Version+1 {
		w.Errorf("got %s in version %d", got.Status, got.Version)
	}
}

// yes is the change that a person's yes makes, with its vote and its event.
func yes(d decision.Decision) decision.Change {
	n := d
	n.Status, n.Choice, n.DecidedBy, n.DecidedAt, n.SettledAt = decision.Approved, decision.ChoiceApprove, "Ana", moment(3), moment(3)
	return decision.Change{
		Next:   n,
		Vote:   &decision.Vote{DecisionID: d.ID, By: "Ana", Principal: "user:ana", Choice: decision.ChoiceApprove, At: moment(3)},
		Events: []event.Event{event.New(event.ApprovalDecided, d.ID, "Ana", map[string]string{"approval_id": d.ID, "status": "approved"})},
	}
}

// decisionFixed: what was asked never changes, whatever a change says.
func decisionFixed(w *world) {
	d := w.insertDecision(pendingDecision(w.insertCall(parkedCall())))
	ch := yes(d)
	n := &ch.Next
	n.Space, n.Type, n.N = "other", decision.Question, 9
	n.Kind, n.Capability, n.Presentation, n.Request, n.Digest = "other", nil, []byte("x"), []byte("x"), "other"
	n.SpecDigest, n.ArgsDigest, n.SpentDigest, n.Reason, n.ForbidEdits = "other", "other", "other", "other", false
	n.RunID, n.CallID, n.StepID, n.Node, n.Tool, n.RequestedBy, n.Metadata = "other", "other", "other", "other", "other", "other", nil
	n.CreatedAt, n.ExpiresAt, n.GrantTTL, n.Needs = moment(99), moment(99), time.Hour, 9
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, ch) })
	want := yes(d).Next
	want.Version = d.Version + 1
	w.same(want, w.decision(d.ID))
}

// decisionImpossible: the rows themselves refuse what no engine may write.
func decisionImpossible(w *world) {
	c := w.insertCall(parkedCall())
	for name, spoil := range map[string]func(*decision.Decision){
		"unknown type":          func(d *decision.Decision) { d.Type = "wish" },
		"unknown owner":         func(d *decision.Decision) { d.Owner.Kind = "person" },
		"number 0":              func(d *decision.Decision) { d.N = 0 },
		"no votes needed":       func(d *decision.Decision) { d.Needs = 0 },
		"negative time to live": func(d *decision.Decision) { d.GrantTTL = -time.Second },
	} {
		d := pendingDecision(c)
		spoil(&d)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertDecision(d, asked(d)) })
	}
	d := w.insertDecision(pendingDecision(c))
	for name, spoil := range map[string]func(*decision.Decision){
		"unknown status":         func(d *decision.Decision) { d.Status = "done" },
		"settled but pending":    func(d *decision.Decision) { d.SettledAt = moment(1) },
		"approved by nobody":     func(d *decision.Decision) { d.Status, d.SettledAt = decision.Approved, moment(1) },
		"approved by a no":       func(d *decision.Decision) { *d = yes(*d).Next; d.Choice = decision.ChoiceReject },
		"rejected by a yes":      func(d *decision.Decision) { *d = yes(*d).Next; d.Status = decision.Rejected },
		"a choice without time":  func(d *decision.Decision) { *d = yes(*d).Next; d.DecidedAt = time.Time{} },
		"a choice without name":  func(d *decision.Decision) { *d = yes(*d).Next; d.DecidedBy = "" },
		"consumed without time":  func(d *decision.Decision) { *d = spentDecision(*d); d.ConsumedAt = time.Time{} },
		"edited without digest":  func(d *decision.Decision) { *d = spentDecision(*d); d.EditedDigest = "" },
		"consumed while pending": func(d *decision.Decision) { d.ConsumedAt = moment(1) },
		"taken back but pending": func(d *decision.Decision) { d.WithdrawnBy = "Ana" },
	} {
		next := d
		spoil(&next)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: next}) })
	}
}

// decisionVotes: a person has one vote in a decision, and none in one that does
// not exist.
func decisionVotes(w *world) {
	d := w.insertDecision(pendingDecision(w.insertCall(parkedCall())))
	first := yes(d)
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, first) })
	d = w.decision(d.ID)
	w.Log("a second vote of one person")
	second := *first.Vote
	second.By, second.Choice, second.At = "Ana Maria", decision.ChoiceReject, moment(5)
	w.refused(nil, func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: d, Vote: &second}) })
	w.Log("a vote in nothing")
	stray := *first.Vote
	stray.DecisionID = "apr_none"
	w.refused(nil, func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: d, Vote: &stray}) })
	other := *first.Vote
	other.Principal, other.By, other.Note, other.Shown = "user:bo", hard[0], hard[1], "digest"
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: d, Vote: &other}) })
}

// decisionOwners: what waits is bound to the transaction; what is not there is not found.
func decisionOwners(w *world) {
	c := w.insertCall(parkedCall())
	d := w.insertDecision(pendingDecision(c))
	c.ApprovalID = d.ID
	w.write(func(tx store.Tx) error {
		now, err := tx.Call(c.ID)
		if err != nil {
			return err
		}
		next := now
		next.ApprovalID = d.ID
		if err := tx.PutCall(now, next); err != nil {
			return err
		}
		own, err := tx.Owner(d.Owner)
		if err != nil {
			return err
		}
		return own.Waiting(d) // sees what this transaction wrote
	})
	for _, kind := range []decision.OwnerKind{decision.OwnerCall, decision.OwnerRun, decision.OwnerJob} {
		err := w.view(func(tx store.Tx) error {
			own, err := tx.Owner(decision.Ref{Kind: kind, ID: "none"})
			if err != nil {
				return err
			}
			return own.Waiting(d)
		})
		if !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("a %s that is not there: %v", kind, err)
		}
	}
}

// decisionReason: the reason stands in the event that asked; a redacted one has none.
func decisionReason(w *world) {
	p := w.openShop(w.s, func(c *call.Config) { c.Policy = otherKind() })
	a := p.mustPark(refund)
	for run, want := range map[string]error{a.RunID: nil, "": nil, "other": decision.ErrNotFound} {
		reason, err := w.s.ApprovalReason(w.ctx, run, a.ApprovalID)
		if !errors.Is(err, want) || want == nil && reason != "the rules changed" {
			w.Errorf("in run %q: %q, %v", run, reason, err)
		}
	}
	if err := event.Redact(w.ctx, w.s, "call:"+a.CallID, 2, "Ana", ""); err != nil {
		w.Fatal(err)
	}
	if reason, err := w.s.ApprovalReason(w.ctx, a.RunID, a.ApprovalID); err != nil || reason != "" {
		w.Errorf("redacted: %q, %v", reason, err)
	}
}

func decisionFilters(w *world) {
	c, o := parkedCall(), parkedCall()
	o.Space = "other"
	c, o = w.insertCall(c), w.insertCall(o)
	var all []decision.Decision
	for i := range 12 {
		d := pendingDecision(c)
		if i%4 == 3 {
			d = pendingDecision(o)
		}
		d.N, d.RunID = int64(i+1), fmt.Sprint("run", i%3)
		switch i % 5 {
		case 1:
			d = spentDecision(d)
		case 2:
			d.Type, d.Open = decision.Question, false
		}
		all = append(all, w.insertDecision(d))
	}
	for _, q := range []decision.Query{
		{Space: "main"},
		{Space: "other"},
		{Space: "none"},
		{Space: "main", Status: decision.Pending},
		{Space: "main", Status: decision.Consumed},
		{Space: "main", Type: decision.Approval},
		{Space: "main", Type: decision.Question},
		{Space: "main", Open: true},
		{Space: "main", Status: decision.Pending, Open: true, Type: decision.Approval},
		{Space: "main", RunID: "run1"},
		{Space: "main", CallID: c.ID},
		{Space: "main", CallID: o.ID},
		{Space: "other", CallID: o.ID, RunID: "run0"},
		{Space: "main", Owner: decision.Ref{Kind: decision.OwnerCall, ID: c.ID}},
		{Space: "main", Owner: decision.Ref{Kind: decision.OwnerRun, ID: c.ID}},
		{Space: "main", Prefix: "apr_"},
		{Space: "main", Prefix: "apr%"},
		{Space: "main", Prefix: all[1].ID},
		{Space: "main", After: all[6].ID},
	} {
		w.same(chosen(all, q), read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.Decisions(q) }))
	}
}

// chosen is what q should find: newest first.
func chosen(all []decision.Decision, q decision.Query) (ds []decision.Decision) {
	for i := len(all) - 1; i >= 0; i-- {
		d := all[i]
		if d.Space == q.Space && (q.Type == "" || d.Type == q.Type) && (q.Status == "" || d.Status == q.Status) && (!q.Open || d.Open) &&
			(q.RunID == "" || d.RunID == q.RunID) && (q.CallID == "" || d.Owner.ID == q.CallID) && (q.Owner.ID == "" || d.Owner == q.Owner) &&
			(q.JobID == "" || d.Owner == job.RefOf(q.JobID)) && (q.After == "" || d.ID < q.After) &&
			len(d.ID) >= len(q.Prefix) && d.ID[:len(q.Prefix)] == q.Prefix {
			ds = append(ds, d)
		}
	}
	return ds
}

// decisionPages walks pages of ten over 25 approvals of one time, while more are
// asked and those seen are decided (case 157).
func decisionPages(w *world) {
	var want []string
	add := func() decision.Decision { return w.insertDecision(pendingDecision(w.insertCall(parkedCall()))) }
	for range 25 {
		want = append([]string{add().ID}, want...)
	}
	var got []string
	for after := ""; ; {
		page := read(w, func(tx store.Tx) ([]decision.Decision, error) {
			return tx.Decisions(decision.Query{Space: event.MainSpace, Status: decision.Pending, After: after, Limit: 10})
		})
		if len(page) == 0 {
			break
		}
		if len(got) > len(want) {
			w.Fatal("the pages do not end")
		}
		for _, d := range page {
			got, after = append(got, d.ID), d.ID
			w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
		}
		add()
	}
	w.same(want, got)
}

// decisionDue: overdue is what can still expire and whose deadline lies before
// now; the instant itself is in time. The zone in which it was given means nothing.
func decisionDue(w *world) {
	c := w.insertCall(parkedCall())
	now := moment(100)
	n := int64(0)
	add := func(at time.Time, change func(*decision.Decision)) string {
		n++
		d := pendingDecision(c)
		d.N, d.ExpiresAt = n, at.In(time.FixedZone("Kolkata", 5*3600+1800))
		change(&d)
		return w.insertDecision(d).ID
	}
	pending := func(*decision.Decision) {}
	grant := func(d *decision.Decision) {
		at := d.ExpiresAt
		*d = yes(*d).Next
		d.ExpiresAt, d.GrantExpiresAt = moment(0), at
	}
	second, third := add(moment(98), grant), add(moment(99), pending)
	first := add(moment(-1000), pending)
	add(now, pending)
	add(now, grant)
	add(moment(101), pending)
	add(time.Time{}, pending)
	add(time.Time{}, grant)
	add(moment(1), func(d *decision.Decision) { *d = spentDecision(*d) })
	for _, of := range []func(*decision.Decision){pending, grant} { // what is closed stays as it is
		w.closeDecision(w.decision(add(moment(2), of)))
	}
	ids := func(at time.Time, limit int) (ids []string) {
		for _, d := range read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.Due(at, 0, limit) }) {
			ids = append(ids, d.ID)
		}
		return ids
	}
	w.same([]string{first, second, third}, ids(now, 0))
	w.same([]string{first, second, third}, ids(now.In(time.FixedZone("Chicago", -6*3600)), 100))
	w.same([]string{first}, ids(now, 1))
	w.same(5, len(ids(moment(101), 10)))
	w.same(third, read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.Due(now, 2, 10) })[0].ID)
}

// noTexts are bytes that no text has.
var noTexts = []string{"\xff\xfe", "caf\xe9", "a\x00b", "\xed\xa0\x80"}

// decisionNoTexts: what is no text is refused, or comes back as it was (case 106).
func decisionNoTexts(w *world) {
	c := w.insertCall(parkedCall())
	n := int64(0)
	for _, s := range noTexts {
		for name, put := range map[string]func(*decision.Decision){
			"reason":   func(d *decision.Decision) { d.Reason = s },
			"tool":     func(d *decision.Decision) { d.Tool = s },
			"metadata": func(d *decision.Decision) { d.Metadata = map[string]string{"k": s} },
			"its keys": func(d *decision.Decision) { d.Metadata = map[string]string{s: "v"} },
			"note":     func(d *decision.Decision) { *d = spentDecision(*d); d.Note = s },
		} {
			n++
			d := pendingDecision(c)
			d.N = n
			put(&d)
			if w.update(func(tx store.Tx) error { return tx.InsertDecision(d, asked(d)) }) != nil {
				continue
			}
			got := w.decision(d.ID)
			d.Version = got.Version
			w.Logf("%s %q", name, s)
			w.same(d, got)
		}
	}
}
