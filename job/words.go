package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// What a runner says to people, in place of what a system call says.

// noFolder is why a command cannot run in a folder; nil: it can.
func noFolder(dir string) error {
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %q to run it in", dir)
	case err == nil && !fi.IsDir(), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%q is no folder to run it in", dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the folder %q may not be entered", dir)
	}
	return err
}

// notStarted is why the program at path was not started.
func notStarted(path string, err error) error {
	_, missing := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(missing, fs.ErrNotExist):
		return fmt.Errorf("there is no program %q", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q or the interpreter that its first line names is not there", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%q may not be executed", path)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%q is no program: it lacks a first line such as #!/bin/sh", path)
	}
	return err
}

// notSent is what became of n bytes that were written to the command's input, and what
// to do about the rest.
func notSent(n, of int, err error) ctlAnswer {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ctlAnswer{
			Error: fmt.Sprintf("the command took %d of %d bytes, and then read nothing for %d seconds", n, of, int(sendPatience.Seconds())),
			Hint:  "The rest was not sent. Send it from there on, once the command reads again.",
		}
	case errors.Is(err, unix.EPIPE):
		return ctlAnswer{Error: fmt.Sprintf("the command has closed its standard input; it took %d of %d bytes", n, of)}
	case errors.Is(err, os.ErrClosed):
		return ctlAnswer{Error: "the command's standard input was closed before, at somebody's word", Hint: "Nothing was sent."}
	}
	return ctlAnswer{Error: fmt.Sprintf("the command took %d of %d bytes: %s", n, of, err)}
}
