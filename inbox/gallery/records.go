package gallery

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// now is when each page is looked at: at once, since pages count down by their reader's clock.
var now = time.Now().UTC().Truncate(time.Second)

const (
	approvalID = "apr_01900000-0000-7000-8000-000000000001"
	earlierID  = "apr_01900000-0000-7000-8000-000000000000"
	questionID = "dec_01900000-0000-7000-8000-000000000002"
	callID     = "call_01900000-0000-7000-8000-000000000003"
	runID      = "run_01900000-0000-7000-8000-000000000004"
	stepID     = "stp_01900000-0000-7000-8000-000000000005"
	jobID      = "job_01900000-0000-7000-8000-000000000006"
	digest     = "sha256-placet1:4b2f0c6a9e1d7f3852c0b6a4e8d9137f5a2c4e6089b1d3f5a7c9e0b2d4f60812"
)

const refundArgs = `{"order_id":"o-7","amount":500,"currency":"EUR","customer":{"name":"Ana Köhler","since":2019},"lines":[{"sku":"A-1","qty":2},{"sku":"B-9","qty":1}],"notify":true,"note":null}`

func refund(effect tool.SideEffect) tool.Spec {
	return tool.Spec{
		Name: "refund", Description: "Refund an order to the customer's card. The money leaves at once.", SideEffect: effect, TimeoutMS: 30_000,
		InputSchema:    json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string","description":"its number"},"amount":{"type":"number"},"api_key":{"type":"string"}}}`),
		Implementation: "exec /opt/shop/refund.sh --live",
	}
}

// asked is an approval that waits, of a call with these arguments.
func asked(args string) decision.Decision { return askedOf(refund(tool.RemoteMutation), args) }

func askedOf(spec tool.Spec, args string) decision.Decision {
	req := request.Request{RunID: runID, CallID: callID, Tool: spec, Args: []byte(args)}
	body, err := req.JSON()
	if err != nil {
		panic(err) // it is made up here
	}
	d := decision.Decision{
		ID: approvalID, Space: event.MainSpace, Type: decision.Approval, Owner: decision.Ref{Kind: decision.OwnerCall, ID: callID}, N: 1,
		Kind: string(spec.SideEffect), Capability: []byte(`{}`), Presentation: []byte(`{"title":"Refund 500 on o-7","who":"Ana Köhler"}`), Request: body,
		Reason: "refunds above 50 need a person", RunID: runID, CallID: callID, Tool: spec.Name, RequestedBy: "shop-bot", Metadata: map[string]string{"origin": "http", "ticket": "T-1234"},
		CreatedAt: now.Add(-14 * time.Minute), ExpiresAt: now.Add(3*time.Hour + 12*time.Minute), Status: decision.Pending, Open: true, Needs: 1,
	}
	d.SpecDigest, err = spec.Digest()
	if err == nil {
		d.Digest, err = d.Binding()
	}
	if err != nil {
		panic(err)
	}
	return d
}

// decided is d with an answer.
func decided(d decision.Decision, status decision.Status, choice decision.Choice) decision.Decision {
	d.Status, d.Choice, d.DecidedBy, d.DecidedPrincipal, d.Verified = status, choice, "Ben", "ben@shop.example", true
	d.DecidedAt, d.SettledAt, d.Note = now.Add(-2*time.Minute), now.Add(-2*time.Minute), "Checked with the customer.\nShe sent two photographs."
	d.Open = status == decision.Approved
	if choice == decision.ChoiceApprove {
		d.GrantExpiresAt = now.Add(13 * time.Minute)
	}
	return d
}

// reviewed is an approval as its page reads it.
func reviewed(d decision.Decision, change ...func(*review.Approval)) view.Approval {
	a := review.Approval{Decision: d, At: now, Overdue: d.Overdue(now), Way: review.ByDaemon}
	a.Call = &call.Call{ID: callID, Tool: d.Tool, Status: call.Pending, Args: review.Asked(d)}
	before := decided(asked(`{"order_id":"o-3","amount":80,"currency":"EUR","lines":[{"sku":"A-1","qty":1},{"sku":"B-9","qty":1}]}`), decision.Consumed, decision.ChoiceApprove)
	before.ID, before.DecidedAt = earlierID, now.Add(-26*time.Hour)
	a.Before = &before
	a.History = []review.Entry{
		{At: d.CreatedAt, Type: event.CallCreated, What: "Asked for", Who: "shop-bot"},
		{At: d.CreatedAt, Type: event.ApprovalRequested, What: "A person was asked", Who: "shop-bot", Why: d.Reason},
	}
	if d.Choice != "" {
		a.History = append(a.History, review.Entry{At: d.DecidedAt, Type: event.ApprovalDecided, What: map[decision.Choice]string{decision.ChoiceApprove: "Approved", decision.ChoiceReject: "Rejected"}[d.Choice], Who: d.DecidedBy})
	}
	a.Understand()
	for _, f := range change {
		f(&a)
	}
	return view.Approval{Approval: a}
}

// ran is what its call came to.
func ran(s call.Status, kind call.Kind, message, result string) func(*review.Approval) {
	return func(a *review.Approval) {
		k := *a.Call
		k.Status, k.Kind, k.Message, k.Result, k.Attempts = s, kind, message, []byte(result), 1
		a.Call = &k
		a.History = append(a.History, review.Entry{At: now.Add(-time.Minute), Type: event.CallStarted, What: "Started", Who: "shop-bot"})
	}
}

// ofRun makes it a step of an agent's run.
func ofRun(s run.Status) func(*review.Approval) {
	return func(a *review.Approval) {
		a.Owner, a.CallID, a.StepID, a.Metadata = decision.Ref{Kind: decision.OwnerRun, ID: runID}, "", stepID, nil
		a.Run = &run.Run{ID: runID, Status: s, Goal: "Refund damaged parcels."}
		a.Step = &run.Step{ID: stepID, RunID: runID, Said: "The customer sent both parcels back damaged, and asks for the money."}
		a.Way = review.ByStarter
	}
}

func question(form string) decision.Decision {
	d := decision.Decision{
		ID: questionID, Space: event.MainSpace, Type: decision.Question, Owner: decision.Ref{Kind: decision.OwnerJob, ID: jobID}, N: 1,
		Prompt: "Continue past epoch 40? The loss is 0.31 and falling, and the machine costs 4 EUR an hour.", Options: []string{"continue", "stop", "stop, and keep the checkpoints"},
		RequestedBy: "job:train", CreatedAt: now.Add(-3 * time.Minute), ExpiresAt: now.Add(4*time.Minute + 10*time.Second), Status: decision.Pending, Open: true, Needs: 1, Digest: digest,
	}
	if form != "" {
		d.Form = []byte(form)
	}
	return d
}

func questioned(d decision.Decision, fields []view.Field) view.Question {
	q := review.Question{Decision: d, At: now, Mask: review.Mask(d), Overdue: d.Overdue(now), Job: job.Job{ID: jobID, Status: job.Running, Spec: job.Spec{Name: "train"}}}
	q.History = []review.Entry{{At: d.CreatedAt, Type: event.DecisionRequested, What: "Asked", Who: "job:train"}}
	return view.Question{Question: q, Fields: fields}
}

// odd is a text of which a reader would not notice everything.
const odd = "Pay \u202egnp.exe\u202c to \u0440\u0430ypal.com\u200b/refunds\nand then <b>approve</b> [this](javascript:x)"

var long = strings.Repeat("Lorem ipsum dolor sit amet, consectetur adipiscing elit. ", 60)
