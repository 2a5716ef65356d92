package canon_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/placet-dev/placet/canon"
)

func TestForms(t *testing.T) {
	t.Parallel()
	ones := strings.Repeat("1", canon.MaxNumber)
	tests := []struct{ name, src, want string }{
		{"prefix of a key first", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"escaped keys in order of what they mean", `{"\u0041":1,"\"":2,"\n":3,"!":4,"\\":5,"\u0000":6}`, `{"\u0000":6,"\n":3,"!":4,"\"":2,"A":1,"\\":5}`},
		{"escapes behind a common prefix", `{"x\u0002":1,"x\u0001":2,"x\b":3,"x ":4,"x":5}`, `{"x":5,"x\u0001":2,"x\u0002":1,"x\b":3,"x ":4}`},
		{"surrogates around U+D7FF and U+E000", "{\"\ue000\":1,\"\U00010000\":2,\"\ud7ff\":3,\"\uffff\":4,\"\U0010ffff\":5}", "{\"\ud7ff\":3,\"\U00010000\":2,\"\U0010ffff\":5,\"\ue000\":1,\"\uffff\":4}"},
		{"out of order inside and outside", `[{"b":{"d":[{"f":1,"e":2}],"c":3},"a":{"h":{},"g":4}},{"i":{"k":5,"j":6}}]`, `[{"a":{"g":4,"h":{}},"b":{"c":3,"d":[{"e":2,"f":1}]}},{"i":{"j":6,"k":5}}]`},
		{"in order outside, out of order inside", `{"a":{"y":1,"x":2},"b":{"x":1,"y":2},"c":[{"y":1,"x":2}]}`, `{"a":{"x":2,"y":1},"b":{"x":1,"y":2},"c":[{"x":2,"y":1}]}`},
		{"literals", ` [ true , false , null ] `, `[true,false,null]`},
		{"long string", `"` + strings.Repeat("0123456789", 20) + `\n"`, `"` + strings.Repeat("0123456789", 20) + `\n"`},
		{"highest character", `"\udbff\udfff"`, "\"\U0010ffff\""},
		{"plain up to 21 digits", `[123456789012345678901,-123456789012345678901,1234567890123456789012]`, `[123456789012345678901,-123456789012345678901,1.234567890123456789012e+21]`},
		{"point within 21 digits", `[123456789012345678901.50,1234567890123456789012.5]`, `[123456789012345678901.5,1.2345678901234567890125e+21]`},
		{"zeros in front of an exponent", `[1e0000000000000000000000021,1e-0,1e+0]`, `[1e+21,1,1]`},
		{"negative", `[-1.0,-0.10,-1e21,-1e-7,-0e-5]`, `[-1,-0.1,-1e+21,-1e-7,0]`},
		{"exponent that the layout brings within the limit", `[10e9999,0.1e10000,0.1e-9999,10e-10000]`, `[1e+10000,1e+9999,1e-10000,1e-9999]`},
		{"number that its layout makes longer than the limit", ones, "1." + ones[1:] + "e+999"},
		{"the same, negative", "-" + ones[1:], "-1." + ones[2:] + "e+998"},
		{"the same, with an exponent", ones[:994] + "e9000", "1." + ones[1:994] + "e+9993"},
		{"the same, small", ones[:993] + "e-2000", "1." + ones[1:993] + "e-1008"},
		{"the same, below one", "0.00000" + ones[:993], "0.00000" + ones[:993]},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checkForm(t, []byte(c.src), []byte(c.want))
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	ones := strings.Repeat("1", canon.MaxNumber+1)
	deep := strings.Repeat("[", canon.MaxDepth)
	tests := []struct {
		name, src string
		offset    int64
		message   string
	}{
		{"empty", "", 0, "unexpected end where a value should be"},
		{"white space only", " \n", 2, "unexpected end where a value should be"},
		{"byte order mark", "\xef\xbb\xbf{}", 0, "byte order mark"},
		{"second value", "1 2", 2, "unexpected '2' after the value"},
		{"other white space", "\v1", 0, "unexpected byte 0x0b where a value should be"},
		{"byte 0", "[\x00]", 1, "unexpected byte 0x00 where a value should be"},
		{"byte 0 behind the value", "1\x00", 1, "unexpected byte 0x00 after the value"},
		{"duplicate", `{"a":1,"a":2}`, 7, `duplicate key "a"`},
		{"duplicate in another spelling", `{"a":1,"\u0061":2}`, 7, `duplicate key "a"`},
		{"duplicate out of order", `{"b":1,"a":2,"b":3}`, 13, `duplicate key "b"`},
		{"first of two duplicates", `{"z":1,"b":2,"a":3,"b":4,"a":5,"a":6}`, 19, `duplicate key "b"`},
		{"duplicate escaped", `{"x":0,"\n\"":1,"\u000a\u0022":2}`, 16, `duplicate key "\n\""`},
		{"duplicate empty", `{"":1,"":2}`, 6, `duplicate key ""`},
		{"duplicate inside", `[{"a":{"b":1,"b":1}}]`, 13, `duplicate key "b"`},
		{"duplicate that hides", "{\"\u202e\x7f\":1,\"\u202e\x7f\":1}", 10, `duplicate key "\u202e\x7f"`},
		{"duplicate that is long", `{"` + strings.Repeat("k", 100) + `":1,"` + strings.Repeat("k", 100) + `":1}`, 106, `duplicate key "` + strings.Repeat("k", 64) + `…"`},
		{"object closed as an array", `{"a":1]`, 6, "unexpected ']' in an object"},
		{"object not closed", `{"a":1`, 6, "unexpected end in an object"},
		{"key without quotes", `{a:1}`, 1, "unexpected 'a' where a key should be"},
		{"key without a colon", `{"a" 1}`, 5, "unexpected '1' after a key"},
		{"comma before a brace", `{"a":1,}`, 7, "unexpected '}' where a key should be"},
		{"comma before a bracket", `[1,]`, 3, "unexpected ']' where a value should be"},
		{"array without a comma", `[1 1]`, 3, "unexpected '1' in an array"},
		{"array not closed", `[`, 1, "unexpected end where a value should be"},
		{"literal cut", `tru`, 3, "unexpected end in true"},
		{"literal misspelt", `[falSe]`, 4, "unexpected 'S' in false"},
		{"literal gone on", `nullx`, 4, "unexpected 'x' after the value"},
		{"NaN", `NaN`, 0, "unexpected 'N' where a value should be"},
		{"leading zero", `[-01]`, 2, "number with a leading zero"},
		{"sign alone", `-`, 1, "unexpected end where a digit should be"},
		{"point alone", `[1.]`, 3, "unexpected ']' where a digit should be"},
		{"no digit before the point", `.5`, 0, "unexpected '.' where a value should be"},
		{"exponent without digits", `1e+`, 3, "unexpected end where a digit should be"},
		{"raw line feed", "\"a\nb\"", 2, "control character 0x0a in a string"},
		{"raw line feed behind eight bytes", "\"abcdefghijk\nb\"", 12, "control character 0x0a in a string"},
		{"string not closed", `"abc`, 4, "unexpected end in a string"},
		{"escape cut", `"\`, 2, "unexpected end in a string"},
		{"escape unknown", `"\x41"`, 2, "unexpected 'x' after a backslash"},
		{"escape short", `"a\u12"`, 2, `\u without four hexadecimal digits`},
		{"escape not hexadecimal", `"\u00g0"`, 1, `\u without four hexadecimal digits`},
		{"high surrogate", `"a\ud83dz"`, 2, "surrogate without its other half"},
		{"high surrogate at the end", `"\ud83d`, 1, "surrogate without its other half"},
		{"low surrogate", `"\ude00"`, 1, "surrogate without its other half"},
		{"two high surrogates", `"\ud83d\ud83d"`, 1, "surrogate without its other half"},
		{"invalid UTF-8", "\"caf\xc3\xa9 \xff\"", 7, "invalid UTF-8"},
		{"UTF-8 cut by a quote", "\"\xf0\x9f\x98\"", 1, "invalid UTF-8"},
		{"UTF-8 cut by an escape", "\"\xc3\\u00a9\"", 1, "invalid UTF-8"},
		{"UTF-8 above U+10FFFF", "\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8"},
		{"257 deep", deep + "[", canon.MaxDepth, "nested more than 256 deep"},
		{"257 deep with objects", strings.Repeat(`[{"":`, 128) + "{}", 640, "nested more than 256 deep"},
		{"exponent over the limit", `[1e10001]`, 1, "exponent over 10000"},
		{"exponent over the limit in the layout", `[10e10000]`, 1, "exponent over 10000"},
		{"exponent over the limit as written", `[0.1e10001]`, 1, "exponent over 10000"},
		{"exponent under the limit in the layout", `[0.1e-10000]`, 1, "exponent over 10000"},
		{"exponent over the limit, of zero", `[0e10001]`, 1, "exponent over 10000"},
		{"exponent too large for a word", `1e-99999999999999999999999`, 0, "exponent over 10000"},
		{"number of 1001 bytes", "[" + ones + "]", 1, "number longer than 1000 bytes"},
		{"number of 1001 bytes that is its own form", "[0." + ones[:999] + "]", 1, "number longer than 1000 bytes"},
		{"number of 1001 bytes with an exponent", "[1." + ones[:996] + "e-7]", 1, "number longer than 1000 bytes"},
		{"zero of 1001 bytes", "[0." + strings.Repeat("0", 999) + "]", 1, "number longer than 1000 bytes"},
		{"exponent of 1001 bytes", "[1e" + strings.Repeat("0", 998) + "1]", 1, "number longer than 1000 bytes"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := checkRefused(t, []byte(c.src))
			if got.Offset != c.offset || got.Message != c.message {
				t.Errorf("got %v, want byte %d: %s", got, c.offset, c.message)
			}
			if want := fmt.Sprintf("byte %d: %s", c.offset, c.message); got.Error() != want {
				t.Errorf("Error() is %q, want %q", got.Error(), want)
			}
		})
	}
}

// Every part of an accepted text is refused, and nothing in it panics.
func TestRefusesEveryPrefix(t *testing.T) {
	t.Parallel()
	src := []byte(`{"b":[-1.5e+3,true,null,"\u00e9\ud83d\ude00é"],"a":{"":{}}}`)
	checkForm(t, src, []byte(`{"a":{"":{}},"b":[-1500,true,null,"é😀é"]}`))
	for i := range src {
		checkRefused(t, src[:i])
	}
}

// A few bytes must not stand for a number with millions of digits, in no spelling.
func TestGiantExponents(t *testing.T) {
	exponent := strings.Repeat("9", 1<<16)
	for _, src := range []string{
		"7E29999999", "0e99999999", "-0e99999999", "1e-999999999", "-1.5E+99999999",
		"1e" + exponent, "1e-" + exponent, "[0.1e" + exponent + "]",
	} {
		in := []byte(src)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		checkRefused(t, in)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10+16*uint64(len(in)) {
			t.Errorf("%.20s…: %d bytes allocated", src, grown)
		}
	}
}

func TestAppendInPlace(t *testing.T) {
	t.Parallel()
	buf := []byte(` { "b" : 1e2, "a" : "\u0041" } `)
	got, err := canon.Append(buf[:0], buf)
	if err != nil || string(got) != `{"a":"A","b":100}` {
		t.Errorf("got %q, %v", got, err)
	}
}

// Results live in memory of their own: later calls, which reuse scratch, leave them alone.
func TestResultsAreKept(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var got, want [][]byte
			for i := range 200 {
				form, err := canon.Canonical(fmt.Appendf(nil, `{"n":%d.0,"g":%d}`, i, g))
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, form)
				want = append(want, fmt.Appendf(nil, `{"g":%d,"n":%d}`, g, i))
			}
			if !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
				t.Error("a result changed")
			}
		})
	}
	wg.Wait()
}

