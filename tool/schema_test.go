package tool

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/fault"
)

func mustCompile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := CompileSchema([]byte(schema))
	if err != nil {
		t.Fatalf("CompileSchema(%.200s): %v", schema, err)
	}
	return s
}

// withSchema is a registered tool of that schema.
func withSchema(t testing.TB, schema string) *Tool {
	t.Helper()
	tl := refund()
	tl.InputSchema = json.RawMessage(schema)
	r, err := NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Lookup("refund")
	return got
}

const refundSchema = `{"type":"object","required":["order_id","amount"],"additionalProperties":false,
	"properties":{"order_id":{"type":"string","minLength":1,"maxLength":64},
	"amount":{"type":"number","exclusiveMinimum":0},"note":{"type":"string"},
	"items":{"type":"array","items":{"type":"integer"}}}}`

func TestCheckArgsMessages(t *testing.T) {
	t.Parallel()
	tests := []struct{ schema, args, want, path string }{
		// Before the schema.
		{`{}`, ``, "byte 0", ""},
		{`{}`, `{"a":1,"a":2}`, "byte 7", ""},
		{`{}`, `{"a":1,}`, "byte 7", ""},
		{`{}`, "{\"a\":\"\xff\"}", "byte 6", ""},
		{`{}`, `{}{}`, "byte 2", ""},
		{`{}`, `[]`, "The arguments are an array; they must be a JSON object.", ""},
		{`{}`, ` null`, "The arguments are null", ""},
		{`{}`, `"{}"`, "The arguments are a string", ""},
		{`{}`, `1`, "The arguments are a number", ""},
		{`{}`, `true`, "The arguments are a boolean", ""},
		{`{}`, `{"a":` + strings.Repeat("[", 256) + strings.Repeat("]", 256) + `}`, "not acceptable JSON", ""},
		{`{}`, `{"a":"` + strings.Repeat("x", MaxArgs) + `"}`, "at most 1048576 are allowed", ""},

		// Case 043: the field and what was expected.
		{refundSchema, `{"order_id":"o-7"}`, "The field /amount is missing.", "/amount"},
		{refundSchema, `{}`, "The field /amount is missing.", "/amount"},
		{refundSchema, `{"order_id":7,"amount":1}`, "The field /order_id must be a string, not a number.", "/order_id"},
		{refundSchema, `{"order_id":null,"amount":1}`, "The field /order_id must be a string, not null.", "/order_id"},
		{refundSchema, `{"order_id":"","amount":1}`, "The field /order_id must have at least 1 characters, and has 0.", "/order_id"},
		{refundSchema, `{"order_id":"o","amount":0}`, "The field /amount must be greater than 0.", "/amount"},
		{refundSchema, `{"order_id":"o","amount":"500"}`, "The field /amount must be a number, not a string.", "/amount"},
		{refundSchema, `{"order_id":"o","amount":1,"Amount":2}`, "The field /Amount is not an allowed field.", "/Amount"},
		{refundSchema, `{"order_id":"o","amount":1,"z":1,"b":2}`, "The field /b is not an allowed field.", "/b"},
		{refundSchema, `{"order_id":"o","amount":1,"items":[1,2.5]}`, "The field /items/1 must be an integer, not a number.", "/items/1"},
		{refundSchema, `{"order_id":"o","amount":1,"a/b~":1}`, "The field /a~1b~0 is not", "/a~1b~0"},

		// One keyword each.
		{`{"minProperties":2}`, `{"a":1}`, "The arguments must have at least 2 fields, and has 1.", ""},
		{`{"properties":{"a":{"enum":["x","y",3]}}}`, `{"a":"z"}`, `/a must be "x", "y" or 3.`, "/a"},
		{`{"properties":{"a":{"const":"<b>"}}}`, `{"a":"z"}`, `/a must be "<b>".`, "/a"},
		{`{"properties":{"a":{"enum":["tea","caf\u00e9"]}}}`, `{"a":"cafe\u0301"}`, `/a must be "caf\u00e9"; "cafe\u0301" is the same text in another Unicode form`, "/a"},
		{`{"properties":{"a":{"const":"\u212a"}}}`, `{"a":"K"}`, `/a must be "\u212a"; "K" is the same text in another Unicode form`, "/a"},
		{`{"properties":{"a":{"minimum":1.25}}}`, `{"a":1.2}`, "/a must be at least 1.25.", "/a"},
		{`{"properties":{"a":{"maximum":9007199254740993}}}`, `{"a":9007199254740994}`, "/a must be at most 9007199254740993.", "/a"},
		{`{"properties":{"a":{"exclusiveMaximum":3}}}`, `{"a":3}`, "/a must be less than 3.", "/a"},
		{`{"properties":{"a":{"multipleOf":0.01}}}`, `{"a":0.001}`, "/a must be a multiple of 0.01.", "/a"},
		{`{"properties":{"a":{"maxLength":2}}}`, `{"a":"äöü"}`, "/a must have at most 2 characters, and has 3.", "/a"},
		{`{"properties":{"a":{"pattern":"^x+$"}}}`, `{"a":"y"}`, "/a must match the pattern ^x+$.", "/a"},
		{`{"properties":{"a":{"format":"date-time"}}}`, `{"a":"yesterday"}`, "/a must be a valid date-time.", "/a"},
		{`{"properties":{"a":{"format":"regex"}}}`, `{"a":"("}`, "/a must be a valid regex.", "/a"},
		{`{"properties":{"a":{"minItems":1}}}`, `{"a":[]}`, "/a must have at least 1 items, and has 0.", "/a"},
		{`{"properties":{"a":{"maxItems":1}}}`, `{"a":[1,2]}`, "/a must have at most 1 items, and has 2.", "/a"},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2,1.0]}`, "/a has equal items at 0 and 2.", "/a"},
		{`{"properties":{"a":{"contains":{"const":1}}}}`, `{"a":[2]}`, "/a has no item of the kind", "/a"},
		{`{"properties":{"a":{"contains":{"const":1},"minContains":2}}}`, `{"a":[1]}`, "at least 2 items of the kind", "/a"},
		{`{"properties":{"a":{"contains":{"const":1},"maxContains":1}}}`, `{"a":[1,1]}`, "at most 1 items of the kind", "/a"},
		{`{"properties":{"a":{"prefixItems":[{}],"items":false}}}`, `{"a":[1,2]}`, "/a/1 is not allowed.", "/a/1"},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b is missing; "a" needs it.`, "/b"},
		{`{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, "/A has a name that is not allowed.", "/A"},
		{`{"not":{"required":["a"]}}`, `{"a":1}`, "The arguments is of a kind that the schema excludes.", ""},
		{`{"properties":{"a":false}}`, `{"a":1}`, "/a is not allowed.", "/a"},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`, `{"a":1,"b":1}`, "/b is not allowed.", "/b"},

		// Alternatives.
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, "/a must be null or a string, not a number.", "/a"},
		{`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":1}`, "/a must be null or a string, not a number.", "/a"},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"object","required":["x"]}]}}}`, `{"a":{}}`, "/a/x is missing.", "/a/x"},
		{`{"properties":{"a":{"oneOf":[{"const":1},{"const":2}]}}}`, `{"a":3}`, "/a fits none of the 2 alternatives", "/a"},
		{`{"properties":{"a":{"oneOf":[{"type":"number"},{"type":"integer"}]}}}`, `{"a":3}`, "/a fits alternatives 1 and 2, and must fit exactly one.", "/a"},
		{`{"$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`, `{"a":3}`, "/a must be a string, not a number.", "/a"},
		{`{"allOf":[{"required":["b"]},{"required":["a"]}]}`, `{}`, "/a is missing.", "/a"},

		// Case 192: nothing is filled in, so a default does not help.
		{`{"required":["amount"],"properties":{"amount":{"type":"number","default":500}}}`, `{}`, "/amount is missing.", "/amount"},

		// Foreign text is shown harmless.
		{`{"additionalProperties":false}`, `{"a\u001b[2J\u202e\u0000":1}`, `/a\x1b[2J\u202e\x00 is not`, "/a\x1b[2J\u202e\x00"},
		{`{"additionalProperties":false}`, `{"` + strings.Repeat("k", 5000) + `":1}`, "kkk… is not an allowed field.", ""},
	}
	for _, tt := range tests {
		err := withSchema(t, tt.schema).CheckArgs([]byte(tt.args))
		if !errors.Is(err, ErrInvalidArguments) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n  of %.100s\n  is  %.500v\n  want %s", tt.schema, tt.args, err, tt.want)
			continue
		}
		if len(fault.From(err).Message) > 600 {
			t.Errorf("%.100s: the message has %d bytes", tt.args, len(fault.From(err).Message))
		}
		if tt.path != "" {
			var d struct{ Path string }
			if json.Unmarshal(fault.From(err).Details, &d) != nil || d.Path != tt.path {
				t.Errorf("%s: details %s, want path %q", tt.args, fault.From(err).Details, tt.path)
			}
		}
	}
}

