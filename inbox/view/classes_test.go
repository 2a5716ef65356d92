package view_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	classes  = regexp.MustCompile(`class=("[^"]*"|\{[^}]*\})`)
	literals = regexp.MustCompile(`"([^"]*)"`)
)

// A class that neither the style sheet nor the script knows is a warning that looks like
// any other line.
func TestEveryClassIsKnown(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name, of := range map[string]*regexp.Regexp{"inbox.css": regexp.MustCompile(`\.([a-z][a-z0-9-]*)`), "inbox.js": regexp.MustCompile(`["'.]([a-z][a-z0-9-]*)["' ]`)} {
		b, err := os.ReadFile(filepath.Join("..", "assets", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range of.FindAllStringSubmatch(string(b), -1) {
			known[m[1]] = true
		}
	}
	templates, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range templates {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, attribute := range classes.FindAllString(string(b), -1) {
			for _, l := range literals.FindAllStringSubmatch(attribute, -1) {
				for _, class := range strings.Fields(l[1]) {
					if found++; !known[class] {
						t.Errorf("%s: nothing knows the class %s", name, class)
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d classes were found", found)
	}
}
