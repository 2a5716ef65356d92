package sqlite

import (
	"os/signal"
	"syscall"
)

// ignoreFileSize turns the signal about a file's size into the error it stands for.
func ignoreFileSize() { signal.Ignore(syscall.SIGXFSZ) }

const noLimit = ^uint64(0)
