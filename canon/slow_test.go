package canon_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/placet-dev/placet/canon"
)

// A second implementation of the profile, which shares nothing with the first:
// the grammar is jsontext's, numbers are math/big's, and every step is the
// plainest one. Fuzzing compares the two.

func slowCanonical(src []byte) (string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(src))
	form, err := slowValue(d, 0)
	if err != nil {
		return "", err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return "", fmt.Errorf("after the value: %w", err)
	}
	return form, nil
}

func slowValue(d *jsontext.Decoder, depth int) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	switch token.Kind() {
	case '{', '[':
		if depth == canon.MaxDepth {
			return "", errors.New("too deep")
		}
		if token.Kind() == '{' {
			return slowObject(d, depth+1)
		}
		return slowArray(d, depth+1)
	case '"':
		return slowQuote(token.String())
	case '0':
		return slowNumber(token.String())
	}
	return token.String(), nil
}

func slowArray(d *jsontext.Decoder, depth int) (string, error) {
	var elements []string
	for d.PeekKind() != ']' {
		element, err := slowValue(d, depth)
		if err != nil {
			return "", err
		}
		elements = append(elements, element)
	}
	_, err := d.ReadToken()
	return "[" + strings.Join(elements, ",") + "]", err
}

func slowObject(d *jsontext.Decoder, depth int) (string, error) {
	type pair struct {
		units []uint16
		text  string
	}
	var pairs []pair
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		// A token is good until the next read.
		units := utf16.Encode([]rune(key.String()))
		quoted, err := slowQuote(key.String())
		if err != nil {
			return "", err
		}
		value, err := slowValue(d, depth)
		if err != nil {
			return "", err
		}
		pairs = append(pairs, pair{units, quoted + ":" + value})
	}
	if _, err := d.ReadToken(); err != nil {
		return "", err
	}
	slices.SortFunc(pairs, func(a, b pair) int { return slices.Compare(a.units, b.units) })
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		if i > 0 && slices.Equal(p.units, pairs[i-1].units) {
			return "", errors.New("duplicate key")
		}
		texts[i] = p.text
	}
	return "{" + strings.Join(texts, ",") + "}", nil
}

func slowQuote(s string) (string, error) {
	b, err := jsontext.AppendQuote(nil, s)
	return string(b), err
}

func slowString(t *testing.T, s string) string {
	t.Helper()
	q, err := slowQuote(s)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

var numberParts = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

func slowNumber(text string) (string, error) {
	if len(text) > 2*canon.MaxNumber {
		return "", errors.New("too long")
	}
	part := numberParts.FindStringSubmatch(text)
	if part == nil {
		return "", fmt.Errorf("not a number: %q", text)
	}
	limit := big.NewInt(canon.MaxExponent)
	exponent, _ := new(big.Int).SetString(cmp.Or(part[4], "0"), 10)
	if exponent.CmpAbs(limit) > 0 {
		return "", errors.New("exponent")
	}
	digits, _ := new(big.Int).SetString(part[2]+part[3], 10)
	form := "0"
	shortest := 1
	if digits.Sign() != 0 {
		significant := strings.TrimRight(digits.String(), "0")
		first := len(digits.String()) - 1 - len(part[3]) + int(exponent.Int64()) // exponent of the first digit
		if max(first, -first) > canon.MaxExponent {
			return "", errors.New("exponent")
		}
		form = part[1] + slowLayout(significant, first)
		shortest = len(part[1]) + slowShortest(significant, first)
	}
	if len(text) > canon.MaxNumber && (text != form || shortest > canon.MaxNumber) {
		return "", errors.New("too long")
	}
	return form, nil
}

func slowLayout(digits string, first int) string {
	if first >= -6 && first <= 20 {
		value := new(big.Rat)
		value.SetString(digits + "e" + strconv.Itoa(first-len(digits)+1))
		return value.FloatString(max(0, len(digits)-1-first))
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return fmt.Sprintf("%se%+d", digits, first)
}

// slowShortest tries every place for the point that can be worth it.
func slowShortest(digits string, first int) int {
	n := len(digits)
	best := 1 << 20
	for before := -20; before <= n+20; before++ {
		best = min(best, spellingLen(n, before, first+1-before))
	}
	if first > -2000 && first < 2000 {
		best = min(best, spellingLen(n, first+1, 0))
	}
	return best
}

// spellingLen is the length with so many digits before the point and that exponent.
func spellingLen(digits, before, exponent int) int {
	if max(exponent, -exponent) > canon.MaxExponent {
		return 1 << 20
	}
	length := max(digits, before)
	switch {
	case before <= 0:
		length = 2 - before + digits
	case before < digits:
		length++
	}
	if exponent != 0 {
		length += len("e" + strconv.Itoa(exponent))
	}
	return length
}
