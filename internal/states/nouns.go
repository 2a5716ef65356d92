package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// meanings are what the comments behind the constants of a type say, by value.
type meanings map[string]map[string]string

func readMeanings(root string) (meanings, error) {
	m := meanings{}
	for _, t := range []string{"decision.Status", "call.Status", "run.Status", "run.StepStatus", "job.Status", "delivery.Status"} {
		dir, typ, _ := strings.Cut(t, ".")
		vs, err := source.Values(filepath.Join(root, dir), typ)
		if err != nil {
			return nil, err
		}
		m[t] = map[string]string{}
		for _, v := range vs {
			m[t][v.Text] = v.Doc
		}
	}
	return m, nil
}

const closed = "closed"

// asked is a pending approval of a call that ends in an hour; a yes lasts ten minutes.
func asked() decision.Decision {
	req := request.Request{
		RunID: "run_1", CallID: "call_1", Args: []byte(`{}`),
		Tool: tool.Spec{Name: "refund", InputSchema: []byte(`{}`), SideEffect: tool.RemoteMutation},
	}
	d := decision.Decision{
		ID: "apr_1", Type: decision.Approval, Owner: decision.Ref{Kind: decision.OwnerCall, ID: "call_1"}, RunID: "run_1", CallID: "call_1", Tool: "refund",
		Request: must(req.JSON()), SpecDigest: must(req.Tool.Digest()), ExpiresAt: noon.Add(time.Hour), GrantTTL: 10 * time.Minute,
		Status: decision.Pending, Open: true, Needs: 1,
	}
	d.Digest = must(d.Binding())
	return d
}

func after(d decision.Decision, now time.Time, cmds ...decision.Command) decision.Decision {
	for _, cmd := range cmds {
		d = must(d.Step(cmd, now)).Next
	}
	return d
}

func stateOf(d decision.Decision) string {
	if !d.Open && (d.Status == decision.Pending || d.Status == decision.Approved) {
		return string(d.Status) + ", " + closed
	}
	return string(d.Status)
}

func stepDecision(d decision.Decision, cmd any, now time.Time) answer {
	ch, err := d.Step(cmd.(decision.Command), now)
	return answer{stateOf(ch.Next), stateOf(ch.Next) == stateOf(d), ch.Events, ch.Refuse, err}
}

var (
	yes = decision.Decide{Answer: decision.Answer{Approved: true, By: "ana"}}
	no  = decision.Decide{Answer: decision.Answer{By: "ana"}}
)

func approvals(m meanings) machine[decision.Decision] {
	means := m["decision.Status"]
	d := asked()
	states := []state[decision.Decision]{}
	for _, s := range []struct {
		at    decision.Decision
		means string
	}{
		{d, "nobody has answered yet"},
		{after(d, noon, yes), ""},
		{after(d, noon, no), ""},
		{after(d, late, decision.Expire{}), ""},
		{after(d, noon, decision.Withdraw{By: "bot"}), ""},
		{after(d, noon, decision.Supersede{}), ""},
		{after(d, noon, yes, decision.Consume{Attempt: 1}), ""},
		{after(d, noon, decision.Close{}), "its run has ended: it stays as it is, and is no work for anybody"},
		{after(d, noon, yes, decision.Close{}), "the same of a yes"},
	} {
		if s.means == "" {
			s.means = means[string(s.at.Status)]
		}
		states = append(states, state[decision.Decision]{stateOf(s.at), s.means, s.at})
	}
	return machine[decision.Decision]{
		title: "Approval", dir: "decision", states: states, step: stepDecision,
		about: "The durable record of what a person is asked to agree to, and of their answer (`decision/step.go`). Here it belongs to a call; a run's cannot be\n" +
			"withdrawn, and only a run's is ever closed.",
		commands: []command{
			{"a yes", yes, noon},
			{"a yes, too late", yes, late},
			{"a no", no, noon},
			{"a no, too late", no, late},
			{"the asker withdraws", decision.Withdraw{By: "bot"}, noon},
			{"the asker withdraws, too late", decision.Withdraw{By: "bot"}, late},
			{"the sweep, in time", decision.Expire{}, noon},
			{"the sweep, overdue", decision.Expire{}, late},
			{"an attempt spends it", decision.Consume{Attempt: 2}, noon},
			{"an attempt spends it, too late", decision.Consume{Attempt: 2}, late},
			{"the no is returned", decision.Consume{}, noon},
			{"something newer replaces it", decision.Supersede{}, noon},
			{"what waited on it ends", decision.Close{}, noon},
			{"a question's answer", decision.Resolve{Choice: "yes", By: "ana"}, noon},
		},
	}
}

