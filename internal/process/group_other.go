//go:build !unix

package process

import (
	"os"
	"os/exec"
)

var interruptSignal = os.Kill

func lead(*exec.Cmd) {}

// signalGroup ends the leader only: there are no process groups here.
func signalGroup(p *os.Process, _ os.Signal) { _ = p.Kill() }
