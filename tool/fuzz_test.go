package tool

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
)

// No bytes make the check panic, and what it accepts is acceptable to canon and to
// the library; what it refuses it refuses with a sentence.
func FuzzCheckArgs(f *testing.F) {
	schemas := []string{
		refundSchema,
		`{"properties":{"a":{"type":"integer","multipleOf":0.01,"maximum":1e300}},"propertyNames":{"maxLength":3}}`,
		`{"$defs":{"t":{"type":["object","null"],"properties":{"a":{"$ref":"#/$defs/t"}},"additionalProperties":{"uniqueItems":true}}},"$ref":"#/$defs/t"}`,
		`{"patternProperties":{"^x":{"enum":[1,"a",null,[1.0]]}},"anyOf":[{"required":["a"]},{"minProperties":2}]}`,
	}
	tools := make([]*Tool, len(schemas))
	for i, s := range schemas {
		tools[i] = withSchema(f, s)
	}
	for _, seed := range []string{
		`{"order_id":"o-7","amount":500}`, `{"a":7E29999999}`, `{"a":1e10000}`, `{"a":1e-10000}`, `{"a":{"a":{"b":[1,1.0]}}}`,
		`{"xa":[1]}`, `{"\u0061":"\ud83d\ude00"}`, `{"a":"\ud800"}`, `[`, `{"a":1,"a":2}`, "{\"\xff\":1}", `{"a":"` + "\u202e" + `"}`, ` {} `,
	} {
		for i := range schemas {
			f.Add(i, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, i int, args []byte) {
		i = int(uint(i) % uint(len(schemas)))
		err := tools[i].CheckArgs(args)
		if err != nil {
			msg := fault.From(err).Message
			if !errors.Is(err, ErrInvalidArguments) || msg == "" || !utf8.ValidString(msg) || len(msg) > 1000 {
				t.Fatalf("CheckArgs(%q) = %q", args, msg)
			}
			for _, r := range msg {
				if r < ' ' || r == 0x7f {
					t.Fatalf("CheckArgs(%q) has %q in %q", args, r, msg)
				}
			}
		}
		if canon.Valid(args) != nil || args[skipSpace(args, 0)] != '{' {
			if err == nil {
				t.Fatalf("CheckArgs accepts %q", args)
			}
			return
		}
		if len(args) > 4096 { // the library alone has no bounds
			return
		}
		want := plain(t, schemas[i]).Validate(decodeValue(args))
		if (err == nil) != (want == nil) {
			t.Fatalf("CheckArgs(%q) = %v, and for the library %v", args, err, want)
		}
	})
}

// No bytes make compiling panic, and a schema that compiles can be used.
func FuzzCompileSchema(f *testing.F) {
	for _, seed := range []string{
		refundSchema, `{"$ref":"#"}`, ladder(12, "allOf"), `{"type":"objekt"}`, `{"pattern":"(?=x)"}`, `{"maxLength":1e300}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"$ref":"#/definitions/b"},"b":{}}}`,
		`{"$id":"x","$anchor":"y","items":{"$ref":"#y"}}`, `{"$defs":{"~":{"$ref":"#/$defs/~0"}}}`, `{"dependencies":{"a":["b"],"c":{}}}`,
		`{"enum":[{"a":[1e300]}],"uniqueItems":true}`, `{"$schema":"http://json-schema.org/draft-04/schema#","id":"#a","exclusiveMaximum":true}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":[{"b":1},{"b":1.0}],"b":"x"}`))
	}
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := CompileSchema(raw)
		if err != nil {
			msg := fault.From(err).Message
			if !errors.Is(err, ErrInvalidTool) || msg == "" || !utf8.ValidString(msg) || len(msg) > 2000 {
				t.Fatalf("CompileSchema(%q) = %q", raw, msg)
			}
			return
		}
		if canon.Valid(args) == nil {
			_ = s.Check(args)
		}
	})
}
