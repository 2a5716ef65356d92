package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxWork bounds one check, in units of about 100 ns. A megabyte of integers takes
// a third of it.
const maxWork = 10 << 20

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
	left int
}

func (m *meter) reset() { m.left = maxWork }

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
		if s.Bool != nil {
			continue
		}
		if s.PropertyNames != nil {
			s.Extensions = append(s.Extensions, propertyNames{s.PropertyNames})
			s.PropertyNames = nil
		}
		s.Format = m.toll(s)
	}
}

// toll is the format of s that counts first.
func (m *meter) toll(s *jsonschema.Schema) *jsonschema.Format {
	c := costOf(s)
	inner := s.Format
	f := &jsonschema.Format{Validate: func(v any) error {
		m.spend(c.flat)
		m.charge(c, v)
		if inner == nil {
			return nil
		}
		return inner.Validate(v)
	}}
	if inner != nil {
		f.Name = inner.Name
	}
	return f
}

// cost is what one schema costs, by the value it is applied to.
type cost struct {
	flat   int  // always
	enum   int  // values in enum and const, those inside them included
	exact  bool // numbers become fractions of any size
	unique bool // items are compared with each other
}

// Units of work, measured.
const (
	unitsSchema   = 4 // applying one schema
	unitsNumber   = 4 // one number as a fraction
	unitsExponent = 4 // powers of ten for one unit
	unitsPairs    = 32
)

func costOf(s *jsonschema.Schema) cost {
	c := cost{
		flat:   unitsSchema + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf) + len(s.Required),
		unique: s.UniqueItems,
		exact: s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil ||
			s.ExclusiveMaximum != nil || s.MultipleOf != nil,
	}
	if s.Types != nil {
		c.exact = c.exact || slices.Contains(s.Types.ToStrings(), "integer")
	}
	if s.Enum != nil {
		c.enum += weigh(s.Enum.Values, math.MaxInt)
	}
	if s.Const != nil {
		c.enum += weigh(*s.Const, math.MaxInt)
	}
	return c
}

func (m *meter) charge(c cost, v any) {
	switch v := v.(type) {
	case map[string]any:
		m.spend(len(v) + c.enum)
	case []any:
		m.spend(len(v) + c.enum)
		if c.unique {
			m.chargePairs(v)
		}
	case json.Number:
		n := unitsNumber + exponent(string(v))/unitsExponent
		if c.exact {
			m.spend(n)
		}
		if c.enum > 0 {
			m.spend(n * min(c.enum, maxWork/n))
		}
	default:
		m.spend(c.enum / unitsSchema)
	}
}

// chargePairs counts what uniqueItems does: it hashes every item, and compares
// those of one hash, which for arrays inside arrays may be all of them.
func (m *meter) chargePairs(items []any) {
	const direct = 20 // up to so many the library compares each with each
	w := weigh(items, m.left)
	switch {
	case len(items) <= direct:
		m.spend(w * (1 + len(items)/2))
	case slices.ContainsFunc(items, composite):
		m.spend(w + len(items)*len(items)/unitsPairs)
	default:
		m.spend(w)
	}
}

func composite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// weigh is how many values v has inside it, itself included; it stops at limit.
func weigh(v any, limit int) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if n >= limit {
				return n
			}
			n += weigh(inner, limit-n)
		}
	case []any:
		for _, inner := range v {
			if n >= limit {
				return n
			}
			n += weigh(inner, limit-n)
		}
	case json.Number:
		n += unitsNumber + exponent(string(v))/unitsExponent
	case string:
		n += len(v) / 256
	}
	return n
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
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	size := programSize(s)
	if size > maxPatternProgram {
		return nil, fmt.Errorf("it repeats too much: it has %d steps, and at most %d are allowed", size, maxPatternProgram)
	}
	return pattern{re, size, m}, nil
}

func programSize(s string) int {
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

func (p pattern) String() string { return p.re.String() }

func (p pattern) MatchString(s string) bool {
	const perUnit = 64 // instructions times bytes
	p.meter.spend(1 + len(s)*p.size/perUnit)
	return p.re.MatchString(s)
}

// regexpFault is why a pattern does not compile, without the pattern.
func regexpFault(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return err.Error()
}
