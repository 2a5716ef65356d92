package review_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/tool"
)

const asksAll = `{"type":"object","required":["text","n","pick","key"],"properties":{
	"text":{"type":"string","title":"Title","description":"Described."},
	"n":{"type":"integer","description":"How many?"},
	"x":{"type":"number"},
	"yes":{"type":"boolean"},
	"pick":{"enum":["a",1.0,null]},
	"only":{"const":7},
	"key":{"type":"string","writeOnly":true},
	"pin":{"type":"integer","writeOnly":true},
	"some":{"type":["string","null"]},
	"list":{"type":"array"},
	"any":{},
	"day":{"type":"string","format":"date"},
	"noday":{"type":"string","format":"date"}}}`

func fields(schema, values string) map[string]review.Field {
	m := &display.Mask{}
	m.Teach([]byte(schema))
	m.Learn([]byte(values))
	var now []byte
	if values != "" {
		now = []byte(values)
	}
	all := map[string]review.Field{}
	for _, f := range review.FieldsOf([]byte(schema), now, m) {
		all[f.Name] = f
	}
	return all
}

// Each member is asked for in its own way, and what is secret is not shown.
func TestFieldsOf(t *testing.T) {
	t.Parallel()
	empty := fields(asksAll, "")
	full := fields(asksAll, `{"text":"a\u0041","n":1.50,"pick":1,"key":"sk-1","pin":4711,"list":[{"password":"p"}],"day":"2026-12-01","noday":"tomorrow","any":"word","more":{"a":1}}`)
	for name, want := range map[string][2]review.FieldSort{
		"text": {review.TextField, review.TextField}, "n": {review.NumberField, review.NumberField}, "x": {review.NumberField, review.NumberField},
		"yes": {review.ChoiceField, review.ChoiceField}, "pick": {review.ChoiceField, review.ChoiceField}, "only": {review.ChoiceField, review.ChoiceField},
		"key": {review.SecretField, review.SecretField}, "pin": {review.SecretField, review.SecretField}, "some": {review.JSONField, review.JSONField},
		"list": {review.JSONField, review.KeptField}, "any": {review.JSONField, review.TextField}, "day": {review.DateField, review.DateField}, "noday": {review.DateField, review.TextField}, "more": {"", review.JSONField},
	} {
		if empty[name].Sort != want[0] || full[name].Sort != want[1] {
			t.Errorf("%s is asked for as %q and %q, want %q", name, empty[name].Sort, full[name].Sort, want)
		}
	}
	for name, want := range map[string]string{"text": "aA", "n": "1.50", "key": "", "pin": "", "list": "", "any": "word", "more": "{\n  \"a\": 1\n}"} {
		if got := full[name].Text(); got != want {
			t.Errorf("%s is filled with %q, want %q", name, got, want)
		}
	}
	if got := full["pick"].Chosen(); got != 1 || empty["pick"].Chosen() >= 0 {
		t.Errorf("chosen is %d", got)
	}
	if empty["text"].Title != "Title" || empty["text"].Help != "Described." || empty["n"].Help != "How many?" || !empty["n"].Needed || empty["x"].Needed {
		t.Errorf("got %+v and %+v", empty["text"], empty["n"])
	}
	if got := review.FieldsOf([]byte(`true`), nil, nil); got != nil {
		t.Errorf("what describes nothing asks for %+v", got)
	}
}

