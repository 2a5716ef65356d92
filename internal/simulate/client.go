package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
)

// client does one thing after the other.
type client struct {
	*sim
	n   int
	rnd *rand.Rand
}

// deeds are what a client does, and how often of their sum.
var deeds = []struct {
	often int
	do    func(c *client, ctx context.Context)
}{
	{26, (*client).callTool},
	{34, (*client).decideTogether},
	{3, (*client).withdraw},
	{3, (*client).withdrawCall},
	{8, (*client).readApproval},
	{6, (*client).listPending},
	{5, (*client).startRun},
	{1, (*client).cancelRun},
	{4, (*client).askForJob},
	{8, (*client).answerQuestion},
	{1, (*client).withdrawQuestion},
	{3, (*client).readQuestion},
}

func (c *client) work(ctx context.Context) {
	sum := 0
	for _, d := range deeds {
		sum += d.often
	}
	for ctx.Err() == nil {
		n := c.rnd.IntN(sum)
		for _, d := range deeds {
			if n -= d.often; n < 0 {
				d.do(c, ctx)
				break
			}
		}
		pause(ctx, c.rnd, 80*time.Millisecond)
	}
}

// brief bounds an answer: clients give up, too. What goes on then goes on unseen.
func (c *client) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(context.WithoutCancel(ctx), some(c.rnd, 300*time.Millisecond, 4*time.Second))
}

// fork is another client that acts at the same time, with choices of its own.
func (c *client) fork() *client {
	return &client{c.sim, c.n, rand.New(rand.NewPCG(c.rnd.Uint64(), c.rnd.Uint64()))}
}

// label is nobody else's name.
func (c *client) label(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.votes++
	return fmt.Sprintf("%s %d", name, c.votes)
}

// callTool calls a tool, and where it was not told what came of it calls again under the
// same key at another daemon.
func (c *client) callTool(ctx context.Context) {
	name := toolNames[c.rnd.IntN(len(toolNames))]
	args := fmt.Sprintf(`{"n":%d,"ask":%t,"brief":%t}`, c.rnd.IntN(100), c.rnd.IntN(5) > 0, c.rnd.IntN(8) == 0)
	key := id.New("key")
	for range 3 {
		one, stop := c.brief(ctx)
		r, err := c.anywhere("bot", c.rnd).Call(one, name, []byte(args), key)
		stop()
		if is := c.expect("call", err); is != unclear && (is != refusal || !retried(err)) {
			c.toldCall(ctx, r, err)
			return
		}
	}
}

// retried reports whether a refusal says that nothing was written: then it is worth while
// to ask again.
func retried(err error) bool { _, ok := decision.StandingOf(err); return !ok }

func (c *client) toldCall(ctx context.Context, r httpapi.Result, err error) {
	if err != nil || r.CallID == "" {
		return
	}
	c.mu.Lock()
	c.calls = append(c.calls, r.CallID)
	c.mu.Unlock()
	if r.Status == call.Pending && r.ApprovalID != "" {
		again := r.Kind != "" // a repeat of the request is told of the doubt about the call that it made
		a := asked{id: r.ApprovalID, stream: "call:" + r.CallID, digest: r.Digest, fixed: again}
		if c.met(a, again) && c.rnd.IntN(2) == 0 {
			c.waitFor(ctx, a)
		}
	}
	if c.rnd.IntN(3) == 0 {
		c.waitForCall(ctx, r.CallID)
	}
}

// decideTogether lets one to three reviewers answer one approval at once.
func (c *client) decideTogether(ctx context.Context) {
	a, ok := recent(c.sim, &c.approvals, c.rnd)
	if !ok {
		return
	}
	var all sync.WaitGroup
	for range 1 + c.rnd.IntN(3) {
		one := c.fork()
		all.Go(func() { one.decide(ctx, a, one.rnd.IntN(4) > 0) })
	}
	all.Wait()
}

func (c *client) decide(ctx context.Context, a asked, yes bool) output {
	who := []string{"ana", "bo", "cy"}[c.rnd.IntN(3)]
	in := input{act: vote, id: a.id, choice: decision.ChoiceReject, by: c.label(who)}
	d := httpapi.Deciding{Approved: yes, Digest: a.digest, By: in.by}
	if yes {
		in.choice = decision.ChoiceApprove
		if in.edited = !a.fixed && c.rnd.IntN(6) == 0; in.edited {
			d.EditedArgs = json.RawMessage(`{"n":7,"ask":true}`)
		}
	}
	return c.h.do(c.n, in, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		o, err := c.anywhere(who, c.rnd).Decide(one, a.id, d)
		return told(a.id, c.expect("decide", err), err, standingOf(o.Object))
	})
}

func (c *client) withdraw(ctx context.Context) {
	a, ok := recent(c.sim, &c.approvals, c.rnd)
	if !ok || !strings.HasPrefix(a.stream, "call:") {
		return
	}
	c.h.do(c.n, input{act: take, id: a.id}, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		o, err := c.anywhere("bot", c.rnd).Withdraw(one, a.id, httpapi.Note{})
		return told(a.id, c.expect("withdraw", err), err, standingOf(o))
	})
}

func (c *client) withdrawCall(ctx context.Context) {
	a, ok := recent(c.sim, &c.approvals, c.rnd)
	callID, isCall := strings.CutPrefix(a.stream, "call:")
	if !ok || !isCall {
		return
	}
	c.h.do(c.n, input{act: take, id: a.id}, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		o, err := c.anywhere("bot", c.rnd).WithdrawCall(one, callID)
		is := c.expect("withdraw call", err)
		if is == well && o.ApprovalID != a.id {
			return output{} // it waited for another one by then
		}
		return told(a.id, is, err, standing{})
	})
}

