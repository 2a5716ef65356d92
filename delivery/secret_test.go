package delivery

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestSecretRoundTrip(t *testing.T) {
	t.Parallel()
	a, b := NewSecret(), NewSecret()
	if len(a) != 32 || bytes.Equal(a, b) {
		t.Fatalf("NewSecret has %d bytes, or is the same twice", len(a))
	}
	for n := MinSecret; n <= MaxSecret; n++ {
		secret := bytes.Repeat([]byte{0xfb}, n)
		got, err := ParseSecret(FormatSecret(secret))
		if err != nil || !bytes.Equal(got, secret) {
			t.Errorf("%d bytes: %x, %v", n, got, err)
		}
	}
}

func TestParseSecretRefuses(t *testing.T) {
	t.Parallel()
	good := FormatSecret(bytes.Repeat([]byte("k"), 32)) // ends in one =
	loose := good[:len(good)-2] + "t="                  // the same bytes, with a bit that counts for nothing
	for name, text := range map[string]string{
		"empty":              "",
		"prefix only":        secretPrefix,
		"no prefix":          strings.TrimPrefix(good, secretPrefix),
		"prefix in capitals": "WHSEC_" + strings.TrimPrefix(good, secretPrefix),
		"prefix twice":       secretPrefix + good,
		"no padding":         strings.TrimRight(good, "="),
		"line feed":          good + "\n",
		"line feed within":   good[:12] + "\n" + good[12:],
		"space in front":     " " + good,
		"base64url":          secretPrefix + strings.Repeat("-_-_", 10),
		"loose bits":         loose,
		"too short":          FormatSecret(bytes.Repeat([]byte("k"), MinSecret-1)),
		"too long":           FormatSecret(bytes.Repeat([]byte("k"), MaxSecret+1)),
		"not base64":         secretPrefix + "hunter2hunter2hunter2hunter2 hunter2!",
	} {
		secret, err := ParseSecret(text)
		if !errors.Is(err, ErrUsage) || secret != nil {
			t.Errorf("%s: %x, %v", name, secret, err)
			continue
		}
		if word := strings.TrimPrefix(strings.TrimSpace(text), secretPrefix); len(word) > 8 && strings.Contains(err.Error(), word[:8]) {
			t.Errorf("%s: the error repeats the text: %v", name, err)
		}
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(FormatSecret(bytes.Repeat([]byte("k"), 32)))
	f.Add("whsec_")
	f.Add("whsec_\n")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := ParseSecret(text)
		if err == nil && (FormatSecret(secret) != text || len(secret) < MinSecret || len(secret) > MaxSecret) {
			t.Errorf("%q was read as %d bytes, which are written %q", text, len(secret), FormatSecret(secret))
		}
	})
}