func questions(m meanings) machine[decision.Decision] {
	means := m["decision.Status"]
	q := must(decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}, Timeout: time.Hour, By: "bot"}.Checked())
	d := must(q.Asked("dec_1", event.MainSpace, decision.Ref{Kind: decision.OwnerJob, ID: "job_1"}, 1, noon, 1))
	answered := func(c decision.Choice) decision.Resolve { return decision.Resolve{Choice: c, By: "ana"} }
	states := []state[decision.Decision]{
		{"pending", "nobody has answered yet", d},
		{"resolved", "somebody answered", after(d, noon, answered("yes"))},
		{"withdrawn", means["withdrawn"], after(d, noon, decision.Withdraw{By: "bot"})},
		{"expired", "nobody answered in time", after(d, late, decision.Expire{})},
	}
	return machine[decision.Decision]{
		title: "Question", dir: "decision", states: states, step: stepDecision, left: []string{"Close"},
		about: "What a job asks of people: a prompt and options (`decision/question.go`). The same rows and doors as an approval's; the same answer or withdrawal again is\n" +
			"accepted and changes nothing.",
		commands: []command{
			{"an answer", answered("yes"), noon},
			{"another answer", answered("no"), noon},
			{"an answer, too late", answered("yes"), late},
			{"the asker withdraws", decision.Withdraw{By: "bot"}, noon},
			{"the asker withdraws, too late", decision.Withdraw{By: "bot"}, late},
			{"its job ends", decision.Withdraw{By: "system", ByRuntime: true}, late},
			{"the sweep, in time", decision.Expire{}, noon},
			{"the sweep, overdue", decision.Expire{}, late},
			{"an approval's yes", yes, noon},
			{"an approval's spending", decision.Consume{Attempt: 1}, noon},
			{"an approval's replacement", decision.Supersede{}, noon},
		},
	}
}

func stepCall(c call.Call, cmd any, now time.Time) answer {
	ch, err := c.Step(cmd.(call.Command), now)
	a := answer{string(ch.Next.Status), ch.Next.Status == c.Status, ch.Events, nil, err}
	if ch.Late && !ch.Ignored {
		a.to += " (late)"
	}
	return a
}

