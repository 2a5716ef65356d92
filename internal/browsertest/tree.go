package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

// Node is what readers of the screen are told of an element.
type Node struct {
	Depth       int
	Role, Name  string
	Description string
	Value       string
	Properties  map[string]string // such as level, checked, invalid, required, focusable
}

func (n Node) String() string {
	s := strings.Repeat("  ", n.Depth) + n.Role
	if n.Name != "" {
		s += fmt.Sprintf(" %q", n.Name)
	}
	if n.Value != "" {
		s += fmt.Sprintf(" = %q", n.Value)
	}
	return s
}

// Tree is a page as readers of the screen are told of it, from its beginning to its end.
type Tree []Node

func (t Tree) String() string {
	var b strings.Builder
	for _, n := range t {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// Find lists what has that role (main, navigation, heading, button, link, textbox, …) and
// that name; an empty name is any.
func (t Tree) Find(role, name string) (found Tree) {
	for _, n := range t {
		if n.Role == role && (name == "" || n.Name == name) {
			found = append(found, n)
		}
	}
	return found
}

// named are the roles of what is nothing without a name.
var named = []string{
	"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton", "switch", "tab", "menuitem",
	"image", "dialog", "alertdialog", "form", "region", "Iframe",
}

// Nameless lists what should have a name and has none: a field without a label, a button
// with nothing but a picture.
func (t Tree) Nameless() Tree {
	return slices.DeleteFunc(slices.Clone(t), func(n Node) bool { return n.Name != "" || !slices.Contains(named, n.Role) })
}

// Tree is the page as readers of the screen are told of it now.
func (p *Page) Tree() (t Tree) {
	p.tb.Helper()
	p.must("read the tree", func(ctx context.Context) error {
		r, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err == nil {
			t = treeOf(r.Nodes)
		}
		return err
	})
	return t
}

// treeOf leaves out what nobody is told of.
func treeOf(nodes []*accessibility.Node) (t Tree) {
	by := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range nodes {
		by[n.NodeID] = n
	}
	var visit func(n *accessibility.Node, depth int)
	visit = func(n *accessibility.Node, depth int) {
		if told(n) {
			t = append(t, nodeOf(n, depth))
			depth++
		}
		for _, id := range n.ChildIDs {
			if child := by[id]; child != nil {
				visit(child, depth)
			}
		}
	}
	for _, n := range nodes {
		if n.ParentID == "" {
			visit(n, 0)
		}
	}
	return t
}

// told reports whether a node is more than a step on the way to others.
func told(n *accessibility.Node) bool {
	role := text(n.Role)
	return !n.Ignored && role != "none" && role != "generic" && role != "InlineTextBox"
}

func nodeOf(n *accessibility.Node, depth int) Node {
	o := Node{
		Depth: depth, Role: text(n.Role), Name: text(n.Name), Description: text(n.Description), Value: text(n.Value), Properties: map[string]string{},
	}
	for _, p := range n.Properties {
		o.Properties[string(p.Name)] = text(p.Value)
	}
	return o
}

// text is a value as it would be written.
func text(v *accessibility.Value) string {
	if v == nil || v.Value == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) == nil {
		return s
	}
	return string(v.Value)
}
