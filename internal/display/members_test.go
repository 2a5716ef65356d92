package display_test

import (
	"testing"

	"github.com/placet-dev/placet/internal/display"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	m := &display.Mask{}
	how := map[string]func([]byte) []byte{"data": m.JSON, "form": m.Schema}
	for in, want := range map[string]string{
		`{"b": 1.50, "data":{"token":"x","n":9007199254740993}, "a":[1, 2]}`: `{"b":1.50,"data":{"token":"[masked]","n":9007199254740993},"a":[1, 2]}`,
		`{"token":"x"}`:    `{"token":"x"}`, // nothing was asked about it
		`{"data":"plain"}`: `{"data":"plain"}`,
		`{"form":{"properties":{"password":{"type":"string","default":"x"}}}}`: `{"form":{"properties":{"password":{"type":"string","default":"[masked]"}}}}`,
		`{}`:       `{}`,
		`[1]`:      `[1]`,
		`"text"`:   `"text"`,
		`{"data":`: `{"data":`,
		`{} {}`:    `{} {}`,
		``:         ``,
	} {
		if got := string(display.Members([]byte(in), how)); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}
