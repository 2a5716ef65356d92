package canon

import (
	"bytes"
	"strconv"
)

// plainDigits is how many digits stand before the point at most; ECMAScript's choice.
const plainDigits = 21

// canonicalGrowth is how much longer than its shortest spelling a canonical form
// can be: a thousand ones gain the point and e+999.
const canonicalGrowth = 6

// literal is a number as written, in its parts.
type literal struct {
	start           int // where it stands in src
	text            []byte
	negative        bool
	whole, fraction []byte
	exponent        int // with its sign; see scanExponent for large ones
}

// number reads the number at e.pos and writes its canonical form.
func (e *encoder) number() error {
	l, end, err := scanNumber(e.src, e.pos)
	if err != nil {
		return err
	}
	e.pos = end
	if l.isPlainInteger() {
		e.text = append(e.text, l.text...)
		return nil
	}
	return e.layNumber(l)
}

// isPlainInteger reports whether the number is canonical as it is written; most are.
func (l *literal) isPlainInteger() bool {
	written := len(l.whole)
	if l.negative {
		written++
	}
	return written == len(l.text) && len(l.whole) <= plainDigits && !(l.negative && l.whole[0] == '0')
}

// layNumber writes the canonical form of l, or refuses it for a limit.
func (e *encoder) layNumber(l literal) error {
	// Lengths first: from here on the work per number is bounded.
	if len(l.text) > MaxNumber+canonicalGrowth {
		return refuse(l.start, "number longer than %d bytes", MaxNumber)
	}
	if magnitude(l.exponent) > MaxExponent {
		return refuse(l.start, "exponent over %d", MaxExponent)
	}
	e.digits = append(append(e.digits[:0], l.whole...), l.fraction...)
	d := trim(decimal{l.negative, e.digits, len(l.whole) + l.exponent})
	if magnitude(d.point-1) > MaxExponent {
		return refuse(l.start, "exponent over %d", MaxExponent)
	}
	from := len(e.text)
	e.text = d.append(e.text)
	if len(l.text) > MaxNumber && !(bytes.Equal(e.text[from:], l.text) && d.shortest() <= MaxNumber) {
		return refuse(l.start, "number longer than %d bytes", MaxNumber)
	}
	return nil
}

// scanNumber takes the number at src[start:] apart and returns where it ends.
func scanNumber(src []byte, start int) (l literal, end int, err error) {
	l.start = start
	i := start
	if src[i] == '-' {
		l.negative = true
		i++
	}
	if l.whole, i, err = scanDigits(src, i); err != nil {
		return l, i, err
	}
	if l.whole[0] == '0' && len(l.whole) > 1 {
		return l, i, refuse(i-len(l.whole), "number with a leading zero")
	}
	if i < len(src) && src[i] == '.' {
		if l.fraction, i, err = scanDigits(src, i+1); err != nil {
			return l, i, err
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		if l.exponent, i, err = scanExponent(src, i+1); err != nil {
			return l, i, err
		}
	}
	l.text = src[start:i]
	return l, i, nil
}

// scanDigits takes one digit or more.
func scanDigits(src []byte, i int) (digits []byte, end int, err error) {
	start := i
	for i < len(src) && isDigit(src[i]) {
		i++
	}
	if i == start {
		return nil, i, unexpected(src, i, "where a digit should be")
	}
	return src[start:i], i, nil
}

// scanExponent takes a sign, if there is one, and digits. A magnitude over the
// limit comes out as some number over the limit.
func scanExponent(src []byte, i int) (exponent, end int, err error) {
	negative := i < len(src) && src[i] == '-'
	if negative || i < len(src) && src[i] == '+' {
		i++
	}
	digits, i, err := scanDigits(src, i)
	if err != nil {
		return 0, i, err
	}
	for _, c := range digits {
		if exponent <= MaxExponent {
			exponent = exponent*10 + int(c-'0')
		}
	}
	if negative {
		exponent = -exponent
	}
	return exponent, i, nil
}

// decimal is 0.digits × 10^point, as ECMAScript's layout rules count.
type decimal struct {
	negative bool
	digits   []byte
	point    int
}

// trim takes away the zeros around the digits. Zero has no digits and no sign.
func trim(d decimal) decimal {
	significant := bytes.TrimLeft(d.digits, "0")
	if len(significant) == 0 {
		return decimal{}
	}
	d.point -= len(d.digits) - len(significant)
	d.digits = bytes.TrimRight(significant, "0")
	return d
}

// append appends the canonical form of a trimmed decimal.
func (d decimal) append(dst []byte) []byte {
	n := len(d.digits)
	if n == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	switch {
	case n <= d.point && d.point <= plainDigits:
		dst = append(dst, d.digits...)
		return appendZeros(dst, d.point-n)
	case 0 < d.point && d.point <= plainDigits:
		dst = append(dst, d.digits[:d.point]...)
		dst = append(dst, '.')
		return append(dst, d.digits[d.point:]...)
	case -6 < d.point && d.point <= 0:
		dst = appendZeros(append(dst, "0."...), -d.point)
		return append(dst, d.digits...)
	}
	return d.appendExponent(dst)
}

func (d decimal) appendExponent(dst []byte) []byte {
	dst = append(dst, d.digits[0])
	if len(d.digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, d.digits[1:]...)
	}
	dst = append(dst, 'e')
	if d.point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(d.point-1), 10)
}

// shortest is the length of the shortest spelling that JSON has for a trimmed
// decimal of more than one digit, within the limit on exponents.
//
// A canonical form over MaxNumber bytes is accepted only if the same number can
// be written in MaxNumber: then the form of what was accepted is accepted, and
// the limit lets no other number in.
func (d decimal) shortest() int {
	n := len(d.digits)
	exponent := d.point - n // with all digits before the point
	length := n
	switch {
	case exponent >= 0:
		length += min(exponent, 1+decimalLen(exponent)) // zeros, or e and exponent
	case d.point > 0:
		length++ // a point between the digits
	default:
		length += min(
			2-d.point,               // 0. and zeros
			3+decimalLen(1-d.point), // a point behind the first digit, e-
		)
		if -exponent <= MaxExponent {
			length = min(length, n+2+decimalLen(-exponent)) // e-
		}
	}
	if d.negative {
		length++
	}
	return length
}

// decimalLen is how many digits n has, which is not negative.
func decimalLen(n int) int {
	length := 1
	for ; n >= 10; n /= 10 {
		length++
	}
	return length
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

func magnitude(n int) int {
	return max(n, -n)
}

func isDigit(c byte) bool {
	return c >= '0' && c <= '9'
}
