package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// seeds are ids of what there is in a world, all of it the agent's.
type seeds struct {
	call, approval, digest string // parked
	held                   string // a call whose attempt is reserved, with fence 1
	done                   string // a call that has ended
	run, runApproval       string // waits, after a step
	runDigest              string // of what it waits for
	granted                string // a run that waits, and whose approval is given
	doneRun                string
	job, question          string // at work and asked
	queued                 string // a job that waits for that one to fail
	answered               string // a question
	doneJob                string // with output
	token                  string // good, and nobody's who sends anything
	cursor                 string // of the job's stream
	target, relay          string // a webhook and a relay that hear of the job
	dead, fetched          string // deliveries: to the webhook, and one that the relay holds
	leaseToken             string // of that one
}

// seed needs somebody who looks after jobs: loop.
func (w *world) seed() seeds {
	w.t.Helper()
	var s seeds
	p := w.park("agent")
	s.call, s.approval, s.digest = p.get("call_id"), p.get("approval_id"), p.get("digest")
	s.held = w.want(w.do("agent", "POST", "/v1/calls", `{"tool":"look_up","args":{"order":"o","password":"hunter22"}}`), 201).get("call_id")
	s.done = w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`), 200).get("call_id")
	s.run, s.runApproval, s.runDigest = w.startRun("ask")
	granted, apr, digest := w.startRun("ask")
	s.granted = granted
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+apr+"/decide", decide(true, digest)), 200)
	s.doneRun, _, _ = w.startRun("end")
	s.doneJob = w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["echo","hello"],"name":"train","tags":["a"]}`), 201).get("job_id")
	w.want(w.do("agent", "POST", "/v1/jobs/"+s.doneJob+"/wait", `{"types":["completed"]}`), 200, "result", "event")
	s.job = w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201).get("job_id")
	at := "/v1/jobs/" + s.job
	w.want(w.do("agent", "POST", at+"/wait", `{"types":["started"]}`), 200, "result", "event")
	s.target = w.want(w.do("agent", "POST", at+"/wake-targets", `{"type":"webhook","url":"https://example.com/hook"}`), 201).get("target_id")
	s.relay = w.want(w.do("agent", "POST", "/v1/relay/register", fmt.Sprintf(`{"job_id":%q,"unordered":true}`, s.job)), 201).get("target_id")
	s.queued = w.want(w.do("agent", "POST", "/v1/jobs", fmt.Sprintf(`{"command":["true"],"trigger":{"job_id":%q,"status":"failed"}}`, s.job)), 201).get("job_id")
	s.answered = w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"First?"}`), 201).get("decision_id")
	w.want(w.do("reviewer", "POST", at+"/decision/"+s.answered+"/resolve", `{"choice":"approve"}`), 200)
	q := w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"Go on?","options":["yes","no"]}`), 201)
	s.question, s.cursor = q.get("decision_id"), q.get("cursor")
	s.dead = w.dead(s.target)
	var got httpapi.FetchedList
	w.want(w.do("agent", "GET", "/v1/relay/poll?target_id="+s.relay, ""), 200).into(&got)
	s.fetched, s.leaseToken = got.Deliveries[0].DeliveryID, got.Deliveries[0].LeaseToken
	t, _, err := token.Create(w.t.Context(), w.st, token.New{Space: "main", Scope: token.Reviewer, Name: "spare"})
	if err != nil {
		w.t.Fatal(err)
	}
	s.token = t.ID
	return s
}