func TestEqual(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, `{ "b":2.0, "a":10e-1 }`, true},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`9007199254740992`, `9007199254740993`, false},
		{`1`, `"1"`, false},
		{`"é"`, `"\u00e9"`, true},
		{`"é"`, `"e\u0301"`, false},
	}
	for _, c := range tests {
		got, err := canon.Equal([]byte(c.a), []byte(c.b))
		if err != nil || got != c.want {
			t.Errorf("Equal(%s, %s) = %v, %v", c.a, c.b, got, err)
		}
	}
	_, err := canon.Equal([]byte("1"), []byte("[1"))
	if err == nil || err.Error() != "second value: byte 2: unexpected end in an array" {
		t.Errorf("got %v", err)
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := range rune(0x180) {
		all.WriteRune(r)
	}
	for _, s := range []string{"", "a", `"\/`, "<&>\u2028😀", "\ufffd", all.String()} {
		got, err := canon.AppendString([]byte("x"), s)
		if err != nil {
			t.Fatal(err)
		}
		checkForm(t, got[1:], got[1:])
		if want := slowString(t, s); string(got[1:]) != want {
			t.Errorf("got %s, want %s", got[1:], want)
		}
	}
	got, err := canon.AppendString([]byte("x"), "ab\xed\xa0\xbd")
	if err == nil || err.Error() != "byte 2: invalid UTF-8" || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A domain is hashed with the form, so equal values under two domains differ.
func TestDigestDomains(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, domain := range []string{canon.DomainApproval, canon.DomainTool, canon.DomainArgs, canon.DomainEdited, ""} {
		digest, err := canon.Digest(domain, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(digest, "sha256-placet1:") || len(digest) != len(canon.DigestPrefix)+64 {
			t.Errorf("digest %q", digest)
		}
		if other, ok := seen[digest]; ok {
			t.Errorf("domains %q and %q give one digest", domain, other)
		}
		seen[digest] = domain
	}
}
