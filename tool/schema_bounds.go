package tool

import (
	"fmt"
	"maps"
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
	g := &schemaGraph{nodes: map[string]*schemaNode{}, anchors: map[string]*schemaNode{}, id: "$id"}
	if draft, _ := doc["$schema"].(string); strings.Contains(draft, "draft-04") {
		g.id = "id"
	}
	if _, err := g.add(doc, "", 1); err != nil {
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

// schemaGraph is a schema as places that are checked together with other places.
type schemaGraph struct {
	nodes   map[string]*schemaNode // by JSON Pointer
	anchors map[string]*schemaNode
	order   []*schemaNode
	id      string // the keyword that names a resource
}

// schemaNode is one schema inside the document. Its same are those that the same
// value is checked against, where a fan-out comes from.
type schemaNode struct {
	path string
	ref  string
	same []*schemaNode

	state  int // of measure
	fanOut int // schemas that one value is checked against, this one included
	chain  int // of them, one inside the other
}

// Keywords whose values are schemas. The first three groups are applied to the
// value itself, the next three to what is in it, the last only hold definitions.
var (
	sameOne  = []string{"not", "if", "then", "else"}
	sameList = []string{"allOf", "anyOf", "oneOf"}
	sameMap  = []string{"dependentSchemas", "dependencies"}

	insideOne = []string{
		"additionalProperties", "additionalItems", "items", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema",
	}
	insideList = []string{"items", "prefixItems"}
	insideMap  = []string{"properties", "patternProperties", "$defs", "definitions"}

	// unsupported are those that choose their target while a value is checked, so that nobody could bound them before.
	unsupported = []string{"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
)

// add registers v as the schema at path, and all inside it. nil for what is no schema.
func (g *schemaGraph) add(v any, path string, depth int) (*schemaNode, error) {
	if depth > maxSchemaDepth {
		return nil, ErrInvalidTool.Say("The schema is nested more than %d deep.", maxSchemaDepth)
	}
	obj, isObject := v.(map[string]any)
	if _, isBool := v.(bool); !isObject && !isBool {
		return nil, nil
	}
	n := &schemaNode{path: path}
	g.nodes[path] = n
	g.order = append(g.order, n)
	if len(g.order) > maxSubschemas {
		return nil, ErrInvalidTool.Say("The schema has more than %d schemas inside it.", maxSubschemas)
	}
	if !isObject {
		return n, nil
	}
	if err := g.names(n, obj); err != nil {
		return nil, err
	}
	if err := g.children(n, obj, depth); err != nil {
		return nil, err
	}
	return n, nil
}

// names takes in what refers to n and what n refers to.
func (g *schemaGraph) names(n *schemaNode, obj map[string]any) error {
	for _, k := range unsupported {
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

func (g *schemaGraph) children(n *schemaNode, obj map[string]any, depth int) error {
	visit := func(v any, tokens ...string) (*schemaNode, error) {
		return g.add(v, n.path+pointer(tokens...), depth+len(tokens))
	}
	walk := func(ones, lists, tables []string, into *[]*schemaNode) error {
		keep := func(child *schemaNode, err error) error {
			if child != nil {
				*into = append(*into, child)
			}
			return err
		}
		for _, k := range ones {
			if err := keep(visit(obj[k], k)); err != nil {
				return err
			}
		}
		for _, k := range lists {
			list, _ := obj[k].([]any)
			for i, v := range list {
				if err := keep(visit(v, k, strconv.Itoa(i))); err != nil {
					return err
				}
			}
		}
		for _, k := range tables {
			table, _ := obj[k].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(table)) {
				if err := keep(visit(table[name], k, name)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(sameOne, sameList, sameMap, &n.same); err != nil {
		return err
	}
	var inside []*schemaNode
	return walk(insideOne, insideList, insideMap, &inside)
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
		fragment, err := url.PathUnescape(fragment)
		target := g.anchors[fragment]
		if fragment == "" || strings.HasPrefix(fragment, "/") {
			target = g.nodes[fragment]
		}
		if err != nil || target == nil {
			return ErrInvalidTool.Say("The $ref %s at %s points at no schema.", shown(n.ref), orTop(n.path)).
				Hint("Put the schema under $defs and refer to it as #/$defs/NAME.")
		}
		n.same = append(n.same, target)
	}
	return nil
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

// pointer is the JSON Pointer of tokens.
func pointer(tokens ...string) string {
	var b strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&b, "/%s", pointerEscape.Replace(t))
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
