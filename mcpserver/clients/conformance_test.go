package clients

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

var rewrite = flag.Bool("rewrite", false, "print what fails now, in the form of expected-failures.txt")

// revisions of the protocol, as the suite names them.
var revisions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

const expectedFile = "expected-failures.txt"

// expected reads which checks are known to fail: each line is a revision, a scenario and
// a check, below a line that says why.
func expected(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(expectedFile)
	if err != nil {
		t.Fatal(err)
	}
	list, why := map[string]string{}, ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			why = ""
		case strings.HasPrefix(line, "#"):
			why = strings.TrimSpace(why + " " + strings.TrimLeft(line, "# "))
		case why == "":
			t.Errorf("%s: %q is listed without a reason", expectedFile, line)
		default:
			list[line] = why
		}
	}
	return list
}

// dated is what the suite puts behind a scenario's name.
var dated = regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*$`)

// failures are the checks that the suite did not find in order, with its words.
func failures(t *testing.T, revision, results string) (failed map[string]string, passed int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results, "server-*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	failed = map[string]string{}
	for _, file := range files {
		scenario := dated.ReplaceAllString(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "server-"), "")
		var checks []struct{ ID, Status, ErrorMessage string }
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &checks)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed++
			case "FAILURE", "WARNING":
				failed[revision+" "+scenario+" "+c.ID] = c.ErrorMessage
			}
		}
	}
	return failed, passed
}

// The protocol's own conformance suite finds nothing at /mcp but what is listed, with
// the reason; and what is listed has not come to pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	address, back := withToken(t)
	w := serve(t, "--host", address)
	back(w.url, w.token(token.Admin, "boss"))
	known, now := expected(t), map[string]string{}
	for _, revision := range revisions {
		results := t.TempDir()
		// It ends with 1 where anything failed; what did stands in its results.
		out, errs, _ := w.run(w.installed("@modelcontextprotocol", "conformance", "dist", "index.js"),
			"server", "--url", "http://"+address+"/mcp", "--suite", "all", "--spec-version", revision, "-o", results)
		failed, passed := failures(t, revision, results)
		if passed < 20 {
			t.Fatalf("%s: only %d checks passed: %s%s", revision, passed, out, errs)
		}
		maps.Copy(now, failed)
	}
	if *rewrite {
		for _, line := range slices.Sorted(maps.Keys(now)) {
			t.Log(line, "|", now[line])
		}
	}
	for _, line := range slices.Sorted(maps.Keys(now)) {
		if known[line] == "" {
			t.Errorf("%s: %s", line, now[line])
		}
	}
	for line := range known {
		if _, fails := now[line]; !fails {
			t.Errorf("%s passes now: take it out of %s", line, expectedFile)
		}
	}
}
