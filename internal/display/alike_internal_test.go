package display

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/runenames"
)

// The table says of each character once what it looks like, and of nothing that the other
// rules decide.
func TestTableOfLookAlikes(t *testing.T) {
	t.Parallel()
	seen := map[rune]string{}
	check := func(words, rule string, fits func(r rune) bool) {
		for _, word := range strings.Fields(words) {
			if word[0] <= ' ' || word[0] > '~' || len(word) < 2 {
				t.Errorf("%s: %q is no ASCII character with others", rule, word)
			}
			for _, r := range word[1:] {
				if before, ok := seen[r]; ok {
					t.Errorf("%U is in %s and in %s", r, before, rule)
				}
				seen[r] = rule
				if Hidden(r) || !fits(r) {
					t.Errorf("%s: %U does not belong there", rule, r)
				}
				if form := norm.NFKC.String(string(r)); isASCII(form) {
					t.Errorf("%s: %U is a form of %s already", rule, r, form)
				}
			}
		}
	}
	for _, l := range likeLetter {
		check(l.words, "letters", func(r rune) bool { return unicode.IsLetter(r) && unicode.Is(l.script, r) })
	}
	check(likeDigit, "digits", func(r rune) bool { return unicode.Is(unicode.Nd, r) })
	sign := func(r rune) bool { return !unicode.Is(unicode.L, r) || unicode.Is(unicode.Lm, r) }
	check(likeSign, "signs", sign)
	check(likeSignBetween, "signs between", sign)
	check("-"+likeHyphen, "hyphens", sign)
	check("-"+likeDash, "dashes", sign)
	if len(seen) != len(looks()) || len(seen) < 400 {
		t.Errorf("%d characters in the lists, %d in the table", len(seen), len(looks()))
	}
	if n := len(likeLetter) + len(digitScripts); n > 32 {
		t.Errorf("%d scripts do not fit into a set", n)
	}
}

func TestDigitValue(t *testing.T) {
	t.Parallel()
	names := []string{"ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"}
	n := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.Is(unicode.Nd, r) {
			if digitValue(r) != "" {
				t.Fatalf("%U has a value", r)
			}
			continue
		}
		n++
		if v := digitValue(r); !strings.HasSuffix(runenames.Name(r), " "+names[v[0]-'0']) && r > '9' {
			t.Errorf("%U %s has the value %s", r, runenames.Name(r), v)
		}
	}
	if n < 600 {
		t.Errorf("only %d digits", n)
	}
}

func TestEveryControlHasItsName(t *testing.T) {
	t.Parallel()
	for r, want := range map[rune]string{
		0: "U+0000 NULL", 0x1b: "U+001B ESCAPE", 0x1f: "U+001F INFORMATION SEPARATOR ONE", 0x7f: "U+007F DELETE", 0x80: "U+0080 PADDING CHARACTER",
		0x85: "U+0085 NEXT LINE", 0x9b: "U+009B CONTROL SEQUENCE INTRODUCER", 0x9d: "U+009D OPERATING SYSTEM COMMAND",
		0x9f: "U+009F APPLICATION PROGRAM COMMAND", 0xa0: "U+00A0 NO-BREAK SPACE", 0xe000: "U+E000, private use", 0x378: "U+0378, no character known here",
	} {
		if got := named(r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(controls) != 0x20+0x21 {
		t.Errorf("%d names", len(controls))
	}
}
