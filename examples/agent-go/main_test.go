package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/internal/source"
)

// TestMain makes this binary the placet program for the scripts, and the example's
// own, which placet.yaml names.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"placet": func() { os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
		"fixer":  main,
	})
}

func TestAgent(t *testing.T) {
	t.Parallel()
	if err := source.Depend(); err != nil {
		t.Fatal(err)
	}
	fixer, err := exec.LookPath("fixer")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"pending": pending},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLACET_DB", e.WorkDir+"/placet.db")
			e.Setenv("HOME", os.Getenv("HOME")) // where Go keeps what it has compiled
			if err := os.Symlink(fixer, e.WorkDir+"/fixer"); err != nil {
				return err
			}
			out, err := exec.Command("cp", "-R", "placet.yaml", "testdata/shop", e.WorkDir).CombinedOutput()
			if err != nil {
				t.Errorf("%s", out)
			}
			return err
		},
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[string]string{"amuont": "amount", "totl": "Total", "basket": ""} {
		if got := nearest(wrong, []string{"func Total() {", "	amount := 0"}); got != want {
			t.Errorf("nearest(%q) = %q, want %q", wrong, got, want)
		}
	}
}

func TestToolsStayInTheirFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../main.go", "/etc/passwd", ""} {
		if err := run([]string{"read_file"}, strings.NewReader(`{"file":"`+name+`"}`), os.Stdout); err == nil {
			t.Errorf("%q was read", name)
		}
	}
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
