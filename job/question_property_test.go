package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store/storetest"
)

// belief is what a simple reading of the contract says of one question.
type belief struct {
	job      int
	key      string
	form     bool
	timeout  time.Duration
	deadline time.Time // zero: none
	status   string
	choice   string
	n        int64 // what was filled in; 0: nothing
	by       string
	told     []string
}

// beliefs are a job's, by the order of asking.
type beliefs struct {
	ended bool
	all   []string // ids
	log   []string // its stream, without its beginning
}

// skeptic acts at random on questions of two jobs and believes only its own model.
type skeptic struct {
	*asker
	t    *rapid.T
	jobs [2]job.Job
	of   [2]beliefs
	qs   map[string]*belief
	ids  []string
	seen map[string]int
}

const (
	pending   = "pending"
	resolved  = "resolved"
	withdrawn = "withdrawn"
	expired   = "expired"
)

func (k *skeptic) tell(b *belief, id, what string) {
	b.told = append(b.told, what)
	k.of[b.job].log = append(k.of[b.job].log, what+" "+id)
}

func (k *skeptic) settle(b *belief, id, status string) {
	b.status = status
	k.tell(b, id, "decision_"+status)
}

func (b *belief) overdue(now time.Time) bool { return !b.deadline.IsZero() && now.After(b.deadline) }

// met compares what was told with what the model says; empty: it is accepted.
func (k *skeptic) met(what string, err error, want string) {
	got := ""
	if err != nil {
		got = fault.From(err).Reason
	}
	if want == "key" { // the reason is another test's matter
		if fault.From(err) != nil && fault.From(err).Code == fault.Conflict {
			got = want
		}
	}
	if got != want {
		k.t.Fatalf("%s: %v, want %q", what, err, want)
	}
	k.seen[what+" "+want]++
}

// any is a question, mostly one that stands so.
func (k *skeptic) any(t *rapid.T, mostly string) (string, *belief) {
	if len(k.ids) == 0 {
		t.Skip("nothing was asked yet")
	}
	from := k.ids
	if rapid.IntRange(0, 4).Draw(t, "old") > 0 {
		from = slices.DeleteFunc(slices.Clone(from), func(id string) bool { return k.qs[id].status != mostly })
		if len(from) == 0 {
			from = k.ids
		}
	}
	id := rapid.SampledFrom(from).Draw(t, "id")
	return id, k.qs[id]
}

// token is mostly the question's own job.
func (k *skeptic) token(t *rapid.T, b *belief) (which int, own bool) {
	if rapid.IntRange(0, 9).Draw(t, "token") == 0 {
		return 1 - b.job, false
	}
	return b.job, true
}

func (k *skeptic) ask(t *rapid.T) {
	which := rapid.IntRange(0, 1).Draw(t, "job")
	b := &belief{
		job: which, status: pending, key: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "key"), form: rapid.IntRange(0, 2).Draw(t, "form") > 0,
	}
	b.timeout = rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second}).Draw(t, "timeout")
	q := decision.Asking{Prompt: "p", Options: []string{"yes", "no"}, Timeout: b.timeout, IdempotencyKey: b.key, By: "bot"}
	if b.timeout > 0 {
		b.deadline = k.clock.Now().Add(b.timeout)
	}
	if b.form {
		q.Form = []byte(form)
	}
	got, err := k.op.Ask(k.ctx, event.MainSpace, k.jobs[which].ID, q)
	earlier := slices.IndexFunc(k.of[which].all, func(id string) bool { return b.key != "" && k.qs[id].key == b.key })
	switch {
	case earlier >= 0:
		id := k.of[which].all[earlier]
		was := k.qs[id]
		if was.form != b.form || was.timeout != b.timeout {
			k.met("ask", err, "key")
			return
		}
		k.met("ask", err, "")
		if got.ID != id || string(got.Status) != was.status {
			k.t.Fatalf("asked again: %s is %s, want %s, %s", got.ID, got.Status, id, was.status)
		}
		k.seen["asked again"]++
	case k.of[which].ended:
		k.met("ask", err, "run_state")
	default:
		k.met("ask", err, "")
		k.qs[got.ID], k.ids, k.of[which].all = b, append(k.ids, got.ID), append(k.of[which].all, got.ID)
		if got.N != int64(len(k.of[which].all)) {
			k.t.Fatalf("number %d, want %d", got.N, len(k.of[which].all))
		}
		k.tell(b, got.ID, "decision_requested")
	}
}

