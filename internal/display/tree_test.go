package display_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/display"
	"pgregory.net/rapid"
)

func TestTree(t *testing.T) {
	t.Parallel()
	got := (*display.Mask)(nil).Tree([]byte(` {"b":1.50e1, "a":[true,null,{}] , "a":"\u202e\ud800\n","password":["x",1],"":-0,"n":9007199254740993,
		"body":"{\"pwd\":\"hunter22\"}","pin":"[masked]","token":null} `))
	want := display.Node{Kind: display.Object, Size: 160, Nodes: []display.Node{
		{Name: "b", Kind: display.Number, Text: "1.50e1", Size: 6},
		{Name: "a", Kind: display.Array, Size: 14, Nodes: []display.Node{
			{Kind: display.True, Text: "true", Size: 4},
			{Kind: display.Null, Text: "null", Size: 4},
			{Kind: display.Object, Size: 2},
		}},
		{Name: "a", Kind: display.String, Text: "\u202e\xed\xa0\x80\n", Size: 7},
		{Name: "password", Kind: display.String, Text: "[masked]", Size: 7, Hidden: true},
		{Kind: display.Number, Text: "-0", Size: 2},
		{Name: "n", Kind: display.Number, Text: "9007199254740993", Size: 16},
		{Name: "body", Kind: display.String, Text: `{"pwd":"[masked]"}`, Size: 18, Partly: true},
		{Name: "pin", Kind: display.String, Text: "[masked]", Size: 8},
		{Name: "token", Kind: display.Null, Text: "null", Size: 4},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := display.Object.String() + display.False.String() + display.None.String(); got != "objectfalsenone" {
		t.Errorf("got %s", got)
	}
}

func TestTreeOfWhatIsNoObject(t *testing.T) {
	t.Parallel()
	var taught, learnt display.Mask
	taught.Teach([]byte(`{"writeOnly":true}`))
	learnt.Learn([]byte(`{"password":"hunter22"}`))
	for _, c := range []struct {
		mask *display.Mask
		doc  string
		want display.Node
	}{
		{nil, `"text"`, display.Node{Kind: display.String, Text: "text", Size: 4}},
		{nil, ` false `, display.Node{Kind: display.False, Text: "false", Size: 5}},
		{nil, `{"a":1`, display.Node{Kind: display.String, Text: `{"a":1`, Size: 6}},
		{nil, "\xff", display.Node{Kind: display.String, Text: "\xff", Size: 1}},
		{nil, ``, display.Node{Kind: display.String}},
		{nil, `[]`, display.Node{Kind: display.Array, Size: 2}},
		{&learnt, `no json: hunter22`, display.Node{Kind: display.String, Text: "no json: [masked]", Size: 17, Partly: true}},
		{&taught, `{"a":[1,"x"]}`, display.Node{Kind: display.String, Text: "[masked]", Size: 13, Hidden: true}},
	} {
		if got := c.mask.Tree([]byte(c.doc)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.doc, got, c.want)
		}
	}
}

// What is odd is found in every name and text, however the JSON writes it.
func TestWarningOfATree(t *testing.T) {
	t.Parallel()
	var m display.Mask
	for doc, want := range map[string]string{
		`{"a":["x\n",{"b":1}],"dir":"C:\\new"}`:                          "",
		`{"a":["x\u202ey",{"\u0440\u0430y":[null]}],"b":"\ud800\u001b"}`: "2 characters that cannot be seen, 1 that is broken, 2 that look like others",
		`{"password":"\u202e"}`:                                          "",
		`"\u0430dmin"`:                                                   "1 character that looks like another",
	} {
		if got := m.Tree([]byte(doc)).Warning(); got != want {
			t.Errorf("%s: got %s, want %s", doc, got, want)
		}
	}
}

// anyDocument is JSON with secrets, repeated names, JSON inside strings and odd spellings.
var anyDocument = rapid.Custom(func(t *rapid.T) string { return drawDocument(t, 4) })

var (
	anyName = rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "id", "", "password", "apiKey", "c d", "na\u202eme", "\"", "[0]"}), rapid.StringN(0, 3, -1))
	anyNum  = rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "10e-1", "1.50", "9007199254740993", "9007199254740992", "1e400", "-5"})
)

