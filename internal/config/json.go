package config

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/placet-dev/placet/canon"
)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// json is n as JSON text. Numbers are copied as they are written: on the way through
// a float 9007199254740993 would become another number, and the spec that reviewers
// approve would not be the one in the file.
func (l *loader) json(n *node) ([]byte, bool) {
	before := l.refused
	b := l.appendJSON(nil, n)
	return b, l.refused == before
}

func (l *loader) appendJSON(b []byte, n *node) []byte {
	switch n.Kind {
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = l.appendJSON(b, item)
		}
		return append(b, ']')
	case yaml.MappingNode:
		return l.appendObject(b, n)
	}
	return l.appendScalar(b, n)
}

func (l *loader) appendObject(b []byte, n *node) []byte {
	b = append(b, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			continue // refused before
		}
		if len(seen) > 0 {
			b = append(b, ',')
		}
		seen[key.Value] = true
		b = l.appendText(b, key)
		b = append(b, ':')
		b = l.appendJSON(b, n.Content[i+1])
	}
	return append(b, '}')
}

func (l *loader) appendScalar(b []byte, n *node) []byte {
	if !isPlain(n) {
		return l.appendText(b, n)
	}
	if jsonNumber.MatchString(n.Value) {
		return append(b, n.Value...)
	}
	switch n.ShortTag() {
	case "!!null":
		return append(b, "null"...)
	case "!!bool":
		if n.Value != "true" && n.Value != "false" {
			l.refuse(n, "write %s as true or false, or in quotes if it is a text", quoted(n.Value))
		}
		return append(b, n.Value...)
	case "!!int", "!!float":
		l.refuse(n, "write the number %s as JSON does, in decimal digits, or in quotes if it is a text", quoted(n.Value))
		return b
	}
	return l.appendText(b, n)
}

func (l *loader) appendText(b []byte, n *node) []byte {
	out, err := canon.AppendString(b, n.Value)
	if err != nil {
		l.refuse(n, "the text %s cannot be written as JSON: %v", quoted(n.Value), err)
		return b
	}
	return out
}
