package run

import (
	"bytes"
	"testing"

	"github.com/placet-dev/placet/canon"
)

// Whatever an agent prints, it is read as one of the three decisions or refused; what
// is taken from it is taken as it stands.
func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{
		`{"kind":"tool_call","tool":"t","args":{"a":1.0,"b":"\u00e9"},"reason":"r","usage":{"model_calls":1,"tokens":2,"cost":0.5}}`,
		`{"kind":"complete","result":[null,1e400]}`, `{"kind":"fail","message":"m"}`, `{"kind":"complete","kind":"fail"}`,
		`{"kind":"tool_call","tool":"t","args":"\ud800"}`, "null", "[]", "{}", "", " ", "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		p, u, err := parseAnswer(out)
		if err != nil {
			return
		}
		if canon.Valid(out) != nil || !bytes.Equal(p.Raw, out) {
			t.Fatalf("%q was accepted, and kept as %q", out, p.Raw)
		}
		if !bytes.Contains(out, p.Args) || !bytes.Contains(out, p.Result) {
			t.Errorf("%q and %q are not in %q", p.Args, p.Result, out)
		}
		switch p.Kind {
		case CallTool:
			if p.Tool == "" || canon.Valid(p.Args) != nil || p.Result != nil {
				t.Errorf("%q was read as %+v", out, p)
			}
		case Complete, Fail:
			if p.Tool != "" || p.Args != nil {
				t.Errorf("%q was read as %+v", out, p)
			}
		default:
			t.Errorf("%q was read as %s", out, p.Kind)
		}
		if u.ModelCalls < 0 || u.Tokens < 0 || u.Cost < 0 {
			t.Errorf("%q charges %+v", out, u)
		}
	})
}
