package httpapi_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.yaml anew")

// The committed document is the one that the routes make: go test ./httpapi -rewrite.
func TestDocumentIsFresh(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got, err := w.api.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("openapi.yaml", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.yaml is not what the routes make: go test ./httpapi -rewrite")
	}
	served := w.want(w.do("", "GET", "/v1/openapi.yaml", ""), 200)
	if served.text != string(want) {
		t.Error("another document is served")
	}
}
