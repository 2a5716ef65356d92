package canon_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/canon"
)

func FuzzCanonical(f *testing.F) {
	v := loadVectors(f)
	for _, list := range [][]vector{v.Accept, v.Refuse, v.Digests} {
		for _, c := range list {
			f.Add(c.input(f))
		}
	}
	f.Add([]byte(`{"\ud83d\ude00":{"b":-1.50e-7,"a":[0.1e1,{}]},"\ufb33":"\u001f\/"}`))
	f.Add([]byte("1." + strings.Repeat("1", 999) + "e+999"))
	f.Add([]byte(strings.Repeat("7", 992) + "e-9999"))
	f.Fuzz(func(t *testing.T, src []byte) {
		want, slowErr := slowCanonical(src)
		got, err := canon.Canonical(src)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("%q: got %v, the slow way %v", src, err, slowErr)
		}
		if err != nil {
			checkRefused(t, src)
			return
		}
		if string(got) != want {
			t.Fatalf("%q: got %q, the slow way %q", src, got, want)
		}
		checkForm(t, src, got)
		digest, err := canon.Digest(canon.DomainArgs, src)
		sum := sha256.Sum256([]byte("placet/args/v1\n" + want))
		if err != nil || digest != fmt.Sprintf("sha256-placet1:%x", sum) {
			t.Fatalf("%q: digest %q, %v", src, digest, err)
		}
	})
}

// FuzzNumber looks at numbers alone, which random bytes seldom are.
func FuzzNumber(f *testing.F) {
	f.Add(false, "1", "0", 0, 1)
	f.Add(true, "0", "000000123400", -3, 1)
	f.Add(false, "7", "", 9999, 994)
	f.Add(true, "12", "34", -9990, 497)
	f.Fuzz(func(t *testing.T, negative bool, whole, fraction string, exponent, repeat int) {
		if len(whole)+len(fraction) > 64 || repeat < 0 || repeat > 1100 {
			t.Skip()
		}
		text := strings.Repeat(whole, repeat)
		if negative {
			text = "-" + text
		}
		if fraction != "" {
			text += "." + fraction
		}
		if exponent != 0 {
			text += fmt.Sprintf("e%d", exponent)
		}
		src := []byte("[" + text + "]")
		want, slowErr := slowCanonical(src)
		got, err := canon.Canonical(src)
		if (err == nil) != (slowErr == nil) || err == nil && string(got) != want {
			t.Fatalf("%q: got %q, %v, the slow way %q, %v", src, got, err, want, slowErr)
		}
		if err == nil {
			checkForm(t, src, got)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\u0000\"\\\u2028😀")
	f.Add("\xed\xa0\xbd")
	f.Fuzz(func(t *testing.T, s string) {
		want, slowErr := slowQuote(s)
		got, err := canon.AppendString(nil, s)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("%q: got %v, the slow way %v", s, err, slowErr)
		}
		if err != nil {
			return
		}
		if string(got) != want {
			t.Fatalf("%q: got %q, the slow way %q", s, got, want)
		}
		if form, err := canon.Canonical(got); err != nil || !bytes.Equal(form, got) {
			t.Fatalf("%q: form %q, %v", got, form, err)
		}
	})
}
