//go:build !linux

package simulate

import "syscall"

// attributes are none: a daemon ends as its standard input does.
func attributes() *syscall.SysProcAttr { return nil }
