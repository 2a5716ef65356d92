package inbox_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// The whole way of an edit: a form, the difference, the yes, and exactly that runs.
func TestEdit(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500,"note":"a\nb","lines":[{"n":1.50}]}`)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	p := b.get(at+"/edit").want(200).has("Approve with other arguments", "order needed", "its number")
	f := p.form(at + "/edit")
	for name, want := range map[string]string{"arg.order": "o-7", "arg.amount": "500", "arg.note": "a\r\nb", "has.arg.note": "1", "arg.notify": "", "arg.currency": ""} {
		if got := strings.TrimPrefix(f.Get(name), "\r\n"); got != want {
			t.Errorf("%s is filled with %q, want %q", name, got, want)
		}
	}
	f = trim(f)
	b.post(at+"/edit", with(f, "answer", "look")).want(400).has("Nothing was changed.")
	look := with(f, "arg.amount", "20", "arg.currency", "2", "arg.notify", "1", "answer", "look")
	p = b.post(at+"/edit", look).want(200).has("Approve this instead?", "amount changed 500 20", "currency added 3", "notify added false").hasNot("note changed", "lines changed", "order changed")
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Fatalf("to look decided: %s", got.Status)
	}
	yes := with(trim(p.form(at+"/edit")), "answer", "approve", "note", "less")
	b.post(at+"/edit", with(yes, "edited_digest", "sha256-placet1:00")).want(409)
	b.post(at+"/edit", with(yes, "arg.amount", "21")).want(409).has("not those that were shown")
	b.post(at+"/edit", with(yes, "digest", "sha256-placet1:00")).want(409)
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Fatalf("it is %s", got.Status)
	}
	if p := b.post(at+"/edit", with(yes, "answer", "back")).want(200); p.form(at+"/edit").Get("arg.amount") != "20" {
		t.Errorf("what was written is gone: %s", p.form(at+"/edit").Get("arg.amount"))
	}
	p = b.post(at+"/edit", yes).want(200).has("Approved", "by ana", "less", "edited by a reviewer", "What the reviewer changed", "amount changed 500 20")
	if p.path != at {
		t.Errorf("it leads to %s", p.path)
	}
	want := `{"order":"o-7","amount":20,"currency":3,"notify":false,"note":"a\nb","lines":[{"n":1.50}]}`
	if got := w.read(d.ID); string(got.EditedArgs) != want {
		t.Errorf("approved is %s, want %s", got.EditedArgs, want)
	}
	if _, err := w.calls.Server(httpapi.Origin).Continue(t.Context(), d.CallID, func(txn.Tx, call.Call) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	if got := w.ran.list(); len(got) != 1 || got[0] != want {
		t.Errorf("it ran with %q", got)
	}
	b.get(at).has("It ran, and succeeded.", "Result", "done true")
	b.post(at+"/edit", yes).want(200) // the same again is the same yes
	if p := b.get(at + "/edit"); p.status != 409 {
		t.Errorf("a decided one can be edited: %d", p.status)
	}
}

// trim takes the line off with which a text field begins in a page: browsers drop it.
func trim(f url.Values) url.Values {
	for name, v := range f {
		f[name] = []string{strings.TrimPrefix(v[0], "\r\n")}
	}
	return f
}

// What does not fit is refused with the field's name, and nothing is decided (case 043).
func TestBadEdits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500}`)
	at := "/approvals/" + d.ID + "/edit"
	b := w.as(token.Reviewer, "ana")
	f := trim(b.get(at).form(at))
	for name, c := range map[string]struct {
		pairs []string
		says  string
	}{
		"a missing one":        {[]string{"arg.amount", ""}, "amount: it is needed."},
		"no number":            {[]string{"arg.amount", "twenty"}, "amount: it is no number."},
		"two numbers":          {[]string{"arg.amount", "1 2"}, "amount: it is no number."},
		"a fraction":           {[]string{"arg.amount", "1.5"}, "amount"},
		"below the least":      {[]string{"arg.amount", "-1"}, "amount"},
		"a text for a number":  {[]string{"arg.amount", `"20"`}, "amount: it is no number."},
		"no choice":            {[]string{"arg.currency", "9"}, "currency: it is none of those offered."},
		"no JSON":              {[]string{"arg.lines", "[1,"}, "lines: it is not one JSON value"},
		"not a list":           {[]string{"arg.lines", "{}"}, "lines"},
		"written and not sent": {[]string{"arg.note", "hello"}, "note: something was written"},
	} {
		p := b.post(at, with(f, append(c.pairs, "answer", "look")...)).want(422).has("These arguments cannot run", c.says)
		if got := p.form(at).Get(c.pairs[0]); strings.TrimPrefix(got, "\r\n") != c.pairs[1] && c.pairs[0] != "arg.currency" {
			t.Errorf("%s: what was written is gone: %q", name, got)
		}
		b.post(at, with(f, append(c.pairs, "answer", "approve")...)).want(422)
	}
	if got := w.read(d.ID); got.Status != decision.Pending || got.EditedArgs != nil {
		t.Errorf("it is %s with %s", got.Status, got.EditedArgs)
	}
	for written, says := range map[string]string{
		`{"order":"o-7","amount":1,"amount":2}`: "amount",
		`{"order":"o-7","amount":1,"more":2}`:   "more",
		`{"order":"o-7"`:                        "not one JSON value",
		`[]`:                                    "",
		``:                                      "needed",
	} {
		b.post(at, with(f, "as", "text", "whole", written, "answer", "look")).want(422).has(says)
	}
}

