package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

// inPieces is what a mask makes of a text that comes in pieces of so many bytes.
func inPieces(secrets []string, text string, size int) string {
	m := newMask(secrets)
	var got []byte
	for b := []byte(text); len(b) > 0; {
		n := min(size, len(b))
		got = append(got, m.write(b[:n])...)
		b = b[n:]
	}
	return string(append(got, m.end()...))
}

// Where secrets overlap, all that any of them covers is hidden, as one.
func TestMaskUnion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		secrets  []string
		in, want string
	}{
		{[]string{"abcde", "defghij_realtoken"}, "<abcdefghij_realtoken>", "<[masked]>"},
		{[]string{"abcde", "defghij_realtoken"}, "<abcdefghij>", "<[masked]fghij>"},
		{[]string{"abcde", "defghij_realtoken"}, "<ab\\u0063d\\u0065fghij_realtoken>", "<[masked]>"},
		{[]string{"abcdefgh", "cd", "ghij", "ijk"}, "abcdefghijkl", "[masked]l"},
		{[]string{"KEYKEY1", "1KEYS"}, "KEYKEY1KEYS KEYKEY1", "[masked] [masked]"},
		{[]string{"aa"}, "baaab", "b[masked]b"},
		{[]string{"ab", "cd"}, "abcd", "[masked][masked]"},
	} {
		for size := 1; size <= len(c.in); size++ {
			if got := inPieces(c.secrets, c.in, size); got != c.want {
				t.Errorf("%q in %q in pieces of %d: %q, want %q", c.secrets, c.in, size, got, c.want)
			}
		}
	}
}

// A secret that was read from a file is hidden also without the blanks around it.
func TestMaskWithoutBlanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ secret, in, want string }{
		{"supersecretvalue\n", "<supersecretvalue>", "<[masked]>"},
		{"supersecretvalue\n", "<supersecretvalue\r\n>", "<[masked]>"},
		{"supersecretvalue\r\n\n", "<supersecretvalue\n>", "<[masked]\n>"},
		{" \t supersecretvalue ", "<supersecretvalue>", "<[masked]>"},
		{"two words\n", "two words, two, words", "[masked], two, words"},
		{"supersecretvalue\n", `"supersecret\u0076alue"`, `"[masked]"`},
		{" \n", "a b\n", "a b\n"},
	} {
		for size := 1; size <= len(c.in); size++ {
			if got := inPieces([]string{c.secret}, c.in, size); got != c.want {
				t.Errorf("%q in %q in pieces of %d: %q, want %q", c.secret, c.in, size, got, c.want)
			}
		}
	}
}

// Whatever the secrets are, what is left is what a plain look at each place leaves.
func TestMaskUnionOfAny(t *testing.T) {
	t.Parallel()
	plain := func(secrets []string, in string) (out string) {
		end := 0
		for i := range len(in) {
			n := 0
			for _, s := range secrets {
				if strings.HasPrefix(in[i:], s) {
					n = max(n, len(s))
				}
			}
			switch {
			case n > 0 && i >= end:
				out += masked
			case i >= end:
				out += in[i : i+1]
			}
			if n > 0 {
				end = max(end, i+n)
			}
		}
		return out
	}
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, 1+random.IntN(most))
		for i := range b {
			b[i] = "ABC"[random.IntN(3)]
		}
		return string(b)
	}
	for range 3000 {
		secrets, in := []string{word(6), word(6), word(6)}, word(40)
		size := 1 + random.IntN(8)
		if got, want := inPieces(secrets, in, size), plain(secrets, in); got != want {
			t.Fatalf("%q in %q in pieces of %d: %q, want %q", secrets, in, size, got, want)
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
