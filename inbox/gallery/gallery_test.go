package gallery_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/placet-dev/placet/inbox/gallery"
)

// Every state is a whole page with what a screen reader goes by: one heading above all
// others, one main part, and a label for each field.
func TestStates(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range gallery.States(gallery.Frame{Nonce: "n", Style: "/a.css", Code: "/a.js"}) {
		if seen[s.Name] {
			t.Errorf("there are two states %s", s.Name)
		}
		seen[s.Name] = true
		var b strings.Builder
		if err := s.Page.Render(t.Context(), &b); err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		doc, err := html.Parse(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		check(t, s.Name, doc)
	}
	if len(seen) < 110 {
		t.Errorf("only %d states", len(seen))
	}
}

func check(t *testing.T, name string, doc *html.Node) {
	t.Helper()
	count, ids, labels := map[string]int{}, map[string]int{}, map[string]bool{}
	var fields []*html.Node
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Namespace == "" { // a drawing has a title of its own
			count[n.Data]++
		}
		if id := attr(n, "id"); id != "" {
			ids[id]++
		}
		switch n.Data {
		case "label":
			labels[attr(n, "for")] = true
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && attr(n, "aria-hidden") != "true" && attr(n, "type") != "checkbox" {
				fields = append(fields, n)
			}
		}
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has the attribute %s", name, a.Key)
			}
		}
	}
	for what, n := range map[string]int{"h1": 1, "main": 1, "title": 1} {
		if count[what] != n {
			t.Errorf("%s has %d elements %s", name, count[what], what)
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s has %d elements with the id %s", name, n, id)
		}
	}
	for _, f := range fields {
		if !labels[attr(f, "id")] {
			t.Errorf("%s has a field %s without a label", name, attr(f, "name"))
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
