package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/internal/pgtest"
)

// roleVariable makes this test binary be the command, or what the command runs.
const roleVariable = "WITHPG_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "withpg":
		os.Setenv(roleVariable, "child")
		main()
	case "child":
		child()
	default:
		os.Exit(m.Run())
	}
}

// child says which server it was given, and ends with 7 after a signal, or with 5
// when its input ends.
func child() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	ended := make(chan struct{})
	fmt.Println(os.Getenv(pgtest.Variable))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-signals:
		os.Exit(7)
	case <-ended:
		os.Exit(5)
	}
}

// begin starts withpg around a child and returns when that has said which server it has.
func begin(t *testing.T, args ...string) (withpg *exec.Cmd, stdin io.Closer, url string) {
	t.Helper()
	withpg = exec.Command(os.Args[0], append(args, os.Args[0])...)
	withpg.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, pgtest.Variable+"=") })
	withpg.Env = append(withpg.Env, roleVariable+"=withpg")
	withpg.Stderr = os.Stderr
	in, err := withpg.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := withpg.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := withpg.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { withpg.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return withpg, in, strings.TrimSpace(line)
}

func code(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

func fsync(t *testing.T, url string) (on string, err error) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return "", err
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	return on, c.QueryRow(t.Context(), "SHOW fsync").Scan(&on)
}

func TestWithpg(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string
		fsync string
		end   func(withpg *exec.Cmd, stdin io.Closer) error
		code  int
	}{
		"End":    {nil, "off", func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() }, 5},
		"Signal": {[]string{"-durable"}, "on", func(w *exec.Cmd, _ io.Closer) error { return w.Process.Signal(syscall.SIGTERM) }, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withpg, stdin, url := begin(t, test.args...)
			if got, err := fsync(t, url); err != nil || got != test.fsync {
				t.Errorf("fsync is %s, %v", got, err)
			}
			if err := test.end(withpg, stdin); err != nil {
				t.Fatal(err)
			}
			if got := code(t, withpg); got != test.code {
				t.Errorf("exit code %d, not %d", got, test.code)
			}
			if _, err := fsync(t, url); err == nil {
				t.Error("the server outlived the command")
			}
		})
	}
}
