package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/placet-dev/placet/canon"
)

// plain is the library's own verdict, without our rules and meter.
func plain(t interface{ Fatalf(string, ...any) }, schema string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, decodeValue([]byte(schema))); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

var numbers = rapid.SampledFrom([]string{
	"0", "-0", "1", "1.0", "1e0", "10e-1", "2", "3", "1.5", "0.5", "-1", "-1.5", "1e2", "100", "1e-2", "0.01", "0.10e1",
	"9007199254740992", "9007199254740993", "9007199254740993.0", "1e30", "1000000000000000000000000000000", "1.00e-3", "12e-1", "120e-1",
})

var words = rapid.SampledFrom([]string{`"a"`, `"b"`, `"ab"`, `""`, `"é"`, `"e\u0301"`, `"\u0061"`, `"\ud83d\ude00"`, `"2024-01-02"`, `"a\n"`})

var names = rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`, `"ab"`, `"\u0061b\n"`})

// value draws JSON text.
func value(t *rapid.T, depth int) string {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
	case 1, 2:
		return numbers.Draw(t, "number")
	case 3, 4:
		return words.Draw(t, "text")
	case 5:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, value(t, depth-1))
		}
		return "[" + strings.Join(items, " , ") + "]"
	}
	var members []string
	seen := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		name := names.Draw(t, "name")
		if plainName := decodeValue([]byte(name)).(string); !seen[plainName] {
			seen[plainName] = true
			members = append(members, name+": "+value(t, depth-1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// schema draws the JSON text of a schema.
func schema(t *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{"{}", "true", "false", `{"type":"string"}`, `{"type":"integer"}`, `{"type":["null","number"]}`, `{"$ref":"#/$defs/d"}`}).Draw(t, "leaf")
	}
	sub := func() string { return schema(t, depth-1) }
	list := func() string { return "[" + sub() + "," + sub() + "]" }
	count := func() string { return fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "count")) }
	values := func() string { return value(t, 1) }
	keywords := map[string]func() string{
		"type": func() string {
			return rapid.SampledFrom([]string{`"object"`, `"array"`, `"string"`, `"integer"`, `"number"`, `["integer","null"]`, `["integer","number"]`, `["boolean","object","string"]`}).Draw(t, "type")
		},
		"const": values, "enum": func() string { return "[" + values() + "," + values() + "," + values() + "]" },
		"minimum": func() string { return numbers.Draw(t, "n") }, "exclusiveMaximum": func() string { return numbers.Draw(t, "n") },
		"multipleOf": func() string { return rapid.SampledFrom([]string{"1", "0.5", "0.01", "3"}).Draw(t, "n") },
		"minLength":  count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count, "maxProperties": count,
		"pattern": func() string { return rapid.SampledFrom([]string{`"^a"`, `"b$"`, `"."`}).Draw(t, "pattern") },
		"format":  func() string { return rapid.SampledFrom([]string{`"date"`, `"regex"`, `"x"`}).Draw(t, "format") },
		"allOf":   list, "anyOf": list, "oneOf": list, "not": sub, "if": sub, "then": sub, "else": sub,
		"items": sub, "contains": sub, "additionalProperties": sub, "propertyNames": sub, "unevaluatedProperties": sub, "unevaluatedItems": sub,
		"prefixItems": list, "uniqueItems": func() string { return "true" },
		"properties":        func() string { return `{"a":` + sub() + `,"b":` + sub() + `}` },
		"patternProperties": func() string { return `{"^a":` + sub() + `}` },
		"required":          func() string { return `["a"]` }, "dependentRequired": func() string { return `{"a":["b"]}` },
		"dependentSchemas": func() string { return `{"a":` + sub() + `}` },
	}
	all := slices.Sorted(maps.Keys(keywords))
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID[string]).Draw(t, "keywords")
	var members []string
	for _, k := range chosen {
		members = append(members, `"`+k+`":`+keywords[k]())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Our rules, the meter and the two ways of asking never change the library's verdict.
func TestSchemaVerdictIsTheLibrarys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.TrimSuffix(schema(t, 2), "}") + `,"$defs":{"d":{"enum":[1,"a",{"a":[1]}]}}}`
		args := value(t, 3)
		if canon.Valid([]byte(args)) != nil {
			t.Fatalf("the test made %s", args)
		}
		ours, err := CompileSchema([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := plain(t, text).Validate(decodeValue([]byte(args)))
		got := ours.Check([]byte(args))
		if (got == nil) != (want == nil) {
			t.Fatalf("%s\nof %s\nis %v\nand for the library %v", text, args, got, want)
		}
	})
}

func TestDecodeValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := value(t, 4)
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		got := decodeValue([]byte(text))
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("%s is %#v, want %#v", text, got, want)
		}
	})
}

func TestIsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.StringMatching(`-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "n")
		want := plain(t, `{"type":"integer"}`).Validate(json.Number(n)) == nil
		if isWhole(n) != want {
			t.Fatalf("isWhole(%s) = %v", n, !want)
		}
	})
}
