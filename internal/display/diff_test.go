package display_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/internal/display"
	"pgregory.net/rapid"
)

// lines writes changes for a test: + added, - removed, ~ changed.
func lines(changes []display.Change) []string {
	var out []string
	for _, c := range changes {
		line := map[display.ChangeSort]string{display.Added: "+ ", display.Removed: "- ", display.Changed: "~ "}[c.Sort] + c.Path.String() + ":"
		if c.Before.Kind != display.None {
			line += " " + source(c.Before)
		}
		if c.After.Kind != display.None {
			line += " -> " + source(c.After)
		}
		out = append(out, line)
	}
	return out
}

// source is the JSON of a node.
func source(n display.Node) string {
	parts := make([]string, len(n.Nodes))
	for i, c := range n.Nodes {
		parts[i] = source(c)
		if n.Kind == display.Object {
			parts[i] = quote(c.Name) + ":" + parts[i]
		}
	}
	switch n.Kind {
	case display.Object:
		return "{" + strings.Join(parts, ",") + "}"
	case display.Array:
		return "[" + strings.Join(parts, ",") + "]"
	case display.String:
		return quote(n.Text)
	}
	return n.Text
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"the same", `{"a":[1,"x"],"b":null}`, ` { "b" : null, "a" : [ 1.0, "\u0078" ] }`, nil},
		{"numbers by value", `[1,-0,0.5e1,9007199254740993]`, `[1e0,0.0,5,9007199254740992]`, []string{"~ [3]: 9007199254740993 -> 9007199254740992"}},
		{"a member", `{"order":{"items":[{},{},{"amount":5,"id":7}]}}`, `{"order":{"items":[{},{},{"amount":6,"id":7}]}}`, []string{"~ order.items[2].amount: 5 -> 6"}},
		{"members", `{"a":1,"b":2,"c":3}`, `{"d":4,"c":3,"b":20}`, []string{"- a: 1", "~ b: 2 -> 20", "+ d: -> 4"}},
		{"kinds", `{"a":{"b":1},"c":null}`, `{"a":[1],"c":"null"}`, []string{`~ a: {"b":1} -> [1]`, `~ c: null -> "null"`}},
		{"the whole", `1`, `{"a":1}`, []string{`~ the whole value: 1 -> {"a":1}`}},
		{"an element put in", `[1,2,3,4]`, `[1,9,2,3,4]`, []string{"+ [1]: -> 9"}},
		{"an element taken out", `[1,2,3,4]`, `[1,3,4]`, []string{"- [1]: 2"}},
		{"put in and taken out", `["a","b","c","d","e"]`, `["x","a","c","d","y","e","z"]`, []string{`+ [0]: -> "x"`, `- [1]: "b"`, `+ [4]: -> "y"`, `+ [6]: -> "z"`}},
		{
			"the most alike", `[{"id":1,"n":5},{"id":2,"n":6},{"id":3,"n":7}]`, `[{"id":9,"n":0},{"id":1,"n":50},{"id":3,"n":70}]`,
			[]string{`+ [0]: -> {"id":9,"n":0}`, "~ [1].n: 5 -> 50", `- [1]: {"id":2,"n":6}`, "~ [2].n: 7 -> 70"},
		},
		{"inside what moved", `[[1,2],[3,4,5]]`, `[[0],[1,2],[3,4,6]]`, []string{"+ [0]: -> [0]", "~ [2][2]: 5 -> 6"}},
		{"repeated names", `{"a":1,"a":2,"b":0}`, `{"a":1,"b":0,"a":3,"a":4}`, []string{"~ a: 2 -> 3", "+ a: -> 4"}},
		{"no JSON", `{"a":`, `{"a":1}`, []string{`~ the whole value: "{\"a\":" -> {"a":1}`}},
		{"a text and a string", `abc`, `"abc"`, []string{`~ the whole value: "abc" -> "abc"`}},
		{"names", `{"a b":{"":1},"x.y":2,"\"]":3,"größe-1":4,"1a":5,"a\u202e":6}`, `{}`, []string{
			`- ["a b"]: {"":1}`, `- ["x.y"]: 2`, `- ["\"]"]: 3`, `- größe-1: 4`, `- ["1a"]: 5`, `- ["a\u{202e}"]: 6`,
		}},
		{"names that hold others", `{"a":1,"b":2}`, `{"a\u0000b":2}`, []string{"- a: 1", "- b: 2", `+ ["a\u{0}b"]: -> 2`}},
		{"no name", `{"":{"":1}}`, `{"":{"":2}}`, []string{`~ [""][""]: 1 -> 2`}},
		{"out of bounds", `[1e99999,1e99998]`, `[1e99999,1e099998]`, []string{"~ [1]: 1e99998 -> 1e099998"}},
		{"half a pair", `["\ud800"]`, `["\udc00"]`, []string{`~ [0]: "` + `\ufffd\ufffd\ufffd" -> "\ufffd\ufffd\ufffd"`}},
	} {
		var m *display.Mask
		if got := lines(m.Diff([]byte(c.before), []byte(c.after))); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
		}
	}
	if got := display.Added.String() + display.Removed.String() + display.Changed.String(); got != "addedremovedchanged" {
		t.Errorf("got %s", got)
	}
}

