package review

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/tool"
)

// Field asks for one member of a JSON object.
type Field struct {
	Name    string // foreign
	Title   string // foreign: what the schema calls it; empty: nothing
	Help    string // foreign
	Type    string // as the schema has it, or the value where that says nothing
	Items   string // of an array: what its entries are, as Type
	Like    string // an example of how it is written; empty: it has none that is known. Foreign
	Limits  string // how large it may be: "at least 1, at most 500"; empty: nothing is said of that
	Sort    FieldSort
	Options []json.RawMessage // of a choice
	Now     json.RawMessage   // what it is filled with: its value, or a question's default; nil: nothing
	Secret  bool              // its value is, or would be
	Needed  bool
}

// FieldSort is how a value is asked for.
type FieldSort string

// The sorts of fields.
const (
	TextField   FieldSort = "text"
	NumberField FieldSort = "number"
	ChoiceField FieldSort = "choice"
	DateField   FieldSort = "date" // a day: a text of the form that Like has
	ListField   FieldSort = "list" // texts or numbers, one on each line
	JSONField   FieldSort = "json"
	SecretField FieldSort = "secret" // it is kept as it is unless another is typed
	KeptField   FieldSort = "kept"   // it holds secrets, and is kept as it is
)

// FieldsOf is a form for the members of an object, as its schema describes them. It is
// filled with values; nil asks for an object that is not there yet, and fills in defaults.
// m knows which of them are secret.
func FieldsOf(schema, values []byte, m *display.Mask) (fields []Field) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	_ = json.Unmarshal(schema, &s) // it was compiled when it was registered; what is no object describes nothing
	now, nodes := map[string]filling{}, m.Tree(values).Nodes
	asked := display.MembersOf(s.Properties)
	for i, one := range display.MembersOf(values) {
		v := filling{one.Value, display.Node{Hidden: true}} // all of it is secret, unless its members are shown
		if i < len(nodes) {
			v.shown = nodes[i]
		}
		now[one.Name] = v
		asked = append(asked, display.Member{Name: one.Name}) // the schema may not name it
	}
	seen := map[string]bool{}
	for _, one := range asked {
		if seen[one.Name] {
			continue
		}
		seen[one.Name] = true
		var d described
		_ = json.Unmarshal(one.Value, &d)
		f := fieldOf(d, now[one.Name], m.Hides(one.Name))
		f.Name, f.Needed = one.Name, slices.Contains(s.Required, one.Name)
		if values == nil && !f.Secret && f.allows(d.Default) { // nobody answers what is not shown
			f.Now = d.Default
		}
		fields = append(fields, f)
	}
	return fields
}

// filling is what a field is filled with.
type filling struct {
	value json.RawMessage
	shown display.Node
}

func fieldOf(d described, now filling, secret bool) Field {
	f := Field{Title: d.Title, Help: d.Description, Type: d.typeOf(now.value), Like: d.like(), Options: d.options(), Now: now.value}
	if f.Type == "array" {
		f.Items = d.items()
	}
	f.Limits = d.words(f.Type)
	f.Secret = now.shown.Hidden || now.value == nil && secret
	f.Sort = f.sort(now.shown)
	if f.Sort == TextField && d.Format == "date" && (now.value == nil || isDate(OptionText(now.value))) {
		f.Sort = DateField
	}
	if f.Sort == ChoiceField && f.Options == nil {
		f.Options = []json.RawMessage{[]byte("true"), []byte("false")}
	}
	return f
}

// described is what a schema says of one member.
type described struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Default     json.RawMessage   `json:"default"`
	Examples    []json.RawMessage `json:"examples"`
	Items       json.RawMessage   `json:"items"`
	PrefixItems json.RawMessage   `json:"prefixItems"`
	limited
}

// items is the type of all entries of an array; empty where the schema names none.
func (d described) items() string {
	var one struct {
		Type string `json:"type"`
	}
	if d.PrefixItems != nil || json.Unmarshal(d.Items, &one) != nil {
		return ""
	}
	return one.Type
}

// like is an example of a text: the schema's own, else one of its format.
func (d described) like() string {
	if len(d.Examples) > 0 && kindOf(d.Examples[0]) == "string" && len(d.Examples[0]) <= LongText && d.Format != "date" {
		return OptionText(d.Examples[0])
	}
	return likes[d.Format]
}

// likes are formats of JSON Schema (draft 2020-12, validation, 7.3) with a text of each.
var likes = map[string]string{
	"date": "2026-11-30", "date-time": "2026-11-30T14:05:00Z", "time": "14:05:00Z", "email": "ana@example.com",
	"uri": "https://example.com/", "uuid": "0192d3b4-5e6f-7a8b-9c0d-1e2f3a4b5c6d", "duration": "P1DT12H",
}

func isDate(text string) bool {
	day, err := time.Parse(time.DateOnly, text)
	return err == nil && day.Year() > 0 // a browser knows no year 0
}

func (d described) options() []json.RawMessage {
	if d.Const != nil {
		return []json.RawMessage{d.Const}
	}
	return d.Enum
}

// typeOf is the type that the schema names; where it names none, that of the value.
func (d described) typeOf(now json.RawMessage) string {
	if d.Type == nil {
		return kindOf(now)
	}
	t, _ := d.Type.(string) // of several, any can be written
	return t
}

// sort says how a value is asked for, of which now is shown.
func (f Field) sort(now display.Node) FieldSort {
	switch {
	case now.Hidden, f.Secret && f.Options == nil && (f.Type == "string" || f.number()):
		return SecretField
	case hides(now):
		return KeptField
	case f.Options != nil, f.Type == "boolean":
		return ChoiceField
	case f.Type == "string":
		return TextField
	case f.number():
		return NumberField
	case listed(f.Items, f.Now):
		return ListField
	}
	return JSONField
}

