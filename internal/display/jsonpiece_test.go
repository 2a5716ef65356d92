package display_test

import (
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/display"
)

func TestJSONPieces(t *testing.T) {
	t.Parallel()
	doc := "{\"a\":\"x\\n\u202ey\",\"b\":\"\\u202e\",\"p\u0430y\":1}"
	var all, marked strings.Builder
	for _, p := range display.JSONPieces(doc) {
		all.WriteString(p.Text)
		if p.Sort != display.Plain {
			marked.WriteString(p.Sort.String() + " " + p.Text + "; ")
		}
	}
	if want := "{\"a\":\"x\\n\\u202ey\",\"b\":\"\\u202e\",\"p\u0430y\":1}"; all.String() != want {
		t.Errorf("it is shown as %s, want %s", all.String(), want)
	}
	if want := "escape \\u202e; alike \u0430; "; marked.String() != want {
		t.Errorf("marked is %q, want %q", marked.String(), want)
	}
}