func TestPathPieces(t *testing.T) {
	t.Parallel()
	p := display.Path{{Name: "order"}, {Name: "раy"}, {Array: true, Index: 3}, {Name: "a\u200b\"\n"}}
	if got := shown(p.Pieces()); got != `order.{р=p}{а=a}y[3]["a<\u{200b}>\"¶"]` {
		t.Errorf("got %s", got)
	}
	if got := p.String(); got != `order.раy[3]["a\u{200b}\"\n"]` {
		t.Errorf("got %s", got)
	}
}

// Secrets are compared, and not told.
func TestDiffOfSecrets(t *testing.T) {
	t.Parallel()
	var m display.Mask
	m.Teach([]byte(`{"properties":{"answer":{"writeOnly":true}}}`))
	before := `{"password":"hunter22","token":"same","answer":{"deep":["hunter23"]},"body":"{\"pwd\":\"hunter24\",\"n\":1}","cookie":null,"otp":"hunter25"}`
	after := `{"password":"hunter32","token":"same","answer":{"deep":["hunter33"]},"body":"{\"pwd\":\"hunter34\",\"n\":1}","cookie":"hunter35","list":[{"secret":7}]}`
	want := []string{
		`~ password: "[masked]" -> "[masked]"`, `~ answer: "[masked]" -> "[masked]"`,
		`~ body: "{\"pwd\":\"[masked]\",\"n\":1}" -> "{\"pwd\":\"[masked]\",\"n\":1}"`,
		`~ cookie: null -> "[masked]"`, `- otp: "[masked]"`, `+ list: -> [{"secret":"[masked]"}]`,
	}
	changes := m.Diff([]byte(before), []byte(after))
	if got := lines(changes); !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n    "))
	}
	if c := changes[1]; !c.Before.Hidden || !c.After.Hidden || c.Path.String() != "answer" {
		t.Errorf("got %+v", c)
	}
	var whole display.Mask
	whole.Teach([]byte(`{"writeOnly":true}`))
	if got := lines(whole.Diff([]byte(`{"a":1}`), []byte(`{"a":2}`))); !slices.Equal(got, []string{`~ the whole value: "[masked]" -> "[masked]"`}) {
		t.Errorf("got %s", got)
	}
	if got := whole.Diff([]byte(`{"a":1}`), []byte(`{"a":1.0}`)); got != nil {
		t.Errorf("got %+v", got)
	}
}

