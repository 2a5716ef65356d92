//go:build !linux

package pgtest

import "syscall"

// attributes cannot ask for a signal at our death here: a server whose owner was
// killed ends when the next one removes its folder.
func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killChildren leaves PostgreSQL's own processes alone here: they end by themselves
// when they miss the first.
func killChildren(*process) {}
