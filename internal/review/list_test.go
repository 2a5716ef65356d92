package review_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/internal/review"
)

const asksLists = `{"required":["to"],"properties":{
	"to":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":20},
	"n":{"type":"array","items":{"type":"integer"},"maxItems":1},
	"pair":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}},
	"deep":{"type":"array","items":{"type":"array"}},
	"keys":{"type":"array","items":{"type":"string"},"writeOnly":true}}}`

// A list of texts or numbers is written with one entry on each line, as long as every entry
// comes back from its line as it was.
func TestLists(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]review.FieldSort{
		``: review.ListField, `{"to":[]}`: review.ListField, `{"to":["a b","ü"]}`: review.ListField,
		`{"to":["a\nb"]}`: review.JSONField, `{"to":[" a"]}`: review.JSONField, `{"to":[""]}`: review.JSONField,
		`{"to":["\ud800"]}`: review.JSONField, `{"to":[1]}`: review.JSONField, `{"to":"a"}`: review.JSONField, `{"to":null}`: review.JSONField,
	} {
		if got := fields(asksLists, values)["to"].Sort; got != want {
			t.Errorf("%s is asked for as %s, want %s", values, got, want)
		}
	}
	empty := fields(asksLists, "")
	for name, want := range map[string]review.FieldSort{"n": review.ListField, "pair": review.JSONField, "deep": review.JSONField, "keys": review.ListField} {
		if got := empty[name].Sort; got != want {
			t.Errorf("%s is asked for as %s, want %s", name, got, want)
		}
	}
	for _, c := range []struct{ name, typed, want, wrong string }{
		{"to", " a\t\n\n\"b\"\n[c", `["a","\"b\"","[c"]`, ""},
		{"to", "", `[]`, ""},
		{"n", "", ``, ""},
		{"n", "1\n\n 20 \n", `[1,20]`, ""},
		{"n", "1\nx", ``, "entry 2 is no number."},
		{"n", "1 2", ``, "entry 1 is no number."},
	} {
		if v, wrong := empty[c.name].Value(c.typed); string(v) != c.want || wrong != c.wrong {
			t.Errorf("%s: %q is %s, %q", c.name, c.typed, v, wrong)
		}
	}
	for typed, want := range map[string]string{"": `[]`, " \n": `[]`, "3": `[3]`} { // of one that was there
		if v, wrong := fields(asksLists, `{"n":[1]}`)["n"].Value(typed); string(v) != want || wrong != "" {
			t.Errorf("%q in place of a list is %s, %q", typed, v, wrong)
		}
	}
	if v, wrong := empty["n"].Value(" \r\n"); v != nil || wrong != "" {
		t.Errorf("blanks in an empty list are %s, %q", v, wrong)
	}
	if got := fields(asksLists, `{"n":[1.0, 2e3]}`)["n"].Text(); got != "1.0\n2e3" {
		t.Errorf("it is filled with %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\n\r \t\u00a0\"\\\u2028"))))
		list, err := json.Marshal(rapid.SliceOf(text).Draw(t, "list"))
		if err != nil {
			t.Fatal(err)
		}
		f := fields(asksLists, `{"to":`+string(list)+`}`)["to"]
		if f.Sort != review.ListField {
			return
		}
		v, wrong := f.Value(f.Text())
		if same, err := canon.Equal(v, list); !same || err != nil || wrong != "" {
			t.Errorf("%s comes back as %s, %q, %v", list, v, wrong, err)
		}
	})
}

// What the schema allows is said before anybody writes a value.
func TestLimits(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"integer","minimum":1,"maximum":500}`:                  "at least 1, at most 500",
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1e3}`: "more than 0, less than 1e3",
		`{"type":"number","multipleOf":0.01}`:                           "a multiple of 0.01",
		`{"type":"string","minLength":1,"maxLength":40}`:                "at least 1 character, at most 40 characters",
		`{"type":"integer","minimum":5,"exclusiveMinimum":true}`:        "more than 5", `{"type":"array","maxItems":0}`: "at most 0 entries",
		`{"type":"string","minLength":0}`:                               "",
		`{"type":"array","minItems":2,"maxItems":2}`:                    "at least 2 entries, at most 2 entries",
		`{"type":"array","maxItems":1}`:                                 "at most 1 entry",
		`{"type":"string","minimum":1}`:                                 "",
		`{"type":"integer","minimum":"1"}`:                              "",
		`{"type":"integer","minimum":1` + strings.Repeat("0", 30) + `}`: "",
		`{"minimum":1}`: "",
	} {
		if got := fields(`{"properties":{"a":`+schema+`}}`, "")["a"].Limits; got != want {
			t.Errorf("%s: got %q, want %q", schema, got, want)
		}
	}
	for schema, want := range map[string]string{
		`{"type":"string","examples":["ord-7","ord-8"],"format":"uuid"}`: "ord-7",
		`{"type":"string","examples":[7],"format":"email"}`:              "ana@example.com",
		`{"type":"string","examples":"x"}`:                               "",
	} {
		if got := fields(`{"properties":{"a":`+schema+`}}`, "")["a"].Like; got != want {
			t.Errorf("%s: got %q, want %q", schema, got, want)
		}
	}
}
