package inbox

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/tool"
)

// form is a form in a page. What nobody changes keeps its bytes.
type form []view.Field

// formOf is how fields are asked for in a page. optional says that those that are not
// needed are left out unless somebody marks them: an empty text is a value, too.
func formOf(fields []review.Field, optional bool) form {
	var f form
	for i, one := range fields {
		field := view.Field{Field: one, ID: idOf(one.Name, i), Sent: one.Now != nil}
		field.Optional = optional && one.Sort == review.TextField && !one.Needed
		if (one.Sort == review.TextField || one.Sort == review.ListField) && !fit(one.Text()) {
			field.Sort, field.Optional = review.JSONField, false
		}
		field.Value = field.Start()
		f = append(f, field)
	}
	return f
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// idOf is a member's name in the form.
func idOf(name string, i int) string {
	if plainName.MatchString(name) {
		return "arg." + name
	}
	return "arg." + strconv.Itoa(i) + "."
}

// fit reports whether a text can be written in a field of a page, and comes back as it
// was: nothing in it is lost to the eye, and its lines end in one way.
func fit(text string) bool {
	return !slices.ContainsFunc(display.Pieces(text), func(p display.Piece) bool { return p.Sort == display.Escape })
}

// take is the object that a sent form stands for. What is wrong with a field is told with
// it: [tool.ErrInvalidArguments].
func (f form) take(sent url.Values) ([]byte, error) {
	if len(f) == 1 && f[0].ID == wholeName {
		return f.whole(sent)
	}
	var o review.Filled
	for i := range f {
		v, problem := taken(f[i], sent)
		f[i].Problem = problem
		o.Add(f[i].Field, v, problem)
	}
	return o.Object()
}

// taken is a member's value, nil where it is left out, or what is wrong with it.
func taken(f view.Field, sent url.Values) (v json.RawMessage, problem string) {
	text := unix(sent.Get(f.ID))
	marked := sent.Get("has."+f.ID) != ""
	switch {
	case f.Optional && !marked && text != "" && text != f.Start():
		return nil, "something was written, and it is not marked to be sent."
	case f.Optional && !marked:
		return nil, ""
	case f.Now != nil && text == f.Start():
		return f.Now, ""
	case f.Sort == review.ChoiceField:
		return f.Choose(f.Option(text))
	}
	f.Needed = f.Needed || f.Optional // what is marked is sent, also an empty text
	return f.Field.Value(text)
}

// blame tells an error with the fields that it is about, where it says which. The first of
// those with which something is wrong is where a reader goes on.
func (f form) blame(err error) {
	for _, p := range tool.Problems(err) {
		for i := range f {
			f[i].Problem = cmp.Or(f[i].Problem, problemIn(f[i], p))
		}
	}
	if i := slices.IndexFunc(f, func(one view.Field) bool { return one.Problem != "" && one.Sort != review.KeptField }); i >= 0 {
		f[i].First = true
	}
}

// problemIn is what a problem says of a field, if it is in there.
func problemIn(f view.Field, p tool.Problem) string {
	inside, ok := strings.CutPrefix(p.Path, tool.Pointer(f.Name))
	switch {
	case !ok || inside != "" && inside[0] != '/':
		return ""
	case inside == "":
		return "it " + p.Problem + "."
	}
	if n, err := strconv.Atoi(inside[1:]); err == nil && f.Sort == review.ListField {
		return "entry " + strconv.Itoa(n+1) + " " + p.Problem + "."
	}
	return "in it, " + inside[1:] + " " + p.Problem + "."
}

// whole is for a form of one field that has all of the object.
func (f form) whole(sent url.Values) ([]byte, error) {
	v, problem := taken(f[0], sent)
	if problem != "" {
		f[0].Problem = problem
		return nil, tool.ErrInvalidArguments.Say("The arguments: %s", problem)
	}
	return v, nil
}

// refill puts what was sent into the fields again, so that nothing has to be typed twice.
func (f form) refill(sent url.Values) {
	for i := range f {
		one := &f[i]
		if _, there := sent[one.ID]; !there || one.Sort == review.SecretField {
			continue
		}
		one.Value = unix(sent.Get(one.ID))
		one.Sent = sent.Get("has."+one.ID) != ""
	}
}
