package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Tester is what the checks need of a test; *testing.T is one, and so is *rapid.T.
type Tester interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// CheckInvariants fails the test for everything that must hold of a store
// whatever happened to it, and does not: chains and heads verify, numbers only
// grow, every state of a call and of an approval has its event, attempts fit
// their calls, runs and their steps fit what they wait for and what they carry out,
// deliveries fit their events, their order and their attempts, and the pending counter and
// the queue's counts are the number of their rows. Nobody may write meanwhile.
func CheckInvariants(t Tester, s txn.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	report, err := event.Verify(ctx, s, nil)
	if err != nil {
		t.Errorf("verify: %v", err)
		return
	}
	if b := report.Break; b != nil {
		t.Errorf("stream %s breaks at %d: %s", b.Stream, b.StreamSeq, b.Problem)
	}
	k := checker{image: look(ctx, t, s), t: t}
	k.all()
	k.counters()
	left := 0 // of what is being deleted
	for stream := range k.Cleaned {
		left += len(k.streams[stream])
	}
	if report.Events != len(k.Events)-left {
		t.Errorf("the streams have %d events, the log has %d and %d of what is cleaned up", report.Events, len(k.Events)-left, left)
	}
}

type checker struct {
	image
	t        Tester
	streams  map[string][]event.Event       // by stream
	subjects map[string][]event.Event       // by what changed
	below    map[string][]decision.Decision // by owner, in the order of their n
}

// all checks what holds of each root and what is below it, and of their order in the log.
func (k *checker) all() {
	k.t.Helper()
	k.index()
	k.log()
	for _, c := range k.Calls {
		k.call(c)
	}
	for _, d := range k.Decisions {
		k.decision(d)
	}
	for _, r := range k.Runs {
		k.run(r)
	}
	for _, j := range k.Jobs {
		k.job(j)
	}
	k.cleaned()
	k.deliveries()
}

func (k *checker) fault(of, format string, args ...any) {
	k.t.Helper()
	k.t.Errorf("%s: %s", of, fmt.Sprintf(format, args...))
}

func (k *checker) index() {
	k.streams, k.subjects = map[string][]event.Event{}, map[string][]event.Event{}
	k.below = map[string][]decision.Decision{}
	for _, e := range k.Events {
		k.streams[e.Stream] = append(k.streams[e.Stream], e)
		k.subjects[e.Subject] = append(k.subjects[e.Subject], e)
	}
	for _, d := range k.Decisions {
		k.below[d.Owner.ID] = append(k.below[d.Owner.ID], d)
	}
	for _, ds := range k.below {
		slices.SortFunc(ds, func(a, b decision.Decision) int { return int(a.N - b.N) })
	}
}

// log checks the order over all streams. Only a store that was restored has gaps
// in it: its numbers go on behind those that were given before.
func (k *checker) log() {
	ids := map[string]bool{}
	for i, e := range k.Events {
		if ids[e.ID] {
			k.fault(e.ID, "two events have this id")
		}
		ids[e.ID] = true
		if want := k.After + int64(i+1); k.Epoch == 1 && e.Pos != want {
			k.fault(e.ID, "pos is %d, want %d", e.Pos, want)
		} else if i > 0 && e.Pos <= k.Events[i-1].Pos {
			k.fault(e.ID, "pos %d does not follow %d", e.Pos, k.Events[i-1].Pos)
		}
	}
	for stream, es := range k.streams {
		for i, e := range es {
			if e.StreamSeq != int64(i+1) {
				k.fault(stream, "event %d stands where %d should", e.StreamSeq, i+1)
			}
			if i > 0 && e.At.Before(es[i-1].At) {
				k.fault(stream, "event %d is older than the one before it", e.StreamSeq)
			}
		}
	}
}

func (k *checker) counters() {
	rows := map[string]int64{}
	for _, d := range k.Decisions {
		if d.Type == decision.Approval && d.Status == decision.Pending && d.Open {
			rows[d.Space]++
		}
	}
	for space, n := range k.Pending {
		if n != rows[space] {
			k.fault("space "+space, "the counter says %d pending, and there are %d", n, rows[space])
		}
	}
	all := slices.Collect(maps.Values(k.Decisions))
	for space, cs := range k.Queue {
		if want := countedOf(all, space); !slices.Equal(cs, want) {
			k.fault("space "+space, "the queue is counted as %+v, and is %+v", cs, want)
		}
	}
}

// facts are what the payloads of calls' and approvals' events have in common.
type facts struct {
	Status     string `json:"status"`
	Late       bool   `json:"late"`
	Attempt    int64  `json:"attempt"`
	ApprovalID string `json:"approval_id"`
}

func (k *checker) factsOf(e event.Event) facts {
	var f facts
	if e.Redacted {
		return f
	}
	if err := json.Unmarshal(e.Payload, &f); err != nil {
		k.fault(e.ID, "the payload does not decode: %v", err)
	}
	return f
}

// having lists the events of one type about one subject.
func (k *checker) having(subject string, t event.Type) []event.Event {
	var es []event.Event
	for _, e := range k.subjects[subject] {
		if e.Type == t {
			es = append(es, e)
		}
	}
	return es
}

