//go:build unix

package tidy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/process"
)

// roleVariable makes this test binary be a program that ends in the way that it says.
const roleVariable = "PLACET_TIDY_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Unsetenv(roleVariable)
		os.Exit(play(role))
	}
	Main(m)
}

// left is what a program made.
type left struct {
	Dir string
	// Marked lives in the folder and in a session of its own, as a job does. Grouped
	// has no environment.
	Marked, Grouped string
}

type runner func() int

func (r runner) Run() int { return r() }

// play makes a folder and two processes, says so, and ends.
func play(role string) int {
	tests := func() int {
		l, err := leave()
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(l)
		}
		if err != nil {
			panic(err)
		}
		switch role {
		case "panic":
			panic("as a test does that fails so")
		case "wait":
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		return 0
	}
	if role == "at end" {
		return Tests{runner(func() int {
			AtEnd(func() error { fmt.Print("first "); return nil })
			AtEnd(func() error {
				fmt.Print("second ")
				return errors.Join(errors.New("it failed"), Group(1<<22+1), Forget(1<<22+1))
			})
			return 0
		})}.Run()
	}
	if role == "main" {
		return Tests{runner(tests)}.Run()
	}
	return tests()
}

func leave() (l left, err error) {
	if l.Dir, err = Dir("home"); err != nil {
		return l, err
	}
	// What it prints says that its environment is no longer ours.
	marked := exec.Command("/bin/sh", "-c", "sleep 1000 & echo; wait")
	marked.Env, marked.SysProcAttr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.Dir}, &syscall.SysProcAttr{Setsid: true}
	if l.Marked, err = started(marked); err != nil {
		return l, err
	}
	grouped := exec.Command("/bin/sh", "-c", "echo; exec sleep 1000")
	grouped.Env, grouped.SysProcAttr = []string{"PATH=" + os.Getenv("PATH")}, &syscall.SysProcAttr{Setpgid: true}
	if l.Grouped, err = started(grouped); err != nil {
		return l, err
	}
	return l, Group(grouped.Process.Pid)
}

// started starts cmd and returns its identity once it has printed something.
func started(cmd *exec.Cmd) (string, error) {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return "", err
	}
	id, err := process.Of(cmd.Process.Pid)
	return id.String(), err
}

// However a program ends, nothing is left of what it made.
func TestProgramEnds(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"main", "return", "panic", "wait"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			l := runProgram(t, role)
			for name, text := range map[string]string{"marked": l.Marked, "grouped": l.Grouped} {
				id, err := process.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				until(t, name+" still runs", func() bool { return !process.Alive(id) })
			}
			until(t, l.Dir+" is still there", func() bool { return gone(l.Dir) && gone(filepath.Dir(l.Dir)) })
		})
	}
}

// runProgram returns once the program has ended; with the role main, once nothing of it is
// there.
func runProgram(t *testing.T, role string) (l left) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(&l); err != nil {
		t.Fatal(err)
	}
	if role == "wait" {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	err = cmd.Wait()
	if ok := role == "main" || role == "return"; ok != (err == nil) {
		t.Fatalf("it ended with %v", err)
	}
	if role == "main" && !gone(l.Dir) {
		t.Error("Main did not wait until everything was taken away")
	}
	return l
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A test's folder goes with the test, and so does who lives there; who lives in another
// folder stays, even if its name begins alike.
func TestFolder(t *testing.T) {
	t.Parallel()
	other := Folder(t, "home")
	var mine string
	alive := map[bool]process.Identity{}
	t.Run("inner", func(t *testing.T) {
		mine = Folder(t, "home")
		for own, dir := range map[bool]string{true: mine, false: other} {
			cmd := exec.Command("/bin/sh", "-c", "echo; exec sleep 1000")
			cmd.Env, cmd.SysProcAttr = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir + "/tmp"}, &syscall.SysProcAttr{Setsid: true}
			text, err := started(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if alive[own], err = process.Parse(text); err != nil {
				t.Fatal(err)
			}
			go cmd.Wait()
		}
	})
	if !gone(mine) || gone(other) {
		t.Errorf("%s gone: %t; %s gone: %t", mine, gone(mine), other, gone(other))
	}
	until(t, "who lives in the folder still runs", func() bool { return !process.Alive(alive[true]) })
	if !process.Alive(alive[false]) {
		t.Error("who lives in another folder was killed")
	}
	if strings.HasPrefix(other, mine) {
		t.Errorf("%s begins like %s", other, mine)
	}
}

// A group that was forgotten is left alone: its number may be another's.
func TestForget(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", script, "tidy", filepath.Join(t.TempDir(), "nothing-1.d"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	groups := map[string]*exec.Cmd{"kept": nil, "forgotten": nil}
	for name := range groups {
		c := exec.Command("sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		groups[name] = c
	}
	n := func(name string) string { return " " + strconv.Itoa(groups[name].Process.Pid) + "\n" }
	io.WriteString(in, "group"+n("forgotten")+"group"+n("kept")+"forget"+n("forgotten"))
	in.Close()
	if groups["kept"].Wait() == nil {
		t.Error("who was told of was not killed")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if id, err := process.Of(groups["forgotten"].Process.Pid); err != nil || !process.Alive(id) {
		t.Errorf("who was forgotten was killed: %v", err)
	}
	groups["forgotten"].Process.Kill()
	groups["forgotten"].Wait()
}

// What is to be done at the end is done in the opposite order, and what fails is told.
func TestAtEnd(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=at end")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || string(out) != "second first tidy: it failed\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// What would name more than a folder of ours is refused, before anything is run.
func TestOurs(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"": false, "/": false, "/tmp": false, "tmp": false, "./x-1.d": false, "/x-1.d": false, "/tmp/x": false, "/tmp/x-1.d/..": false, "/tmp/-1.d": true,
		"/tmp/placet-test-123.d": true, "/var/tmp/placet-test-123.d/world-4.d": true,
	} {
		if got := ours(path) == nil; got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}