var inputs = map[string]int64{"": 0, "null": 0, "{}": 0, `{"n":1}`: 1, `{ "n": 1.0 }`: 1, `{"n":2}`: 2, `{"n":"x"}`: -1}

// resolve mostly answers what waits as it may be answered.
func (k *skeptic) resolve(t *rapid.T) {
	id, b := k.any(t, pending)
	choices, with, by := []string{"yes", "no"}, []string{"", "null", "{}"}, []string{"ana", "bo"}
	if b.form {
		with = append(with, `{"n":1}`, `{ "n": 1.0 }`, `{"n":2}`)
	}
	switch rapid.IntRange(0, 7).Draw(t, "mistake") {
	case 0:
		choices = []string{"maybe"}
	case 1, 2:
		with = []string{`{"n":"x"}`}
	case 3:
		by = []string{"bot"}
	}
	k.answer(t, id, b, choices, with, by)
}

// answerAgain mostly repeats an answer, in other words.
func (k *skeptic) answerAgain(t *rapid.T) {
	id, b := k.any(t, resolved)
	choices := []string{"yes", "no"}
	if b.choice != "" {
		choices = append(choices, b.choice, b.choice)
	}
	var with []string
	for _, input := range slices.Sorted(maps.Keys(inputs)) {
		if inputs[input] == b.n {
			with = append(with, input)
		}
	}
	k.answer(t, id, b, choices, append(with, `{"n":2}`), []string{"ana", "bo", "bot"})
}

func (k *skeptic) answer(t *rapid.T, id string, b *belief, choices, with, by []string) {
	which, own := k.token(t, b)
	choice, input := rapid.SampledFrom(choices).Draw(t, "choice"), rapid.SampledFrom(with).Draw(t, "input")
	op := k.op
	op.Principal = rapid.SampledFrom(by).Draw(t, "principal")
	a := decision.Answering{Choice: choice, By: op.Principal}
	if input != "" {
		a.Input = []byte(input)
	}
	_, err := op.Resolve(k.ctx, k.jobs[which].ID, id, a)
	n := inputs[input]
	want := ""
	switch {
	case !own:
		want = "not_found"
	case b.status == resolved && (b.choice != choice || b.n != n):
		want = "choice_conflict"
	case b.status == resolved:
		k.seen["answered again"]++
	case b.status != pending:
		want = b.status
	case b.overdue(k.clock.Now()):
		want = expired
		k.settle(b, id, expired)
	case op.Principal == "bot":
		want = "self_decision"
	case choice == "maybe":
		want = "not_offered"
	case !b.form && n != 0:
		want = "usage"
	case n < 0:
		want = "invalid_arguments"
	default:
		b.choice, b.n, b.by = choice, n, op.Principal
		k.settle(b, id, resolved)
	}
	k.met("resolve", err, want)
}

func (k *skeptic) withdraw(t *rapid.T) {
	id, b := k.any(t, pending)
	which, own := k.token(t, b)
	op := k.op
	op.Principal = rapid.SampledFrom([]string{"bot", "bot", "ana"}).Draw(t, "principal")
	_, err := op.WithdrawQuestion(k.ctx, k.jobs[which].ID, id, op.Principal, "")
	want := ""
	switch {
	case !own:
		want = "not_found"
	case b.status == withdrawn:
		k.seen["withdrawn again"]++
	case b.status == resolved:
		want = "not_pending"
	case b.status == expired:
		want = expired
	case b.overdue(k.clock.Now()):
		want = expired
		k.settle(b, id, expired)
	case op.Principal != "bot":
		want = "forbidden"
	default:
		k.settle(b, id, withdrawn)
	}
	k.met("withdraw", err, want)
}