// openDocument has no secrets, so that changes can be applied, and is one that package
// canon accepts.
func openDocument(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch {
	case kind == 0:
		return rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "10e-1", "1.50", "2", "3"}).Draw(t, "number")
	case kind == 1:
		return rapid.SampledFrom([]string{"true", "false", "null", `"A"`, `"\u0041"`}).Draw(t, "literal")
	case kind == 2:
		return quote(rapid.StringMatching(`[ab\x{1f600}é"]{0,2}`).Draw(t, "string"))
	case kind < 6:
		parts := make([]string, rapid.IntRange(0, 7).Draw(t, "length"))
		for i := range parts {
			parts[i] = openDocument(t, depth-1)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "id", "", "c d", "0", "[0]", "é"}), 0, 5, rapid.ID).Draw(t, "names")
	for i, n := range names {
		names[i] = quote(n) + ": " + openDocument(t, depth-1)
	}
	return "{" + strings.Join(names, " ,") + "}"
}

// another is a document that has much in common with one.
func another(t *rapid.T, v any, depth int) any {
	if rapid.IntRange(0, 9).Draw(t, "replace") == 0 {
		return decode(t, openDocument(t, depth))
	}
	switch v := v.(type) {
	case []any:
		var out []any
		for _, e := range v {
			switch rapid.IntRange(0, 5).Draw(t, "element") {
			case 0:
			case 1:
				out = append(out, decode(t, openDocument(t, 1)), another(t, e, depth-1))
			case 2:
				out = append(out, another(t, e, depth-1))
			default:
				out = append(out, e)
			}
		}
		return append([]any{}, out...)
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(keys(v)) {
			if rapid.IntRange(0, 5).Draw(t, "member") > 0 {
				out[name] = another(t, v[name], depth-1)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "new") == 0 {
			out["new"] = decode(t, openDocument(t, 1))
		}
		return out
	}
	return v
}

func keys(m map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func decode(t failer, s string) any {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

// apply makes before into after by what the changes say.
func apply(t failer, before any, changes []display.Change) any {
	if len(changes) == 0 {
		return before
	}
	inside := map[display.Key][]display.Change{}
	for _, c := range changes {
		if len(c.Path) == 0 {
			return decode(t, source(c.After))
		}
		if len(c.Path) > 1 || c.Sort == display.Changed {
			first := c.Path[0]
			c.Path = c.Path[1:]
			inside[first] = append(inside[first], c)
		}
	}
	switch before := before.(type) {
	case []any:
		return applyToArray(t, before, changes, inside)
	case map[string]any:
		for _, c := range changes {
			name := c.Path[0].Name
			switch _, there := before[name]; {
			case len(c.Path) > 1 || c.Sort == display.Changed:
			case there == (c.Sort == display.Added):
				t.Fatalf("%s is %s", c.Path, c.Sort)
			case c.Sort == display.Removed:
				delete(before, name)
			default:
				before[name] = decode(t, source(c.After))
			}
		}
		for key, more := range inside {
			before[key.Name] = apply(t, before[key.Name], more)
		}
		return before
	}
	t.Fatalf("changes %v inside of %v", lines(changes), before)
	return nil
}

func applyToArray(t failer, before []any, changes []display.Change, inside map[display.Key][]display.Change) any {
	removed, added := map[int]bool{}, map[int]any{}
	for _, c := range changes {
		switch at := c.Path[0].Index; {
		case len(c.Path) > 1:
		case c.Sort == display.Removed:
			removed[at] = true
		case c.Sort == display.Added:
			added[at] = decode(t, source(c.After))
		}
	}
	var stay []any
	for i, e := range before {
		if !removed[i] {
			stay = append(stay, e)
		}
	}
	after := make([]any, len(stay)+len(added))
	for i := range after {
		if e, ok := added[i]; ok {
			after[i] = e
		} else {
			after[i], stay = stay[0], stay[1:]
		}
	}
	for key, more := range inside {
		after[key.Index] = apply(t, after[key.Index], more)
	}
	return after
}

// checkDiff holds for all documents that package canon accepts.
func checkDiff(t failer, before, after []byte) {
	var m *display.Mask
	changes := m.Diff(before, after)
	equal, err := canon.Equal(before, after)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if equal != (len(changes) == 0) {
		t.Fatalf("%s\nand %s\nequal: %v, changes %v", before, after, equal, lines(changes))
	}
	if len(changes) > 2000 {
		t.Fatalf("%d changes", len(changes))
	}
	got := encode(apply(t, decode(t, string(before)), changes))
	if same, err := canon.Equal(got, after); err != nil || !same {
		t.Fatalf("%s\nbecomes %s\nand not %s\nby %s", before, got, after, strings.Join(lines(changes), "\n   "))
	}
}

func TestChangesMakeBeforeIntoAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := openDocument(t, 4), openDocument(t, 4)
		near := encode(another(t, decode(t, a), 4))
		checkDiff(t, []byte(a), near)
		checkDiff(t, near, []byte(a))
		checkDiff(t, []byte(a), []byte(b))
		checkDiff(t, []byte(a), []byte(a))
	})
}