func (k *checker) count(subject string, want int, t event.Type) {
	k.t.Helper()
	if n := len(k.having(subject, t)); n != want {
		k.fault(subject, "%d events %s, want %d", n, t, want)
	}
}

func (k *checker) call(c call.Call) {
	if c.Hosted() {
		k.hosted(c)
		return
	}
	es := k.streams[c.Stream()]
	if len(es) == 0 || es[0].Type != event.CallCreated {
		k.fault(c.ID, "its stream does not begin with its creation")
		return
	}
	k.count(c.ID, 1, event.CallCreated)
	if int64(len(es)) != c.Head.Seq {
		k.fault(c.ID, "the head is %d, and there are %d events", c.Head.Seq, len(es))
	}
	k.attempts(c)
	k.approvals(c)
	k.ending(c)
}

// attempts checks that each start has its row, its event and its grant.
func (k *checker) attempts(c call.Call) {
	as := k.Attempts[c.ID]
	if int64(len(as)) != c.Attempts {
		k.fault(c.ID, "%d attempts are stored, the call says %d", len(as), c.Attempts)
		return
	}
	starts := k.having(c.ID, event.CallStarted)
	if c.Hosted() {
		starts = k.ofCall(c, event.StepToolStarted)
	}
	if len(starts) != len(as) {
		k.fault(c.ID, "%d starts are in the log, %d attempts are stored", len(starts), len(as))
		return
	}
	fence := int64(0)
	for i, a := range as {
		of := fmt.Sprintf("attempt %d at %s", a.N, c.ID)
		if f := k.factsOf(starts[i]); !starts[i].Redacted && (f.Attempt != a.N || f.ApprovalID != a.ApprovalID) {
			k.fault(of, "the event of its start says attempt %d under %q, the row %q", f.Attempt, f.ApprovalID, a.ApprovalID)
		}
		if a.N != int64(i+1) || a.Fence <= fence {
			k.fault(of, "number %d or fence %d does not grow", a.N, a.Fence)
		}
		fence = a.Fence
		k.attempt(of, c, a)
	}
	if fence != c.Fence {
		k.fault(c.ID, "its fence is %d, that of its last attempt %d", c.Fence, fence)
	}
}

func (k *checker) attempt(of string, c call.Call, a call.Attempt) {
	running := a.Outcome == ""
	if running != a.EndedAt.IsZero() {
		k.fault(of, "outcome %q and end %s do not fit", a.Outcome, a.EndedAt)
	}
	if last := a.N == c.Attempts; running && !(last && c.Status == call.Running) {
		k.fault(of, "it runs, although it is not what the call (%s, attempt %d) does", c.Status, c.Attempts)
	}
	if a.ApprovalID == "" {
		return
	}
	d, ok := k.Decisions[a.ApprovalID]
	switch {
	case !ok || d.Owner != c.Root():
		k.fault(of, "its grant %s is not one of the call", a.ApprovalID)
	case d.Status != decision.Consumed || d.Choice != decision.ChoiceApprove:
		k.fault(of, "its grant %s is %s (%s)", d.ID, d.Status, d.Choice)
	case a.GrantDigest != d.Digest || a.EffectiveDigest != "" && d.EffectiveDigest != "" && a.EffectiveDigest != d.EffectiveDigest:
		k.fault(of, "its grant %s has other digests", d.ID)
	}
}

// approvals checks that a call and its records agree on which is the latest.
func (k *checker) approvals(c call.Call) {
	ds := k.below[c.ID]
	if int64(len(ds)) != c.ApprovalN {
		k.fault(c.ID, "%d approvals are stored, the call says %d", len(ds), c.ApprovalN)
		return
	}
	for i, d := range ds {
		if d.N != int64(i+1) {
			k.fault(d.ID, "it is number %d of %s, want %d", d.N, c.ID, i+1)
		}
		if latest := i == len(ds)-1; d.Open && (!latest || c.Status.Terminal()) {
			k.fault(d.ID, "it is open (%s), although %s (%s) does not wait for it", d.Status, c.ID, c.Status)
		}
	}
	if len(ds) > 0 && ds[len(ds)-1].ID != c.ApprovalID {
		k.fault(c.ID, "it waits on %s, its latest approval is %s", c.ApprovalID, ds[len(ds)-1].ID)
	}
}

// ending checks that a call's status is the one its log tells.
func (k *checker) ending(c call.Call) {
	told, last := k.told(c)
	if told != c.Status {
		k.fault(c.ID, "it is %s, its log says %s", c.Status, told)
	}
	if c.Status.Terminal() == c.EndedAt.IsZero() || (c.Status == call.Running) == c.LeaseUntil.IsZero() {
		k.fault(c.ID, "it is %s, ended at %s, leased until %s", c.Status, c.EndedAt, c.LeaseUntil)
	}
	if d := k.Decisions[c.ApprovalID]; !fits(c, d) {
		k.fault(c.ID, "it is %s, and its approval %s is %q", c.Status, d.ID, d.Status)
	}
	if c.Status != call.Succeeded && c.Status != call.Failed && c.Status != call.Unknown || c.Attempts == 0 {
		return
	}
	if a := k.Attempts[c.ID][c.Attempts-1]; a.Outcome != c.Status {
		k.fault(c.ID, "it is %s, its last attempt %q (%s)", c.Status, a.Outcome, last)
	}
}

