package canon

import (
	"bytes"
	"fmt"
	"slices"
)

// Profile names the canonical form; it stands in every digest.
const Profile = "placet1"

// Limits of the profile. They are part of it and do not change.
const (
	MaxDepth    = 256   // arrays and objects inside each other
	MaxNumber   = 1000  // bytes of a number as written
	MaxExponent = 10000 // magnitude of a number's exponent
)

// Append appends the canonical form of the one JSON value in src to dst. White
// space around the value is allowed, anything else is not. dst and src may share
// memory.
//
// The error is a [*SyntaxError]; dst is then returned as it was.
func Append(dst, src []byte) ([]byte, error) {
	e := newEncoder(src)
	defer e.free()
	if err := e.document(); err != nil {
		return dst, err
	}
	return e.appendTo(slices.Grow(dst, len(e.text))), nil
}

// Canonical returns the canonical form of the one JSON value in src, in memory of
// its own. The error is a [*SyntaxError].
func Canonical(src []byte) ([]byte, error) {
	out, err := Append(nil, src)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Valid reports why src has no canonical form, as a [*SyntaxError], or nil if it has one.
func Valid(src []byte) error {
	e := newEncoder(src)
	defer e.free()
	return e.document()
}

// Equal reports whether a and b have the same canonical form. If one of them has
// none the error wraps a [*SyntaxError] and says which; a is looked at first.
func Equal(a, b []byte) (bool, error) {
	ea, eb := newEncoder(a), newEncoder(b)
	defer ea.free()
	defer eb.free()
	if err := ea.document(); err != nil {
		return false, fmt.Errorf("first value: %w", err)
	}
	if err := eb.document(); err != nil {
		return false, fmt.Errorf("second value: %w", err)
	}
	// Sorting members moves bytes and adds none.
	if len(ea.text) != len(eb.text) {
		return false, nil
	}
	return bytes.Equal(ea.sorted(), eb.sorted()), nil
}
