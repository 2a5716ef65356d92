package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// node is a part of the file, with its line.
type node = yaml.Node

// maxDepth bounds lists and mappings inside each other. A schema has at most 64 levels.
const maxDepth = 100

// document parses text and refuses what may stand nowhere in it. ok is false if
// there is nothing to go on with.
func (l *loader) document(text []byte) (root *node, ok bool) {
	if !utf8.Valid(text) {
		l.refuseLine(lineOfInvalid(text), "the file is not valid UTF-8")
		return nil, false
	}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // a file of comments only is a file without settings
			l.syntax(err, text)
		}
		return nil, false
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			l.syntax(err, text)
		} else {
			l.refuse(&second, "the file has a second document; write everything in one, without ---")
		}
		return nil, false
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, false
	}
	return doc.Content[0], l.audit(doc.Content[0], 1)
}

func lineOfInvalid(text []byte) int {
	line := 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		text = text[n:]
	}
	return line
}

var syntaxLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(?s:(.*))$`)

// syntax takes over an error of the YAML parser.
func (l *loader) syntax(err error, text []byte) {
	m := syntaxLine.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1])
	if strings.HasPrefix(m[2], "did not find expected") {
		line++ // the parser counts lines from 0, the scanner before it from 1
	}
	message := m[2]
	if strings.HasPrefix(message, "mapping values are not allowed") {
		message += "; a text that has a colon and a space in it needs quotes"
	}
	last := 1 + bytes.Count(bytes.TrimRight(text, "\r\n"), []byte{'\n'})
	l.refuseLine(min(line, last), "this is not valid YAML: %s", message)
}

// audit refuses, in n and below it, anchors, aliases, tags, merge keys, keys that are
// lists or mappings, and keys that stand twice. It reports whether n can be read on.
func (l *loader) audit(n *node, depth int) bool {
	if depth > maxDepth {
		l.refuse(n, "lists and mappings are nested more than %d deep", maxDepth)
		return false
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		l.refuse(n, "anchors (&) and aliases (*) are not read; write the value itself, and a text that begins with one of these in quotes")
		return false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		l.refuse(n, "tags such as %s are not read; write a plain value, and a text that begins with ! in quotes", quoted(n.Tag))
		return false
	}
	ok := true
	if n.Kind == yaml.MappingNode {
		ok = l.auditKeys(n)
	}
	for _, child := range n.Content {
		ok = l.audit(child, depth+1) && ok
	}
	return ok
}

func (l *loader) auditKeys(n *node) bool {
	ok := true
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			l.refuse(key, "a key has to be a text")
			ok = false
		case key.Style == 0 && key.Value == "":
			l.refuse(key, "a key is missing before the colon")
			ok = false
		case key.Style == 0 && key.Value == "<<":
			l.refuse(key, "merge keys (<<) are not read; write the keys themselves")
			ok = false
		case twice:
			l.refuse(key, "the key %s stands twice, first in line %d; remove one", quoted(key.Value), line)
		default:
			first[key.Value] = key.Line
		}
	}
	return ok
}

func isNull(n *node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}