// told replays a call's log.
func (k *checker) told(c call.Call) (told call.Status, last event.Type) {
	ended := 0
	for _, e := range k.subjects[c.ID] {
		f := k.factsOf(e)
		switch e.Type {
		case event.CallCreated:
			told = call.Pending
		case event.CallStarted:
			told = call.Running
		case event.CallUnknown:
			told = call.Unknown
		case event.CallCancelled:
			told, ended = call.Cancelled, ended+1
		case event.CallFinished:
			if f.Late && f.Attempt == 0 && c.Attempts > 0 {
				continue // an outcome that came too late to count
			}
			told, ended = call.Status(f.Status), ended+1
		default:
			continue
		}
		last = e.Type
		if ended > 1 || ended == 1 && !told.Terminal() {
			k.fault(c.ID, "%s stands behind its end", e.Type)
		}
	}
	return told, last
}

// fits reports whether a call can stand so while its latest approval stands so.
func fits(c call.Call, d decision.Decision) bool {
	var may []decision.Status
	switch c.Status {
	case call.Pending:
		may = []decision.Status{decision.Pending, decision.Approved}
	case call.Denied:
		may = []decision.Status{"", decision.Rejected, decision.Consumed}
	case call.Expired:
		may = []decision.Status{decision.Expired}
	case call.Cancelled: // a yes that nobody had acted on was replaced by none
		may = []decision.Status{decision.Withdrawn, decision.Superseded}
	case call.Running:
		may = []decision.Status{"", decision.Consumed}
	default: // an unknown call keeps its last record whatever becomes of that
		return true
	}
	return slices.Contains(may, d.Status)
}

func (k *checker) decision(d decision.Decision) {
	if d.Type == decision.Question {
		k.question(d)
		return
	}
	if d.Owner.Kind == decision.OwnerCall {
		if _, ok := k.Calls[d.Owner.ID]; !ok {
			k.fault(d.ID, "its call %s does not exist", d.Owner.ID)
		}
	}
	if err := d.Intact(); err != nil {
		k.fault(d.ID, "%v", err)
	}
	k.story(d)
	if r, below := k.Runs[d.Owner.ID]; d.Open != (d.Status == decision.Pending || d.Status == decision.Approved) && !(below && r.Status.Terminal() && !d.Open) {
		k.fault(d.ID, "it is %s and open is %t", d.Status, d.Open)
	}
	if (d.Status == decision.Pending) != d.SettledAt.IsZero() || (d.Choice == "") != d.DecidedAt.IsZero() ||
		(d.Status == decision.Consumed) == d.ConsumedAt.IsZero() {
		k.fault(d.ID, "it is %s, decided %s, settled %s, consumed %s", d.Status, d.DecidedAt, d.SettledAt, d.ConsumedAt)
	}
}

// story checks that a record's status has exactly its events.
func (k *checker) story(d decision.Decision) {
	is := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	k.count(d.ID, 1, event.ApprovalRequested)
	k.count(d.ID, is(d.Choice != ""), event.ApprovalDecided)
	k.count(d.ID, is(d.Status == decision.Expired), event.ApprovalExpired)
	k.count(d.ID, is(d.Status == decision.Withdrawn), event.ApprovalWithdrawn)
	k.count(d.ID, is(d.Status == decision.Superseded), event.ApprovalSuperseded)
	k.count(d.ID, is(d.Status == decision.Consumed && d.Choice == decision.ChoiceReject), event.ApprovalConsumed)
	for _, e := range k.having(d.ID, event.ApprovalDecided) {
		yes := k.factsOf(e).Status == string(decision.Approved)
		if !e.Redacted && yes != (d.Choice == decision.ChoiceApprove) {
			k.fault(d.ID, "its event says approved %t, the record %s", yes, d.Choice)
		}
	}
	for _, e := range k.subjects[d.ID] {
		if e.Stream != d.Owner.Stream() {
			k.fault(d.ID, "%s stands in %s", e.Type, e.Stream)
		}
	}
	k.spending(d)
}

// spending checks that a spent grant was spent by exactly one attempt.
func (k *checker) spending(d decision.Decision) {
	if d.Owner.Kind == decision.OwnerRun && d.Tool == "" {
		return // of a flow's node: the step itself is what it lets go on
	}
	var by []int64
	for _, a := range k.attemptsBelow(d.Owner) {
		if a.ApprovalID == d.ID {
			by = append(by, a.N)
		}
	}
	spent := d.Status == decision.Consumed && d.Choice == decision.ChoiceApprove
	// A repeat under the tool's key names the grant of the attempt before it.
	if spent && (len(by) == 0 || by[0] != d.ConsumedBy) || !spent && len(by) > 0 {
		k.fault(d.ID, "it is %s by attempt %d, and attempts %v name it", d.Status, d.ConsumedBy, by)
	}
}
