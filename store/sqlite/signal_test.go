package sqlite

import (
	"os/signal"
	"syscall"
)

// ignoreFileSize turns the signal about a file's size into the error it stands for.
func ignoreFileSize() { signal.Ignore(syscall.SIGXFSZ) }

const noLimit = ^uint64(0)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
