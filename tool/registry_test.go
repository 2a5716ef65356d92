package tool

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func named(name string) Tool {
	t := refund()
	t.Name = name
	return t
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(named("b"), named("a/x"), named("a"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tl := range r.List() {
		names = append(names, tl.Name)
	}
	if got := strings.Join(names, " "); got != "a a/x b" {
		t.Errorf("List: %s", got)
	}
	if err := r.Register(named("a")); !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), "registered already") {
		t.Errorf("a second a: %v", err)
	}
	old, _ := r.Lookup("a")
	next := named("a")
	next.Description = "Another."
	if err := r.Replace(next); err != nil {
		t.Fatal(err)
	}
	now, _ := r.Lookup("a")
	if old.Description != "Refund an order." || now.Description != "Another." || now.SpecDigest() == old.SpecDigest() {
		t.Errorf("Replace: held %q, now %q", old.Description, now.Description)
	}
	if err := r.Replace(named("new")); err != nil {
		t.Errorf("Replace of a new name: %v", err)
	}
	if _, err := NewRegistry(named("a"), named("a")); !errors.Is(err, ErrInvalidTool) {
		t.Errorf("NewRegistry with a name twice: %v", err)
	}
}

func TestRegistryKeepsItsOwnSchema(t *testing.T) {
	t.Parallel()
	tl := refund()
	schema := []byte(`{"type":"object","required":["a"]}`)
	tl.InputSchema = schema
	r, err := NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Lookup("refund")
	before := got.SpecDigest()
	copy(schema, `{"type":"string"`)
	if again, _ := got.Digest(); again != before {
		t.Error("writing to the caller's bytes changed the registered tool")
	}
	// A copy that was changed is judged anew.
	changed := r.List()[0]
	if changed.SpecDigest() != before {
		t.Error("a copy has another digest")
	}
	for field, change := range map[string]func(*Tool){
		"name":           func(t *Tool) { t.Name = "refunds" },
		"description":    func(t *Tool) { t.Description = "" },
		"side_effect":    func(t *Tool) { t.SideEffect = ReadOnly },
		"timeout_ms":     func(t *Tool) { t.TimeoutMS = 1 },
		"implementation": func(t *Tool) { t.Implementation = "other" },
		"input_schema":   func(t *Tool) { t.InputSchema = []byte(`{"type":"object","required":["b"]}`) },
	} {
		c := changed
		change(&c)
		if want, _ := c.Digest(); c.SpecDigest() != want || want == before {
			t.Errorf("a copy with another %s has the digest %s, want %s", field, c.SpecDigest(), want)
		}
	}
	changed.InputSchema = []byte(`{"type":"object"}`)
	if err := changed.CheckArgs([]byte(`{}`)); err != nil {
		t.Errorf("a changed copy is checked against the old schema: %v", err)
	}
	if err := r.Replace(changed); err != nil {
		t.Fatal(err)
	}
	got, _ = r.Lookup("refund")
	if got.SpecDigest() == before || got.CheckArgs([]byte(`{}`)) != nil {
		t.Error("the old schema was kept")
	}
}

func TestCase102UnknownNames(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(named("refund"), named("refund-all"), named("deploy"), named("l0g"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, want, hint string }{
		{"refnud", `"refnud"`, `Did you mean "refund"?`},
		{"Refund", `"Refund"`, `Did you mean "refund"?`},
		{"re\u0301fund", `"re\u0301fund"`, `"refund" looks the same`},
		{"rеfund", `"r\u0435fund"`, `"refund" looks the same`}, // Cyrillic
		{"ｒｅｆｕｎｄ", `"\uff52`, `"refund" looks the same`},
		{"refund\u200b", `"refund\u200b"`, `"refund" looks the same`},
		{"refund‐all", `"refund\u2010all"`, `"refund-all" looks the same`},
		{"log", `"log"`, `"l0g" looks the same`},
		{"delete", `"delete"`, ""},
		{"", `""`, ""},
		{strings.Repeat("r", 1<<20), `"rrr`, ""},
		{"re\x1b[2Jfund\xff", `\x1b[2J`, ""},
	} {
		_, err := r.Lookup(tt.name)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.hint) {
			t.Errorf("Lookup(%.40q) = %.300v; want %s and %s", tt.name, err, tt.want, tt.hint)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("Lookup(%.40q): the error has %d bytes", tt.name, len(err.Error()))
		}
		if tt.hint == "" && strings.Contains(err.Error(), "mean") {
			t.Errorf("Lookup(%.40q) guesses: %.300v", tt.name, err)
		}
	}
}

func TestRegistryConcurrently(t *testing.T) {
	t.Parallel()
	var r Registry
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("t%d", j)
				if i == 0 {
					if err := r.Replace(named(name)); err != nil {
						t.Error(err)
					}
				}
				if tl, err := r.Lookup(name); err == nil {
					if err := tl.CheckArgs([]byte(`{"a":1}`)); err != nil {
						t.Error(err)
					}
				}
				r.List()
			}
		})
	}
	wg.Wait()
	if n := len(r.List()); n != 20 {
		t.Errorf("%d tools", n)
	}
}