// Nothing that is secret is told, and a change of it is not overlooked.
func TestDiffMasksLikeJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := []byte(anyDocument.Draw(t, "before")), []byte(anyDocument.Draw(t, "after"))
		var m *display.Mask
		changes := m.Diff(a, b)
		if equal, err := canon.Equal(a, b); err == nil && equal != (len(changes) == 0) {
			t.Fatalf("%s\nand %s\nequal: %v, changes %v", a, b, equal, lines(changes))
		}
		if more := m.Diff(m.JSON(a), m.JSON(b)); len(more) > 0 && len(changes) == 0 {
			t.Fatalf("%s\nand %s\nlook different: %v", a, b, lines(more))
		}
		for _, c := range changes {
			if (c.Before.Kind == display.None) != (c.Sort == display.Added) || (c.After.Kind == display.None) != (c.Sort == display.Removed) {
				t.Fatalf("got %+v", c)
			}
			for _, n := range []display.Node{c.Before, c.After} {
				if n.Kind != display.None {
					checkNode(t, n)
					checkShown(t, m, n, a, b)
				}
			}
		}
	})
}

// checkShown looks for n in the trees of the documents: a change shows nothing else.
func checkShown(t failer, m *display.Mask, n display.Node, docs ...[]byte) {
	want := fmt.Sprint(n)
	for _, doc := range docs {
		if strings.Contains(fmt.Sprint(m.Tree(doc)), want) {
			return
		}
	}
	t.Fatalf("%s is in none of %s", want, docs)
}