// All that is wrong is told at once, in the order of places.
func TestCheckArgsTellsEverything(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["c","d"],"additionalProperties":false,"properties":{
		"a":{"type":"integer","minimum":5,"multipleOf":2},"b":{"type":"array","items":{"type":"string","minLength":2}},"c":{},"d":{}}}`
	err := withSchema(t, schema).CheckArgs([]byte(`{"a":3,"b":["xx","y",7],"z":1,"y":1}`))
	want := []Problem{
		{"/a", "must be a multiple of 2; it must be at least 5"},
		{"/b/1", "must have at least 2 characters, and has 1"},
		{"/b/2", "must be a string, not a number"},
		{"/c", "is missing"},
		{"/d", "is missing"},
		{"/y", "is not an allowed field"},
		{"/z", "is not an allowed field"},
	}
	if got := Problems(err); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, p := range want {
		if said := "The field " + p.Path + " " + p.Problem + "."; !strings.Contains(err.Error(), said) {
			t.Errorf("%s is missing in %s", said, err)
		}
	}
	err = withSchema(t, `{"required":["b"],"dependentRequired":{"a":["b"]},"properties":{"l":{"items":{"type":"string"}}}}`).CheckArgs([]byte(`{"a":1,"l":["","",2,"","","","","","","",10]}`))
	want = []Problem{{"/b", "is missing"}, {"/l/2", "must be a string, not a number"}, {"/l/10", "must be a string, not a number"}}
	if got := Problems(err); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	many := `{"a":6,"c":1,"d":1`
	for i := range 1000 {
		many += `,"other` + strconv.Itoa(i) + `":1`
	}
	err = withSchema(t, schema).CheckArgs([]byte(many + "}"))
	if n := len(Problems(err)); n != mostProblems {
		t.Errorf("%d problems are told", n)
	}
	if said := fault.From(err).Message; !strings.HasSuffix(said, "is not an allowed field. There are more problems.") || len(said) > 600 {
		t.Error(err)
	}
	if Problems(errors.New("other")) != nil || Problems(withSchema(t, schema).CheckArgs([]byte(`[`))) != nil {
		t.Error("problems of what names no place")
	}
}

func TestCheckArgsMessageIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	tl := withSchema(t, `{"required":["a","b","c"],"properties":{"d":{"type":"string"},"e":{"type":"string"}},"additionalProperties":false}`)
	want := tl.CheckArgs([]byte(`{"e":1,"d":1,"f":1,"g":1}`)).Error()
	for range 50 {
		if got := tl.CheckArgs([]byte(`{"e":1,"d":1,"f":1,"g":1}`)).Error(); got != want {
			t.Fatalf("%s, then %s", want, got)
		}
	}
}

func TestCheckArgsAccepts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ schema, args string }{
		{`{}`, `{}`},
		{`{"type":"object"}`, " {\"a\" : [ ] , \"b\":{ } }\n"},
		{refundSchema, `{"order_id":"o-7","amount":9007199254740993}`},
		{refundSchema, `{"\u006frder_id":"\ud83d\ude00\n","amount":1e-3,"items":[1,2.0,3e0,-0]}`},
		{`{"properties":{"a":{"format":"no-such-format"}}}`, `{"a":"x"}`},
		{`{"properties":{"a":{"minLength":2,"maxLength":2}}}`, `{"a":"😀é"}`},
		{`{"properties":{"a":{"enum":[1,{"b":[null]}]}}}`, `{"a":1.0}`},
		{`{"properties":{"a":{"enum":[1,{"b":[null]}]}}}`, `{"a":{"b":[null]}}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}}}`, `{"a":"x"}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"id":{"type":"integer","minimum":1,"exclusiveMinimum":true}}}`, `{"id":2}`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/a.json","$defs":{"s":{"$anchor":"s","type":"string"}},"properties":{"a":{"$ref":"#s"},"b":{"$ref":"#/$defs/s"}}}`, `{"a":"x","b":"y"}`},
		{`{"$id":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`, `{"a":"x"}`},
		{`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"$dynamicRef":{}}}`, `{"$ref":"x","$id":"y"}`},
		{`{"$defs":{"a b/c~":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a%20b~1c~0"}}}`, `{"a":"x"}`},
	} {
		if err := withSchema(t, tt.schema).CheckArgs([]byte(tt.args)); err != nil {
			t.Errorf("%s of %s: %v", tt.schema, tt.args, err)
		}
	}
}

