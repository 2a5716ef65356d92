package tool

import (
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkBounds refuses, before anything is compiled, what would make compiling or
// checking expensive: a ladder of allOf doubles the work with each rung, and a
// schema that refers to itself never ends. Recursion into the data is fine: it is
// bounded by the data, and the meter stops what multiplies on the way.
func checkBounds(doc map[string]any) error {
	if err := checkPlain(doc); err != nil {
		return err
	}
	g := &schemaGraph{nodes: map[string]*schemaNode{}, anchors: map[string]*schemaNode{}, id: "$id"}
	if draft, given := doc["$schema"]; given {
		if !knownDraft(draft) {
			return ErrInvalidTool.Say("The schema's $schema is not a published draft of JSON Schema.").
				Hint("Leave it out, or write https://json-schema.org/draft/2020-12/schema.")
		}
		if strings.Contains(draft.(string), "draft-04") {
			g.id = "id"
		}
	}
	if _, err := g.add(doc, ""); err != nil {
		return err
	}
	if err := g.link(); err != nil {
		return err
	}
	for _, n := range g.order {
		if err := n.measure(); err != nil {
			return err
		}
	}
	return nil
}

// knownDraft keeps out dialects: one that leaves out a vocabulary would ignore
// keywords without a word.
func knownDraft(v any) bool {
	name, _ := v.(string)
	name = strings.TrimSuffix(name, "#")
	if rest, ok := strings.CutPrefix(name, "http://"); ok {
		name = "https://" + rest
	}
	switch strings.TrimPrefix(name, "https://json-schema.org/") {
	case "draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema":
		return true
	}
	return false
}

// maxSchemaExponent bounds numbers in a schema; those in arguments may be larger.
const maxSchemaExponent = 400

// counts are the keywords whose number the library keeps in an int.
var counts = []string{
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
	"minContains", "maxContains",
}

// checkPlain looks at v as JSON, whatever it means. path is where v stands.
func checkPlain(v any, path ...string) error {
	if len(path) >= maxSchemaDepth && composite(v) {
		return ErrInvalidTool.Say("The schema is nested more than %d deep.", maxSchemaDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if err := checkCount(k, inner, path); err != nil {
				return err
			}
			if err := checkPlain(inner, append(path, k)...); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range v {
			if err := checkPlain(inner, append(path, strconv.Itoa(i))...); err != nil {
				return err
			}
		}
	case json.Number:
		if exponent(string(v)) > maxSchemaExponent {
			return ErrInvalidTool.Say("The schema has a number with an exponent beyond %d at %s.", maxSchemaExponent, orTop(Pointer(path...)))
		}
	}
	return nil
}

// checkCount refuses a count that the library would silently cut to size.
func checkCount(keyword string, v any, path []string) error {
	n, ok := v.(json.Number)
	if !ok || !slices.Contains(counts, keyword) || isCount(n) {
		return nil
	}
	return ErrInvalidTool.Say("The schema has %s %s at %s; it must be a whole number from 0 to %d.",
		keyword, short(string(n)), orTop(Pointer(path...)), math.MaxInt32)
}

func isCount(n json.Number) bool {
	i, err := strconv.ParseUint(wholeDigits(string(n)), 10, 31)
	return err == nil && i <= math.MaxInt32
}

// schemaGraph is a schema as places that are checked together with other places.
type schemaGraph struct {
	nodes   map[string]*schemaNode // by JSON Pointer
	anchors map[string]*schemaNode
	order   []*schemaNode
	paths   int    // bytes of all pointers
	id      string // the keyword that names a resource
}

// schemaNode is one schema inside the document.
type schemaNode struct {
	path string
	ref  string        // its $ref
	same []*schemaNode // what the same value is checked against too: where a fan-out comes from

	state  int // of measure
	fanOut int // schemas that one value is checked against, this one included
	chain  int // of them, one inside the other
}

// holder is a keyword that holds schemas.
type holder struct {
	name  string
	shape shape
	same  bool // they are applied to the value itself, not to what is in it
}

type shape int

const (
	one   shape = iota // a schema
	list               // an array of them
	table              // an object of them by name
)

var holders = []holder{
	{"allOf", list, true},
	{"anyOf", list, true},
	{"oneOf", list, true},
	{"not", one, true},
	{"if", one, true},
	{"then", one, true},
	{"else", one, true},
	{"dependentSchemas", table, true},
	{"dependencies", table, true},

	{"properties", table, false},
	{"patternProperties", table, false},
	{"additionalProperties", one, false},
	{"propertyNames", one, false},
	{"unevaluatedProperties", one, false},
	{"items", one, false},
	{"items", list, false},
	{"prefixItems", list, false},
	{"additionalItems", one, false},
	{"contains", one, false},
	{"unevaluatedItems", one, false},
	{"contentSchema", one, false},

	{"$defs", table, false},
	{"definitions", table, false},
}

// dynamic are keywords that choose their target while a value is checked, so that
// nobody could bound it before.
var dynamic = []string{"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}

// add registers v as the schema at path, and all inside it. nil for what is no schema.
func (g *schemaGraph) add(v any, path string) (*schemaNode, error) {
	obj, isObject := v.(map[string]any)
	if _, isBool := v.(bool); !isObject && !isBool {
		return nil, nil
	}
	n := &schemaNode{path: path}
	g.nodes[path] = n
	g.order = append(g.order, n)
	g.paths += len(path)
	if len(g.order) > maxSubschemas || g.paths > maxSchemaPaths {
		return nil, ErrInvalidTool.Say("The schema has more than %d schemas inside it, or very long names around many.", maxSubschemas)
	}
	if err := g.names(n, obj); err != nil {
		return nil, err
	}
	if err := checkPatterns(obj, path); err != nil {
		return nil, err
	}
	for _, h := range holders {
		for tokens, inner := range h.schemas(obj) {
			child, err := g.add(inner, path+tokens)
			if err != nil {
				return nil, err
			}
			if child != nil && h.same {
				n.same = append(n.same, child)
			}
		}
	}
	return n, nil
}

// schemas are what obj has under the keyword, with where.
func (h holder) schemas(obj map[string]any) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		v, ok := obj[h.name]
		if !ok {
			return
		}
		switch h.shape {
		case one:
			yield(Pointer(h.name), v)
		case list:
			items, _ := v.([]any)
			for i, item := range items {
				if !yield(Pointer(h.name, strconv.Itoa(i)), item) {
					return
				}
			}
		case table:
			members, _ := v.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if !yield(Pointer(h.name, name), members[name]) {
					return
				}
			}
		}
	}
}

