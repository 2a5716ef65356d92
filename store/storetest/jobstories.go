package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// jobStories are what jobs, people and supervisors do to questions and jobs, each from
// the job's beginning to some end.
func jobStories() map[string]func(*play) {
	return map[string]func(*play){
		"question answered":  tellAnswered,
		"question withdrawn": tellTakenBack,
		"question expired":   tellQuestionExpired,
		"question too late":  tellTooLate,
		"questions at end":   tellQuestionsAtEnd,
		"job queued":         tellQueued,
		"job launched":       tellLaunched,
		"job cleaned":        tellCleaned,
	}
}

// queue makes a job that is not launched.
func (p *play) queue() job.Job {
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Home: "/nowhere", Spec: job.Spec{Shell: "true"}, Principal: "agent:ana"}
	p.step("queue a job", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) error {
			ch, err := j.Step(job.Create{}, tx.Now())
			if err != nil {
				return err
			}
			return tx.InsertJob(ch)
		})
	})
	return p.job(j.ID)
}

// asksOf asks something for a job.
func (p *play) asksOf(j job.Job, n int64) (q decision.AskedAt) {
	asking := decision.Asking{
		Prompt: "Continue past epoch 40?", Options: []string{"yes", "no"}, Timeout: time.Hour, By: "agent:ana",
		Form: []byte(`{"type":"object","properties":{"epochs":{"type":"integer"}}}`), IdempotencyKey: fmt.Sprint("question ", n),
	}
	p.step("ask", func(ctx context.Context) (err error) {
		q, err = p.op.Ask(ctx, j.Space, j.ID, asking)
		return err
	})
	if got := p.decision(q.ID); got.N != n || got.Status != decision.Pending {
		p.Errorf("asked as number %d, stored as %d, %s", n, got.N, got.Status)
	}
	return q
}

func (p *play) resolve(q decision.AskedAt) {
	answer := decision.Answering{Choice: "yes", Input: []byte(`{"epochs": 5}`), By: "Ana", Note: "fine"}
	p.step("resolve", func(ctx context.Context) error {
		_, err := p.op.Resolve(ctx, q.Owner.ID, q.ID, answer)
		return err
	})
	if d := p.decision(q.ID); d.Choice != "yes" || d.DecidedBy != "Ana" || d.Note != "fine" || string(d.Input) != `{"epochs": 5}` {
		p.Errorf("an answer that was acknowledged is %q by %q", d.Choice, d.DecidedBy)
	}
}

// questionsStand is such a story's last line: how the job's questions stand, the first
// one first.
func (p *play) questionsStand(j job.Job, want ...decision.Status) {
	p.Helper()
	waiting := int64(0)
	var got []decision.Status
	for _, d := range p.questions(decision.Query{Space: j.Space, JobID: j.ID}) {
		if got = append([]decision.Status{d.Status}, got...); d.Status == decision.Pending {
			waiting++
		}
	}
	if now := p.job(j.ID); !slices.Equal(want, got) || now.Pending != waiting || now.Questions != int64(len(want)) {
		p.Errorf("the questions stand at %v, want %v; the job counts %d of %d", got, want, now.Pending, now.Questions)
	}
}

func tellAnswered(p *play) {
	j := p.queue()
	q := p.asksOf(j, 1)
	p.asksOf(j, 2)
	p.resolve(q)
	p.resolve(q) // once more is fine
	p.questionsStand(j, decision.Resolved, decision.Pending)
}

func tellTakenBack(p *play) {
	j := p.queue()
	q := p.asksOf(j, 1)
	for range 2 {
		p.step("withdraw", func(ctx context.Context) error {
			asker := decision.Operator{Store: p.s, Principal: "agent:ana"}
			_, err := asker.WithdrawQuestion(ctx, j.ID, q.ID, "agent:ana", "")
			return err
		})
	}
	p.questionsStand(j, decision.Withdrawn)
}

func tellQuestionExpired(p *play) {
	j := p.queue()
	p.asksOf(j, 1)
	p.step("expire", func(ctx context.Context) error {
		n, err := p.later.ExpireDue(ctx, 10)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d were expired", n)
		}
		return err
	})
	p.questionsStand(j, decision.Expired)
}

// tellTooLate: the refusal and the end of the question are one commit.
func tellTooLate(p *play) {
	j := p.queue()
	first, second := p.asksOf(j, 1), p.asksOf(j, 2)
	late := func(what string, try func(ctx context.Context) error) {
		p.step(what, func(ctx context.Context) error {
			err := try(ctx)
			if errors.Is(err, decision.ErrExpired) {
				return nil
			}
			if err == nil {
				err = errors.New("it was taken")
			}
			return err
		})
	}
	late("resolve", func(ctx context.Context) error {
		_, err := p.later.Resolve(ctx, j.ID, first.ID, decision.Answering{Choice: "yes", By: "Ana"})
		return err
	})
	p.questionsStand(j, decision.Expired, decision.Pending)
	late("withdraw", func(ctx context.Context) error {
		_, err := p.later.WithdrawQuestion(ctx, j.ID, second.ID, "agent:ana", "")
		return err
	})
	p.questionsStand(j, decision.Expired, decision.Expired)
}

