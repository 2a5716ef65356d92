package simulate

import "syscall"

// attributes let a daemon end with the process that started it, also one that is stopped
// and would not see its standard input end.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
