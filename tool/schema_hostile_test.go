package tool

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ladder doubles the work with each of n rungs.
func ladder(n int, keyword string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"l%d":{"%s":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"l%d":{}}}`, n)
	return b.String()
}

func TestHostileSchemasAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return strings.Repeat(`{"properties":{"a":`, n) + `{}` + strings.Repeat(`}}`, n)
	}
	tests := []struct{ name, schema, want string }{
		{"too large", `{"description":"` + strings.Repeat("x", maxSchema) + `"}`, "at most 65536 are allowed"},
		{"not JSON", `{"type":`, "not acceptable JSON"},
		{"duplicate key", `{"type":"object","type":"string"}`, "duplicate"},
		{"array", `[]`, "not a JSON object"},
		{"false", `false`, "not a JSON object"},
		{"too deep", nested(40), "nested more than 64 deep"},
		{"too deep in enum", `{"enum":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "nested more than 64 deep"},
		{"too deep for canon", nested(200), "not acceptable JSON"},
		{"itself", `{"$ref":"#"}`, "refers to itself"},
		{"itself in allOf", `{"allOf":[{"$ref":"#"}]}`, "refers to itself"},
		{"itself in not", `{"not":{"$ref":"#"}}`, "refers to itself"},
		{"itself in if", `{"if":{"$ref":"#"}}`, "refers to itself"},
		{"itself in dependentSchemas", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, "refers to itself"},
		{"two in a circle", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, "refers to itself"},
		{"a circle nobody uses", `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		{"by anchor", `{"$anchor":"x","$ref":"#x"}`, "refers to itself"},
		{"allOf ladder", ladder(20, "allOf"), "more than 1000 schemas"},
		{"anyOf ladder", ladder(200, "anyOf"), "more than 1000 schemas"},
		{"oneOf ladder", ladder(30, "oneOf"), "more than 1000 schemas"},
		{"wide", `{"anyOf":[` + strings.Repeat(`{},`, 1200) + `{}]}`, "more than 1000 schemas"},
		{"many", `{"properties":{` + manyProperties(2100) + `}}`, "more than 2000 schemas"},
		{"long names around many", `{"properties":{"` + strings.Repeat("n", 50_000) + `":{"properties":{` + manyProperties(100) + `}}}}`, "very long names"},
		{"long chain", chain(100), "through more than 64 schemas"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "names another document"},
		{"relative", `{"$ref":"other.json#/a"}`, "names another document"},
		{"http", `{"$ref":"http://127.0.0.1:1/x"}`, "names another document"},
		{"metaschema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "names another document"},
		{"$schema of its own", `{"$schema":"http://127.0.0.1:1/x"}`, "not a published draft"},
		{"$schema of one vocabulary", `{"$schema":"https://json-schema.org/draft/2020-12/meta/core","required":["a"]}`, "not a published draft"},
		{"$schema no text", `{"$schema":1}`, "not a published draft"},
		{"$schema inside with $id", `{"$defs":{"a":{"$id":"http://x/y","$schema":"http://127.0.0.1:1/x"}}}`, "only its top may have one"},
		{"nested $id", `{"properties":{"a":{"$id":"http://x/y"}}}`, "only its top may have one"},
		{"nested id of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"id":"y"}}}`, "only its top may have one"},
		{"$dynamicRef", `{"$dynamicAnchor":"a","properties":{"a":{"$dynamicRef":"#a"}}}`, "not supported"},
		{"$recursiveRef", `{"properties":{"a":{"$recursiveRef":"#"}}}`, "not supported"},
		{"nowhere", `{"$ref":"#/$defs/a"}`, "points at no schema"},
		{"into an enum", `{"enum":[{"type":"string"}],"properties":{"a":{"$ref":"#/enum/0"}}}`, "points at no schema"},
		{"no anchor", `{"$ref":"#a"}`, "points at no schema"},
		{"bad escape", `{"$ref":"#/%zz"}`, "points at no schema"},
		{"not a schema", `{"type":"objekt"}`, "not a valid JSON Schema at /type"},
		{"minLength", `{"minLength":-1}`, "minLength -1"},
		{"maxLength too large", `{"properties":{"a":{"maxLength":18446744073709551616}}}`, "maxLength 18446744073709551616 at /properties/a"},
		{"maxItems by exponent", `{"maxItems":1e300}`, "maxItems 1e300"},
		{"huge number", `{"maximum":1e9999}`, "exponent beyond 400 at /maximum"},
		{"huge number in enum", `{"enum":[1e-401]}`, "exponent beyond 400 at /enum/0"},
		{"pitfall 10: look-ahead", `{"properties":{"a":{"pattern":"(?=x)y"}}}`, `The pattern "(?=x)y" at /properties/a/pattern cannot be used`},
		{"back-reference", `{"pattern":"(a)\\1"}`, "cannot be used"},
		{"pattern of names", `{"patternProperties":{"(?<!x)y":{}}}`, "at /patternProperties"},
		{"long pattern", `{"pattern":"` + strings.Repeat("x", 1001) + `"}`, "at most 1000 are allowed"},
		{"large pattern", `{"pattern":"` + strings.Repeat("x{1000}", 20) + `"}`, "repeats too much"},
		{"nested repeat", `{"pattern":"((((x{100}){100}){100}){100}){100}"}`, "cannot be used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := CompileSchema([]byte(tt.schema))
			if !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("CompileSchema = %.400v; want one that says %q", err, tt.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Logf("took %s", took)
			}
		})
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d":{},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func chain(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"l%d":{"$ref":"#/$defs/l%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"l%d":{}}}`, n)
	return b.String()
}