// tellQuestionsAtEnd: the end of a job and of what waits of it are one commit.
func tellQuestionsAtEnd(p *play) {
	j := p.queue()
	q := p.asksOf(j, 1)
	p.asksOf(j, 2)
	p.resolve(q)
	p.asksOf(j, 3)
	s := p.supervise()
	p.step("stop", func(ctx context.Context) error {
		_, err := s.Stop(ctx, j.ID, "Bo", time.Second)
		return err
	})
	p.questionsStand(j, decision.Resolved, decision.Withdrawn, decision.Withdrawn)
	p.jobStands(j.ID, job.Cancelled, "queued decision_requested decision_requested decision_resolved decision_requested decision_withdrawn decision_withdrawn cancelled")
}

// jobStands fails unless the job stands so and its log says that.
func (p *play) jobStands(id string, want job.Status, log string) {
	p.Helper()
	got := ""
	for i, e := range p.events(event.Query{Stream: job.RefOf(id).Stream()}) {
		if i > 0 {
			got += " "
		}
		got += string(e.Type)
	}
	if j := p.job(id); j.Status != want || got != log {
		p.Errorf("the job is %s, want %s; its log says\n%s, want\n%s", j.Status, want, got, log)
	}
}

// tellQueued: a job that waits for the end of another, which then ends otherwise.
func tellQueued(p *play) {
	before := p.queue()
	s := p.supervise()
	var j job.Job
	for range 2 { // a repeat is answered with the first
		p.step("start", func(ctx context.Context) (err error) {
			j, err = s.Start(ctx, job.Starting{
				Spec: job.Spec{Shell: "true", Trigger: job.Trigger{JobID: before.ID, Status: job.Completed}}, IdempotencyKey: before.ID, Principal: "agent:ana",
			})
			return err
		})
		p.jobStands(j.ID, job.Queued, "queued")
	}
	p.step("pause", func(ctx context.Context) error { _, err := s.Pause(ctx, j.ID, "Bo"); return err })
	p.stepLoosely("resume", func(ctx context.Context) error { _, err := s.Resume(ctx, j.ID, "Bo"); return err })
	p.step("stop the other", func(ctx context.Context) error { _, err := s.Stop(ctx, before.ID, "Bo", time.Second); return err })
	p.bringIn(s, "abandon", j.ID, func(j job.Job) bool { return j.Status == job.Cancelled })
	p.jobStands(j.ID, job.Cancelled, "queued paused unpaused cancelled")
}

// tellLaunched: a job is launched, prints, asks and ends while a question waits.
func tellLaunched(p *play) {
	s := p.supervise()
	j := p.launch(s)
	p.bringIn(s, "begin", j.ID, func(j job.Job) bool { return j.Status == job.Running })
	p.asksOf(j, 1)
	j = p.job(j.ID)
	p.runnerPrints(j, 3)
	p.bringIn(s, "output", j.ID, func(j job.Job) bool { return j.Outputs == 3 })
	if now := p.job(j.ID); string(now.Progress) != `{"n":2}` || now.Offset == 0 {
		p.Errorf("the progress is %s, up to %d", now.Progress, now.Offset)
	}
	p.runnerPrints(j, 1)
	p.runnerEnds(j)
	p.bringIn(s, "end", j.ID, func(j job.Job) bool { return j.Status == job.Completed })
	p.questionsStand(j, decision.Withdrawn)
	p.jobStands(j.ID, job.Completed, "queued started decision_requested job.output job.output job.output job.output decision_withdrawn completed")
}

// tellCleaned: a job with what belongs to it is marked as gone, at once and once.
func tellCleaned(p *play) {
	j := p.queue()
	p.resolve(p.asksOf(j, 1))
	s := p.supervise()
	p.step("stop", func(ctx context.Context) error { _, err := s.Stop(ctx, j.ID, "Bo", time.Second); return err })
	j = p.job(j.ID)
	p.step("clean", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) error {
			now, err := tx.Job(j.ID)
			if err != nil {
				return err
			}
			return tx.CleanJob(now, "Bo")
		})
	})
	if _, err := try(p.world, func(tx store.Tx) (job.Job, error) { return tx.Job(j.ID) }); !errors.Is(err, decision.ErrNotFound) {
		p.Errorf("it is still seen: %v", err)
	}
	p.same(j.Head, read(p.world, func(tx store.Tx) (event.Head, error) {
		h, found, err := tx.Tombstone(j.Stream())
		if err == nil && !found {
			err = errors.New("there is none")
		}
		return h, err
	}))
	if left := read(p.world, func(tx store.Tx) ([]job.Job, error) { return tx.CleanedJobs(j.Home, "", 1000) }); !slices.ContainsFunc(left, func(l job.Job) bool { return l.ID == j.ID }) {
		p.Error("nobody will delete it")
	}
}