// names takes in what refers to n and what n refers to.
func (g *schemaGraph) names(n *schemaNode, obj map[string]any) error {
	for _, k := range dynamic {
		if _, ok := obj[k]; ok {
			return ErrInvalidTool.Say("The schema uses %s at %s, which is not supported.", k, orTop(n.path)).
				Hint("Use $ref.")
		}
	}
	if _, ok := obj[g.id].(string); ok && n.path != "" {
		return ErrInvalidTool.Say("The schema has %s at %s; only its top may have one.", g.id, orTop(n.path)).
			Hint("Refer to a part of a schema as #/$defs/NAME.")
	}
	if a, ok := obj["$anchor"].(string); ok {
		g.anchors[a] = n
	}
	n.ref, _ = obj["$ref"].(string)
	return nil
}

// checkPatterns compiles the regular expressions of a schema, for a better sentence
// than the library's.
func checkPatterns(obj map[string]any, path string) error {
	check := func(p, at string) error {
		_, err := (&meter{left: math.MaxInt}).regexp(p)
		if err == nil {
			return nil
		}
		return ErrInvalidTool.Say("The pattern %s at %s cannot be used: %s.", shown(p), orTop(at), short(patternFault(err))).
			Hint("Patterns are those of Go's package regexp: without look-around and back-references.")
	}
	if p, ok := obj["pattern"].(string); ok {
		if err := check(p, path+"/pattern"); err != nil {
			return err
		}
	}
	byPattern, _ := obj["patternProperties"].(map[string]any)
	for _, p := range slices.Sorted(maps.Keys(byPattern)) {
		if err := check(p, path+"/patternProperties"); err != nil {
			return err
		}
	}
	return nil
}

// link finds the target of every $ref. It must be a schema inside the document.
func (g *schemaGraph) link() error {
	for _, n := range g.order {
		if n.ref == "" {
			continue
		}
		fragment, local := strings.CutPrefix(n.ref, "#")
		if !local {
			return ErrInvalidTool.Say("The $ref %s at %s names another document, and none is ever loaded.", shown(n.ref), orTop(n.path)).
				Hint("Put the schema under $defs and refer to it as #/$defs/NAME.")
		}
		target := g.target(fragment)
		if target == nil {
			return ErrInvalidTool.Say("The $ref %s at %s points at no schema.", shown(n.ref), orTop(n.path)).
				Hint("Put the schema under $defs and refer to it as #/$defs/NAME.")
		}
		n.same = append(n.same, target)
	}
	return nil
}

func (g *schemaGraph) target(fragment string) *schemaNode {
	name, err := url.PathUnescape(fragment)
	switch {
	case err != nil:
		return nil
	case name == "" || name[0] == '/':
		return g.nodes[name]
	}
	return g.anchors[name]
}

const (
	measuring = 1
	measured  = 2
)

// measure computes fanOut and chain, and refuses what is too large or goes in a circle.
func (n *schemaNode) measure() error {
	switch n.state {
	case measured:
		return nil
	case measuring:
		return ErrInvalidTool.Say("The schema at %s refers to itself without going deeper into the data, so checking would never end.", orTop(n.path))
	}
	n.state, n.fanOut, n.chain = measuring, 1, 1
	for _, s := range n.same {
		if err := s.measure(); err != nil {
			return err
		}
		n.fanOut += s.fanOut
		n.chain = max(n.chain, 1+s.chain)
		if n.fanOut > maxFanOut {
			return ErrInvalidTool.Say("The schema at %s checks one value against more than %d schemas ($ref, allOf, anyOf, oneOf multiplied).", orTop(n.path), maxFanOut).
				Hint("Use fewer alternatives, or put those that repeat into one.")
		}
		if n.chain > maxRefChain {
			return ErrInvalidTool.Say("The schema at %s checks one value through more than %d schemas inside each other.", orTop(n.path), maxRefChain)
		}
	}
	n.state = measured
	return nil
}

// Pointer is the JSON Pointer (RFC 6901) that leads along these names and indices.
func Pointer(tokens ...string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(t))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func orTop(path string) string {
	if path == "" {
		return "the top"
	}
	return short(path)
}
