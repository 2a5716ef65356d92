package canon_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/placet-dev/placet/canon"
)

// vectors is the released contract of the profile: cases are added, never changed.
type vectors struct {
	Profile string   `json:"profile"`
	Accept  []vector `json:"accept"`
	Refuse  []vector `json:"refuse"`
	Digests []vector `json:"digests"`
}

type vector struct {
	Name      string  `json:"name"`
	Input     *string `json:"input"`
	InputHex  *string `json:"input_hex"`
	Canonical *string `json:"canonical"`
	Domain    string  `json:"domain"`
	Digest    string  `json:"digest"`
}

func (v vector) input(t testing.TB) []byte {
	t.Helper()
	switch {
	case v.Input != nil && v.InputHex == nil:
		return []byte(*v.Input)
	case v.InputHex != nil && v.Input == nil:
		b, err := hex.DecodeString(*v.InputHex)
		if err != nil {
			t.Fatalf("vector %q: %v", v.Name, err)
		}
		return b
	}
	t.Fatalf("vector %q has not exactly one input", v.Name)
	return nil
}

func loadVectors(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/canonical.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Accept) < 28 || len(v.Refuse) < 26 || len(v.Digests) < 9 {
		t.Fatalf("%d accepted, %d refused, %d digests: vectors are missing", len(v.Accept), len(v.Refuse), len(v.Digests))
	}
	return v
}

func TestVectors(t *testing.T) {
	t.Parallel()
	v := loadVectors(t)
	if v.Profile != canon.Profile {
		t.Fatalf("profile %q, want %q", v.Profile, canon.Profile)
	}
	for _, c := range v.Accept {
		t.Run("accept/"+c.Name, func(t *testing.T) {
			t.Parallel()
			if c.Canonical == nil {
				t.Fatal("no canonical form in the vector")
			}
			checkForm(t, c.input(t), []byte(*c.Canonical))
		})
	}
	for _, c := range v.Refuse {
		t.Run("refuse/"+c.Name, func(t *testing.T) {
			t.Parallel()
			checkRefused(t, c.input(t))
		})
	}
	for _, c := range v.Digests {
		t.Run("digest/"+c.Name, func(t *testing.T) {
			t.Parallel()
			got, err := canon.Digest(c.Domain, c.input(t))
			if err != nil || got != c.Digest {
				t.Errorf("got %q, %v, want %q", got, err, c.Digest)
			}
		})
	}
}

// checkForm wants every function to know want as the form of src, and to keep it.
func checkForm(t *testing.T, src, want []byte) {
	t.Helper()
	if err := canon.Valid(src); err != nil {
		t.Errorf("Valid: %v", err)
	}
	got, err := canon.Canonical(src)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Canonical: got %q, %v, want %q", got, err, want)
	}
	again, err := canon.Canonical(want)
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("form of the form: got %q, %v, want %q", again, err, want)
	}
	got, err = canon.Append([]byte("before "), src)
	if err != nil || string(got) != "before "+string(want) {
		t.Errorf("Append: got %q, %v", got, err)
	}
	if equal, err := canon.Equal(src, want); err != nil || !equal {
		t.Errorf("Equal: got %v, %v", equal, err)
	}
}

// checkRefused wants every function to refuse src alike, and returns how.
func checkRefused(t *testing.T, src []byte) *canon.SyntaxError {
	t.Helper()
	err := canon.Valid(src)
	var refusal *canon.SyntaxError
	if !errors.As(err, &refusal) {
		t.Fatalf("Valid: got %v, want a SyntaxError", err)
	}
	if refusal.Offset < 0 || refusal.Offset > int64(len(src)) {
		t.Errorf("offset %d is outside of the %d bytes", refusal.Offset, len(src))
	}
	same := func(name string, got error) {
		var other *canon.SyntaxError
		if !errors.As(got, &other) || *other != *refusal {
			t.Errorf("%s: got %v, want %v", name, got, refusal)
		}
	}
	out, err := canon.Canonical(src)
	same("Canonical", err)
	if out != nil {
		t.Errorf("Canonical returned %q with its error", out)
	}
	out, err = canon.Append([]byte("before"), src)
	same("Append", err)
	if string(out) != "before" {
		t.Errorf("Append returned %q with its error", out)
	}
	digest, err := canon.Digest(canon.DomainArgs, src)
	same("Digest", err)
	if digest != "" {
		t.Errorf("Digest returned %q with its error", digest)
	}
	_, err = canon.Equal(src, []byte("1"))
	same("Equal, first", err)
	_, err = canon.Equal([]byte("1"), src)
	same("Equal, second", err)
	return refusal
}