// A default fills in what is not there yet, where the field allows it, and changes nothing
// of what is there.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"a":{"type":"string","default":"x"},"b":{"type":"number","default":"1"},"c":{"enum":[1,2],"default":2.0},
		"d":{"enum":[1,2],"default":3},"e":{"type":"boolean","default":false},"f":{"type":"string","default":null}}}`
	var got []string
	for _, f := range review.FieldsOf([]byte(schema), nil, nil) {
		got = append(got, string(f.Now))
	}
	if want := `"x"||2.0||false|`; strings.Join(got, "|") != want {
		t.Errorf("filled in are %q, want %s", got, want)
	}
	for _, f := range review.FieldsOf([]byte(schema), []byte(`{}`), nil) {
		if f.Now != nil {
			t.Errorf("%s of what is there became %s", f.Name, f.Now)
		}
	}
}

// What is typed becomes a value, or is told as what it is not.
func TestValue(t *testing.T) {
	t.Parallel()
	empty := fields(asksAll, "")
	kept := fields(asksAll, `{"key":"sk-1","list":[{"password":"p"}]}`)
	for _, c := range []struct {
		f                  review.Field
		typed, want, wrong string
	}{
		{empty["text"], "", `""`, ""},
		{empty["text"], " <b> \"\n", `" <b> \"\n"`, ""},
		{empty["n"], " 12345678901234567890 ", `12345678901234567890`, ""},
		{empty["n"], "", ``, "it is needed."},
		{empty["n"], "1 2", ``, "it is no number."},
		{empty["n"], `"1"`, ``, "it is no number."},
		{empty["x"], "  ", ``, ""},
		{empty["x"], "-", ``, "it is no number."},
		{empty["key"], "", ``, "it is needed."},
		{empty["key"], "12", `"12"`, ""},
		{empty["pin"], "12", `12`, ""},
		{empty["pin"], "x", ``, "it is no number."},
		{empty["pin"], "", ``, ""},
		{empty["some"], "null", `null`, ""},
		{empty["list"], "[1,", ``, "it is not one JSON value: "},
		{empty["list"], "", ``, ""},
		{kept["key"], "", `"sk-1"`, ""},
		{kept["key"], "new", `"new"`, ""},
		{kept["list"], "[]", `[{"password":"p"}]`, ""},
	} {
		v, wrong := c.f.Value(c.typed)
		if string(v) != c.want || !strings.HasPrefix(wrong, c.wrong) || (wrong == "") != (c.wrong == "") {
			t.Errorf("%s: %q is %s, %q", c.f.Name, c.typed, v, wrong)
		}
	}
	pick := empty["pick"]
	for i, want := range map[int]string{0: `"a"`, 1: `1.0`, 2: `null`, 3: "", -1: ""} {
		if v, wrong := pick.Choose(i); string(v) != want || (wrong == "") != (want != "") {
			t.Errorf("option %d is %s, %q", i, v, wrong)
		}
	}
	if v, wrong := empty["yes"].Choose(-1); v != nil || wrong != "" {
		t.Errorf("nothing is %s, %q", v, wrong)
	}
}

func TestFilled(t *testing.T) {
	t.Parallel()
	var o review.Filled
	if got, err := o.Object(); string(got) != `{}` || err != nil {
		t.Errorf("nothing is %s, %v", got, err)
	}
	for name, v := range map[string]json.RawMessage{"": nil, "<\"a\">": []byte("1.0")} {
		o.Add(review.Field{Name: name}, v, "")
	}
	o.Add(review.Field{Name: "b"}, []byte(`{"c":[]}`), "")
	if got, err := o.Object(); string(got) != `{"<\"a\">":1.0,"b":{"c":[]}}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	o.Add(review.Field{Name: "c"}, nil, "it is needed.")
	o.Add(review.Field{Name: "d"}, nil, "choose one.")
	if got, err := o.Object(); got != nil || !errors.Is(err, tool.ErrInvalidArguments) || err.Error() != "c: it is needed. d: choose one." {
		t.Errorf("got %s, %v", got, err)
	}
}

// Arguments that could not run in place of those asked for are refused before anybody is
// asked about them.
func TestCheckEdit(t *testing.T) {
	t.Parallel()
	a := approval(t, `{"amount":5,"pin":"4711"}`)
	for args, want := range map[string]error{
		`{"amount":6,"pin":"4711"}`:     nil,
		`{"pin":"4711","amount":5.0}`:   review.ErrSame,
		`{"amount":6`:                   tool.ErrInvalidArguments,
		``:                              tool.ErrInvalidArguments,
		`{"amount":6,"pin":4711}`:       tool.ErrInvalidArguments,
		`{"amount":6,"pin":"[masked]"}`: tool.ErrInvalidArguments,
	} {
		if err := a.CheckEdit([]byte(args)); !errors.Is(err, want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for want, change := range map[string]func(*review.Approval){
		"":                    func(*review.Approval) {},
		"cannot be decided":   func(a *review.Approval) { a.Status = decision.Rejected },
		"altered":             func(a *review.Approval) { a.Altered = decision.ErrApprovalHash },
		"step of a run":       func(a *review.Approval) { a.Owner.Kind = decision.OwnerRun },
		"run already":         func(a *review.Approval) { a.Kind = decision.KindInterrupted },
		"policy":              func(a *review.Approval) { a.ForbidEdits = true },
		"be decided any more": func(a *review.Approval) { a.Overdue = true },
	} {
		now := approval(t, `{"amount":5}`)
		change(&now)
		if why := now.WhyFixed(); !strings.Contains(why, want) || now.Editable() != (want == "") {
			t.Errorf("it cannot be edited: %q, want %q", why, want)
		}
	}
}