// A recursive schema over data is fine; only recursion without the data is refused.
func TestRecursiveSchemaOverData(t *testing.T) {
	t.Parallel()
	tl := withSchema(t, `{"$defs":{"node":{"type":"object","additionalProperties":false,"required":["v"],
		"properties":{"v":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}},
		"$ref":"#/$defs/node"}`)
	deep := func(inner string, levels int) string {
		return strings.Repeat(`{"v":1,"children":[`, levels) + inner + strings.Repeat(`]}`, levels)
	}
	if err := tl.CheckArgs([]byte(deep(`{"v":2},{"v":3}`, 120))); err != nil {
		t.Errorf("a deep tree: %v", err)
	}
	err := tl.CheckArgs([]byte(deep(`{"v":"x"}`, 2)))
	if err == nil || !strings.Contains(err.Error(), "/children/0/children/0/v must be an integer") {
		t.Errorf("a fault inside: %v", err)
	}
	// The whole schema from inside the data.
	tl = withSchema(t, `{"properties":{"next":{"$ref":"#"},"v":{"type":"string"}}}`)
	if err := tl.CheckArgs([]byte(`{"next":{"next":{"v":1}}}`)); err == nil {
		t.Error("a fault two levels down was not found")
	}
}

func TestCase107BigIntegersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	forty := strings.Repeat("1234567890", 4)
	for _, n := range []string{"9007199254740993", "18446744073709551615", forty, "-" + forty} {
		s := mustCompile(t, `{"properties":{"a":{"type":"integer"},"b":{"const":`+n+`},"c":{"items":{"items":{"enum":[`+n+`]}}}}}`)
		if err := s.Check([]byte(`{"a":` + n + `,"b":` + n + `,"c":[[` + n + `]]}`)); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		other := n[:len(n)-1] + string('0'+(n[len(n)-1]-'0'+1)%10)
		for _, args := range []string{`{"b":` + other + `}`, `{"c":[[` + other + `]]}`} {
			if err := s.Check([]byte(args)); err == nil {
				t.Errorf("%s was taken for %s", args, n)
			}
		}
	}
	s := mustCompile(t, `{"properties":{"a":{"maximum":9007199254740992}}}`)
	if s.Check([]byte(`{"a":9007199254740993}`)) == nil {
		t.Error("2^53+1 was taken for 2^53")
	}
}

