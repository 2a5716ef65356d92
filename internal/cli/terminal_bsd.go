//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package cli

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios   = unix.TIOCGETA
	ioctlFlushTermios = unix.TIOCSETAF // set, and discard what was typed and not read
	ioctlUnread       = 0x4004667f     // FIONREAD
)
