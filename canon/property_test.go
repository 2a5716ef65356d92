package canon_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/placet-dev/placet/canon"
	"pgregory.net/rapid"
)

// node is a JSON value, apart from any spelling.
type node struct {
	kind     byte // '{' '[' '"' '0' or 'n' for a literal
	text     string
	digits   int64 // of a number: digits × 10^exponent
	exponent int
	keys     []string
	kids     []node
}

var (
	anyKey     = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "A", "b", "ab", "id", "amount", "\ufb33", "\U0001f600", "\n", "\"", "\\", "é"}), rapid.StringN(0, 5, -1))
	anyLiteral = rapid.SampledFrom([]string{"null", "true", "false"})
	anyDigits  = rapid.Int64Range(-999_999_999_999_999, 999_999_999_999_999) // at most 15: exact in a float as well
)

func drawNode(t *rapid.T, depth int) node {
	kinds := []byte{'"', '0', 'n', '[', '{', '{'}
	if depth == 0 {
		kinds = kinds[:3]
	}
	n := node{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch n.kind {
	case '"':
		n.text = rapid.String().Draw(t, "string")
	case '0':
		n.digits, n.exponent = anyDigits.Draw(t, "digits"), rapid.IntRange(-290, 290).Draw(t, "exponent")
	case 'n':
		n.text = anyLiteral.Draw(t, "literal")
	case '{':
		n.keys = rapid.SliceOfNDistinct(anyKey, 0, 20, rapid.ID).Draw(t, "keys")
		for range n.keys {
			n.kids = append(n.kids, drawNode(t, depth-1))
		}
	case '[':
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			n.kids = append(n.kids, drawNode(t, depth-1))
		}
	}
	return n
}

// spell writes n in one of its many spellings.
func (n node) spell(t *rapid.T) string {
	parts := make([]string, len(n.kids))
	for i, kid := range n.kids {
		parts[i] = kid.spell(t)
		if n.kind == '{' {
			parts[i] = spellString(t, n.keys[i]) + space(t) + ":" + parts[i]
		}
	}
	var text string
	switch n.kind {
	case '"':
		text = spellString(t, n.text)
	case '0':
		text = spellNumber(t, n.digits, n.exponent)
	case '{':
		text = "{" + space(t) + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
	case '[':
		text = "[" + space(t) + strings.Join(parts, ",") + "]"
	default:
		text = n.text
	}
	return space(t) + text + space(t)
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n "}).Draw(t, "space")
}

func spellString(t *rapid.T, s string) string {
	quoted, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	switch rapid.IntRange(0, 2).Draw(t, "escaping") {
	case 0:
		return string(quoted)
	case 1:
		return strings.ReplaceAll(string(quoted), "/", `\/`)
	}
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		format := rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "hex")
		fmt.Fprintf(&b, format, unit)
	}
	return `"` + b.String() + `"`
}

// spellNumber writes digits × 10^exponent with zeros and a point somewhere.
func spellNumber(t *rapid.T, digits int64, exponent int) string {
	sign := ""
	if digits < 0 || digits == 0 && rapid.Bool().Draw(t, "minus") {
		sign = "-"
		digits = -digits
	}
	text := strconv.FormatInt(digits, 10)
	if digits != 0 {
		zeros := rapid.IntRange(0, 12).Draw(t, "zeros")
		text += strings.Repeat("0", zeros)
		exponent -= zeros
	}
	if point := rapid.IntRange(0, 30).Draw(t, "point"); point > 0 {
		for len(text) <= point {
			text = "0" + text
		}
		text = text[:len(text)-point] + "." + text[len(text)-point:]
		exponent += point
	}
	if exponent != 0 || rapid.Bool().Draw(t, "exponent 0") {
		text += rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e")
		if exponent >= 0 {
			text += rapid.SampledFrom([]string{"", "+"}).Draw(t, "plus")
		}
		text += strconv.Itoa(exponent)
	}
	return sign + text
}

func TestSpellingsShareAForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t, 4)
		a, b := n.spell(t), n.spell(t)
		form, err := canon.Canonical([]byte(a))
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		if slow, err := slowCanonical([]byte(a)); err != nil || slow != string(form) {
			t.Fatalf("%s\ngave %s\nthe slow way %s, %v", a, form, slow, err)
		}
		if again, err := canon.Canonical(form); err != nil || string(again) != string(form) {
			t.Fatalf("form %s\ngave %s, %v", form, again, err)
		}
		if equal, err := canon.Equal([]byte(a), []byte(b)); err != nil || !equal {
			t.Fatalf("%s\nand %s\ndiffer: %v", a, b, err)
		}
		da, _ := canon.Digest(canon.DomainArgs, []byte(a))
		db, _ := canon.Digest(canon.DomainArgs, []byte(b))
		if da != db || da == "" {
			t.Fatalf("digests %q and %q", da, db)
		}
	})
}

// Of several repeated keys the error names the first that repeats one.
func TestFirstDuplicateIsNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, 200), 0, 60).Draw(t, "keys")
		src, want := "{", -1
		seen := map[int]bool{}
		for i, key := range keys {
			if i > 0 {
				src += ","
			}
			if seen[key] && want < 0 {
				want = len(src)
			}
			seen[key] = true
			src += fmt.Sprintf(`"%d":null`, key)
		}
		src += "}"
		got := -1
		if err := canon.Valid([]byte(src)); err != nil {
			got = int(err.(*canon.SyntaxError).Offset)
		}
		if got != want {
			t.Fatalf("%s: refused at %d, want %d", src, got, want)
		}
	})
}

// Where every number is exact in a float, the layout is that of RFC 8785.
func TestAgreesWithRFC8785(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawNode(t, 4).spell(t)
		want := jsontext.Value(text)
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if form, err := canon.Canonical([]byte(text)); err != nil || string(form) != string(want) {
			t.Fatalf("%s\ngave %s, %v\nwant %s", text, form, err, want)
		}
	})
}

// Numbers have one form exactly when they have one value.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := spellNumber(t, anyDigits.Draw(t, "a"), rapid.IntRange(-30, 30).Draw(t, "a exponent"))
		b := spellNumber(t, anyDigits.Draw(t, "b"), rapid.IntRange(-30, 30).Draw(t, "b exponent"))
		if rapid.Bool().Draw(t, "near") { // one unit in the last place, or none
			b = a
			if i := strings.IndexAny(a, "eE"); i < 0 && strings.Contains(a, ".") {
				b += rapid.SampledFrom([]string{"0", "000", "1", "0000000000000000000000001"}).Draw(t, "tail")
			}
		}
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		equal, err := canon.Equal([]byte(a), []byte(b))
		if err != nil || equal != (ra.Cmp(rb) == 0) {
			t.Fatalf("Equal(%s, %s) = %v, %v", a, b, equal, err)
		}
	})
}

// Around the limit on length what is accepted must have a form that is accepted.
func TestLongNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := strings.Repeat("7", rapid.IntRange(985, 1003).Draw(t, "digits"))
		text := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
		switch point := rapid.IntRange(-8, 8).Draw(t, "point"); {
		case point <= 0:
			text += "0." + strings.Repeat("0", -point) + digits
		case point == 8:
			text += digits
		default:
			text += digits[:point] + "." + digits[point:]
		}
		if e := rapid.SampledFrom([]int{0, 1, -1, 5, -5, -12, 100, -990, -1000, -1010, 8990, 8995, 9500, -9000, -9900, 9999, -9999, -10000}).Draw(t, "exponent"); e != 0 {
			text += "e" + strconv.Itoa(e)
		}
		want, slowErr := slowCanonical([]byte(text))
		form, err := canon.Canonical([]byte(text))
		if (err == nil) != (slowErr == nil) || string(form) != want {
			t.Fatalf("%s\ngave %s, %v\nthe slow way %s, %v", text, form, err, want, slowErr)
		}
		if err != nil {
			return
		}
		if again, err := canon.Canonical(form); err != nil || string(again) != string(form) {
			t.Fatalf("form %s\ngave %s, %v", form, again, err)
		}
	})
}
