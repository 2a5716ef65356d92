package view_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var here = []byte("FileName: `")

// folders are those of the templates' names in the generated files.
var folders = regexp.MustCompile("(?m)FileName: `.*/")

// The generated files are what the templates make.
func TestGeneratedIsFresh(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	templates, err := filepath.Glob("*.templ")
	if err != nil || len(templates) == 0 {
		t.Fatal(templates, err)
	}
	for _, name := range templates {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "tool", "templ", "generate", "-path", dir).CombinedOutput(); err != nil {
		t.Fatalf("templ: %v: %s", err, out)
	}
	for _, name := range templates {
		generated := strings.TrimSuffix(name, ".templ") + "_templ.go"
		want, err := os.ReadFile(filepath.Join(dir, generated))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(generated)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(folders.ReplaceAll(got, here), folders.ReplaceAll(want, here)) {
			t.Errorf("%s is not what %s makes: make pages", generated, name)
		}
	}
	if all, _ := filepath.Glob("*_templ.go"); len(all) != len(templates) {
		t.Errorf("%d generated files for %d templates", len(all), len(templates))
	}
}