func calls(m meanings) machine[call.Call] {
	fresh := call.Call{ID: "call_1", RunID: "run_1", Tool: "refund", Args: []byte(`{}`)}
	to := func(cmds ...call.Command) call.Call {
		c := fresh
		for _, cmd := range cmds {
			c = must(c.Step(cmd, noon)).Next
		}
		return c
	}
	park := call.Park{Approval: decision.Decision{ID: "apr_1", N: 1}}
	begin := func(attempts int64) call.Begin {
		return call.Begin{ApprovalID: "apr_1", Owner: "me", Epoch: 1, Lease: time.Minute, Attempts: attempts}
	}
	end := func(s call.Status) call.End {
		return call.End{Fence: 1, Epoch: 1, Outcome: call.Outcome{Status: s}}
	}
	earlier := end(call.Succeeded)
	earlier.Fence = 0
	states := []state[call.Call]{{"new", "not stored yet", fresh}}
	for _, c := range []call.Call{
		to(park), to(park, begin(0)), to(begin(0), end(call.Unknown)), to(begin(0), end(call.Succeeded)), to(begin(0), end(call.Failed)),
		to(park, call.Refuse{Kind: call.KindApprovalDenied}), to(park, call.Lapse{}), to(park, call.TakeBack{By: "bot"}),
	} {
		states = append(states, state[call.Call]{string(c.Status), m["call.Status"][string(c.Status)], c})
	}
	return machine[call.Call]{
		title: "Call", dir: "call", states: states, step: stepCall,
		about: "One tool call (`call/step.go`). These are the events of a call that is its own root. Below a run's step the states are the same, and `call.started`,\n" +
			"`call.finished` and `call.unknown` are called `step.tool_started`, `step.tool_finished` and `step.interrupted`; the others are the step's to tell.\n" +
			"*(late)*: the outcome came after its lease, or its run, had ended. An outcome that *stays* is noted on its attempt alone.",
		commands: []command{
			{"it has to wait for a person", park, noon},
			{"a first attempt", begin(0), noon},
			{"a second attempt", begin(1), noon},
			{"policy or person refuse", call.Refuse{Kind: call.KindPolicyDenied, Actor: "system"}, noon},
			{"nobody agreed in time", call.Lapse{}, noon},
			{"the asker takes it back", call.TakeBack{By: "bot"}, noon},
			{"the attempt succeeded", end(call.Succeeded), noon},
			{"the attempt failed", end(call.Failed), noon},
			{"its outcome is unknown", end(call.Unknown), noon},
			{"the attempt succeeded, too late", end(call.Succeeded), late},
			{"an attempt before it ended", earlier, noon},
			{"its lease lasts", call.Lose{Epoch: 1}, noon},
			{"its lease ended", call.Lose{Epoch: 1}, late},
			{"its run was taken over", call.Lose{Epoch: 1, TakenOver: true}, noon},
			{"the store went back in time", call.Doubt{}, noon},
			{"the probe tells", call.Learn{Outcome: call.Outcome{Status: call.Succeeded}}, noon},
		},
	}
}

// place names where a run stands, with its step.
func place(r run.Run) string {
	switch s := r.Current.Status; {
	case r.Status.Terminal():
		return "ended"
	case r.Status == run.Waiting:
		return "waiting"
	case r.Status == "":
		return "new"
	case r.LeaseUntil.IsZero():
		return "given back"
	case s == run.AwaitingApproval:
		return "resuming"
	case s == run.Deciding, s == run.Executing, s == run.Interrupted:
		return string(s)
	}
	return "between steps"
}

func stepRun(r run.Run, cmd any, now time.Time) answer {
	ch, err := r.Step(cmd.(run.Command), now)
	a := answer{place(ch.Next), place(ch.Next) == place(r), ch.Events, nil, err}
	if ch.Next.Status.Terminal() {
		a.to = string(ch.Next.Status)
	}
	return a
}

// hold is what the process writes with that took the lease first.
func hold(at time.Time) run.Hold {
	return run.Hold{Fence: 1, Epoch: 1, At: at, Until: at.Add(time.Minute)}
}

func take(at time.Time) run.Take {
	return run.Take{Owner: "me", Epoch: 1, At: at, Until: at.Add(time.Minute)}
}

