package debian

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Program is something that tests drive.
type Program struct {
	Name     string   // for people
	Variable string   // of the environment, with the path of the one that is meant
	Names    []string // in PATH; the first that is there is taken
	Packages []string // what has it on Debian, and what it needs to be of use
}

// Programs of the tests.
var (
	// Chromium comes with fonts for Latin, Greek and Cyrillic, and for Chinese, Japanese
	// and Korean.
	Chromium = Program{
		Name: "Chromium", Variable: "PLACET_TEST_CHROMIUM", Names: []string{"chromium", "chromium-browser", "google-chrome"},
		Packages: []string{"chromium", "fonts-dejavu-core", "fonts-wqy-microhei"},
	}
	Tmux = Program{Name: "tmux", Variable: "PLACET_TEST_TMUX", Names: []string{"tmux"}, Packages: []string{"tmux"}}
)

// Path is where the program lies, after it was installed if need be.
func (p Program) Path(ctx context.Context) (string, error) {
	i := installer{
		root: os.Geteuid() == 0, env: os.Getenv, lock: filepath.Join(os.TempDir(), "placet-test-install.lock"), again: 50 * time.Millisecond,
	}
	return i.path(ctx, p)
}

type installer struct {
	root bool
	env  func(name string) string
	lock string // of who installs

	again time.Duration // how often a lock is tried that another holds
}

// find returns an empty path without an error where there is none.
func (i installer) find(p Program) (string, error) {
	if named := i.env(p.Variable); named != "" {
		found, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("%s is %s, which cannot be run: %w", p.Variable, named, err)
		}
		return found, nil
	}
	for _, name := range p.Names {
		if found := i.look(name); found != "" {
			return found, nil
		}
	}
	return "", nil
}

// look finds a program in PATH.
func (i installer) look(name string) string {
	for _, dir := range filepath.SplitList(i.env("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found
		}
	}
	return ""
}

func (i installer) path(ctx context.Context, p Program) (string, error) {
	found, err := i.find(p)
	if err != nil || found != "" {
		return found, err
	}
	apt := i.look("apt-get")
	if apt == "" || !i.root {
		return "", fmt.Errorf("%s is not here: install it (on Debian apt-get install %s; root gets that done by the tests), or name it in %s",
			p.Name, strings.Join(p.Packages, " "), p.Variable)
	}
	unlock, err := i.turn(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if found, err = i.find(p); err != nil || found != "" {
		return found, err // another installed it meanwhile
	}
	if err := install(ctx, apt, p.Packages); err != nil {
		return "", fmt.Errorf("%s is not here, and could not be installed: %w", p.Name, err)
	}
	if found, err = i.find(p); err == nil && found == "" {
		err = fmt.Errorf("%s was installed, and is not in PATH: name it in %s", p.Name, p.Variable)
	}
	return found, err
}

// turn waits until nobody else installs.
func (i installer) turn(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(i.lock, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(i.again)
	defer ticker.Stop()
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return func() { f.Close() }, nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", i.lock, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for who holds %s: %w", i.lock, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// install takes what apt knows, and asks for news only where that is not enough.
func install(ctx context.Context, apt string, packages []string) error {
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, apt, append([]string{"-qq", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	want := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if run(want...) == nil {
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	return run(want...)
}
