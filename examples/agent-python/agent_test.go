// Package agentpython tests the example: an agent in Python, run by placet.
package agentpython

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/placet-dev/placet/internal/cli"
)

// TestMain makes this binary the placet program for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"placet": func() { os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

func TestAgent(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("This example is in Python, and python3 is not there: apt-get install python3.")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("PLACET_DB", e.WorkDir+"/placet.db")
			for _, name := range []string{"placet.yaml", "agent.py", "tools", "repo"} {
				if out, err := exec.Command("cp", "-R", name, e.WorkDir).CombinedOutput(); err != nil {
					t.Errorf("%s", out)
					return err
				}
			}
			return nil
		},
	})
}
