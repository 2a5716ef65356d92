package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/fault"
)

var anyRun = RunnerFunc(func(context.Context, Call) (json.RawMessage, error) {
	return json.RawMessage(`{"ok":true}`), nil
})

// refund is the tool of the shared vectors.
func refund() Tool {
	return Tool{
		Spec: Spec{
			Name: "refund", Description: "Refund an order.", InputSchema: json.RawMessage(`{"type":"object"}`),
			SideEffect: RemoteMutation, TimeoutMS: 30000, Implementation: "exec /srv/tools/refund.sh",
		},
		Run: anyRun,
	}
}

// The vector "tool spec" of vectors/canonical.json.
const (
	refundJSON   = `{"name":"refund","description":"Refund an order.","input_schema":{"type":"object"},"side_effect":"remote_mutation","timeout_ms":30000,"implementation":"exec /srv/tools/refund.sh"}`
	refundDigest = "sha256-placet1:8937af6452183f5f63909eeea1901b24f83036ab442be27d0a84abc70bab39a8"
)

func TestSpecVector(t *testing.T) {
	t.Parallel()
	spec := refund().Spec
	got, err := spec.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(refundJSON, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	d, err := spec.Digest()
	if err != nil || d != refundDigest {
		t.Errorf("Digest = %q, %v; want %q", d, err, refundDigest)
	}
	r, err := NewRegistry(refund())
	if err != nil {
		t.Fatal(err)
	}
	tl, _ := r.Lookup("refund")
	if tl.SpecDigest() != refundDigest || string(tl.SpecJSON()) != refundJSON {
		t.Errorf("registered: %s, %s", tl.SpecDigest(), tl.SpecJSON())
	}
	loose := refund()
	if loose.SpecDigest() != refundDigest || string(loose.SpecJSON()) != refundJSON {
		t.Errorf("not registered: %s, %s", loose.SpecDigest(), loose.SpecJSON())
	}
}

func TestSpecJSONWithoutImplementation(t *testing.T) {
	t.Parallel()
	s := Spec{Name: "a", InputSchema: json.RawMessage(` {"b" : 1.0} `), SideEffect: ReadOnly, TimeoutMS: 1}
	got, err := s.JSON()
	want := `{"name":"a","description":"","input_schema": {"b" : 1.0} ,"side_effect":"read_only","timeout_ms":1}`
	if err != nil || string(got) != want {
		t.Errorf("JSON = %s, %v; want %s", got, err, want)
	}
}

func TestSpecDigestChangesWithEveryField(t *testing.T) {
	t.Parallel()
	change := map[string]func(*Spec){
		"name":           func(s *Spec) { s.Name = "refunds" },
		"description":    func(s *Spec) { s.Description = "" },
		"input_schema":   func(s *Spec) { s.InputSchema = json.RawMessage(`{}`) },
		"side_effect":    func(s *Spec) { s.SideEffect = Destructive },
		"timeout_ms":     func(s *Spec) { s.TimeoutMS++ },
		"implementation": func(s *Spec) { s.Implementation = "" },
	}
	seen := map[string]string{refundDigest: "unchanged"}
	for field, f := range change {
		s := refund().Spec
		f(&s)
		d, err := s.Digest()
		if err != nil {
			t.Errorf("%s: %v", field, err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", field, other)
		}
		seen[d] = field
	}
}

func TestSpecJSONRefuses(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*Spec){
		"no schema":            func(s *Spec) { s.InputSchema = nil },
		"schema not JSON":      func(s *Spec) { s.InputSchema = json.RawMessage(`{"a":`) },
		"two values":           func(s *Spec) { s.InputSchema = json.RawMessage(`{},"x":{}`) },
		"duplicate key":        func(s *Spec) { s.InputSchema = json.RawMessage(`{"a":1,"a":2}`) },
		"breaks out":           func(s *Spec) { s.InputSchema = json.RawMessage(`{}},{"a":{}`) },
		"name invalid UTF-8":   func(s *Spec) { s.Name = "a\xff" },
		"description":          func(s *Spec) { s.Description = "\xc3" },
		"implementation UTF-8": func(s *Spec) { s.Implementation = "\xff" },
	} {
		s := refund().Spec
		f(&s)
		if b, err := s.JSON(); !errors.Is(err, ErrInvalidTool) {
			t.Errorf("%s: JSON = %s, %v", name, b, err)
		}
		if d, err := s.Digest(); err == nil || d != "" {
			t.Errorf("%s: Digest = %q, %v", name, d, err)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Tool)
		want   string // in the message
	}{
		{"empty name", func(t *Tool) { t.Name = "" }, "it is empty"},
		{"long name", func(t *Tool) { t.Name = strings.Repeat("a", 129) }, "longer than 128 bytes"},
		{"space", func(t *Tool) { t.Name = "a b" }, "it has ' '"},
		{"starts with a mark", func(t *Tool) { t.Name = "-a" }, "it starts with '-'"},
		{"case 102: decomposed", func(t *Tool) { t.Name = "re\u0301fund" }, `it has '\u0301'`},
		{"case 102: composed", func(t *Tool) { t.Name = "r\u00e9fund" }, `it has '\u00e9'`},
		{"invalid UTF-8", func(t *Tool) { t.Name = "a\xff" }, "it has"},
		{"newline", func(t *Tool) { t.Name = "a\n" }, `it has '\n'`},
		{"side effect", func(t *Tool) { t.SideEffect = "mutation" }, "side_effect is \"mutation\""},
		{"no side effect", func(t *Tool) { t.SideEffect = "" }, "must be one of"},
		{"negative timeout", func(t *Tool) { t.TimeoutMS = -1 }, "from 1 ms to 24 h"},
		{"long timeout", func(t *Tool) { t.TimeoutMS = MaxTimeout.Milliseconds() + 1 }, "from 1 ms to 24 h"},
		{"cost", func(t *Tool) { t.Cost = -1 }, "cost is -1"},
		{"no runner", func(t *Tool) { t.Run = nil }, "nothing that carries it out"},
		{"no schema", func(t *Tool) { t.InputSchema = nil }, "no input_schema"},
		{"schema", func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":"objekt"}`) }, "/type"},
		{"boolean schema", func(t *Tool) { t.InputSchema = json.RawMessage(`true`) }, "not a JSON object"},
		{"description UTF-8", func(t *Tool) { t.Description = "\xff" }, "description is not valid UTF-8"},
		{"description NUL", func(t *Tool) { t.Description = "a\x00" }, "NUL"},
		{"long description", func(t *Tool) { t.Description = strings.Repeat("é", 5001) }, "10002 bytes"},
		{"implementation NUL", func(t *Tool) { t.Implementation = "\x00" }, "NUL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tl := refund()
			tt.change(&tl)
			r := &Registry{}
			err := r.Register(tl)
			if !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Register = %v; want one that says %q", err, tt.want)
			}
			if len(r.List()) != 0 {
				t.Error("it was registered all the same")
			}
			if fault.From(err).Code != fault.Invalid {
				t.Errorf("code %s", fault.From(err).Code)
			}
		})
	}
}

func TestRegisterAccepts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Tool){
		"longest name":        func(t *Tool) { t.Name = strings.Repeat("a", 128) },
		"every character":     func(t *Tool) { t.Name = "0aZ_-./x" },
		"shortest time":       func(t *Tool) { t.TimeoutMS = 1 },
		"longest time":        func(t *Tool) { t.TimeoutMS = MaxTimeout.Milliseconds() },
		"longest description": func(t *Tool) { t.Description = strings.Repeat("x", 10_000) },
		"no description":      func(t *Tool) { t.Description = "" },
	} {
		tl := refund()
		change(&tl)
		if _, err := NewRegistry(tl); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tl := refund()
	tl.TimeoutMS = 0
	r, err := NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Lookup("refund")
	if got.Timeout() != DefaultTimeout || DefaultTimeout != 30*time.Second {
		t.Errorf("default time limit %s", got.Timeout())
	}
	if !strings.Contains(string(got.SpecJSON()), `"timeout_ms":30000`) {
		t.Errorf("the default is not part of the spec: %s", got.SpecJSON())
	}
}
