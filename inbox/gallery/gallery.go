package gallery

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/a-h/templ"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// State is one page as it can be.
type State struct {
	Name string // fit for a file's name
	Page templ.Component
}

// Frame is what each page is shown with: where its assets are.
type Frame struct{ Nonce, Style, Code string }

var (
	ana      = view.Who{Name: "Ana", Principal: "ana@shop.example", Scope: "reviewer", FormToken: "made-up", Decides: true}
	operator = view.Who{Name: "oncall", Principal: "oncall", Scope: "operator", FormToken: "made-up", Operates: true}
)

func (f Frame) shell(who view.Who, section view.Section, title string) view.Shell {
	return view.Shell{Title: title, Nonce: f.Nonce, Style: f.Style, Code: f.Code, Who: who, Section: section, Count: 12}
}

// States are all of them.
func States(f Frame) []State {
	var all []State
	for _, some := range [][]State{
		f.signIns(), f.queues(), f.pending(), f.decided(), f.questions(), f.edits(), f.messages(), f.runs(), f.calls(), f.jobs(), f.events(), f.deliveries(),
	} {
		all = append(all, some...)
	}
	return all
}

func (f Frame) signIns() []State {
	s := f.shell(view.Who{}, "", "Sign in")
	return []State{
		{"sign-in", view.Sign(s, "/", nil)},
		{"sign-in-ended", view.Sign(s, "/", &view.Notice{Sort: view.Warning, Title: "Your sign-in has ended", Text: "What you sent was not recorded.", More: "Sign in, and send it again from the page that opens then."})},
		{"sign-in-out", view.Sign(s, "/", &view.Notice{Sort: view.Good, Title: "You are signed out"})},
		{"sign-in-refused", view.Sign(s, "/", &view.Notice{Sort: view.Refused, Title: "You are not signed in", Text: "That is no valid token.", More: "Copy the whole of it; it begins with placet_."})},
	}
}

func (f Frame) queues() []State {
	s := f.shell(ana, view.Waiting, "Waiting")
	counts := []decision.QueueCount{
		{Type: decision.Approval, Owner: decision.OwnerRun, Kind: "remote_mutation", Tool: "refund", N: 3},
		{Type: decision.Approval, Owner: decision.OwnerCall, Kind: "destructive", Tool: "drop_table", N: 8},
		{Type: decision.Question, Owner: decision.OwnerJob, N: 1},
	}
	q := view.Queue{At: now, Counts: counts, First: "/", Matches: -1}
	empty, none, full, searched := q, q, q, q
	none.Filter, none.Matches, none.Total = review.Filter{Tool: "refund"}, 0, 12
	overdue := asked(refundArgs)
	overdue.ExpiresAt = now.Add(-time.Minute)
	soon := question("")
	drop := askedOf(refund(tool.Destructive), `{"order_id":"o-9","amount":12345678901234567890,"api_key":"sk-1","reason":"`+long[:200]+`"}`)
	step := asked(refundArgs)
	step.Owner, step.StepID, step.ExpiresAt = decision.Ref{Kind: decision.OwnerRun, ID: runID}, stepID, time.Time{}
	again := asked(refundArgs)
	again.Kind = decision.KindInterrupted
	for i, d := range []decision.Decision{overdue, soon, drop, asked(oddArgs()), again, step} {
		d.ID = fmt.Sprint(d.ID[:len(d.ID)-1], i)
		full.Rows = append(full.Rows, review.RowOf(d))
	}
	full.Total, full.Next, full.Back = 12, "/?after=x", "/?after=x&back=1"
	searched.Filter, searched.Total, searched.Cut, searched.Next = review.Filter{Search: "Köhler"}, 100_000, true, "/?after=x"
	searched.Rows = full.Rows[2:3]
	listed := view.Past{At: now, Next: "/decided?after=x"}
	for _, d := range []decision.Decision{
		decided(asked(refundArgs), decision.Consumed, decision.ChoiceApprove), decided(asked(refundArgs), decision.Rejected, decision.ChoiceReject), expired(), withdrawn(), answered(),
	} {
		listed.Rows = append(listed.Rows, review.RowOf(d))
	}
	listed.Calls = map[string]call.Call{approvalID: {ID: callID, Status: call.Failed}}
	past := f.shell(ana, view.Decided, "Decided")
	restored := s
	restored.Store = "The store went back in time without being told. It is read from, and nothing is decided or started, until an operator accepts that: placet db accept-restore."
	return []State{
		{"queue", view.WaitingPage(s, full)},
		{"queue-empty", view.WaitingPage(s, empty)},
		{"queue-filtered-empty", view.WaitingPage(s, none)},
		{"queue-search-cut", view.WaitingPage(s, searched)},
		{"queue-restored-store", view.WaitingPage(restored, full)},
		{"decided", view.DecidedPage(past, listed)},
		{"decided-empty", view.DecidedPage(past, view.Past{At: now})},
		{"decided-searched", view.DecidedPage(past, view.Past{At: now, Past: review.Past{Standing: "rejected", Search: "o-7"}, Cut: true, Next: "/decided?after=x"})},
	}
}

