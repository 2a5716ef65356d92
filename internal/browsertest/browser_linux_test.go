package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/internal/tidy"
)

// roleVariable makes this test binary be a program that starts a browser, and ends in the
// way that it says.
const roleVariable = "PLACET_BROWSERTEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		tidy.Main(m)
	}
	os.Unsetenv(roleVariable)
	os.Exit(tidy.Tests{M: browsing(role)}.Run())
}

// browsing is a program that starts a browser and says which.
type browsing string

func (role browsing) Run() int {
	ctx, err := start()
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate("data:text/html,<h1>hello"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(chromedp.FromContext(ctx).Browser.Process().Pid)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it was looked at
	if role == "panics" {
		panic("as a test does that fails so")
	}
	return 0
}

// However a test program ends, nothing is left of its browser: no process, no file.
func TestBrowserGoes(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"ends", "panics", "killed"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVariable+"="+role)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if err := json.NewDecoder(out).Decode(&pid); err != nil {
				t.Fatal(err)
			}
			home, family := familyOf(t, pid)
			if role == "killed" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			in.Close()
			if err := cmd.Wait(); (err == nil) != (role == "ends") {
				t.Errorf("it ended with %v", err)
			}
			for _, id := range family {
				await(t, fmt.Sprintf("process %d still runs", id.PID), func() bool { return !process.Alive(id) })
			}
			await(t, home+" is still there", func() bool { _, err := os.Stat(home); return os.IsNotExist(err) })
		})
	}
}

// familyOf finds every process that belongs to a browser, and its folder.
func familyOf(t *testing.T, pid int) (home string, family []process.Identity) {
	t.Helper()
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if h, ok := strings.CutPrefix(string(v), "XDG_CACHE_HOME="); ok {
			home = h
		}
	}
	if home == "" {
		t.Fatal("the browser has no folder of its own")
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		line, _ := os.ReadFile(file) // who has just ended has none
		other, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if id, err := process.Of(other); err == nil && bytes.Contains(line, []byte(home)) && !bytes.HasPrefix(line, []byte("/bin/sh")) {
			family = append(family, id)
		}
	}
	if len(family) < 3 {
		t.Errorf("a browser is more than %d processes", len(family))
	}
	return home, family
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}
