package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/placet-dev/placet/fault"
)

// violation is one way in which a value breaks a schema.
type violation struct {
	path []string
	what string   // a predicate: "must be a string, not null"
	want []string // of a wrong type: the types that would do
	got  string
}

func (v violation) pointer() string { return Pointer(v.path...) }

// where names the place for people; top is what the whole value is called.
func (v violation) where(top string) string {
	if len(v.path) == 0 {
		return top
	}
	return short(v.pointer())
}

// told is the violation in words, as a sentence without its capital and full stop: what is
// what the whole value is called.
func (v violation) told(what called) string {
	if len(v.path) == 0 {
		return "the " + string(what) + " " + v.what
	}
	return "the field " + v.where("") + " " + v.what
}

const (
	mostProblems = 20  // how many places of one value are told in details, and of one keyword at all
	mostSaid     = 500 // bytes of a message, from which on it only says that there are more
)

// Problem is what is wrong at one place of arguments or of an input.
type Problem struct {
	Path    string `json:"path"`    // a JSON Pointer
	Problem string `json:"problem"` // a predicate: "must be a string, not null"
}

// refusal tells all that is wrong, by place: most who read it mend everything at once.
func refusal(found []violation, what called) error {
	message := sentence(found[0].told(what))
	for _, v := range found[1:] {
		if len(message)+len(v.told(what)) > mostSaid {
			message += " There are more problems."
			break
		}
		message += " " + sentence(v.told(what))
	}
	err := ErrInvalidArguments.Say("%s", message)
	if ps := problems(found); ps != nil {
		err = err.With(Refusal{ps[0].Path, ps})
	}
	return err
}

// Refusal is the details of an [ErrInvalidArguments] that is about places.
type Refusal struct {
	Path     string    `json:"path"` // of the first problem
	Problems []Problem `json:"problems"`
}

// problems leaves out places whose path is too long to be told.
func problems(found []violation) (ps []Problem) {
	for _, v := range found[:min(len(found), mostProblems)] {
		if p := v.pointer(); len(p) <= maxMessage {
			ps = append(ps, Problem{p, v.what})
		}
	}
	return ps
}

// Problems are what an error that matches [ErrInvalidArguments] says of single places, in
// the order of their paths, 20 at most; none where it is about no place.
func Problems(err error) []Problem {
	fe := fault.From(err)
	if fe == nil || fe.Details == nil || !errors.Is(err, ErrInvalidArguments) {
		return nil
	}
	var r Refusal
	_ = json.Unmarshal(fe.Details, &r) // what is no refusal is about no place
	return r.Problems
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

const missing = "is missing"

// violations are what a reader is told, one for each place and in the order of places: the
// library reports all, in no fixed order.
func violations(e *jsonschema.ValidationError) (all []violation) {
	for _, v := range slices.SortedFunc(slices.Values(collect(e, nil)), violation.compare) {
		last := len(all) - 1
		switch {
		case last < 0 || !slices.Equal(all[last].path, v.path):
			all = append(all, v)
		case strings.HasPrefix(all[last].what, missing) && strings.HasPrefix(v.what, missing): // it is missing once
		case !strings.Contains(all[last].what, v.what) && len(all[last].what) < maxShort:
			all[last].what += "; it " + v.what
		}
	}
	return all
}

// firstViolation is the first of them, of the first keyword.
func firstViolation(e *jsonschema.ValidationError) violation {
	return slices.MinFunc(collect(e, nil), violation.compare)
}

func collect(e *jsonschema.ValidationError, all []violation) []violation {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return append(all, noAlternative(e))
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return append(all, noAlternative(e))
		}
	case *kind.Contains, *kind.MinContains:
		return append(all, describe(e)...)
	}
	if len(e.Causes) == 0 {
		return append(all, describe(e)...)
	}
	for _, c := range e.Causes {
		all = collect(c, all)
	}
	return all
}

// compare orders by place, then by text.
func (v violation) compare(o violation) int {
	return cmp.Or(slices.CompareFunc(v.path, o.path, compareNames), strings.Compare(v.what, o.what))
}

// compareNames has the entries of a list in their order: 2 before 10.
func compareNames(a, b string) int {
	if isIndex(a) && isIndex(b) {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}
	return strings.Compare(a, b)
}

func isIndex(name string) bool {
	return name != "" && strings.Trim(name, "0123456789") == ""
}

