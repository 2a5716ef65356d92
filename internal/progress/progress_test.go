package progress_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/placet-dev/placet/internal/progress"
)

func TestPart(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"fraction":0.25}`: "0.25 true", `{"percent":30}`: "0.3 true", `{"done":3,"of":12}`: "0.25 true", `{"current":3,"total":4}`: "0.75 true",
		`{"step":1,"total":4}`: "0.25 true", `{"step":1,"steps":4}`: "0.25 true", `{"epoch":12,"epochs":80,"loss":0.4}`: "0.15 true", `{"Percent":50}`: "0.5 true",
		`{"done":0,"of":5}`: "0 true", `{"done":5,"of":5}`: "1 true",
		`{"done":3}`: "-1 false", `{"done":3,"of":0}`: "-1 false", `{"done":6,"of":5}`: "1.2 false", `{"fraction":-1}`: "-1 false", `{"percent":"30"}`: "-1 false",
		`{"percent":null}`: "-1 false", `{"percent":true}`: "-1 false", `{}`: "-1 false", `[1]`: "-1 false", `{"percent":30`: "-1 false", ``: "-1 false", `{"percent":1e999}`: "-1 false",
	} {
		part, ok := progress.Part([]byte(doc))
		if got := fmt.Sprint(part, ok); got != want {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string][]progress.Number{
		`{"loss":0.4,"note":"x","lr":1e-3}`:                 {{Name: "loss", Value: 0.4}, {Name: "lr", Value: 0.001}},
		`{"name":"loss","value":0.3,"step":2}`:              {{Name: "loss", Value: 0.3}},
		`{"name":"loss","value":"0.3"}`:                     nil,
		`{"loss":0.4,"epoch":1,"epochs":4}`:                 {{Name: progress.Done, Value: 25}, {Name: "loss", Value: 0.4}},
		`{"val":{"loss":0.5,"deep":{"x":1}},"a":[1],"b":2}`: {{Name: "val.loss", Value: 0.5}, {Name: "b", Value: 2}},
		`{"done":9,"of":5}`:                                 {{Name: "done", Value: 9}, {Name: "of", Value: 5}},
		`{"a":null,"b":true,"c":-2}`:                        {{Name: "c", Value: -2}},
		`not json`:                                          nil,
	} {
		if got := progress.Numbers([]byte(doc)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", doc, got, want)
		}
	}
}
