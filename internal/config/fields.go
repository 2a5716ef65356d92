package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// fields are the values of a mapping by its keys.
type fields struct {
	values map[string]*node
	mcp    bool // there is a key that comes later
}

const mcpLater = "tools from MCP servers come later; until then a tool is carried out by exec or http"

// mayBeEmpty are the keys whose value may be left empty, and then counts as absent: it
// is told that they are missing, or nothing is switched off by it. The others are for
// safety, where `confirm:` would look as if it were on.
var mayBeEmpty = []string{
	"tools", "agents", "rules", "guards",
	"name", "description", "reason", "kind", "when", "outcome", "exec", "http", "method", "url",
}

// fields reads a mapping that may have only the known keys; what names it in messages.
func (l *loader) fields(n *node, what string, known ...string) fields {
	f := fields{values: map[string]*node{}}
	for key, value := range l.pairs(n, what) {
		if key.Value == "mcp" {
			l.refuse(key, "mcp in %s: %s", what, mcpLater)
			f.mcp = true
			continue
		}
		if !slices.Contains(known, key.Value) {
			l.refuse(key, "unknown key %s in %s; %s", quoted(key.Value), what, didYouMean(key.Value, known))
			continue
		}
		if isNull(value) {
			if !slices.Contains(mayBeEmpty, key.Value) {
				l.refuse(key, "%s in %s has no value; write one, or remove the line", key.Value, what)
			}
			continue
		}
		if _, twice := f.values[key.Value]; !twice {
			f.values[key.Value] = value
		}
	}
	return f
}

// get is the value of a key; nil if it is absent.
func (f fields) get(key string) *node { return f.values[key] }

// pairs are the keys and values of a mapping, in their order.
func (l *loader) pairs(n *node, what string) func(yield func(key, value *node) bool) {
	return func(yield func(key, value *node) bool) {
		if !l.isMapping(n, what) {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func (l *loader) isMapping(n *node, what string) bool {
	if n.Kind != yaml.MappingNode {
		l.refuse(n, "%s has to be a mapping of keys to values", what)
	}
	return n.Kind == yaml.MappingNode
}

// items are the elements of a list.
func (l *loader) items(n *node, what string) []*node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.refuse(n, "%s has to be a list; begin each item with a dash", what)
		return nil
	}
	return n.Content
}

// find is the scalar under a key of a mapping, without judging anything else; nil if there is none.
func find(n *node, key string) *node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1]
		}
	}
	return nil
}