// sweep expires what is overdue; several at a time end in any order.
func (k *skeptic) sweep(*rapid.T) {
	due := map[string]bool{}
	for id, b := range k.qs {
		if b.status == pending && b.overdue(k.clock.Now()) {
			due[id] = true
		}
	}
	n, err := k.op.ExpireDue(k.ctx, 1000)
	if err != nil || n != len(due) {
		k.t.Fatalf("%d were expired, want %d: %v", n, len(due), err)
	}
	for _, of := range k.of {
		for _, id := range k.order(of, due) {
			k.settle(k.qs[id], id, expired)
		}
	}
	k.seen[fmt.Sprintf("sweep of %d", min(n, 1))]++
}

// order is that in which the job's stream tells of these questions last.
func (k *skeptic) order(of beliefs, ids map[string]bool) (list []string) {
	for _, id := range of.all {
		if ids[id] {
			list = append(list, id)
		}
	}
	if len(list) < 2 {
		return list
	}
	es := k.events(k.jobs[k.qs[list[0]].job].ID)
	at := func(id string) int {
		return slices.IndexFunc(es, func(e event.Event) bool { return e.Subject == id && e.Type != event.DecisionRequested })
	}
	slices.SortFunc(list, func(a, b string) int { return at(a) - at(b) })
	return list
}

func (k *skeptic) expireOne(t *rapid.T) {
	id, b := k.any(t, pending)
	_, err := k.op.Expire(k.ctx, id)
	want := ""
	if b.status != pending || !b.overdue(k.clock.Now()) {
		want = "not_pending"
	} else {
		k.settle(b, id, expired)
	}
	k.met("expire", err, want)
}

func (k *skeptic) end(t *rapid.T) {
	which := rapid.IntRange(0, 1).Draw(t, "job")
	if !k.of[which].ended && rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("not yet")
	}
	err := k.cancel(k.jobs[which].ID)
	if k.of[which].ended {
		k.met("end", err, "run_state")
		return
	}
	k.met("end", err, "")
	waits := map[string]bool{}
	for _, id := range k.of[which].all {
		if k.qs[id].status == pending {
			waits[id] = true
		}
	}
	for _, id := range k.order(k.of[which], waits) {
		k.settle(k.qs[id], id, withdrawn)
	}
	k.of[which].ended = true
	k.of[which].log = append(k.of[which].log, "cancelled "+k.jobs[which].ID)
	k.seen[fmt.Sprintf("end with %d", min(len(waits), 1))]++
}

// wait lets time pass, now and then to the very instant of a deadline.
func (k *skeptic) wait(t *rapid.T) {
	now := k.clock.Now()
	if rapid.Bool().Draw(t, "to a deadline") {
		for _, id := range k.ids {
			if b := k.qs[id]; b.status == pending && b.deadline.After(now) {
				k.clock.Set(b.deadline)
				return
			}
		}
	}
	k.clock.Advance(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 2 * time.Second}).Draw(t, "for"))
}

// late does something when every deadline so far has passed.
func (k *skeptic) late(t *rapid.T) {
	k.clock.Advance(4 * time.Second)
	rapid.SampledFrom([]func(*rapid.T){k.sweep, k.sweep, k.expireOne, k.expireOne, k.resolve, k.withdraw}).Draw(t, "what")(t)
}

// check holds the whole store against the model.
func (k *skeptic) check(*rapid.T) {
	for which := range k.jobs {
		of := k.of[which]
		waits := int64(0)
		for _, id := range of.all {
			if k.qs[id].status == pending {
				waits++
			}
		}
		k.view(func(tx job.Tx) error {
			j, err := tx.Job(k.jobs[which].ID)
			if err != nil {
				return err
			}
			if j.Pending != waits || j.Questions != int64(len(of.all)) || j.Status.Terminal() != of.ended {
				k.t.Errorf("job %d is %s, %d of %d wait; want %d of %d", which, j.Status, j.Pending, j.Questions, waits, len(of.all))
			}
			ds, err := tx.Decisions(decision.Query{Space: event.MainSpace, JobID: j.ID, Limit: 500})
			if err != nil {
				return err
			}
			slices.Reverse(ds)
			k.rows(of, ds)
			es, err := tx.Events(event.Query{Stream: j.Stream(), Limit: 1000})
			if err != nil {
				return err
			}
			var log []string
			for _, e := range es[1:] {
				log = append(log, string(e.Type)+" "+e.Subject)
			}
			if diff := cmp.Diff(of.log, log); diff != "" {
				k.t.Errorf("the stream of job %d (-want +got)\n%s", which, diff)
			}
			return err
		})
	}
}

