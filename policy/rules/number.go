package rules

import (
	"bytes"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/placet-dev/placet/canon"
)

// number is the CEL value of a canonical JSON number: an int or uint where one holds
// it, a double where one writes it back with the same digits, and else an inexact.
func number(text []byte) ref.Val {
	if isInteger(text) {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return types.Uint(n)
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !writesBack(f, text) {
		return inexact(text)
	}
	return types.Double(f)
}

// isInteger reports whether a canonical number is laid out without point and exponent.
func isInteger(text []byte) bool {
	return !bytes.ContainsAny(text, ".e")
}

// writesBack reports whether the shortest digits of f are the canonical number.
//
// Numbers that pass keep their order as doubles: rounding never swaps two
// numbers, and no two that pass share a double.
func writesBack(f float64, canonical []byte) bool {
	digits := strconv.AppendFloat(make([]byte, 0, 32), f, 'e', -1, 64)
	c, err := canon.Append(make([]byte, 0, 32), digits)
	return err == nil && bytes.Equal(c, canonical)
}

// inexact is a number that neither 64-bit integers nor doubles hold: its canonical
// text. It equals the same number only; ordering and arithmetic are errors, because
// it has none of the traits that they ask for.
type inexact string

var inexactType = types.NewOpaqueType("number")

// ConvertToNative gives the digits.
func (n inexact) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.String {
		return string(n), nil
	}
	return nil, n.err()
}

// ConvertToType gives the digits as a string; every other conversion would change the number.
func (n inexact) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(n)
	case types.TypeType:
		return inexactType
	}
	return types.WrapErr(n.err())
}

// Equal compares canonical texts, which are alike exactly for equal numbers.
func (n inexact) Equal(other ref.Val) ref.Val {
	o, ok := other.(inexact)
	return types.Bool(ok && o == n)
}

// Type is a type of its own, without traits.
func (n inexact) Type() ref.Type { return inexactType }

// Value gives the digits.
func (n inexact) Value() any { return string(n) }

func (n inexact) err() error { return inexactError(n) }

// inexactError says why a number took part in no comparison.
type inexactError string

func (e inexactError) Error() string {
	return "the number " + shorten(string(e), 40) + " cannot be compared or calculated with exactly"
}

// shorten cuts s to about n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