func TestCase110HugeExponents(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"a":{"type":"number","multipleOf":0.01,"minimum":-1e300,"maximum":1e300}}}`
	tl := withSchema(t, schema)
	start := time.Now()
	for _, n := range []string{"7E29999999", "1e-999999999", "-0e99999999", "1e10001"} {
		err := tl.CheckArgs([]byte(`{"a":` + n + `}`))
		if !errors.Is(err, ErrInvalidArguments) || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s: %v", n, err)
		}
	}
	for _, n := range []string{"1e10000", "-1e10000", "1e-10000", "1." + strings.Repeat("1", 900) + "e-9000"} {
		if err := tl.CheckArgs([]byte(`{"a":` + n + `}`)); !errors.Is(err, ErrInvalidArguments) {
			t.Errorf("%.20s: %v", n, err)
		}
	}
	if err := withSchema(t, `{"properties":{"a":{"type":"integer","minimum":1}}}`).CheckArgs([]byte(`{"a":1e10000}`)); err != nil {
		t.Errorf("1e10000 is an integer above 1: %v", err)
	}
	// Many of them: bounded, with a sentence.
	many := `{"a":[` + strings.Repeat("1e10000,", 130_000) + `1]}`
	if err := withSchema(t, `{"properties":{"a":{"items":{"type":"integer"}}}}`).CheckArgs([]byte(many)); err != nil {
		t.Errorf("many integers: %v", err)
	}
	for _, items := range []string{`"maximum":3`, `"multipleOf":0.37`, `"enum":[1,2,3]`, `"const":1e300`} {
		err := withSchema(t, `{"properties":{"a":{"items":{`+items+`}}}}`).CheckArgs([]byte(many))
		if err == nil {
			t.Errorf("%s: accepted", items)
		}
	}
	err := withSchema(t, `{"properties":{"a":{"uniqueItems":true}}}`).CheckArgs([]byte(many))
	if err == nil {
		t.Error("uniqueItems: accepted")
	}
	if took := time.Since(start); took > 10*time.Second && !raceDetector {
		t.Logf("took %s", took)
	}
}

func TestCase111WholeNumbers(t *testing.T) {
	t.Parallel()
	tl := withSchema(t, `{"properties":{"n":{"type":"integer"}}}`)
	for n, whole := range map[string]bool{
		"999999": true, "1000000": true, "1234567": true, "1e6": true, "1.0": true, "1.5": false,
		"10e-1": true, "-0": true, "0.1e1": true, "1e-1": false, "1E+2": true, "100.00": true,
		"9007199254740993": true, "9007199254740993.5": false, "1e400": true, "123456789012345678901234567890": true,
	} {
		if err := tl.CheckArgs([]byte(`{"n":` + n + `}`)); (err == nil) != whole {
			t.Errorf("%s: %v, want whole: %v", n, err, whole)
		}
	}
}

// An input that a form asks for is not called arguments.
func TestCheckInputMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ schema, input, want string }{
		{`{"type":"object"}`, `[]`, "The input must be an object, not an array."},
		{`{"minProperties":2}`, `{}`, "The input must have at least 2 fields, and has 0."},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":1}`, "The field /a must be a string, not a number."},
	} {
		s := mustCompile(t, tt.schema)
		if err := s.CheckInput([]byte(tt.input)); !errors.Is(err, ErrInvalidArguments) || err.Error() != tt.want {
			t.Errorf("%s against %s: %v", tt.input, tt.schema, err)
		}
		if err := s.CheckInput([]byte(`{"a":"x","b":1}`)); err != nil {
			t.Errorf("%s: %v", tt.schema, err)
		}
	}
}