// Numbers keep their digits, also where no float has them (cases 040, 043).
func TestEditsAreExact(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500}`)
	at := "/approvals/" + d.ID + "/edit"
	b := w.as(token.Reviewer, "ana")
	f := trim(b.get(at).form(at))
	p := b.post(at, with(f, "arg.amount", "12345678901234567890", "arg.note", "x < y & \"z\" \\", "has.arg.note", "1", "answer", "look")).want(200)
	b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
	want := `{"order":"o-7","amount":12345678901234567890,"note":"x < y & \"z\" \\"}`
	if got := w.read(d.ID); string(got.EditedArgs) != want {
		t.Errorf("approved is %s, want %s", got.EditedArgs, want)
	}
	// An empty object, and a zero, are edits like any other.
	d = w.park("wipe", `{"disk":"a"}`)
	at = "/approvals/" + d.ID + "/edit"
	for _, args := range []string{`{"n":0}`, `{}`} {
		p = b.post(at, with(trim(b.get(at+"?as=text").form(at)), "whole", args, "answer", "look")).want(200)
	}
	b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
	if got := w.read(d.ID); string(got.EditedArgs) != `{}` {
		t.Errorf("approved is %s", got.EditedArgs)
	}
}

// A secret is in no page, and is kept as it is unless another is written.
func TestEditsKeepSecrets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500,"password":"s3cret"}`)
	at := "/approvals/" + d.ID + "/edit"
	b := w.as(token.Reviewer, "ana")
	p := b.get(at).want(200)
	if strings.Contains(p.raw, "s3cret") || strings.Contains(b.get(at+"?as=text").raw, "s3cret") || strings.Contains(p.text, "Write all of it as JSON") {
		t.Error("the secret is in the form")
	}
	p = b.post(at, with(trim(p.form(at)), "arg.amount", "20", "answer", "look")).want(200)
	if strings.Contains(p.raw, "s3cret") {
		t.Error("the secret is in the difference")
	}
	b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
	if got := w.read(d.ID); string(got.EditedArgs) != `{"order":"o-7","amount":20,"password":"s3cret"}` {
		t.Errorf("approved is %s", got.EditedArgs)
	}
}

// A secret in JSON inside a string stands in no form, and the string stays as it is; a secret
// that is no text does not become one.
func TestEditsKeepSecretsInStrings(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	for _, args := range []string{
		`{"zz":"a","body":"{\"password\":\"s3cret\",\"x\":1}","token":true}`, `{"zz":"a","body":["  [{\"password\":\"s3cret\"}]"],"token":true}`,
	} {
		d := w.park("wipe", args)
		at := "/approvals/" + d.ID + "/edit"
		p := b.get(at).want(200)
		if strings.Contains(p.raw, "s3cret") || strings.Contains(b.get(at+"?as=text").raw, "s3cret") {
			t.Errorf("the secret of %s is in the form", args)
		}
		p = b.post(at, with(trim(p.form(at)), "arg.zz", "b", "arg.token", "false", "answer", "look")).want(200)
		if strings.Contains(p.raw, "s3cret") {
			t.Errorf("the secret of %s is in the difference", args)
		}
		b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
		want := strings.Replace(strings.Replace(args, `"a"`, `"b"`, 1), "true", "false", 1)
		if got := string(w.read(d.ID).EditedArgs); got != want {
			t.Errorf("approved is %s, want %s", got, want)
		}
	}
}

