package cli

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios   = unix.TCGETS
	ioctlFlushTermios = unix.TCSETSF // set, and discard what was typed and not read
	ioctlUnread       = unix.TIOCINQ
)