func oddArgs() string {
	b, err := json.Marshal(map[string]any{"order_id": odd, "amount": 5})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (f Frame) approval(name string, who view.Who, a view.Approval) State {
	return State{"approval-" + name, view.ApprovalPage(f.shell(who, "", "Approval of refund"), a)}
}

func (f Frame) pending() []State {
	d := asked(refundArgs)
	lengthy := asked(`{"order_id":"o-7","amount":5,"note":"` + long + `"}`)
	opened := reviewed(lengthy)
	opened.Whole = true
	own := reviewed(d)
	own.Own = true
	altered := reviewed(d, func(a *review.Approval) {
		a.Altered = errors.New("The stored content of approval " + approvalID + " does not match its digest.")
	})
	told := reviewed(d)
	told.Notice = &view.Notice{Sort: view.Refused, Title: "It changed since it was shown", Text: "Your answer was not recorded. What changed is the arguments, the presentation.", More: "Look at what this page shows now."}
	again := askedOf(refund(tool.Destructive), refundArgs)
	again.Kind, again.Reason = decision.KindInterrupted, "The call was started, and its process was lost: nobody knows whether it took effect."
	first := reviewed(d, func(a *review.Approval) { a.Before = nil })
	same := reviewed(d, func(a *review.Approval) {
		before := decided(asked(refundArgs), decision.Consumed, decision.ChoiceApprove)
		a.Before = &before
	})
	secret := asked(`{"order_id":"o-7","amount":5,"api_key":"sk-12345"}`)
	over := asked(refundArgs)
	over.ExpiresAt = now.Add(-time.Minute)
	endless := asked(refundArgs)
	endless.ExpiresAt = time.Time{}
	return []State{
		f.approval("pending", ana, reviewed(d)),
		f.approval("first-of-its-tool", ana, first),
		f.approval("same-as-the-last", ana, same),
		f.approval("odd-text", ana, reviewed(asked(oddArgs()))),
		f.approval("long", ana, reviewed(lengthy)),
		f.approval("long-opened", ana, opened),
		f.approval("secret", ana, reviewed(secret)),
		f.approval("of-a-run", ana, reviewed(endless, ofRun(run.Waiting))),
		f.approval("run-again", ana, reviewed(again, func(a *review.Approval) { a.Doubtful = true })),
		f.approval("own", ana, own),
		f.approval("operator", operator, reviewed(d)),
		f.approval("altered", ana, altered),
		f.approval("changed", ana, told),
		f.approval("overdue", ana, reviewed(over)),
		f.approval("moot", ana, reviewed(d, func(a *review.Approval) { a.Moot = decision.ErrRunState })),
	}
}

func expired() decision.Decision {
	d := asked(refundArgs)
	d.Status, d.Open, d.SettledAt = decision.Expired, false, now.Add(-time.Minute)
	return d
}

func withdrawn() decision.Decision {
	d := expired()
	d.Status, d.WithdrawnBy = decision.Withdrawn, "shop-bot"
	return d
}

func (f Frame) decided() []State {
	yes := decided(asked(refundArgs), decision.Approved, decision.ChoiceApprove)
	spent := decided(asked(refundArgs), decision.Consumed, decision.ChoiceApprove)
	no := decided(asked(refundArgs), decision.Rejected, decision.ChoiceReject)
	edited := spent
	edited.EditedArgs, edited.EffectiveDigest = []byte(`{"order_id":"o-7","amount":20,"currency":"EUR","customer":{"name":"Ana Köhler","since":2019},"lines":[{"sku":"A-1","qty":2}],"notify":true,"note":"half"}`), digest
	replaced := yes
	replaced.Status, replaced.Open = decision.Superseded, false
	unserved := reviewed(yes)
	unserved.Unserved = "No process here has tool refund as it was approved."
	stale := yes
	stale.GrantExpiresAt = now.Add(-time.Minute)
	by := func(w review.Way) func(*review.Approval) { return func(a *review.Approval) { a.Way = w } }
	return []State{
		f.approval("approved", ana, reviewed(yes)),
		f.approval("approved-for-its-caller", ana, reviewed(yes, by(review.ByCaller))),
		f.approval("approved-for-its-reserver", ana, reviewed(yes, by(review.ByReserver))),
		f.approval("approved-of-a-run", ana, reviewed(yes, ofRun(run.Waiting))),
		f.approval("approved-unserved", ana, unserved),
		f.approval("approved-too-old", ana, reviewed(stale)),
		f.approval("running", ana, reviewed(spent, ran(call.Running, "", "", ""))),
		f.approval("succeeded", ana, reviewed(spent, ran(call.Succeeded, "", "", `{"refund_id":"r-991","state":"sent"}`))),
		f.approval("failed", ana, reviewed(spent, ran(call.Failed, call.KindToolError, "The card was closed.", ""))),
		f.approval("unknown", ana, reviewed(spent, ran(call.Unknown, call.KindUnknownOutcome, "The program was lost.", ""))),
		f.approval("edited", ana, reviewed(edited, ran(call.Succeeded, "", "", `{"refund_id":"r-991"}`))),
		f.approval("rejected", ana, reviewed(no)),
		f.approval("rejected-of-a-run", ana, reviewed(no, ofRun(run.Cancelled))),
		f.approval("expired", ana, reviewed(expired())),
		f.approval("withdrawn", ana, reviewed(withdrawn())),
		f.approval("replaced", ana, reviewed(replaced, func(a *review.Approval) { a.ReplacedBy = earlierID })),
	}
}

func answered() decision.Decision {
	d := question("")
	d.Status, d.Open, d.Choice, d.DecidedBy, d.DecidedAt, d.SettledAt = decision.Resolved, false, "continue", "Ben", now, now
	d.Input, d.Note = []byte(`{"epochs":12}`), "It still learns."
	return d
}

func (f Frame) questions() []State {
	page := func(name string, who view.Who, q view.Question) State {
		return State{"question-" + name, view.QuestionPage(f.shell(who, "", "A question"), q)}
	}
	fields := []view.Field{
		{Field: review.Field{Name: "epochs", Help: "how many more", Sort: review.NumberField, Needed: true}, ID: "arg.epochs", Value: "0", Problem: "it is at least 1."},
		{Field: review.Field{Name: "rate", Sort: review.ChoiceField, Options: []json.RawMessage{[]byte(`"slow"`)}}, ID: "arg.rate"},
		{Field: review.Field{Name: "why", Sort: review.TextField}, ID: "arg.why", Value: "because\nof this"},
		{Field: review.Field{Name: "key", Sort: review.SecretField}, ID: "arg.key"},
	}
	over, back := question(""), question("")
	over.Status, over.Open, over.SettledAt = decision.Expired, false, now
	back.Status, back.Open, back.SettledAt, back.WithdrawnBy = decision.Withdrawn, false, now, "system"
	own := questioned(question(""), nil)
	own.Own = true
	strange := question("")
	strange.Prompt, strange.Options = odd, []string{"yes\u200b", "y\u0435s", long[:200]}
	return []State{
		page("pending", ana, questioned(question(""), nil)),
		page("form", ana, questioned(question(`{"type":"object","properties":{"epochs":{"type":"integer"}}}`), fields)),
		page("odd-text", ana, questioned(strange, nil)),
		page("own", ana, own),
		page("operator", operator, questioned(question(""), nil)),
		page("answered", ana, questioned(answered(), nil)),
		page("expired", ana, questioned(over, nil)),
		page("withdrawn", ana, questioned(back, nil)),
	}
}

func (f Frame) edits() []State {
	s := f.shell(ana, "", "Other arguments")
	a := reviewed(asked(refundArgs)).Approval
	fields := []view.Field{
		{Field: review.Field{Name: "order_id", Help: "its number", Sort: review.TextField, Needed: true}, ID: "arg.order_id", Value: "o-7"},
		{Field: review.Field{Name: "amount", Sort: review.NumberField, Needed: true, Limits: "more than 0, at most 500"}, ID: "arg.amount", Value: "twenty", Problem: "it is no number."},
		{Field: review.Field{Name: "notify", Sort: review.ChoiceField, Options: []json.RawMessage{[]byte("true"), []byte("false")}, Now: []byte("true"), Needed: true}, ID: "arg.notify", Value: "0"},
		{Field: review.Field{Name: "note", Sort: review.TextField, Like: "thrown away", Limits: "at most 40 characters"}, ID: "arg.note", Optional: true},
		{Field: review.Field{Name: "send_to", Sort: review.ListField, Items: "string", Limits: "at most 3 entries"}, ID: "arg.send_to", Value: "ana@example.com\nben@example.com"},
		{Field: review.Field{Name: "payee", Sort: review.TextField}, ID: "arg.payee", Value: odd},
		{Field: review.Field{Name: "lines", Sort: review.JSONField}, ID: "arg.lines", Value: "[\n  {\n    \"sku\": \"A-1\"\n  }\n]"},
		{Field: review.Field{Name: "api_key", Sort: review.SecretField}, ID: "arg.api_key"},
		{Field: review.Field{Name: "access", Sort: review.KeptField}, ID: "arg.access"},
	}
	refused := &view.Notice{Sort: view.Refused, Title: "These arguments cannot run", Text: "amount: it is no number."}
	whole := []view.Field{{Field: review.Field{Name: "All arguments, as JSON", Sort: review.JSONField, Needed: true}, ID: "whole", Value: "{\n  \"order_id\": \"o-7\"\n}"}}
	return []State{
		{"edit", view.EditPage(s, view.Edit{Approval: a, Fields: fields, MayText: true, Notice: refused})},
		{"edit-as-text", view.EditPage(s, view.Edit{Approval: a, Fields: whole, AsText: true, MayText: true})},
		{"edit-difference", view.EditedPage(s, view.Edit{
			Approval: a, Edited: []byte(`{"order_id":"o-7","amount":20,"currency":"EUR","lines":[]}`), Digest: digest, Said: "half of it", Carried: []view.Carried{{Name: "arg.amount", Value: "20"}},
		})},
	}
}

func (f Frame) messages() []State {
	var all []State
	for name, n := range map[string]view.Notice{
		"not-here":    {Sort: view.Refused, Title: "There is nothing of that name", Text: "There is no approval apr_1."},
		"failed":      {Sort: view.Refused, Title: "Something failed inside Placet", Text: "Something failed inside Placet."},
		"unknown":     {Sort: view.Warning, Title: "It is not known whether that was done", Text: "The store did not answer.", More: "Open this page again before you try once more."},
		"good-and-to": {Sort: view.Good, Title: "Done", More: "See it", To: "/"},
	} {
		all = append(all, State{"message-" + name, view.Message(f.shell(ana, "", "Message"), n)})
	}
	return all
}