// dead makes the first delivery to a target one that was given up.
func (w *world) dead(targetID string) string {
	w.t.Helper()
	var d delivery.Delivery
	err := txn.Update(w.t.Context(), w.st, func(tx delivery.Tx) error {
		t, err := tx.Target(targetID)
		if err != nil {
			return err
		}
		ds, err := tx.DueOf(t, tx.Now(), 1)
		if err != nil {
			return err
		}
		d = ds[0]
		for _, cmd := range []delivery.Command{
			delivery.Claim{Target: t, Owner: "w", Lease: time.Minute}, delivery.Settle{Target: t, Fence: 1, Outcome: delivery.Outcome{Result: delivery.Refused, Message: "no"}},
		} {
			ch, err := d.Step(cmd, tx.Now())
			if err == nil {
				_, err = tx.PutDelivery(d, ch)
			}
			if err != nil {
				return err
			}
			d = ch.Next
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return d.ID
}

// startRun has the agent start a run with a goal that the world's model knows.
func (w *world) startRun(goal string) (id, approval, digest string) {
	w.t.Helper()
	r, err := w.runs.Start(w.t.Context(), goal, run.DefaultLimits(), run.As("agent"))
	if err != nil {
		w.t.Fatal(err)
	}
	if r.ApprovalID != "" {
		digest = w.want(w.do("agent", "GET", "/v1/approvals/"+r.ApprovalID, ""), 200).get("digest")
	}
	return r.ID, r.ApprovalID, digest
}

// model looks up and then asks for what needs a person where the goal is to ask, and is done otherwise.
func model(in run.StepInput) (run.Proposal, error) {
	switch {
	case in.Run.Goal == "ask" && len(in.Steps) == 0:
		return run.Proposal{Kind: run.CallTool, Tool: "look_up", Args: json.RawMessage(`{"order":"o-8","password":"hunter22"}`), Text: "first"}, nil
	case in.Run.Goal == "ask" && len(in.Steps) == 1:
		return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(`{"order":"o-8","amount":7}`), Text: "to see"}, nil
	}
	return run.Proposal{Kind: run.Complete, Result: json.RawMessage(`"done"`)}, nil
}

// of is an id for a variable of an operation's path: whose noun it is stands before it.
func (s seeds) of(o operation, variable string) string {
	if variable == "name" {
		return "look_up"
	}
	seed, ok := map[string]string{
		id.Question: s.question, id.Call: s.call, id.Approval: s.approval, id.Job: s.job, id.Run: s.run, id.Token: s.token,
		id.Target: s.target, id.Delivery: s.dead,
	}[prefixOf(o, variable)]
	if !ok {
		panic("nobody knows whose id " + variable + " of " + o.path + " is")
	}
	return seed
}

// with is the operation's path with its variables filled in.
func (o operation) with(fill func(variable string) string) string {
	parts := strings.Split(o.path, "/")
	for i, p := range parts {
		if v, ok := strings.CutPrefix(p, "{"); ok {
			parts[i] = fill(strings.TrimSuffix(v, "}"))
		}
	}
	return strings.Join(parts, "/")
}

// minimal is the smallest body that an operation takes by its schema; "" for none.
func (o operation) minimal(schemas map[string]any) string {
	if o.RequestBody == nil {
		return ""
	}
	b, err := json.Marshal(smallest(o.RequestBody.Content["application/json"].Schema, schemas))
	if err != nil {
		panic(err)
	}
	return string(b)
}

func smallest(schema map[string]any, schemas map[string]any) any {
	schema = resolved(schema, schemas)
	if enum, ok := schema["enum"].([]any); ok {
		return enum[0]
	}
	if one, ok := schema["oneOf"].([]any); ok {
		return smallest(one[0].(map[string]any), schemas)
	}
	switch typeOf(schema) {
	case "string":
		return "x"
	case "integer":
		if least, ok := schema["minimum"].(int); ok {
			return least
		}
		return 0
	case "boolean":
		return true
	case "array":
		if items, ok := schema["items"].(map[string]any); ok {
			return []any{smallest(items, schemas)}
		}
		return []any{}
	}
	all := map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		all[name.(string)] = smallest(props[name.(string)].(map[string]any), schemas)
	}
	return all
}

func resolved(schema, schemas map[string]any) map[string]any {
	if ref, ok := schema["$ref"].(string); ok {
		return schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
	}
	return schema
}

// typeOf is a schema's type without null.
func typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		return fmt.Sprint(t[0])
	}
	return ""
}

// The seeds are what their comments say: what is built on them tests what it means to.
func TestSeeds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	for path, status := range map[string]string{
		"calls/" + s.call: "pending", "approvals/" + s.approval: "pending", "calls/" + s.held: "running", "calls/" + s.done: "succeeded",
		"runs/" + s.run: "WAITING_FOR_APPROVAL", "approvals/" + s.runApproval: "pending", "runs/" + s.doneRun: "COMPLETED",
		"jobs/" + s.job: "running", "decisions/" + s.question: "pending", "decisions/" + s.answered: "resolved", "jobs/" + s.doneJob: "completed", "runs/" + s.granted: "WAITING_FOR_APPROVAL", "jobs/" + s.queued: "queued",
	} {
		w.want(w.do("agent", "GET", "/v1/"+path, ""), 200, "status", status)
	}
	ops, schemas := operations(t)
	for _, o := range ops {
		o.with(func(v string) string { return s.of(o, v) })
		o.minimal(schemas)
	}
}
