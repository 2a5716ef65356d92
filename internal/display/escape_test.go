package display_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/placet-dev/placet/internal/display"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"plain text, <b>&`[x](y)`": "plain text, <b>&`[x](y)`",
		"Grüße, мир, 你好, שלום, 👍":         "Grüße, мир, 你好, שלום, 👍",
		"two\nlines\tand\r":               `two\nlines\tand\r`,
		`C:\dir`:                          `C:\dir`,
		`C:\new`:                          `C:\u{5c}new`,
		`a \u{202e} b`:                    `a \u{5c}u{202e} b`,
		`a \x{ff} b`:                      `a \u{5c}x{ff} b`,
		`\`:                               `\`,
		"\x1b[2K\rrm -rf":                 `\u{1b}[2K\rrm -rf`,
		"\a\x00\x7f":                      `\u{7}\u{0}\u{7f}`,
		"\u0085\u009b31m":                 `\u{85}\u{9b}31m`,
		"a\u202eb\u2066c\u2069":           `a\u{202e}b\u{2066}c\u{2069}`,
		"a\u200bb\u200dc\u2060":           `a\u{200b}b\u{200d}c\u{2060}`,
		"so\u00adft\ufeff":                `so\u{ad}ft\u{feff}`,
		"tag\U000e0041\U000e007f":         `tag\u{e0041}\u{e007f}`,
		"❤\ufe0f \U000e0100":              `❤\u{fe0f} \u{e0100}`,
		"\u115f\u1160\u3164\uffa0":        `\u{115f}\u{1160}\u{3164}\u{ffa0}`,
		"\u2028\u2029\u00a0\u3000":        `\u{2028}\u{2029}\u{a0}\u{3000}`,
		"\u180e\u17b4\u2800\ufffc":        `\u{180e}\u{17b4}\u{2800}\u{fffc}`,
		"private \ue000 \U0010fffe":       `private \u{e000} \u{10fffe}`,
		"bad \xff\xc3( utf":               `bad \x{ff}\x{c3}( utf`,
		"e\u0301 e\u0301\u0302":           "e\u0301 e\u0301\u0302",
		"\u0301first":                     `\u{301}first`,
		"z\u0301\u0301\u0301\u0301\u0301": "z\u0301\u0301\u0301\u0301" + `\u{301}`,
	} {
		if got := display.Line(in); got != want {
			t.Errorf("Line(%+q)\n got %s\nwant %s", in, got, want)
		}
	}
}

// Every character comes out as itself or as an escape, and never as something
// that a terminal could obey (113, 115).
func TestNoCharacterPassesThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		got := display.Line("x" + string(r) + "y")
		for _, o := range got {
			if o < 0x20 || o >= 0x7f && o < 0xa0 || unicode.Is(unicode.Cf, o) || unicode.Is(unicode.Zl, o) || unicode.Is(unicode.Zp, o) {
				t.Fatalf("%U comes out as %+q", r, got)
			}
		}
		if display.Hidden(r) == strings.Contains(got, string(r)) && r != utf8.RuneError && utf8.ValidRune(r) {
			t.Fatalf("%U comes out as %+q", r, got)
		}
	}
	for b := range 256 {
		if got := display.Line(string([]byte{'x', byte(b), 'y'})); !utf8.ValidString(got) {
			t.Fatalf("byte %x comes out as %q", b, got)
		}
	}
}

func TestExcerptKeepsHeadAndTailAndSaysTheSize(t *testing.T) {
	t.Parallel()
	text := "head " + strings.Repeat("é", 70_000) + " tail"
	got := display.Excerpt(text, 100)
	if !strings.HasPrefix(got, "head é") || !strings.HasSuffix(got, "é tail") || !strings.Contains(got, "140,010 bytes in all") {
		t.Errorf("got %.200s", got)
	}
	if n := utf8.RuneCountInString(got); n > 160 {
		t.Errorf("%d characters", n)
	}
	if got := display.Excerpt("short\n", 100); got != `short\n` {
		t.Errorf("got %q", got)
	}
	hostile := strings.Repeat("\x1b", 50_000)
	if got := display.Excerpt(hostile, 100); strings.ContainsRune(got, 0x1b) {
		t.Error("an escape character passed")
	}
}

// What a program gets is the same JSON value, in characters that a terminal can
// be sent too.
func TestMachineIsTheSameValue(t *testing.T) {
	t.Parallel()
	want := "a\u202e\x7f\u009b\U000e0041\u2028<&>é"
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(want); err != nil {
		t.Fatal(err)
	}
	out := display.Machine([]byte(b.String()))
	var got string
	if err := json.Unmarshal(out, &got); err != nil || got != want {
		t.Errorf("%s: %q, %v", out, got, err)
	}
	if s := string(out); s != `"a\u202e\u007f\u009b\udb40\udc41\u2028<&>é"`+"\n" {
		t.Errorf("got %s", s)
	}
}

func TestShortAndCount(t *testing.T) {
	t.Parallel()
	if got := display.Short("abcdefgh", 5); got != "abcd…" {
		t.Errorf("got %s", got)
	}
	for n, want := range map[int]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1,000 bytes", 1234567: "1,234,567 bytes"} {
		if got := display.Bytes(n); got != want {
			t.Errorf("got %s", got)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "\x1b[0m", `\u{202e}`, "\\", "a\xffb", "\u0301"} {
		f.Add(s)
	}
	seen := map[string]string{}
	f.Fuzz(func(t *testing.T, s string) {
		got := display.Line(s)
		for _, r := range got {
			if display.Hidden(r) || r == utf8.RuneError && !strings.ContainsRune(s, utf8.RuneError) {
				t.Fatalf("%q comes out as %q", s, got)
			}
		}
		// Two texts never look the same.
		if old, ok := seen[got]; ok && old != s {
			t.Fatalf("%q and %q both come out as %q", old, s, got)
		}
		seen[got] = s
	})
}

func ExampleLine() {
	fmt.Println(display.Line("harmless\r\x1b[2Krm -rf /"))
	// Output: harmless\r\u{1b}[2Krm -rf /
}
