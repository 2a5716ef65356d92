package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/placet-dev/placet/fault"
)

// place is where in the HTTP request an argument goes.
type place int

const (
	inBody place = iota
	inPath
	inQuery
	inKey // the header Idempotency-Key
	inAll // it is the body
)

// arg is an argument of a tool. Its name is that of the HTTP field.
type arg struct {
	name     string
	in       place
	required bool
	schema   string // JSON Schema; of it type and enum are checked here, the rest by the API
	about    string
}

// errArgs is the API's own word for a request that it cannot understand.
var errArgs = fault.Sentinel(fault.Invalid, "malformed", "The arguments cannot be understood.")

// values are the arguments of a call, each with the bytes that the client sent.
type values map[string]json.RawMessage

// read takes a call's arguments apart and refuses what the tool does not take.
func (t *tool) read(raw json.RawMessage) (values, error) {
	got, err := members(raw)
	if err != nil {
		return nil, err
	}
	for name := range got {
		if !slices.ContainsFunc(t.args, func(a arg) bool { return a.name == name }) {
			return nil, errArgs.Say("%s takes no argument %s.", t.name, shown(name)).Hint("%s", t.takes())
		}
	}
	for _, a := range t.args {
		v, ok := got[a.name]
		switch {
		case !ok && a.required:
			return nil, errArgs.Say("%s needs the argument %s.", t.name, a.name).Hint("%s", t.takes())
		case ok:
			if err := a.check(v); err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}

// takes says what a tool takes.
func (t *tool) takes() string {
	if len(t.args) == 0 {
		return "It takes none."
	}
	words := make([]string, len(t.args))
	for i, a := range t.args {
		if words[i] = a.name; a.required {
			words[i] += " (required)"
		}
	}
	return "It takes " + strings.Join(words, ", ") + "."
}

// members are the members of a JSON object. A name that is there twice is refused: two
// readers could take different ones.
func members(raw json.RawMessage) (values, error) {
	got := values{}
	if len(bytes.TrimSpace(raw)) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return got, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errArgs.Say("The arguments are no JSON object.")
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, errArgs.Say("The arguments are no JSON object.")
		}
		if _, twice := got[name]; twice {
			return nil, errArgs.Say("The argument %s is there twice.", shown(name)).Hint("Give it once.")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, errArgs.Say("The argument %s is no JSON.", shown(name))
		}
		got[name] = v
	}
	return got, nil
}

// check looks at what every argument's schema here says: its type, and what may be.
func (a arg) check(v json.RawMessage) error {
	var s struct {
		Type any   `json:"type"`
		Enum []any `json:"enum"`
	}
	if err := json.Unmarshal([]byte(a.schema), &s); err != nil {
		return err
	}
	if types := typesOf(s.Type); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isA(v, t) }) {
		return errArgs.Say("%s: expected %s.", a.name, strings.Join(types, " or "))
	}
	if s.Enum != nil {
		var got any
		if err := json.Unmarshal(v, &got); err != nil || !slices.Contains(s.Enum, got) {
			words := make([]string, len(s.Enum))
			for i, one := range s.Enum {
				words[i] = fmt.Sprint(one)
			}
			return errArgs.Say("%s: expected one of %s.", a.name, strings.Join(words, ", "))
		}
	}
	return nil
}

func typesOf(t any) (types []string) {
	switch t := t.(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	return types
}

// isA reports whether a JSON value is of that type of JSON Schema.
func isA(v json.RawMessage, t string) bool {
	first := bytes.TrimSpace(v)[0]
	switch t {
	case "string":
		return first == '"'
	case "object":
		return first == '{'
	case "array":
		return first == '['
	case "boolean":
		return first == 't' || first == 'f'
	case "number":
		return first == '-' || first >= '0' && first <= '9'
	case "integer":
		return isA(v, "number") && !bytes.ContainsAny(v, ".eE")
	}
	return false
}

// request is the HTTP request of a tool's plain operation.
func (t *tool) request(v values) operation {
	o := operation{method: t.method, path: t.path, query: url.Values{}, header: http.Header{}}
	var body bytes.Buffer
	for _, a := range t.args {
		raw, ok := v[a.name]
		if !ok {
			continue
		}
		switch a.in {
		case inPath:
			o.path = strings.Replace(o.path, "{"+a.name+"}", url.PathEscape(text(raw)), 1)
		case inQuery:
			o.query.Set(a.name, text(raw))
		case inKey:
			o.header.Set("Idempotency-Key", text(raw))
		case inAll:
			o.body = raw
		case inBody:
			fmt.Fprintf(&body, ",%q:%s", a.name, raw)
		}
	}
	switch {
	case body.Len() > 0:
		o.body = append(append([]byte{'{'}, body.Bytes()[1:]...), '}')
	case o.body == nil && t.body:
		o.body = []byte("{}")
	}
	return o
}

// text is a string's text, and any other value as it is written.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(bytes.TrimSpace(raw))
}

const longestShown = 100

// shown is a foreign word as an error may repeat it.
func shown(s string) string {
	if len(s) > longestShown {
		s = strings.ToValidUTF8(s[:longestShown], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
