//go:build unix

package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lifeline is the descriptor that ends with whoever started a minder.
const lifeline = 3

const cannotStart = 127 // exit status of a minder whose program was not started

// Minder starts the program behind the time in args ("10s", program, its arguments) in
// its own process group, and ends with its exit status. It kills the group, itself
// included, when the time is over or when the process that started it is gone: a program
// is never left to run beside the next attempt. A program that [Options].Minder names
// answers with it.
func Minder(args []string) int {
	if len(args) < 2 {
		return cannotStart
	}
	limit, err := time.ParseDuration(args[0])
	if err != nil || unix.Getpgrp() != os.Getpid() { // the group would be somebody else's
		return cannotStart
	}
	unix.CloseOnExec(lifeline)
	// The program hears these too, as it is of the same group. They are taken in rather
	// than ignored, since it would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		_, _ = os.NewFile(lifeline, "lifeline").Read(make([]byte, 1))
		killGroup()
	}()
	time.AfterFunc(limit, killGroup)
	cmd := &exec.Cmd{Path: args[1], Args: args[1:], Env: os.Environ(), Stdin: os.Stdin, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, sentence(args[1], err))
		return cannotStart
	}
	return endLike(cmd.Wait())
}

func killGroup() { _ = syscall.Kill(0, syscall.SIGKILL) }

// endLike ends as a program did: by the same signal, or with its exit status.
func endLike(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		signal.Reset(ws.Signal())
		_ = syscall.Kill(os.Getpid(), ws.Signal())
		time.Sleep(time.Second) // it comes at once
	}
	return exit.ExitCode()
}