func runs(m meanings) machine[run.Run] {
	to := func(cmds ...run.Command) run.Run {
		r := run.Run{ID: "run_1", Goal: "do it", Limits: run.DefaultLimits()}
		for _, cmd := range cmds {
			r = must(r.Step(cmd, noon)).Next
		}
		return r
	}
	h := hold(noon)
	create, advance := run.Create{Take: take(noon)}, run.Advance{Hold: h, StepID: "stp_1"}
	record := run.Record{Hold: h, Proposal: run.Proposal{Kind: run.CallTool, Tool: "push"}}
	execute := run.Execute{Hold: h, CallID: "call_1"}
	pause := run.Pause{Hold: h, Approval: decision.Decision{ID: "apr_1", N: 1}, CallID: "call_1"}
	observe := func(k run.ObservationKind) run.Observe { return run.Observe{Hold: h, Kind: k} }
	interrupt := run.Interrupt{Hold: h}
	answered := func(s decision.Status) run.Answered {
		return run.Answered{Decision: decision.Decision{ID: "apr_1", Status: s, DecidedBy: "ana"}}
	}
	stale := advance
	stale.Fence = 0
	steps := func(s run.StepStatus) string { return "; its step: " + m["run.StepStatus"][string(s)] }
	means := func(s run.Status, rest string) string { return "`" + string(s) + "`" + rest }
	ended := make([]string, 0, 3)
	for _, s := range []run.Status{run.Completed, run.Failed, run.Cancelled} {
		ended = append(ended, "`"+string(s)+"` ("+m["run.Status"][string(s)]+")")
	}
	return machine[run.Run]{
		title: "Run, and the step within it", dir: "run", step: stepRun,
		about: "An agent's loop (`run/step.go`). Where a run stands is its status together with that of its last step. Whatever the loop writes names the fence\n" +
			"under which it took the lease, and is lost where that is not the present one. What becomes of a tool is told by its call, what is asked of people by the\n" +
			"approval: their events are written in the same transaction.",
		states: []state[run.Run]{
			{"new", "not stored yet", to()},
			{"between steps", means(run.Running, "; its step is `done` or `failed`, and the next is claimed in the same transaction"), to(create, advance, observe(run.InvalidDecision))},
			{"given back", means(run.Running, "; the same, where its process stopped: nobody holds the lease"), to(create, advance, observe(run.InvalidDecision), run.Release{Hold: h})},
			{"deciding", means(run.Running, steps(run.Deciding)), to(create, advance)},
			{"executing", means(run.Running, steps(run.Executing)), to(create, advance, record, execute)},
			{"interrupted", means(run.Running, steps(run.Interrupted)), to(create, advance, record, execute, interrupt)},
			{"waiting", means(run.Waiting, "; its step is `awaiting_approval`, and nobody holds the lease"), to(create, advance, record, pause)},
			{"resuming", means(run.Running, "; the same step, only within the transaction of a resume"), resumed(to(create, advance, record, pause))},
			{"ended", strings.Join(ended, ", "), to(create, advance, run.Cancel{By: "ana"})},
		},
		commands: []command{
			{"it is made", create, noon},
			{"the next step is claimed", advance, noon},
			{"it is claimed, the lease ended", run.Advance{Hold: hold(late), StepID: "stp_2"}, noon},
			{"it is claimed by a process that was taken over", stale, noon},
			{"what the agent said is recorded", record, noon},
			{"the policy has ruled", run.Judged{Ruling: run.Ruling{Outcome: policy.Allow}}, noon},
			{"a person has to agree", pause, noon},
			{"the tool is started", execute, noon},
			{"it is started, the lease ended", run.Execute{Hold: hold(late), CallID: "call_1"}, noon},
			{"the tool has a result", observe(run.ToolResult), noon},
			{"the tool failed", observe(run.ToolError), noon},
			{"the policy denies", observe(run.PolicyDenied), noon},
			{"the decision is invalid", observe(run.InvalidDecision), noon},
			{"the outcome is unknown", interrupt, noon},
			{"another takes over, in time", run.TakeOver{Take: take(noon)}, noon},
			{"another takes over, the lease ended", run.TakeOver{Take: take(late)}, noon},
			{"it is resumed", run.Resume{Take: take(noon)}, noon},
			{"the agent completes it", run.End{Hold: h, Status: run.Completed, Reason: run.GoalCompleted}, noon},
			{"it has to be ended", run.End{Hold: h, Status: run.Failed, Reason: run.PolicyAbort, Kind: run.PolicyDenied}, noon},
			{"the lease is given back", run.Release{Hold: h}, noon},
			{"the model is charged", run.Charge{Hold: h, Usage: run.Usage{Tokens: 1}}, noon},
			{"an operator cancels", run.Cancel{By: "ana"}, noon},
			{"a person says no", answered(decision.Rejected), noon},
			{"nobody agreed in time", answered(decision.Expired), noon},
		},
	}
}

