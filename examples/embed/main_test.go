package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test's own binary be the example: see program.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_EXAMPLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program runs the example in a folder of its own, with this typed at the terminal.
func program(t *testing.T, typed string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUN_EXAMPLE=1")
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(typed)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"y\n":   `succeeded "refunded 500 on o-7"`,
		"n\n":   "denied  Rejected by terminal.",
		"yes\n": "denied  Rejected by terminal.",
		"":      "EOF", // nobody there
	} {
		t.Run(strings.TrimSpace(typed), func(t *testing.T) {
			t.Parallel()
			out, err := program(t, typed)
			if !strings.Contains(out, want) || (err != nil) != (typed == "") {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.HasPrefix(out, `succeeded "refunded 50 on o-6"`) || strings.Count(out, "[y/N]") != 1 {
				t.Errorf("a small refund passes without a question:\n%s", out)
			}
		})
	}
}
