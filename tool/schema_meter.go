package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxWork bounds one check, in units of about 100 ns. A megabyte of integers takes
// a third of it.
const maxWork = 10 << 20

// Units of work, measured.
const (
	unitsSchema   = 6  // applying one schema
	unitsNumber   = 4  // one number as a fraction
	unitsExponent = 4  // powers of ten for one unit
	unitsStep     = 3  // compiling one instruction of a pattern
	unitsForm     = 16 // bytes of a text brought into another Unicode form, for one unit
	unitsPattern  = 64 // instructions of a pattern times bytes, for one unit
)

const (
	maxPattern        = 1_000  // bytes of a regular expression
	maxPatternProgram = 10_000 // instructions it compiles to
)

// errSpent ends a check that would take too long. The library cannot be told to
// stop, so the meter panics with it and [Schema.check] recovers.
var errSpent = errors.New("the check is too much work")

// meter counts the work of one check. What a schema costs cannot be told
// beforehand: two alternatives that both descend into a tree double the work with
// each level of the arguments, which a model chose.
type meter struct {
	left    int
	scratch []byte
}

func (m *meter) spend(units int) {
	if m.left -= units; m.left < 0 {
		panic(errSpent)
	}
}

// install puts the meter into every schema that root reaches. The library calls a
// schema's format before it descends into the value, so that is where it counts.
func (m *meter) install(root *jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	todo := []*jsonschema.Schema{root}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		todo = append(todo, subschemas(s)...)
		if s.Bool == nil {
			m.equip(s)
		}
	}
}

// equip gives s a format that counts, and then judges what the library would judge
// too slowly, or before anything was counted.
func (m *meter) equip(s *jsonschema.Schema) {
	if s.PropertyNames != nil {
		s.Extensions = append(s.Extensions, propertyNames{s.PropertyNames})
		s.PropertyNames = nil
	}
	flat := unitsSchema + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf) + len(s.Required)
	bounded := s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil ||
		s.ExclusiveMaximum != nil || s.MultipleOf != nil
	rules := m.takeRules(s)

	inner := s.Format
	f := &jsonschema.Format{Validate: func(v any) error {
		m.spend(flat + surface(v, bounded))
		for _, r := range rules {
			if err := r(v); err != nil {
				return err
			}
		}
		if inner != nil {
			return inner.Validate(v)
		}
		return nil
	}}
	if inner != nil {
		f.Name = inner.Name
	}
	s.Format = f
}

// surface is what v costs without what is in it.
func surface(v any, bounded bool) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	case json.Number:
		if bounded {
			return numberUnits(v)
		}
	}
	return 0
}

func numberUnits(n json.Number) int {
	return unitsNumber + exponent(string(n))/unitsExponent
}

// weigh spends for every value inside v.
func (m *meter) weigh(v any) {
	m.spend(1)
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			m.spend(1 + len(k)/256)
			m.weigh(inner)
		}
	case []any:
		for _, inner := range v {
			m.weigh(inner)
		}
	case string:
		m.spend(len(v) / 256)
	}
}

// exponent is the magnitude of the exponent with which a number is written.
func exponent(number string) int {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	n := 0
	for _, c := range number[i+1:] {
		if '0' <= c && c <= '9' && n < math.MaxInt32 {
			n = n*10 + int(c-'0')
		}
	}
	return n
}

// subschemas are the schemas that s refers to.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	out = append(out, s.AllOf...)
	out = append(out, s.AnyOf...)
	out = append(out, s.OneOf...)
	out = append(out, s.PrefixItems...)
	for _, p := range s.Properties {
		out = append(out, p)
	}
	for _, p := range s.PatternProperties {
		out = append(out, p)
	}
	for _, p := range s.DependentSchemas {
		out = append(out, p)
	}
	for _, p := range s.Dependencies {
		out = append(out, schemasIn(p)...)
	}
	for _, v := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		out = append(out, schemasIn(v)...)
	}
	return out
}

// schemasIn is what a keyword of several forms holds.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// propertyNames checks names as the library does, but reports the right path: the
// library's own check keeps a path that the next field overwrites.
type propertyNames struct {
	names *jsonschema.Schema
}

func (p propertyNames) Validate(ctx *jsonschema.ValidatorContext, v any) {
	obj, _ := v.(map[string]any)
	for name := range obj {
		if p.names.Validate(name) != nil {
			ctx.AddError(&kind.PropertyNames{Property: name})
		}
	}
}

// pattern is a compiled regular expression whose use is counted.
type pattern struct {
	re    *regexp.Regexp
	size  int
	meter *meter
}

// regexp compiles a pattern of a schema, and an argument whose format is regex.
func (m *meter) regexp(s string) (jsonschema.Regexp, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are allowed", len(s), maxPattern)
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	size := len(prog.Inst)
	m.spend(unitsStep * size)
	if size > maxPatternProgram {
		return nil, fmt.Errorf("it repeats too much: it has %d steps, and at most %d are allowed", size, maxPatternProgram)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return pattern{re, size, m}, nil
}

func (p pattern) String() string { return p.re.String() }

func (p pattern) MatchString(s string) bool {
	p.meter.spend(1 + len(s)*p.size/unitsPattern)
	return p.re.MatchString(s)
}

// patternFault is why a pattern does not compile, without the pattern.
func patternFault(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return err.Error()
}