// resumed is r in the middle of its resume: the lease is taken, nothing is started
// yet. Its fence is put back, so that it is held by what the page writes with.
func resumed(r run.Run) run.Run {
	r = must(r.Step(run.Resume{Take: take(noon)}, noon)).Next
	r.Fence = hold(noon).Fence
	return r
}

func stepJob(j job.Job, cmd any, now time.Time) answer {
	ch, err := j.Step(cmd.(job.Command), now)
	return answer{jobState(ch.Next), jobState(ch.Next) == jobState(j), ch.Events, nil, err}
}

func jobState(j job.Job) string {
	switch {
	case j.Status == "":
		return "new"
	case j.Paused:
		return "paused"
	case j.StopBy != "" && !j.Status.Terminal():
		return string(j.Status) + ", to stop"
	}
	return string(j.Status)
}

func jobs(m meanings) machine[job.Job] {
	to := func(cmds ...job.Command) job.Job {
		j := job.Job{ID: "job_1"}
		for _, cmd := range cmds {
			j = must(j.Step(cmd, noon)).Next
		}
		return j
	}
	const token = "token"
	claim, begin := job.Claim{Token: token, Launcher: "me"}, job.Began{Token: token, Runner: "runner", At: noon}
	end := func(s job.Status) job.End { return job.End{Token: token, Status: s, Began: noon, Runner: "runner"} }
	stop := job.Stop{By: "ana", KillAfter: time.Second}
	states := []state[job.Job]{
		{"new", "not stored yet", to()},
		{"paused", "`queued`, and somebody holds it back", to(job.Create{}, job.Pause{By: "ana"})},
	}
	for _, j := range []job.Job{
		to(job.Create{}), to(job.Create{}, claim), to(job.Create{}, claim, stop), to(job.Create{}, claim, begin), to(job.Create{}, claim, begin, stop),
		to(job.Create{}, claim, end(job.Completed)), to(job.Create{}, claim, end(job.Failed)), to(job.Create{}, claim, end(job.TimedOut)),
		to(job.Create{}, stop), to(job.Create{}, claim, begin, end(job.Orphaned)),
	} {
		means := m["job.Status"][string(j.Status)]
		if j.StopBy != "" && !j.Status.Terminal() {
			means = "the same, and somebody wants it stopped"
		}
		states = append(states, state[job.Job]{jobState(j), means, j})
	}
	other := begin
	other.Token = "other"
	return machine[job.Job]{
		title: "Job", dir: "job", states: states, step: stepJob,
		about: "A supervised command (`job/step.go`). Whatever is written of a launch names its claim. A stop shows as `cancelled` once nothing of the command runs.\n" +
			"Questions are counted in the job's row and change no status; the end of the job closes those that wait, in the same transaction.",
		commands: []command{
			{"it is made", job.Create{}, noon},
			{"a supervisor claims it", claim, noon},
			{"its command has begun", begin, noon},
			{"the command of another claim has begun", other, noon},
			{"the launcher was lost, nothing begun", job.Requeue{Token: token}, noon},
			{"it printed something", job.Record{Token: token, Offset: 1, Events: []event.Event{{Type: event.JobOutput}}}, noon},
			{"exit status 0", end(job.Completed), noon},
			{"another exit status", end(job.Failed), noon},
			{"its time limit passed", end(job.TimedOut), noon},
			{"its runner ended it", end(job.Cancelled), noon},
			{"its runner is lost", end(job.Orphaned), noon},
			{"its machine is lost", job.Orphan{Failure: "why"}, noon},
			{"what it waited for ended otherwise", job.Abandon{Failure: "why"}, noon},
			{"somebody stops it", stop, noon},
			{"the store went back: a launch is in its folder", job.Adopt{Token: token, Launch: 1, Note: "The store went back."}, noon},
			{"somebody pauses it", job.Pause{By: "ana"}, noon},
			{"somebody resumes it", job.Resume{By: "ana"}, noon},
			{"it asks a question", job.Ask{MaxPending: 9, MaxQuestions: 9}, noon},
			{"a question is settled", job.Answered{}, noon},
		},
	}
}

