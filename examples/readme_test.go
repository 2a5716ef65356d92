package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/source"
)

var (
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	printed = regexp.MustCompile(`fmt\.Println\(.*\) // (.*)`)
)

// TestReadme builds and runs the Go program of README.md: it prints what the
// comment on its last line says.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := goBlock.FindAllSubmatch(readme, -1)
	if len(programs) != 1 {
		t.Fatalf("README.md has %d Go programs, want 1", len(programs))
	}
	text := programs[0][1]
	want := printed.FindSubmatch(text)
	if want == nil {
		t.Fatal("the program of README.md does not say what it prints")
	}
	if got := runProgram(t, text); got != string(want[1]) {
		t.Errorf("the program of README.md prints\n%s\nand says\n%s", got, want[1])
	}
}

// runProgram builds text in a folder inside the module, where its imports are
// ours, and runs it in another that is empty. The folder's name starts with an
// underscore, so that no ./... finds it.
func runProgram(t *testing.T, text []byte) string {
	t.Helper()
	if err := source.Depend(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(".", "_readme-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "readme.exe")
	build := exec.Command("go", "build", "-o", binary, "main.go")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	program := exec.Command(binary)
	program.Dir = t.TempDir()
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}
