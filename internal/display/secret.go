package display

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Words that make a name a secret's wherever they stand in it.
var secretParts = []string{
	"password", "passwd", "passphrase", "passcode", "apikey", "privatekey", "secretkey", "accesskey", "signingkey",
	"encryptionkey", "authorization", "authorisation", "credential", "clientsecret", "connectionstring",
}

// Words that make a name a secret's when it is that word, ends with it, or has it
// as a word of its own. token_count is not a secret; it is masked all the same,
// since auth_token_v2 is one.
var secretWords = []string{"secret", "secrets", "token", "pwd", "passwords", "cookie", "cookies", "bearer", "otp", "cvv", "cvc", "jwt"}

// countedTokens are names about how many, as models' interfaces have them.
var countedTokens = []string{"maxtokens", "tokencount", "tokenlimit", "tokensused", "tokentype"}

// SecretName reports whether what stands under this name is a secret. Case and
// separators do not matter: apiKey, API-KEY and "api key" are one name.
func SecretName(name string) bool {
	words := wordsOf(name)
	joined := strings.Join(words, "")
	for _, p := range secretParts {
		if strings.Contains(joined, p) {
			return true
		}
	}
	for _, c := range countedTokens {
		if strings.HasSuffix(joined, c) {
			return false
		}
	}
	for _, w := range secretWords {
		if len(w) > 3 && strings.HasSuffix(joined, w) || joined == w {
			return true
		}
		for _, have := range words {
			if have == w {
				return true
			}
		}
	}
	return false
}

// wordsOf splits a name at separators and where a capital begins a word, in
// lower case. Width, accents and invisible characters do not matter.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	rs := []rune(norm.NFKD.String(name))
	for i, r := range rs {
		switch {
		case unicode.Is(unicode.M, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unseen, r):
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		default:
			if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
				end()
			}
			word = append(word, r)
		}
	}
	end()
	return words
}

// marks is what schemas mark as secret.
type marks struct {
	names    map[string]bool
	patterns []*regexp.Regexp
	all      bool // the whole document is marked
}

func (m marks) has(name string) bool {
	if m.names[name] {
		return true
	}
	for _, p := range m.patterns {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

// collect walks a schema. A mark on something without a name of its own, such as
// the items of an array, counts for the name that holds it.
func (m *marks) collect(root value) {
	w := schemaWalk{marks: m, root: root, seen: map[[2]string]bool{}}
	w.walk(root, place{whole: true}, 0)
}

// place is the name under which a schema's value stands.
type place struct {
	name    string
	pattern *regexp.Regexp // of a name
	whole   bool           // the document itself
}

type schemaWalk struct {
	marks *marks
	root  value
	seen  map[[2]string]bool
}

func (w schemaWalk) mark(p place) {
	switch {
	case p.whole:
		w.marks.all = true
	case p.pattern != nil:
		w.marks.patterns = append(w.marks.patterns, p.pattern)
	default:
		if w.marks.names == nil {
			w.marks.names = map[string]bool{}
		}
		w.marks.names[p.name] = true
	}
}

func (w schemaWalk) walk(s value, p place, depth int) {
	if depth > 100 || s.kind != '{' && s.kind != '[' {
		return
	}
	if s.kind == '[' { // of allOf, anyOf, oneOf, prefixItems
		for _, c := range s.members {
			w.walk(c.val, p, depth+1)
		}
		return
	}
	for _, c := range s.members {
		switch c.key {
		case "writeOnly":
			if c.val.text == "true" {
				w.mark(p)
			}
		case "format":
			if c.val.text == "password" {
				w.mark(p)
			}
		case "$ref", "$dynamicRef":
			w.follow(c.val.text, p, depth)
		case "properties", "$defs", "definitions", "dependentSchemas":
			for _, d := range c.val.members {
				w.walk(d.val, place{name: d.key}, depth+1)
			}
		case "patternProperties":
			for _, d := range c.val.members {
				if re, err := regexp.Compile(d.key); err == nil {
					w.walk(d.val, place{pattern: re}, depth+1)
				}
			}
		case "items", "prefixItems", "additionalItems", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
			"allOf", "anyOf", "oneOf", "if", "then", "else", "not":
			w.walk(c.val, p, depth+1)
		}
	}
}

// follow looks a reference inside the document up.
func (w schemaWalk) follow(ref string, p place, depth int) {
	at := p.name
	if p.pattern != nil {
		at = "pattern " + p.pattern.String()
	}
	if w.seen[[2]string{ref, at}] {
		return
	}
	w.seen[[2]string{ref, at}] = true
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return
	}
	if s, ok := w.root.at(pointer); ok {
		w.walk(s, p, depth+1)
	}
}

// at follows a JSON pointer.
func (v value) at(pointer string) (value, bool) {
	if pointer == "" {
		return v, true
	}
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		found := false
		for i, c := range v.members {
			if v.kind == '{' && c.key == part || v.kind == '[' && part == strconv.Itoa(i) {
				v, found = c.val, true
				break
			}
		}
		if !found {
			return value{}, false
		}
	}
	return v, true
}

// Schema is a tool's schema fit to be shown: what it says about a secret's name
// is masked where it could hold one (default, const, enum, examples).
func (m *Mask) Schema(doc []byte) []byte {
	v, err := parse(doc)
	if err != nil {
		return m.JSON(doc)
	}
	own := &Mask{}
	own.marks.collect(v)
	return []byte(own.schema(v, own.marks.all).string(machines))
}

func (m *Mask) schema(s value, secret bool) value {
	out := value{kind: s.kind, text: s.text, members: make([]member, len(s.members))}
	for i, c := range s.members {
		switch {
		case s.kind == '[':
			c.val = m.schema(c.val, secret)
		case c.key == "properties" || c.key == "$defs" || c.key == "definitions" || c.key == "patternProperties":
			c.val = m.named(c.val)
		case secret && (c.key == "default" || c.key == "const" || c.key == "enum" || c.key == "examples"):
			c.val = aSecret
		case c.key == "default" || c.key == "const" || c.key == "enum" || c.key == "examples":
			c.val = m.apply(c.val, 0)
		default:
			c.val = m.schema(c.val, secret)
		}
		out.members[i] = c
	}
	return out
}

func (m *Mask) named(props value) value {
	out := value{kind: props.kind, text: props.text, members: make([]member, len(props.members))}
	for i, c := range props.members {
		out.members[i] = member{c.key, m.schema(c.val, m.secret(c.key))}
	}
	return out
}
