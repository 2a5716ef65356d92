package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
)

// job checks that a job, its questions, its counters and its log agree.
func (k *checker) job(j job.Job) {
	es := k.streams[j.Stream()]
	if len(es) == 0 || es[0].Type != event.JobQueued {
		k.fault(j.ID, "its stream does not begin with its creation")
		return
	}
	if int64(len(es)) != j.Head.Seq {
		k.fault(j.ID, "the head is %d, and there are %d events", j.Head.Seq, len(es))
	}
	k.life(j, es)
	k.asks(j)
	outputs, dropped := len(k.having(j.ID, event.JobOutput)), len(k.having(j.ID, event.OutputDropped))
	if int64(outputs) != j.Outputs || (dropped > 0) != j.Dropped || dropped > 1 {
		k.fault(j.ID, "%d outputs and %d marks of dropped ones are in its log, the job says %d, %t", outputs, dropped, j.Outputs, j.Dropped)
	}
}

// life checks that a job's status is the one its log tells, and that the log ends with it:
// only what became of telling people about it may follow.
func (k *checker) life(j job.Job, es []event.Event) {
	told, ends := job.Queued, 0
	es = slices.DeleteFunc(slices.Clone(es), func(e event.Event) bool { return e.Type == event.DeliveryDropped })
	for i, e := range es {
		switch {
		case e.Type == event.JobStarted:
			told = job.Running
		case job.Status(e.Type).Terminal():
			told = job.Status(e.Type)
			if ends++; i != len(es)-1 {
				k.fault(j.ID, "%s stands behind its end", es[i+1].Type)
			}
		}
	}
	if told != j.Status && !(told == job.Queued && j.Status == job.Launching) || ends > 1 {
		k.fault(j.ID, "it is %s, its log says %s, with %d ends", j.Status, told, ends)
	}
	if j.Status.Terminal() == j.EndedAt.IsZero() || j.Status == job.Running && j.StartedAt.IsZero() || (j.Status == job.Queued) != (j.Claim == "") && !j.Status.Terminal() {
		k.fault(j.ID, "it is %s with the claim %q, started at %s, ended at %s", j.Status, j.Claim, j.StartedAt, j.EndedAt)
	}
}

// asks checks that a job counts its questions, and that none waits for one that ended.
func (k *checker) asks(j job.Job) {
	ds, waiting := k.below[j.ID], int64(0)
	for i, d := range ds {
		if d.N != int64(i+1) {
			k.fault(d.ID, "it is number %d of %s, want %d", d.N, j.ID, i+1)
		}
		if d.Status == decision.Pending {
			if waiting++; j.Status.Terminal() {
				k.fault(d.ID, "it waits, and %s is %s", j.ID, j.Status)
			}
		}
	}
	if int64(len(ds)) != j.Questions || waiting != j.Pending {
		k.fault(j.ID, "%d of %d questions wait, the job says %d of %d", waiting, len(ds), j.Pending, j.Questions)
	}
}

// cleaned checks that what is left of a job which is cleaned up ends where its tombstone
// says, and that nothing else is left without its job.
func (k *checker) cleaned() {
	for stream, es := range k.streams {
		id, ok := strings.CutPrefix(stream, "job:")
		if _, known := k.Jobs[id]; !ok || known {
			continue
		}
		if h, found := k.Cleaned[stream]; !found || es[len(es)-1].StreamSeq > h.Seq {
			k.fault(stream, "%d events of no job are left, with a tombstone: %t", len(es), found)
		}
	}
}

func (k *checker) question(d decision.Decision) {
	if _, ok := k.Jobs[d.Owner.ID]; !ok || d.Owner.Kind != decision.OwnerJob {
		if _, cleaned := k.Cleaned[d.Owner.Stream()]; !cleaned {
			k.fault(d.ID, "its %s %s does not exist", d.Owner.Kind, d.Owner.ID)
		}
	}
	if err := d.Intact(); err != nil {
		k.fault(d.ID, "%v", err)
	}
	pending, answered := d.Status == decision.Pending, d.Status == decision.Resolved
	if d.Open != pending || pending != d.SettledAt.IsZero() || answered == d.DecidedAt.IsZero() || answered != (d.DecidedBy != "") ||
		answered != slices.Contains(d.Options, string(d.Choice)) {
		k.fault(d.ID, "it is %s (open: %t) with %q by %q, decided %s, settled %s", d.Status, d.Open, d.Choice, d.DecidedBy, d.DecidedAt, d.SettledAt)
	}
	k.storyOf(d)
}

// storyOf checks that a question's status has exactly its events, and that they tell of
// what is stored.
func (k *checker) storyOf(d decision.Decision) {
	want := []event.Type{event.DecisionRequested}
	if d.Status != decision.Pending {
		want = append(want, event.Type("decision_"+d.Status))
	}
	var got []event.Type
	for _, e := range k.subjects[d.ID] {
		if got = append(got, e.Type); e.Stream != d.Owner.Stream() {
			k.fault(d.ID, "%s stands in %s", e.Type, e.Stream)
		}
	}
	if !slices.Equal(want, got) {
		k.fault(d.ID, "it is %s, and its events are %v", d.Status, got)
		return
	}
	var told struct {
		Prompt, Choice, By, Principal string
		DecisionID                    string `json:"decision_id"`
		Input                         json.RawMessage
	}
	for _, e := range k.subjects[d.ID] {
		if e.Redacted {
			return
		}
		if err := json.Unmarshal(e.Payload, &told); err != nil || told.DecisionID != d.ID {
			k.fault(e.ID, "it tells of %q: %v", told.DecisionID, err)
		}
	}
	if told.Prompt != d.Prompt || told.Choice != string(d.Choice) || d.Status == decision.Resolved && (told.By != d.DecidedBy || told.Principal != d.DecidedPrincipal) ||
		!sameJSON(told.Input, d.Input) {
		k.fault(d.ID, "its events tell %+v", told)
	}
}

// sameJSON compares but for the space between words, which an event does not keep.
func sameJSON(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