// Schemas just inside the bounds, with the worst arguments for them, end within
// about a second each, by an answer or by a refusal, and without much memory.
func TestHostileArgumentsEndSoon(t *testing.T) {
	if raceDetector {
		t.Skip("it is about time, of which the race detector takes ten times as much")
	}
	const limit = 10 * time.Second // measured: 0.8 s
	tree := func(alternatives int, keyword string) string {
		alt := `{"properties":{"a":{"$ref":"#/$defs/t"}}}`
		return `{"$ref":"#/$defs/t","$defs":{"t":{"` + keyword + `":[` + strings.TrimSuffix(strings.Repeat(alt+",", alternatives), ",") + `]}}}`
	}
	deep := func(n int, inner string) string {
		return strings.Repeat(`{"a":`, n) + inner + strings.Repeat(`}`, n)
	}
	list := func(item string) string {
		n := (MaxArgs - 20) / (len(item) + 1)
		return `{"a":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	// All of these have the same hash in the library.
	colliding := func() string {
		var b strings.Builder
		for i := range 1 << 14 {
			item := "[]"
			for bit := range 14 {
				if i>>bit&1 == 1 {
					item = "[" + item + ",[]]"
				} else {
					item = "[[]," + item + "]"
				}
			}
			if b.Len()+len(item) > MaxArgs-20 {
				break
			}
			b.WriteString(item + ",")
		}
		return `{"a":[` + strings.TrimSuffix(b.String(), ",") + `]}`
	}
	tests := []struct{ name, schema, args string }{
		{"allOf doubles with each level", tree(2, "allOf"), deep(200, `{}`)},
		{"anyOf doubles, nothing fits", tree(2, "anyOf"), deep(200, `{"a":1}`)},
		{"oneOf doubles", tree(2, "oneOf"), deep(200, `{}`)},
		{"not", `{"$ref":"#/$defs/t","$defs":{"t":{"not":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},{"properties":{"a":{"$ref":"#/$defs/t"}}}]}}}}`, deep(200, `{}`)},
		{"if", `{"$ref":"#/$defs/t","$defs":{"t":{"if":{"properties":{"a":{"$ref":"#/$defs/t"}}},"then":{"properties":{"a":{"$ref":"#/$defs/t"}}},"else":{"properties":{"a":{"$ref":"#/$defs/t"}}}}}}`, deep(200, `{}`)},
		{"dependentSchemas", `{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"a":{"$ref":"#/$defs/t"}},"dependentSchemas":{"a":{"properties":{"a":{"$ref":"#/$defs/t"}}}}}}}`, deep(200, `{}`)},
		{"unevaluated", `{"$ref":"#/$defs/t","$defs":{"t":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},{"properties":{"a":{"$ref":"#/$defs/t"}}}],"unevaluatedProperties":false}}}`, deep(200, `{}`)},
		{"wide alternatives over a long list", `{"properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 900) + `{}]}}}}`, list("1")},
		{"enum over a long list", `{"properties":{"a":{"items":{"enum":[` + strings.Repeat(`1.5,`, 12_000) + `0]}}}}`, list("1")},
		{"enum of large numbers", `{"properties":{"a":{"items":{"enum":[` + strings.Repeat(`1e399,`, 10_000) + `0]}}}}`, list("1e9999")},
		{"integers", `{"properties":{"a":{"items":{"type":"integer"}}}}`, list("1")},
		{"wrong types, all reported", `{"properties":{"a":{"items":{"type":"string"}}}}`, list("1")},
		{"unique numbers", `{"properties":{"a":{"uniqueItems":true}}}`, list("1")},
		{"unique colliding", `{"properties":{"a":{"uniqueItems":true}}}`, colliding()},
		{
			"unique at every level", `{"$ref":"#/$defs/t","$defs":{"t":{"uniqueItems":true,"items":{"$ref":"#/$defs/t"}}},"properties":{"a":{"$ref":"#/$defs/t"}}}`,
			`{"a":` + strings.Repeat("[", 250) + strings.TrimSuffix(strings.Repeat("1,", 500_000), ",") + strings.Repeat("]", 250) + `}`,
		},
		{"slow pattern", `{"properties":{"a":{"pattern":"(x*)*` + strings.Repeat(`(x+x+)+`, 100) + `y"}}}`, `{"a":"` + strings.Repeat("x", MaxArgs-100) + `"}`},
		{"pattern over many names", `{"patternProperties":{` + manyPatterns(500) + `}}`, `{` + manyProperties(60_000) + `}`},
		{"long chain down a deep value", strings.Replace(chain(60), `"l60":{}`, `"l60":{"properties":{"a":{"$ref":"#/$defs/l0"}}}`, 1), deep(254, `{}`)},
		{"format regex", `{"properties":{"a":{"format":"regex"}}}`, `{"a":"` + strings.Repeat("(x{1000})", 100_000) + `"}`},
		{"format regex, many", `{"properties":{"a":{"items":{"format":"regex"}}}}`, list(`"x{1000}x{1000}x{1000}x{1000}x{1000}x{1000}x{1000}"`)},
		{"contains", `{"properties":{"a":{"contains":{"enum":[` + strings.Repeat(`"x",`, 5000) + `"y"]}}}}`, list("1")},
		{"propertyNames", `{"propertyNames":{"anyOf":[` + strings.Repeat(`{"pattern":"^y"},`, 300) + `{}]}}`, `{` + manyProperties(60_000) + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tl := withSchema(t, tt.schema)
			if len(tt.args) > MaxArgs {
				t.Fatal("the arguments are too large for this test")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			err := tl.CheckArgs([]byte(tt.args))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("%8s, %4d MiB allocated, heap %4d MiB: %.100v", took.Round(time.Millisecond),
				(after.TotalAlloc-before.TotalAlloc)>>20, after.HeapSys>>20, err)
			if took > limit {
				t.Logf("took %s", took)
			}
		})
	}
}

func manyPatterns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"^x%d$":{},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}
