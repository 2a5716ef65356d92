package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/internal/pgtest"
)

// TestMain makes this binary the placet program wherever a test starts one: in
// scripts by its name, elsewhere through PATH.
func TestMain(m *testing.M) {
	testscript.Main(withServers{pgtest.Tests{M: m}}, map[string]func(){
		"placet": func() { os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

// TestScripts runs the stories in testdata/script: each command is a process of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("USER", "tester")
			e.Setenv("PLACET_DB", e.WorkDir+"/p.db")
			return copyWorld(e.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code,
			"get":  get,
			"keys": keys,
			"same": same,
		},
		RequireExplicitExec: true,
	})
}

// copyWorld puts the tools of testdata/world, and their configuration, in a
// folder, unless a script brought its own.
func copyWorld(dir string) error {
	entries, err := os.ReadDir("testdata/world")
	for _, e := range entries {
		dest := filepath.Join(dir, e.Name())
		if _, serr := os.Stat(dest); serr == nil {
			continue
		}
		b, rerr := os.ReadFile(filepath.Join("testdata/world", e.Name()))
		err = errors.Join(err, rerr, os.WriteFile(dest, b, 0o755))
	}
	return err
}

// code N COMMAND… runs a command that has to end with exactly that exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// get NAME PATH sets a variable to a member of the last command's JSON, such as
// error.reason.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: get NAME PATH")
	}
	var v any
	line, _, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	ts.Check(dec.Decode(&v))
	for _, part := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			ts.Check(err)
			v = at[i]
		}
	}
	if v == nil {
		ts.Fatalf("the answer has no %s: %s", args[1], line)
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// keys a b c: the last command printed exactly one JSON object with these keys, in this order.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	out := strings.TrimSuffix(ts.ReadFile("stdout"), "\n")
	if neg || strings.Contains(out, "\n") {
		ts.Fatalf("not one line: %s", out)
	}
	var got []string
	dec := json.NewDecoder(strings.NewReader(out))
	_, err := dec.Token()
	ts.Check(err)
	for dec.More() {
		k, err := dec.Token()
		ts.Check(err)
		got = append(got, fmt.Sprint(k))
		var v json.RawMessage
		ts.Check(dec.Decode(&v))
	}
	if strings.Join(got, " ") != strings.Join(args, " ") {
		ts.Fatalf("keys %s, want %s", got, args)
	}
}

// same A B compares two texts.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || (args[0] == args[1]) == neg {
		ts.Fatalf("%q", args)
	}
}