func (c *client) readApproval(ctx context.Context) {
	a, ok := recent(c.sim, &c.approvals, c.rnd)
	if !ok {
		return
	}
	c.h.do(c.n, input{act: read, id: a.id}, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		o, err := c.anywhere("ana", c.rnd).GetApproval(one, a.id)
		return told(a.id, c.expect("read an approval", err), err, standingOf(o))
	})
}

// listPending finds what nobody was told of: questions of runs, and of calls in doubt.
func (c *client) listPending(ctx context.Context) {
	one, stop := c.brief(ctx)
	defer stop()
	at := c.h.now()
	list, err := c.anywhere("bo", c.rnd).Approvals(one, "pending", "", 50)
	c.expect("list", err)
	for _, o := range list.Approvals {
		c.metObject(o)
		c.h.add(operation(c.n, input{act: read, id: o.ID}, at, output{done: true, stands: standingOf(o)}, c.h.now()))
	}
}

func (c *client) metObject(o decision.Object) asked {
	// A run that ends takes back what it asked, and so does a late outcome of a call.
	loose := o.StepID != "" || o.Kind == decision.KindInterrupted
	a := asked{id: o.ID, stream: "call:" + o.CallID, digest: o.Digest, fixed: loose}
	if o.StepID != "" {
		a.stream = "run:" + o.RunID
	}
	c.met(a, loose)
	return a
}

// startRun leaves a run to whichever daemon takes it.
func (c *client) startRun(ctx context.Context) {
	one, stop := within(context.WithoutCancel(ctx), patience)
	defer stop()
	d := run.NewDriver(run.Config{Store: c.w.store, Tools: c.w.conf.Tools, Policy: c.w.conf.Policy, Agent: run.AgentFunc(nobody)})
	_, err := d.Leave(one, "Pay.", run.DefaultLimits(), run.As("bot"), run.By(run.AgentRef{Name: "clerk"}))
	c.expect("start a run", err)
}

func nobody(context.Context, run.StepInput) (run.Proposal, error) {
	panic("simulate: a run is its daemon's")
}

func (c *client) cancelRun(ctx context.Context) {
	one, stop := c.brief(ctx)
	defer stop()
	list, err := c.anywhere("root", c.rnd).Runs(one, string(run.Waiting), "", 5)
	if c.expect("list runs", err) == well && len(list.Runs) > 0 {
		_, err := c.anywhere("root", c.rnd).CancelRun(one, list.Runs[0].RunID, httpapi.Note{})
		c.expect("cancel a run", err)
	}
}

// lastOfJob ends a job, in seconds, that outlived its simulation.
const lastOfJob = 300

// askForJob starts a job that lasts until it is stopped, and asks something for it.
func (c *client) askForJob(ctx context.Context) {
	one, stop := c.brief(ctx)
	defer stop()
	bot := c.anywhere("bot", c.rnd)
	job, known := recent(c.sim, &c.jobs, c.rnd)
	if !known || c.rnd.IntN(4) == 0 {
		j, err := bot.StartJob(one, httpapi.Starting{Command: httpapi.Command("sh", "-c", "read x"), TimeoutSeconds: lastOfJob})
		if c.expect("start a job", err) != well {
			return
		}
		job = j.JobID
		c.mu.Lock()
		c.jobs = append(c.jobs, job)
		c.mu.Unlock()
	}
	q, err := bot.Ask(one, job, httpapi.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}})
	if c.expect("ask", err) != well {
		return
	}
	a := asked{id: q.DecisionID, owner: job, stream: "job:" + job}
	if c.met(a, true) && c.rnd.IntN(2) == 0 {
		c.waitForQuestion(ctx, a, q.Cursor)
	}
}

func (c *client) answerQuestion(ctx context.Context) {
	a, ok := recent(c.sim, &c.questions, c.rnd)
	if !ok {
		return
	}
	var all sync.WaitGroup
	for range 1 + c.rnd.IntN(2) {
		one := c.fork()
		all.Go(func() { one.resolve(ctx, a) })
	}
	all.Wait()
}

func (c *client) resolve(ctx context.Context, a asked) output {
	who := []string{"ana", "bo", "cy"}[c.rnd.IntN(3)]
	choice := []string{"yes", "no"}[c.rnd.IntN(2)]
	in := input{act: vote, id: a.id, choice: decision.Choice(choice), by: c.label(who)}
	return c.h.do(c.n, in, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		q, err := c.anywhere(who, c.rnd).Resolve(one, a.owner, a.id, httpapi.Resolving{Choice: choice, By: in.by})
		return told(a.id, c.expect("resolve", err), err, questionStands(q))
	})
}

func (c *client) withdrawQuestion(ctx context.Context) {
	a, ok := recent(c.sim, &c.questions, c.rnd)
	if !ok {
		return
	}
	c.h.do(c.n, input{act: take, id: a.id}, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		q, err := c.anywhere("bot", c.rnd).WithdrawQuestion(one, a.owner, a.id, httpapi.Note{})
		return told(a.id, c.expect("withdraw a question", err), err, questionStands(q))
	})
}

func (c *client) readQuestion(ctx context.Context) {
	a, ok := recent(c.sim, &c.questions, c.rnd)
	if !ok {
		return
	}
	c.h.do(c.n, input{act: read, id: a.id}, func() output {
		one, stop := c.brief(ctx)
		defer stop()
		q, err := c.anywhere("cy", c.rnd).GetQuestion(one, a.id)
		return told(a.id, c.expect("read a question", err), err, questionStands(q))
	})
}

// settling are the events by which an approval stops waiting.
var settling = map[event.Type]decision.Status{
	event.ApprovalDecided: "", event.ApprovalExpired: decision.Expired, event.ApprovalWithdrawn: decision.Withdrawn, event.ApprovalSuperseded: decision.Superseded,
}
