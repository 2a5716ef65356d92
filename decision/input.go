package decision

import (
	"github.com/placet-dev/placet/canon"
)

// isJSON compares by value; what is no JSON is nothing's equal.
func isJSON(b []byte, want string) bool {
	same, err := canon.Equal(b, []byte(want))
	return err == nil && same
}

// sameForm compares forms by value, as inputs are.
func sameForm(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return isJSON(a, string(b))
}

// nothing reports whether an input fills nothing in: it is left out, null or {}.
func nothing(input []byte) bool {
	return input == nil || isJSON(input, `null`) || isJSON(input, `{}`)
}

// filledIn is an input as d's form is held against it, and as it is kept.
func (d Decision) filledIn(input []byte) []byte {
	switch {
	case !nothing(input):
		return input
	case d.Form == nil:
		return nil
	}
	return []byte(`{}`)
}

// sameInput compares by value: 1 and 1.0 are the same answer.
func sameInput(a, b []byte) bool {
	if nothing(a) || nothing(b) {
		return nothing(a) && nothing(b)
	}
	return isJSON(a, string(b))
}

// errOtherAnswer names what stands to somebody whose choice was another, or the same
// with another input. The input itself is in the error's standing, where a door can
// hide the secrets in it, and not in its text.
func (d Decision) errOtherAnswer(choice Choice) error {
	answer := quote(string(d.Choice))
	switch {
	case choice != d.Choice:
	case nothing(d.Input):
		answer += " without input"
	default:
		answer += " with another input"
	}
	return ErrChoiceConflict.Say("Question %s is answered already: %s%s.", d.ID, answer, byWhom(d)).With(d.Standing())
}
