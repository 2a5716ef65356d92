package tidy

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/placet-dev/placet/internal/process"
)

// program is what this process has to take away.
var program struct {
	sync.Mutex
	root  string
	watch io.WriteCloser // the input of who stands by
	by    *process.Group
	atEnd []func() error
}

// Runner runs tests, as *testing.M does.
type Runner interface{ Run() int }

// Main runs a package's tests, takes everything away, and exits. It is the whole body of
// a TestMain.
func Main(m Runner) { os.Exit(Tests{m}.Run()) }

// MainWithin is [Main] for tests that start programs with the environment that they have
// themselves, such as the runners of jobs in a daemon of their own: TMPDIR is a folder of
// the program's, so that whatever they leave is found by it.
func MainWithin(m Runner) {
	dir, err := Dir("tmp")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(1)
	}
	Main(m)
}

// Tests runs tests as [Main] does without exiting, for a TestMain that has more to do.
type Tests struct{ M Runner }

// Run returns the exit code; what could not be taken away makes it at least 1.
func (t Tests) Run() int {
	code := t.M.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		code = max(code, 1)
	}
	return code
}

// AtEnd has f run when the tests have ended, the last one that was given first. It is not
// run where the program ends otherwise.
func AtEnd(f func() error) {
	program.Lock()
	defer program.Unlock()
	program.atEnd = append(program.atEnd, f)
}

func end() error {
	var errs []error
	for f := lastAtEnd(); f != nil; f = lastAtEnd() {
		errs = append(errs, f())
	}
	program.Lock()
	defer program.Unlock()
	if program.watch == nil {
		return errors.Join(errs...)
	}
	errs = append(errs, program.watch.Close())
	state, err := program.by.Wait()
	errs = append(errs, err)
	if err == nil && !state.Success() {
		errs = append(errs, fmt.Errorf("%s could not be taken away: %s", program.root, state))
	}
	program.root, program.watch, program.by = "", nil, nil
	return errors.Join(errs...)
}

// lastAtEnd takes out what was given to AtEnd last; nil if nothing is left.
func lastAtEnd() (f func() error) {
	program.Lock()
	defer program.Unlock()
	if n := len(program.atEnd); n > 0 {
		f, program.atEnd = program.atEnd[n-1], program.atEnd[:n-1]
	}
	return f
}

// ending keeps one folder's name from being the beginning of another's: processes are
// found by the name in their environment.
const ending = "-*.d"

// Dir makes a folder that is there until the program ends. The name is only for who
// looks at it.
func Dir(name string) (string, error) {
	program.Lock()
	defer program.Unlock()
	if err := standBy(); err != nil {
		return "", err
	}
	return os.MkdirTemp(program.root, name+ending)
}

// Folder makes a folder that is there until the test ends. Whoever's environment names it
// then is killed, unless the test ended them itself.
func Folder(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := Dir(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := clear(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Group has the process group that pid leads killed when the program ends.
func Group(pid int) error { return tell("group", pid) }

// Forget is for a group that has ended: its number may be given to another.
func Forget(pid int) error { return tell("forget", pid) }

func tell(verb string, pid int) error {
	program.Lock()
	defer program.Unlock()
	if err := standBy(); err != nil {
		return err
	}
	_, err := io.WriteString(program.watch, verb+" "+strconv.Itoa(pid)+"\n")
	return err
}

//go:embed standby.sh
var script string

// standBy starts who takes everything away, once. The lock is held.
func standBy() error {
	if program.watch != nil {
		return nil
	}
	root, err := os.MkdirTemp("", "placet-test"+ending)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return err
	}
	if err := ours(root); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", script, "tidy", root)
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// In a group of its own, it does not hear the terminal's interrupt.
	by, err := process.Start(cmd)
	if err != nil {
		return errors.Join(err, os.Remove(root))
	}
	program.root, program.watch, program.by = root, in, by
	return nil
}

// clear kills who lives in dir, and removes it.
func clear(dir string) error {
	if err := ours(dir); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", script, "tidy", dir) // its input is at its end already
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s could not be taken away: %w: %s", dir, err, out)
	}
	return nil
}

// ours refuses what is no folder that [Dir] makes: who names such a path in its environment
// would be killed, and that may be everybody.
func ours(dir string) error {
	named, err := filepath.Match("*"+ending, filepath.Base(dir))
	if err == nil && (!named || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || filepath.Dir(dir) == "/") {
		err = fmt.Errorf("%q is not a folder of tests, and is not taken away", dir)
	}
	return err
}
