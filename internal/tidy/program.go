package tidy

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that can be run. A process that is started elsewhere in this
// program meanwhile would hold the file open for writing for a moment, in which nobody
// could run it.
func WriteProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755)
}
