package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// A secret is hidden however it is cut and spelt.
func TestMask(t *testing.T) {
	t.Parallel()
	const secret = "s3cret/\"q\"\nsecond é<\U0001F600>"
	inJSON, _ := json.Marshal(secret)
	text := strings.Join([]string{
		"raw " + secret, "crlf " + strings.ReplaceAll(secret, "\n", "\r\n"), "json " + string(inJSON),
		`slash ` + strings.ReplaceAll(string(inJSON), "/", `\/`),
		`ascii "s3cret/\"q\"\nsecond \u00e9<\ud83d\ude00>"`, `upper "s3cret/\"q\"\nsecond \u00E9<\uD83D\uDE00>"`,
		`crlf in json "s3cret/\"q\"\r\nsecond é<` + "\U0001F600" + `>"`, "s3cret alone is none", "s3cr",
	}, "|\n")
	want := "raw [masked]|\ncrlf [masked]|\njson \"[masked]\"|\nslash \"[masked]\"|\nascii \"[masked]\"|\nupper \"[masked]\"|\n" +
		"crlf in json \"[masked]\"|\ns3cret alone is none|\ns3cr"
	for cut := 1; cut < 40; cut++ {
		m := newMask([]string{secret})
		var got []byte
		for b := []byte(text); len(b) > 0; {
			n := min(cut, len(b))
			got = append(got, m.write(b[:n])...)
			b = b[n:]
		}
		if got = append(got, m.end()...); string(got) != want {
			t.Fatalf("in pieces of %d: %q", cut, got)
		}
	}
}

// The longest of several wins, also where one begins as the other does.
func TestMaskOverlap(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"abcabd": "[masked][masked]", "ab": "[masked]", "xabcx": "x[masked]x", "aab": "a[masked]", "abab": "[masked][masked]", "a": "a",
	} {
		m := newMask([]string{"ab", "abc", "abd", ""})
		got := append(bytes.Clone(m.write([]byte(in))), m.end()...)
		if string(got) != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Inside JSON a secret may be spelt in ways that no list holds.
func TestMaskValue(t *testing.T) {
	t.Parallel()
	m := newMask([]string{"key1"})
	for in, want := range map[string]string{
		`{"a":"\u006b\u0065y1!","n":1.50}`: `{"a":"[masked]!","n":1.50}`,
		`["x",{"ke\u00791":[1]}]`:          `["x",{"[masked]":[1]}]`,
		`{ "a" : 1 }`:                      `{ "a" : 1 }`,
		`"key1"`:                           `"[masked]"`,
	} {
		if got := m.value([]byte(in)); string(got) != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("secret", "a secret b", 3)
	f.Fuzz(func(t *testing.T, secret, text string, cut int) {
		if secret == "" || strings.Contains(masked, secret) || cut < 1 {
			t.Skip()
		}
		whole := newMask([]string{secret}).text(text)
		m := newMask([]string{secret})
		var got []byte
		for b := []byte(text); len(b) > 0; {
			n := min(cut, len(b))
			got = append(got, m.write(b[:n])...)
			b = b[n:]
		}
		if got = append(got, m.end()...); string(got) != whole {
			t.Errorf("in pieces: %q, at once: %q", got, whole)
		}
	})
}

// Each character of a secret may be spelt in any way that JSON has, and cut anywhere.
func TestMaskAnyJSONSpelling(t *testing.T) {
	t.Parallel()
	const secret = "a+b='c'\x1b\\n/é\U0001F600\n\"z"
	spell := func(r rune, way int) string {
		short := map[rune]string{'\\': `\\`, '/': `\/`, '\n': `\n`, '"': `\"`}
		units := utf16.Encode([]rune{r})
		out := ""
		for _, u := range units {
			switch way {
			case 0:
				out += fmt.Sprintf(`\u%04x`, u)
			case 1:
				out += fmt.Sprintf(`\u%04X`, u)
			}
		}
		switch s, ok := short[r]; {
		case way == 2 && ok:
			return s
		case way >= 2:
			return string(r)
		}
		return out
	}
	for seed := range 200 {
		text := "<"
		for i, r := range []rune(secret) {
			way := seed // the first are all alike
			if seed > 3 {
				way = int(uint32(seed*2654435761)>>(i%16)) % 4
			}
			text += spell(r, way)
		}
		text += ">"
		for _, cut := range []int{1, 2, 3, 5, 7, len(text)} {
			m := newMask([]string{secret})
			var got []byte
			for b := []byte(text); len(b) > 0; {
				n := min(cut, len(b))
				got = append(got, m.write(b[:n])...)
				b = b[n:]
			}
			if got = append(got, m.end()...); string(got) != "<[masked]>" {
				t.Fatalf("%s in pieces of %d: %q", text, cut, got)
			}
		}
	}
}

// Many backslashes can be read in many ways; finding a secret in them stays quick.
func TestMaskOfBackslashes(t *testing.T) {
	t.Parallel()
	m := newMask([]string{strings.Repeat(`\`, 200) + "x"})
	if got := m.text(strings.Repeat(`\`, 1000) + "y"); strings.Contains(got, masked) {
		t.Error("something was masked")
	}
	if got := m.text(strings.Repeat(`\`, 400) + "x"); !strings.Contains(got, masked) {
		t.Errorf("%q", got)
	}
}