// Where all arguments are secret, those that nobody writes anew stay as they are.
func TestEditsKeepWhatIsSecretAsAWhole(t *testing.T) {
	t.Parallel()
	w := setup(t)
	schema := `{"type":"object","writeOnly":true,"properties":{"to":{"type":"string"},"amount":{"type":"integer"}}}`
	reg, err := tool.NewRegistry(tool.Tool{Spec: tool.Spec{Name: "pay", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: w.ran})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call.NewExecutor(call.Config{Store: w.st, Tools: reg, Log: slog.New(slog.DiscardHandler)}).Call(t.Context(), "pay", []byte(`{"to":"alice","amount":5,"lines":[1]}`))
	var pending *call.PendingError
	if !errors.As(err, &pending) {
		t.Fatal(err)
	}
	at := "/approvals/" + pending.ApprovalID + "/edit"
	b := w.as(token.Reviewer, "ana")
	p := b.get(at).want(200)
	if strings.Contains(p.raw, "alice") {
		t.Error("a secret is in the form")
	}
	p = b.post(at, with(trim(p.form(at)), "arg.amount", "7", "answer", "look")).want(200)
	b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
	if got := string(w.read(pending.ApprovalID).EditedArgs); got != `{"to":"alice","amount":7,"lines":[1]}` {
		t.Errorf("approved is %s", got)
	}
}

// What may not be edited offers no form (spec 1.6).
func TestNoEdits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500}`)
	w.alter(`UPDATE decision SET forbid_edits = 1 WHERE id = ?`, d.ID)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	f := b.get(at).want(200).hasNot("Approve with other arguments").form(at)
	b.get(at + "/edit").want(400).has("cannot be edited")
	b.post(at+"/edit", with(f, "arg.amount", "20", "arg.order", "x", "answer", "approve")).want(400)
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
}

// What the schema does not allow is told at the field that it is about, where a reader goes
// on; the first one, where there are several.
func TestAProblemStandsAtItsField(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := "/approvals/" + w.park("refund", `{"order":"o-7","amount":500,"lines":[{"n":1}]}`).ID + "/edit"
	b := w.as(token.Reviewer, "ana")
	f := trim(b.get(at).form(at))
	for name, c := range map[string]struct {
		pairs []string
		at    string // the field at which it stands
		says  string
	}{
		"below the least": {[]string{"arg.amount", "-1"}, "arg.amount", "It must be at least 0."},
		"deep inside":     {[]string{"arg.lines", `[{"n":"x"}]`}, "arg.lines", "In it, 0/n must be a number, not a string."},
		"no number":       {[]string{"arg.amount", "many"}, "arg.amount", "It is no number."},
	} {
		p := b.post(at, with(f, append(c.pairs, "answer", "look")...)).want(422)
		if problem := p.byID(c.at + "-problem"); problem == nil || strings.TrimSpace(textIn(problem)) != c.says {
			t.Errorf("%s: at %s stands %v", name, c.at, problem)
		}
		if in := p.byID(c.at); attr(in, "aria-invalid") != "true" || !hasAttr(in, "autofocus") {
			t.Errorf("%s: the field is not marked, or not where a reader goes on", name)
		}
	}
	p := b.post(at, with(f, "arg.amount", "-1", "arg.lines", `[{"n":1},{"n":"x"}]`, "arg.send_to", "a\r\n"+strings.Repeat("b", 21), "answer", "look")).want(422)
	for field, says := range map[string]string{
		"arg.amount": "It must be at least 0.", "arg.lines": "In it, 1/n must be a number, not a string.", "arg.send_to": "Entry 2 must have at most 20 characters, and has 21.",
	} {
		if problem := p.byID(field + "-problem"); problem == nil || strings.TrimSpace(textIn(problem)) != says {
			t.Errorf("of several: at %s stands %v", field, problem)
		}
		if got := hasAttr(p.byID(field), "autofocus"); got != (field == "arg.amount") {
			t.Errorf("of several: a reader goes on at %s: %v", field, got)
		}
	}
}

// A list of texts is written with one on each line.
func TestALineForEach(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":500,"send_to":["ana","b \"c\""]}`)
	at := "/approvals/" + d.ID + "/edit"
	b := w.as(token.Reviewer, "ana")
	p := b.get(at).has("One on each line", "At most 3 entries")
	f := trim(p.form(at))
	if got := f.Get("arg.send_to"); got != "ana\r\nb \"c\"" {
		t.Errorf("it is filled with %q", got)
	}
	p = b.post(at, with(f, "arg.send_to", "ana\r\n\r\n eve \r\n", "answer", "look")).want(200)
	b.post(at, with(trim(p.form(at)), "answer", "approve")).want(200)
	if got := string(w.read(d.ID).EditedArgs); got != `{"order":"o-7","amount":500,"send_to":["ana","eve"]}` {
		t.Errorf("approved is %s", got)
	}
}
