package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/unicode/norm"

	"github.com/placet-dev/placet/canon"
)

// rule judges one keyword in the library's place. Its error is a misfit.
type rule func(v any) error

// misfit is how a value breaks a rule.
type misfit struct {
	what string   // a predicate; or
	want []string // of a wrong type: the types that would do
	got  string   // and the type it is
}

func (m *misfit) Error() string { return m.what }

// takeRules takes those keywords out of s that the library judges before anything is
// counted, or by making a fraction of every number, whatever its exponent, or by
// comparing each with each.
func (m *meter) takeRules(s *jsonschema.Schema) []rule {
	var rules []rule
	if s.Types != nil {
		rules = append(rules, typeRule(s.Types.ToStrings()))
		s.Types = nil
	}
	if s.Const != nil {
		rules = append(rules, m.oneOfValues([]any{*s.Const}))
		s.Const = nil
	}
	if s.Enum != nil {
		rules = append(rules, m.oneOfValues(s.Enum.Values))
		s.Enum = nil
	}
	if s.UniqueItems {
		rules = append(rules, m.uniqueItems)
		s.UniqueItems = false
	}
	return rules
}

func typeRule(types []string) rule {
	whole := slices.Contains(types, "integer") && !slices.Contains(types, "number")
	var bad [len(typeNames)]*misfit // by what was got instead
	for i, got := range typeNames {
		if !slices.Contains(types, got) {
			bad[i] = &misfit{want: types, got: got}
		}
	}
	fraction := bad[typeNumber]
	if whole {
		bad[typeNumber] = nil
	}
	return func(v any) error {
		i := typeIndex(v)
		if bad[i] != nil {
			return bad[i]
		}
		if i == typeNumber && whole && !isWhole(string(v.(json.Number))) {
			return fraction
		}
		return nil
	}
}

// typeNames are the types that a value may have; an integer is a number.
var typeNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

const typeNumber = 2

func typeIndex(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case json.Number:
		return typeNumber
	case string:
		return 3
	case []any:
		return 4
	}
	return 5
}

// isWhole reports whether a JSON number has no fraction: 1.0 and 15e-1 differ in that.
func isWhole(number string) bool {
	digits, exp := number, 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		digits = number[:i]
		exp, _ = strconv.Atoi(number[i+1:]) // canon bounds it
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	fraction = strings.TrimRight(fraction, "0")
	if exp -= len(fraction); exp >= 0 {
		return true
	}
	// -exp digits stand behind the point; they must all be zeros of the number's end.
	all := strings.TrimLeft(strings.TrimPrefix(whole, "-")+fraction, "0")
	return len(all)-len(strings.TrimRight(all, "0")) >= -exp || all == ""
}

// oneOfValues is enum: equal by value, so that 1.0 is 1. Texts are equal by their
// characters: another Unicode form is another text.
func (m *meter) oneOfValues(values []any) rule {
	texts, others, forms := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, v := range values {
		if s, ok := v.(string); ok {
			texts[s] = true
			if len(s) <= maxShort {
				forms[norm.NFC.String(s)] = s
			}
			continue
		}
		others[string(appendKey(nil, v))] = true
	}
	bad := &misfit{what: "must be " + alternatives(values[:min(len(values), maxShort)], literal)}
	return func(v any) error {
		if s, ok := v.(string); ok {
			switch {
			case texts[s]:
				return nil
			case len(s) > maxShort:
				return bad
			}
			m.spend(1 + len(s)/unitsForm)
			if meant, ok := forms[norm.NFC.String(s)]; ok {
				return otherForm(meant, s)
			}
			return bad
		}
		m.weigh(v)
		m.scratch = appendKey(m.scratch[:0], v)
		if !others[string(m.scratch)] {
			return bad
		}
		return nil
	}
}

// otherForm is the misfit of a text that looks like the one that is meant: its
// characters are others, and only those that are written count.
func otherForm(meant, got string) *misfit {
	return &misfit{what: fmt.Sprintf("must be %s; %s is the same text in another Unicode form, and characters have to be equal",
		strconv.QuoteToASCII(meant), strconv.QuoteToASCII(got))}
}

func (m *meter) uniqueItems(v any) error {
	items, _ := v.([]any)
	if len(items) < 2 {
		return nil
	}
	m.weigh(v)
	seen := make(map[string]int, len(items))
	for i, item := range items {
		m.scratch = appendKey(m.scratch[:0], item)
		if first, ok := seen[string(m.scratch)]; ok {
			return &misfit{what: "has equal items at " + strconv.Itoa(first) + " and " + strconv.Itoa(i)}
		}
		seen[string(m.scratch)] = i
	}
	return nil
}

// appendKey appends bytes that are the same for equal values and for no others.
func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, 'n')
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		dst, _ = canon.Append(dst, []byte(v)) // it came out of acceptable JSON
		return append(dst, ' ')
	case string:
		return appendSized(dst, v)
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			dst = appendKey(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = appendKey(appendSized(dst, k), v[k])
		}
		return append(dst, '}')
	}
	return dst
}

// appendSized appends s so that its end is certain, whatever it has in it.
func appendSized(dst []byte, s string) []byte {
	dst = strconv.AppendInt(append(dst, '"'), int64(len(s)), 10)
	return append(append(dst, ':'), s...)
}
