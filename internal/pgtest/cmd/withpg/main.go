// Command withpg runs a command beside a throw-away PostgreSQL server, whose URL the
// command finds in PLACET_TEST_POSTGRES, and exits with the command's code.
//
//	withpg go test ./...
//
// A server that the variable names already is used as it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpg [-durable] command [argument…]")
		os.Exit(2)
	}
	args, options := os.Args[1:], pgtest.Options{}
	if args[0] == "-durable" && len(args) > 1 {
		args, options.Durable = args[1:], true
	}
	code, err := run(args, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string, o pgtest.Options) (code int, err error) {
	// From here on an interrupt is the command's to answer: the server has to stay
	// until the command has ended.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	env := os.Environ()
	if os.Getenv(pgtest.Variable) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		server, failed := pgtest.Start(ctx, o)
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		env = append(env, pgtest.Variable+"="+server.URL("postgres"))
	}
	return command(args, env, signals)
}

func command(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			case sig := <-signals:
				// A terminal sends its interrupt to the command as well.
				if sig != os.Interrupt {
					_ = cmd.Process.Signal(sig) // it may have ended
				}
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
