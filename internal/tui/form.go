package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/tool"
)

// form asks for what a question wants besides a choice, field by field or as JSON in an
// editor. It answers nothing: what is filled in is shown where the word is asked for.
type form struct {
	*app
	of     *question
	fields []*field
	at     int
	note   *notice
	scroll
}

// field is a field of the form as it stands on the screen.
type field struct {
	review.Field
	chosen int // of its options; below 0: nothing
	line   *entry
	kept   json.RawMessage // what the line cannot hold; nil: it is as the line says
}

func newForm(q *question) *form {
	f := &form{app: q.app, of: q}
	for _, one := range review.FieldsOf(q.q.Form, nil, q.q.Mask) {
		if one.Sort == review.ListField { // there is one line to write on
			one.Sort = review.JSONField
		}
		added := &field{Field: one}
		added.fill(one.Now)
		f.fields = append(f.fields, added)
	}
	return f
}

// fill puts a value in; nil for none.
func (f *field) fill(v json.RawMessage) {
	f.Now, f.kept = v, nil
	f.chosen = f.Chosen()
	seen := strings.Map(func(r rune) rune {
		if display.Hidden(r) {
			return -1
		}
		return r
	}, f.Text())
	f.line = newEntry(seen, f.Secret)
	written, _ := f.value()
	if same, err := canon.Equal(written, v); v != nil && (err != nil || !same) {
		f.kept = v
	}
}

// value is what was filled in, nil for nothing, or what is wrong with it.
func (f *field) value() (v json.RawMessage, problem string) {
	switch {
	case f.kept != nil:
		return f.kept, ""
	case f.Sort == review.ChoiceField:
		return f.Choose(f.chosen)
	}
	return f.Value(f.line.text())
}

// input is the object that the form stands for. It moves to what is wrong first.
func (f *form) input() ([]byte, error) {
	var o review.Filled
	wrong := -1
	for i, one := range f.fields {
		v, problem := one.value()
		if o.Add(one.Field, v, problem); problem != "" && wrong < 0 {
			wrong = i
		}
	}
	doc, err := o.Object()
	if err != nil {
		f.at = wrong
		return nil, err
	}
	s, err := tool.CompileSchema(f.of.q.Form)
	if err != nil {
		return nil, err
	}
	return doc, s.CheckInput(doc)
}

// goOn leads to where the word is asked for.
func (f *form) goOn() tea.Cmd {
	input, err := f.input()
	if err != nil {
		e := fault.From(err)
		f.note = &notice{bad, "This does not fit what is asked for", e.Message, e.Advice}
		return nil
	}
	f.note = nil
	return f.of.confirm(input)
}

func (f *form) press(msg tea.Msg) tea.Cmd {
	k, isKey := msg.(tea.KeyPressMsg)
	one := f.fields[f.at]
	key := ""
	if isKey {
		key = k.String()
	}
	switch {
	case key == "esc":
		f.back()
	case key == "up", key == "shift+tab":
		f.at = max(0, f.at-1)
	case key == "down", key == "tab":
		f.at = min(len(f.fields)-1, f.at+1)
	case key == "enter" && f.at+1 < len(f.fields):
		f.at++
	case key == "enter":
		return f.goOn()
	case key == "ctrl+e":
		return f.asJSON()
	case one.Sort == review.ChoiceField && (key == "right" || key == "space"):
		one.choose(1)
	case one.Sort == review.ChoiceField && key == "left":
		one.choose(-1)
	case one.Sort != review.ChoiceField && (isKey || isPaste(msg)):
		was := one.line.text()
		if one.line.press(msg); one.line.text() != was {
			one.kept = nil
		}
	}
	return nil
}

func isPaste(msg tea.Msg) bool { _, ok := msg.(tea.PasteMsg); return ok }

// choose moves to another option; nothing is one of them unless one is needed.
func (f *field) choose(by int) {
	f.kept = nil
	n := len(f.Options) + 1
	f.chosen = (f.chosen+1+by+n)%n - 1
	if f.chosen < 0 && f.Needed {
		f.choose(by)
	}
}