// textual reports whether what is typed is a text, and not JSON: a secret says by what it is
// now, where the schema does not.
func (f Field) textual() bool {
	return f.Type == "string" || f.Type == "" && (f.Now == nil || kindOf(f.Now) == "string")
}

func (f Field) number() bool { return f.Type == "integer" || f.Type == "number" }

// allows reports whether a default is one that the field can have; f is a copy.
func (f Field) allows(v json.RawMessage) bool {
	f.Now = v
	switch {
	case v == nil:
		return false
	case f.Options != nil:
		return f.Chosen() >= 0
	case f.number():
		return kindOf(v) == "number"
	case f.Sort == DateField:
		return isDate(OptionText(v))
	}
	return kindOf(v) == f.Type
}

// hides reports whether there is a secret in a value.
func hides(n display.Node) bool { return n.Hidden || n.Partly || slices.ContainsFunc(n.Nodes, hides) }

// Text is what the field is filled with, as it is typed. A choice has none, and what is
// secret is not shown.
func (f Field) Text() string {
	switch f.Sort {
	case TextField, DateField:
		return OptionText(f.Now)
	case NumberField:
		return string(f.Now)
	case ListField:
		return lines(f.Now)
	case JSONField:
		return Pretty(f.Now)
	}
	return ""
}

// Chosen is which of the options it is filled with; below 0: none of them.
func (f Field) Chosen() int {
	return slices.IndexFunc(f.Options, func(o json.RawMessage) bool {
		same, err := canon.Equal(o, f.Now)
		return same && err == nil && f.Now != nil
	})
}

// Choose is the value of that option, below 0 of nothing, or what is wrong with it.
func (f Field) Choose(i int) (v json.RawMessage, problem string) {
	switch {
	case i >= len(f.Options):
		return nil, "it is none of those offered."
	case i >= 0:
		return f.Options[i], ""
	case f.Needed:
		return nil, "choose one."
	}
	return nil, ""
}

// Value is what a text stands for that was typed into the field, nil for nothing, or what
// is wrong with it.
func (f Field) Value(text string) (v json.RawMessage, problem string) {
	switch {
	case f.Sort == KeptField, f.Sort == SecretField && text == "" && f.Now != nil:
		return f.Now, ""
	case f.Sort == ListField && strings.TrimSpace(text) == "" && (f.Needed || f.Now != nil):
		return []byte("[]"), "" // an emptied list is one, too
	case text == "" && !f.Needed, f.Sort == ListField && strings.TrimSpace(text) == "":
		return nil, ""
	case f.Sort == TextField, f.Sort == SecretField && text != "" && f.textual():
		return quoted(text), ""
	case f.Sort == ListField:
		return f.list(text)
	}
	text = strings.TrimSpace(text)
	switch err := canon.Valid([]byte(text)); {
	case text == "" && f.Needed:
		return nil, "it is needed."
	case text == "":
		return nil, ""
	case f.Sort == DateField && !isDate(text):
		return nil, "it is no date: write it like " + f.Like + "."
	case f.Sort == DateField:
		return quoted(text), ""
	case f.number() && strings.Contains(text, ","):
		return nil, "it is no number: write a point where there is a comma, and nothing between thousands."
	case f.number() && (kindOf([]byte(text)) != "number" || err != nil):
		return nil, "it is no number."
	case err != nil:
		return nil, "it is not one JSON value: " + err.Error()
	}
	return []byte(text), ""
}

// Filled is an object that is put together from the fields of a form.
type Filled struct {
	doc   []byte
	wrong []string
}

// Add is for each field: its value, nil to leave it out, or what is wrong with it.
func (o *Filled) Add(f Field, v json.RawMessage, problem string) {
	switch {
	case problem != "":
		o.wrong = append(o.wrong, f.Name+": "+problem)
	case v != nil:
		o.doc = append(o.doc, ',')
		o.doc = append(o.doc, quoted(f.Name)...)
		o.doc = append(o.doc, ':')
		o.doc = append(o.doc, v...)
	}
}

// Object is what was filled in: [tool.ErrInvalidArguments] naming each field with which
// something is wrong.
func (o *Filled) Object() ([]byte, error) {
	if o.wrong != nil {
		return nil, tool.ErrInvalidArguments.Say("%s", strings.Join(o.wrong, " "))
	}
	return slices.Concat([]byte("{"), bytes.TrimPrefix(o.doc, []byte(",")), []byte("}")), nil
}

// OptionText is a value as it is offered: a text as it is, anything else as JSON.
func OptionText(v json.RawMessage) string {
	var s string
	if kindOf(v) == "string" && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// Pretty is a value on lines of its own, with what cannot be seen as JSON escapes it. One
// that is nested so deeply that it would mostly be blanks stays on one line.
func Pretty(v []byte) string {
	var b bytes.Buffer
	line := display.Machine(v)
	switch err := json.Indent(&b, line, "", "  "); {
	case err != nil:
		return string(v)
	case b.Len() > 4*len(line)+1<<16:
		return string(line)
	}
	return b.String()
}

func kindOf(v json.RawMessage) string {
	switch v = bytes.TrimSpace(v); {
	case len(v) == 0:
		return ""
	case v[0] == '"':
		return "string"
	case v[0] == 't', v[0] == 'f':
		return "boolean"
	case v[0] == '-', v[0] >= '0' && v[0] <= '9':
		return "number"
	}
	return "other"
}

func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return bytes.TrimSpace(b.Bytes())
}
