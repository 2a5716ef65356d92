package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/internal/source"
)

const text = `package door

// State is where it stands.
// It is one of two.
type State string

const (
	Open State = "open" // one may go through
	Shut State = "shut"
	Other = "neither"
	N State2 = "n"
)

type (
	// Push is a hand.
	Push struct{}
	Pull struct{}
	Look struct{}
)

func (Push) command() {}
func (Pull) command() {}
func (Look) command(int) {}
func command() {}
`

func TestReadsCommandsAndValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, s := range map[string]string{"door.go": text, "door_test.go": "package door\nfunc (Test) command() {}\n", "notes.md": "no Go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands, err := source.Commands(dir)
	if diff := cmp.Diff([]string{"Pull", "Push"}, commands); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	values, err := source.Values(dir, "State")
	want := []source.Value{{Name: "Open", Text: "open", Doc: "one may go through"}, {Name: "Shut", Text: "shut"}}
	if diff := cmp.Diff(want, values); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	docs, err := source.Docs(dir)
	if diff := cmp.Diff(map[string]string{"State": "State is where it stands.\nIt is one of two.", "Push": "Push is a hand.", "Pull": "", "Look": ""}, docs); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := source.Commands(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has no commands")
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.go"), []byte("package"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Values(dir, "State"); err == nil {
		t.Error("a source that is not Go was read")
	}
}

// What a test builds is what its result depends on: go test has to see that it changed.
func TestModule(t *testing.T) {
	dir := t.TempDir()
	for name, s := range map[string]string{
		"go.mod": "module example.com/m\n", "a.go": "package m\nimport (\n\"os\"\n_ \"example.com/m/b\"\n)\n", "a_test.go": "package m\nimport \"testing\"\n",
		"b/b.go": "package b\n", "b/b_windows.go": "package b\nimport \"net\"\n", "_x/x.go": "not Go", ".y/y.go": "not Go", "c/go.mod": "module other\n", "c/c.go": "not Go", "b/deep/text.md": "text",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := source.Imports(dir)
	want := map[string][]string{"": {"example.com/m/b", "os"}, "b": {"net"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	t.Chdir(filepath.Join(dir, "b", "deep"))
	if err := source.Depend(); err != nil {
		t.Error(err)
	}
	if root, err := source.Root(); err != nil || !sameFile(t, root, dir) {
		t.Errorf("%s, %v", root, err)
	}
	t.Chdir(t.TempDir())
	if err := source.Depend(); err == nil {
		t.Error("there is no module here")
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	fa, erra := os.Stat(a)
	fb, errb := os.Stat(b)
	if erra != nil || errb != nil {
		t.Fatal(erra, errb)
	}
	return os.SameFile(fa, fb)
}