// asJSON opens all of it in an editor. A secret would stand there in plain text.
func (f *form) asJSON() tea.Cmd {
	if slices.ContainsFunc(f.fields, func(one *field) bool { return one.Secret }) {
		f.note = &notice{bad, "It cannot be written as JSON here", "One of the values is a secret, and would stand in a file in plain text.", "Fill in the fields."}
		return nil
	}
	text := "{}"
	if input, err := f.input(); input != nil && err == nil {
		text = string(input)
	}
	return f.write(f, review.Pretty([]byte(text))+"\n")
}

func (f *form) hear(msg tea.Msg) tea.Cmd {
	m, ok := msg.(editedMsg)
	if !ok || m.of != f {
		return nil
	}
	if m.err != nil {
		f.note = editorFailed(m.err)
		return nil
	}
	var values map[string]json.RawMessage
	if canon.Valid(bytes.TrimSpace(m.text)) != nil || json.Unmarshal(m.text, &values) != nil {
		f.note = &notice{bad, "This is no JSON object", "Nothing was filled in.", "Press Ctrl-E to write it again."}
		return nil
	}
	f.note = nil
	for _, one := range f.fields {
		one.fill(values[one.Name])
		delete(values, one.Name)
	}
	if len(values) > 0 {
		f.note = &notice{bad, "Something was left out", fmt.Sprintf("%d values have names that the form does not ask for.", len(values)), ""}
	}
	return nil
}

func (f *form) title() (left, right string) { return "It also asks for", f.of.due() }

func (f *form) body(w, h int) []string {
	s := &sheet{width: w, open: true}
	f.note.on(s)
	at := 0
	for i, one := range f.fields {
		mark := "  "
		if i == f.at {
			mark, at = "> ", len(s.lines)
		}
		spans := append(oneLook(mark, strong), s.name(one.Name)...)
		more := "  " + display.Line(one.Type)
		if one.Like != "" && (one.Sort == review.TextField || one.Sort == review.DateField) {
			more += " like " + display.Line(one.Like)
		}
		if one.Limits != "" {
			more += ", " + one.Limits
		}
		if one.Needed {
			more += ", needed"
		}
		s.put(wrap(append(spans, span{more, quiet}), w)...)
		if one.Title != "" {
			s.words(one.Title)
		}
		if one.Help != "" {
			s.words(one.Help)
		}
		s.put("    " + one.view(s, i == f.at, w-4))
		s.put("")
	}
	s.notes()
	s.say(quiet, "Enter goes on to the next one, and behind the last to your answer. Ctrl-E writes all of it as JSON.")
	f.from = max(min(f.from, at), at+4-max(5, h-1))
	return f.window(s.lines, w, h)
}

func (f *field) view(s *sheet, here bool, w int) string {
	text := f.line.text()
	switch {
	case f.Secret && (f.kept != nil || f.Sort == review.SecretField && text == "" && f.Now != nil && !here):
		return quiet.of("hidden: a secret")
	case f.kept != nil:
		return short(s.line(string(f.kept), w), w)
	case f.Sort == review.ChoiceField:
		spans := oneLook("nothing", quiet)
		if f.chosen >= 0 {
			spans = s.line(review.OptionText(f.Options[f.chosen]), w)
		}
		return short(append(append(oneLook("< ", quiet), spans...), span{" >", quiet}), w)
	case here:
		return f.line.view(w)
	case f.Secret:
		return quiet.of(strings.Repeat("*", min(8, len(text))))
	case text == "":
		return quiet.of("nothing")
	}
	return short(s.line(text, w), w)
}

func (f *form) keys() []binding {
	keys := []binding{on("Enter", "go on"), on("↑↓", "move")}
	if f.fields[f.at].Sort == review.ChoiceField {
		keys = append(keys, on("←→", "choose"))
	}
	return append(keys, on("Ctrl-E", "as JSON"), on("Esc", "back"))
}

func (f *form) close() {}