func drawDocument(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return anyNum.Draw(t, "number")
	case 1:
		return rapid.SampledFrom([]string{"true", "false", "null", `"\ud800"`, `"\u0041"`, `"A"`, `"[masked]"`}).Draw(t, "literal")
	case 2, 3:
		text := rapid.OneOf(rapid.SampledFrom([]string{"x", "hunter22", "A"}), rapid.String()).Draw(t, "string")
		if depth > 0 && kind == 3 {
			text = drawDocument(t, depth-1)
		}
		return quote(text)
	}
	open, end := "[", "]"
	if kind > 4 {
		open, end = "{", "}"
	}
	parts := make([]string, rapid.IntRange(0, 5).Draw(t, "length"))
	for i := range parts {
		if kind > 4 {
			parts[i] = quote(anyName.Draw(t, "name")) + " : "
		}
		parts[i] += drawDocument(t, depth-1)
	}
	return open + strings.Join(parts, ", ") + end
}

// A tree shows what JSON shows: that of the masked document is the same.
func TestTreeIsMaskedLikeJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(anyDocument.Draw(t, "document"))
		var m display.Mask
		m.Learn(doc)
		masked := m.JSON(doc)
		got, want := m.Tree(doc), m.Tree(masked)
		if !reflect.DeepEqual(bare(got), bare(want)) {
			t.Fatalf("%s\n got %+v\nwant %+v", doc, got, want)
		}
		if got.JSON() != string(masked) {
			t.Fatalf("%s is %s and %s", doc, got.JSON(), masked)
		}
		if hid, all := secrets(got); hid != all && !bytes.Contains(doc, []byte("[masked]")) {
			t.Fatalf("%d of %d secrets are told apart in %+v", hid, all, got)
		}
		checkNode(t, got)
	})
}

// bare is a node without what masking twice makes different.
func bare(n display.Node) display.Node {
	n.Size, n.Hidden, n.Partly, n.Nodes = 0, false, false, slices.Clone(n.Nodes)
	for i := range n.Nodes {
		n.Nodes[i] = bare(n.Nodes[i])
	}
	return n
}

// secrets counts the nodes that are said to be one, and those that look like one.
func secrets(n display.Node) (hidden, all int) {
	if n.Hidden {
		hidden++
	}
	if n.Kind == display.String && n.Text == display.Masked {
		all++
	}
	for _, c := range n.Nodes {
		h, a := secrets(c)
		hidden, all = hidden+h, all+a
	}
	return hidden, all
}

// checkNode holds for every node.
func checkNode(t failer, n display.Node) {
	scalar := n.Kind != display.Object && n.Kind != display.Array
	switch {
	case n.Hidden && (n.Kind != display.String || n.Text != display.Masked):
		t.Fatalf("a secret is shown as %+v", n)
	case scalar && n.Nodes != nil, !scalar && n.Text != "", n.Kind == display.None:
		t.Fatalf("got %+v", n)
	case n.Kind == display.Number && !json.Valid([]byte(n.Text)):
		t.Fatalf("got %+v", n)
	}
	checkPieces(t, n.Name)
	checkPieces(t, n.Text)
	for _, c := range n.Nodes {
		checkNode(t, c)
	}
}

// The size of everything is that of its JSON.
func TestSizesOfNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte("[" + anyDocument.Draw(t, "document") + "]")
		if bytes.Contains(doc, []byte("masked")) {
			t.Skip()
		}
		m := &display.Mask{}
		shown := m.JSON(doc)
		if bytes.Contains(shown, []byte(display.Masked)) {
			t.Skip("the size is that of the secret")
		}
		if n := m.Tree(doc); n.Size != len(shown) {
			t.Fatalf("%s has %d bytes, not %d", shown, len(shown), n.Size)
		}
	})
}

func FuzzTree(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"password":"x"}],"a":"{\"token\":1}"}`, "\xff", `"\ud800"`, strings.Repeat("[", 600), `{"раура1":"\u202e"}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var m display.Mask
		m.Learn(doc)
		checkNode(t, m.Tree(doc))
		if changes := m.Diff(doc, doc); len(changes) > 0 {
			t.Fatalf("%q differs from itself: %+v", doc, changes)
		}
	})
}
