package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeLines are the lines of the shell blocks under "In five minutes".
func readmeLines(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(b), "\n## In five minutes\n")
	if !ok {
		t.Fatal("README.md has no section In five minutes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for i, block := range strings.Split(section, "```") {
		if body, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			lines = append(lines, strings.Split(strings.TrimSpace(body), "\n")...)
		}
	}
	return lines
}

// The five minutes of README.md, typed line by line into one shell at a terminal.
func TestReadmeInFiveMinutes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	approval := ""
	resumed := 0
	for _, line := range readmeLines(t) {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "make build ") { // the tests have built it
			continue
		}
		code, text := s.typed(strings.ReplaceAll(line, "apr_…", approval))
		want := 0
		switch {
		case strings.HasPrefix(line, "placet call "):
			want = 4
			approval = regexp.MustCompile(`apr_[0-9a-f-]{36}`).FindString(text)
			mustContain(t, text, "it waits for a person")
		case strings.HasPrefix(line, "placet resume ") && resumed > 0:
			want = 1
			resumed++
		case strings.HasPrefix(line, "placet resume "):
			resumed++
			mustContain(t, text, "ran, and succeeded")
		case strings.HasPrefix(line, "cat "):
			mustContain(t, text, "A first note, long enough to need a person.")
		}
		if code != want {
			t.Fatalf("%s: exit code %d, want %d:\n%s", line, code, want, text)
		}
	}
	if approval == "" || resumed != 2 {
		t.Errorf("README.md does not call, and resume twice: %q, %d", approval, resumed)
	}
}

// shell keeps the folder and the environment from line to line.
type shell struct {
	t     *testing.T
	dir   string
	state string // what restores them
}

func newShell(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	s := &shell{t: t, dir: dir, state: filepath.Join(dir, "state.sh")}
	if err := os.WriteFile(s.state, []byte("cd '"+dir+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// typed runs one line at a terminal of its own, and answers what it asks with yes.
func (s *shell) typed(line string) (int, string) {
	s.t.Helper()
	script := `. "$STATE"
` + line + `
code=$?
{ echo "cd '$PWD'"; export -p; } >"$STATE"
exit $code
`
	c := exec.CommandContext(s.t.Context(), "sh", "-c", script)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "HOME="+s.dir, "STATE="+s.state, "PLACET_DB=", "PLACET_CONFIG=")
	sc := startAtTerminal(s.t, c)
	if strings.HasPrefix(line, "placet approve ") {
		sc.until(question)
		sc.key("y\n")
	}
	return sc.end()
}