// noAlternative is for anyOf and oneOf of which nothing fits. If all alternatives
// wanted another type, it names the types; if all but one did, the fault of that
// one; else it only counts them.
func noAlternative(e *jsonschema.ValidationError) violation {
	at := e.InstanceLocation
	var types []string
	var got string
	var meant []violation
	for _, c := range e.Causes {
		v := firstViolation(c)
		if len(v.path) == len(at) && v.want != nil {
			types, got = append(types, v.want...), v.got
			continue
		}
		meant = append(meant, v)
	}
	switch len(meant) {
	case 0:
		slices.Sort(types)
		return wrongType(at, slices.Compact(types), got)
	case 1:
		return meant[0]
	}
	return violation{path: at, what: fmt.Sprintf("fits none of the %d alternatives that the schema allows", len(e.Causes))}
}

func wrongType(path, want []string, got string) violation {
	return violation{
		path: path, want: want, got: got,
		what: "must be " + alternatives(want, article) + ", not " + article(got),
	}
}

// describe is how one keyword is broken, which some are in several places at once.
func describe(e *jsonschema.ValidationError) []violation {
	v := violation{path: e.InstanceLocation}
	switch k := e.ErrorKind.(type) {
	case *kind.Type: // of the schema of schemas; elsewhere types are rules of ours
		return []violation{wrongType(v.path, k.Want, k.Got)}
	case *kind.Required:
		return v.below(k.Missing, missing)
	case *kind.DependentRequired:
		return v.below(k.Missing, missing+"; "+shown(k.Prop)+" needs it")
	case *kind.Dependency:
		return v.below(k.Missing, missing+"; "+shown(k.Prop)+" needs it")
	case *kind.AdditionalProperties:
		return v.below(k.Properties, "is not an allowed field")
	case *kind.PropertyNames:
		return v.below([]string{k.Property}, "has a name that is not allowed")
	case *kind.Format:
		if bad, ok := k.Err.(*misfit); ok {
			if bad.want != nil {
				return []violation{wrongType(v.path, bad.want, bad.got)}
			}
			v.what = bad.what
			return []violation{v}
		}
	}
	v.what = cmp.Or(describeNumber(e.ErrorKind), describeSize(e.ErrorKind), describeValue(e.ErrorKind))
	return []violation{v}
}

// below is v at each of names.
func (v violation) below(names []string, what string) (all []violation) {
	slices.Sort(names)
	for _, name := range names[:min(len(names), mostProblems+1)] {
		all = append(all, violation{path: append(slices.Clone(v.path), name), what: what})
	}
	if all == nil {
		v.what = what
		return []violation{v}
	}
	return all
}

func describeNumber(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	}
	return ""
}

func describeSize(k jsonschema.ErrorKind) string {
	atLeast := func(want, got int, what string) string {
		return fmt.Sprintf("must have at least %d %s, and has %d", want, what, got)
	}
	atMost := func(want, got int, what string) string {
		return fmt.Sprintf("must have at most %d %s, and has %d", want, what, got)
	}
	switch k := k.(type) {
	case *kind.MinLength:
		return atLeast(k.Want, k.Got, "characters")
	case *kind.MaxLength:
		return atMost(k.Want, k.Got, "characters")
	case *kind.MinItems:
		return atLeast(k.Want, k.Got, "items")
	case *kind.MaxItems:
		return atMost(k.Want, k.Got, "items")
	case *kind.MinProperties:
		return atLeast(k.Want, k.Got, "fields")
	case *kind.MaxProperties:
		return atMost(k.Want, k.Got, "fields")
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.Contains:
		return "has no item of the kind that the schema asks for"
	case *kind.MinContains:
		return atLeast(k.Want, len(k.Got), "items of the kind that the schema asks for")
	case *kind.MaxContains:
		return atMost(k.Want, len(k.Got), "items of the kind that the schema names")
	}
	return ""
}

func describeValue(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Enum: // of the schema of schemas; elsewhere enum and const are rules of ours
		return "must be " + alternatives(k.Want, literal)
	case *kind.Format:
		return "must be a valid " + short(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + short(k.Want)
	case *kind.OneOf:
		return fmt.Sprintf("fits alternatives %d and %d, and must fit exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1)
	case *kind.Not:
		return "is of a kind that the schema excludes"
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself"
	}
	return "does not fit the schema"
}

// alternatives is `a, b or c`, cut like every foreign text.
func alternatives[T any](all []T, text func(T) string) string {
	var b strings.Builder
	for i, v := range all {
		switch {
		case b.Len() > maxShort:
			return short(b.String())
		case i > 0 && i == len(all)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(text(v))
	}
	return short(b.String())
}

func article(jsonType string) string {
	switch jsonType {
	case "array", "object", "integer":
		return "an " + jsonType
	case "null":
		return jsonType
	}
	return "a " + jsonType
}

func literal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "another value"
	}
	return strings.TrimSpace(b.String())
}

// decimal is r exactly, where it has an end; long ones are cut.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return short(r.Num().String())
	}
	digits, exact := r.FloatPrec()
	if !exact {
		return short(r.RatString())
	}
	return short(r.FloatString(digits))
}