// list is an array of n elements.
func list(n int, element func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("," + element(i))
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

// Long arrays of different things are aligned as well.
func TestDiffOfLongArrays(t *testing.T) {
	t.Parallel()
	before := list(20_000, strconv.Itoa)
	after := strings.Replace(before, "[0,", "[7777777,0,", 1)
	after = strings.Replace(after, ",10000,", ",10000,8888888,", 1)
	after = strings.Replace(after, ",15000,", ",", 1)
	after = strings.Replace(after, ",19998,", ",-1,", 1)
	var m *display.Mask
	want := []string{"+ [0]: -> 7777777", "+ [10002]: -> 8888888", "- [15000]: 15000", "~ [19999]: 19998 -> -1"}
	if got := lines(m.Diff([]byte(before), []byte(after))); !slices.Equal(got, want) {
		t.Errorf("got %s", got)
	}
	checkDiff(t, []byte(before), []byte(after))
}

// Elements that are repeated are aligned between those that are not.
func TestDiffOfLongArraysWithRepetitions(t *testing.T) {
	t.Parallel()
	before := list(1100, func(i int) string { return strconv.Itoa(i+1) + ",0" })
	after := strings.Replace(before, "[", "[-1,", 1)
	after = strings.Replace(after, ",500,0,", ",500,-2,0,", 1)
	after = strings.TrimSuffix(after, "0]") + "-3]"
	var m *display.Mask
	want := []string{"+ [0]: -> -1", "+ [1000]: -> -2", "~ [2201]: 0 -> -3"}
	if got := lines(m.Diff([]byte(before), []byte(after))); !slices.Equal(got, want) {
		t.Errorf("got %s", got)
	}
	few := list(1100, func(i int) string { return strconv.Itoa(i + 1) })
	few = "[-1," + strings.Replace(few[1:len(few)-1], "1,", "1,0,", 1) + ",-3]"
	checkDiff(t, []byte(before), []byte(few))
	checkDiff(t, []byte(few), []byte(before))
}

// However much is different, there is an end to the work, and what is told is right.
func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	number := func(by int) func(int) string {
		return func(i int) string { return strconv.Itoa((i + 1) * by % 99_991) }
	}
	two := func(by int) func(int) string { return func(i int) string { return strconv.Itoa(i / by % 2) } }
	item := func(note string) func(int) string {
		return func(i int) string { return fmt.Sprintf(`{"id":%d,"note":%q}`, i, note) }
	}
	rows := func(modulo int) func(int) string {
		return func(int) string { return list(300, func(i int) string { return strconv.Itoa(i % modulo) }) }
	}
	deep := func(inner string) string {
		return strings.Repeat("[", canon.MaxDepth-2) + inner + strings.Repeat("]", canon.MaxDepth-2)
	}
	for _, c := range []struct {
		name, before, after string
		changes             int // 0: some
	}{
		{"all in another order", list(10_000, number(1)), list(10_000, number(7919)), 1},
		{"nothing occurs once", list(10_000, two(1)), list(10_000, two(2)), 1},
		{"objects", list(3_000, item("a")), list(3_000, item("b")), 1},
		{"as many as are told", list(2_000, item("a")), list(2_000, item("b")), 2000},
		{"one more", list(2_001, item("a")), list(2_001, item("b")), 1},
		{"many arrays", list(150, rows(7)), list(150, rows(5)), 0},
		{"deep", deep(list(3_000, number(1))), deep(list(3_000, number(3))), 1},
		{"deep and few", deep("[1,2]"), deep("[1,3]"), 1},
		{"many members", members(5_000, 0), members(5_000, 1), 1},
		{"few of many members", members(5_000, 0), strings.Replace(members(5_000, 0), `"k77":77`, `"k77":-1`, 1), 1},
	} {
		var m *display.Mask
		got := m.Diff([]byte(c.before), []byte(c.after))
		if len(got) == 0 || len(got) > 2000 || c.changes > 0 && len(got) != c.changes {
			t.Errorf("%s: %d changes", c.name, len(got))
		}
		checkDiff(t, []byte(c.before), []byte(c.after))
	}
	deepest := display.Mask{}
	if got := deepest.Diff([]byte(deep("[1,2]")), []byte(deep("[1,3]"))); len(got) != 1 || len(got[0].Path) != canon.MaxDepth-1 {
		t.Errorf("got %v", lines(got))
	}
}

func members(n, more int) string {
	s := list(n, func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i+more) })
	return "{" + s[1:len(s)-1] + "}"
}

func FuzzDiff(f *testing.F) {
	for _, s := range [][2]string{
		{`[1,2,3]`, `[1,9,2,3.0]`}, {`{"a":[{"id":1,"x":2}]}`, `{"a":[{"id":0},{"id":1,"x":3}]}`}, {"\xff", "1"}, {`{"a":1,"a":2}`, `{"a":2}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		var m *display.Mask
		changes := m.Diff(before, after)
		if bytes.Equal(before, after) && len(changes) > 0 {
			t.Fatalf("%q differs from itself", before)
		}
		for _, c := range changes {
			for _, p := range c.Path.Pieces() {
				checkFit(t, string(before)+string(after)+"\ufffd", p)
			}
		}
		// What is masked cannot be applied.
		masked := string(m.JSON(before)) + string(m.JSON(after))
		if canon.Valid(before) == nil && canon.Valid(after) == nil && !strings.Contains(masked, display.Masked) {
			checkDiff(t, before, after)
		}
	})
}