func stepDelivery(d delivery.Delivery, cmd any, now time.Time) answer {
	ch, err := d.Step(cmd.(delivery.Command), now)
	return answer{string(ch.Next.Status), ch.Next.Status == d.Status, ch.Events, nil, err}
}

func deliveries(m meanings) machine[delivery.Delivery] {
	target := delivery.Target{ID: "tgt_1", MaxAttempts: 3, RetryDelay: time.Second, MaxAge: time.Hour}
	one, gone, off := target, target, target
	one.MaxAttempts, gone.RemovedAt, off.DisabledAt, off.Disabled = 1, noon, noon, "It is gone."
	fresh := delivery.Delivery{ID: "dlv_1", TargetID: "tgt_1", Stream: "job:job_1", StreamSeq: 1, Status: delivery.Pending, Due: noon, GivesUpAt: noon.Add(time.Hour)}
	to := func(cmds ...delivery.Command) delivery.Delivery {
		d := fresh
		for _, cmd := range cmds {
			d = must(d.Step(cmd, noon)).Next
		}
		return d
	}
	claim := delivery.Claim{Target: target, Owner: "me", Lease: time.Minute}
	end := func(t delivery.Target, r delivery.Result) delivery.Settle {
		return delivery.Settle{Target: t, Fence: 1, Outcome: delivery.Outcome{Result: r, Message: "why"}}
	}
	again := to(claim, end(target, delivery.Failed))
	again.Due = noon
	states := []state[delivery.Delivery]{}
	for _, d := range []delivery.Delivery{
		fresh, to(claim), again, to(claim, end(target, delivery.Arrived)), to(claim, end(target, delivery.Refused)), to(delivery.Drop{Message: "why"}),
	} {
		states = append(states, state[delivery.Delivery]{string(d.Status), m["delivery.Status"][string(d.Status)], d})
	}
	return machine[delivery.Delivery]{
		title: "Delivery", dir: "delivery", states: states, step: stepDelivery,
		about: "One event for one wake target (`delivery/step.go`). What is written of an attempt names the fence of its claim. Of an ordered target's stream only the\n" +
			"first that is not over may be claimed; the end of one makes the next due, in the same transaction.",
		commands: []command{
			{"it is claimed", claim, noon},
			{"it is claimed, its target was removed", delivery.Claim{Target: gone, Lease: time.Minute}, noon},
			{"it is claimed, its target is disabled", delivery.Claim{Target: off, Lease: time.Minute}, noon},
			{"it is claimed, what it asks for is settled", delivery.Claim{Target: target, Lease: time.Minute, Settled: true}, noon},
			{"it is claimed, its root was cleaned up", delivery.Claim{Target: target, Lease: time.Minute, Cleaned: true}, noon},
			{"it is claimed, too late", claim, late},
			{"it arrived", end(target, delivery.Arrived), noon},
			{"the attempt failed", end(target, delivery.Failed), noon},
			{"the last attempt failed", end(one, delivery.Failed), noon},
			{"it can never arrive", end(target, delivery.Refused), noon},
			{"the receiver wants nothing any more", end(target, delivery.Gone), noon},
			{"nothing was sent", end(target, delivery.NotSent), noon},
			{"the claim is given back", delivery.Release{Fence: 1}, noon},
			{"an earlier claim is given back", delivery.Release{}, noon},
			{"the sweep, the lease lasts", delivery.Reclaim{Target: target}, noon},
			{"the sweep, the lease ended", delivery.Reclaim{Target: target}, late},
			{"the sweep, in time", delivery.GiveUp{}, noon},
			{"the sweep, overdue", delivery.GiveUp{}, late},
			{"nobody needs it any more", delivery.Drop{Message: "why"}, noon},
			{"a person tries it again", delivery.Retry{Target: target, By: "ana"}, noon},
			{"a person tries it again, its target is disabled", delivery.Retry{Target: off, By: "ana"}, noon},
		},
	}
}