func (k *skeptic) rows(of beliefs, ds []decision.Decision) {
	if len(ds) != len(of.all) {
		k.t.Fatalf("%d questions are stored, want %d", len(ds), len(of.all))
	}
	for i, d := range ds {
		b := k.qs[of.all[i]]
		filled := struct{ N int64 }{}
		if d.Input != nil && json.Unmarshal(d.Input, &filled) != nil && !bytes.Contains(d.Input, []byte(`1.0`)) {
			k.t.Errorf("the input of %s is %s", d.ID, d.Input)
		}
		if bytes.Contains(d.Input, []byte(`1.0`)) {
			filled.N = 1
		}
		settled := d.SettledAt.IsZero() == (b.status == pending) && d.DecidedAt.IsZero() == (b.choice == "")
		if d.ID != of.all[i] || d.N != int64(i+1) || string(d.Status) != b.status || string(d.Choice) != b.choice || d.DecidedBy != b.by ||
			d.DecidedPrincipal != b.by || filled.N != b.n || d.Open != (b.status == pending) || !settled || !d.ExpiresAt.Equal(b.deadline) {
			k.t.Errorf("stored %+v, want %+v", d, b)
		}
		if err := d.Intact(); err != nil {
			k.t.Error(err)
		}
	}
}

// counted fails unless each answered question has its vote, and no other has one.
func (k *skeptic) counted() {
	votes := map[string]int{}
	for _, v := range k.votes() {
		id, _, _ := strings.Cut(v, ":")
		if b := k.qs[id]; b != nil {
			votes[id]++
			if !strings.Contains(v, b.by+" as "+b.by+" says "+b.choice+" ") {
				k.t.Errorf("a vote in it: %s, want %+v", v, b)
			}
		}
	}
	for id, b := range k.qs {
		if want := map[bool]int{true: 1}[b.status == resolved]; votes[id] != want {
			k.t.Errorf("%d votes in %s, which is %s", votes[id], id, b.status)
		}
	}
}

// Whatever is done to questions, in whatever order and whenever: rows, votes, counters
// and events are those of a simple model, and so is what everybody is told.
func TestQuestionsAsInAModel(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		k := &skeptic{asker: a, t: rt, qs: map[string]*belief{}, seen: seen}
		for i := range k.jobs {
			k.jobs[i] = a.another(func(*job.Job) {})
		}
		rt.Cleanup(func() { // nothing waits for the next history's sweeps
			for _, j := range k.jobs {
				if a.job(j.ID).Pending > 0 {
					a.endOf(j.ID)
				}
			}
		})
		rt.Repeat(map[string]func(*rapid.T){
			"ask": k.ask, "ask more": k.ask, "resolve": k.resolve, "resolve more": k.resolve, "answer again": k.answerAgain, "withdraw": k.withdraw, "sweep": k.sweep, "expire": k.expireOne,
			"end": k.end, "wait": k.wait, "late": k.late, "later": k.late, "": k.check,
		})
		k.counted()
	})
	storetest.CheckInvariants(t, a.st)
	for _, what := range []string{
		"ask ", "ask key", "ask run_state", "asked again", "resolve ", "answered again", "resolve not_found", "resolve choice_conflict", "resolve withdrawn",
		"resolve expired", "resolve self_decision", "resolve not_offered", "resolve usage", "resolve invalid_arguments", "withdraw ", "withdrawn again",
		"withdraw not_found", "withdraw not_pending", "withdraw expired", "withdraw forbidden", "sweep of 0", "sweep of 1", "expire ",
		"expire not_pending", "end ", "end run_state", "end with 0", "end with 1",
	} {
		if seen[what] == 0 && raceFactor == 1 && !t.Failed() {
			t.Errorf("it never came to: %s", what)
		}
	}
	t.Log(seen)
}
