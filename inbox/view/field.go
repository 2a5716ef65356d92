package view

import (
	"strconv"

	"github.com/placet-dev/placet/internal/review"
)

// Field is a field of a form as it stands in a page.
type Field struct {
	review.Field
	ID       string // its name in the form
	Value    string // what is written in it, or which option is chosen
	Optional bool   // it is left out unless it is marked: Sent says whether it is
	Sent     bool
	Problem  string // why the value was refused; empty: it was not
	First    bool   // it is the first of those that were
}

// asItIs is the option of what stands there now and is none that the schema allows.
const asItIs = "now"

// Start is the Value that it has before anybody writes anything.
func (f Field) Start() string {
	chosen := f.Chosen()
	switch {
	case f.Sort != review.ChoiceField:
		return f.Text()
	case chosen >= 0:
		return strconv.Itoa(chosen)
	case f.Now != nil:
		return asItIs
	}
	return ""
}

// Option is which option a Value means, for [review.Field.Choose].
func (f Field) Option(value string) int {
	if value == "" {
		return -1
	}
	i, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return len(f.Options) // none of them
	}
	return int(i)
}

// choices are the options, with nothing where the member may be left out.
func (f Field) choices() (all []Option) {
	if !f.Needed || f.Now == nil {
		none := "leave it out"
		if f.Needed {
			none = "choose one"
		}
		all = append(all, Option{Text: none})
	}
	for i, v := range f.Options {
		all = append(all, Option{Value: strconv.Itoa(i), Text: review.OptionText(v)})
	}
	if f.Start() == asItIs {
		all = append(all, Option{Value: asItIs, Text: review.OptionText(f.Now)})
	}
	for i := range all {
		all[i].Chosen = all[i].Value == f.Value
	}
	return all
}
