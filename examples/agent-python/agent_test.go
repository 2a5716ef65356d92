// Package agentpython tests the example: an agent in Python, run by placet.
package agentpython

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/internal/source"
)

// TestMain makes this binary the placet program for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"placet": func() { os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

func TestAgent(t *testing.T) {
	t.Parallel()
	if err := source.Depend(); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("This example is in Python, and python3 is not there: apt-get install python3.")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"pending": pending},
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

// pending puts the id of the approval that waits into APPROVAL: who decides without
// being asked names it whole.
func pending(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("placet", "--json", "approvals"))
	var a struct {
		ID string `json:"id"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &a))
	ts.Setenv("APPROVAL", a.ID)
}
