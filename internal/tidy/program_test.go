//go:build unix

package tidy

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// A program can be run as soon as it is written, whoever starts what at the same time.
func TestWriteProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := make(chan struct{})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			<-gate
			for round := range 50 {
				path := filepath.Join(dir, strconv.Itoa(n)+"-"+strconv.Itoa(round))
				if err := WriteProgram(path, "#!/bin/sh\nexit 0\n"); err != nil {
					t.Error(err)
				}
				if err := exec.Command(path).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(gate)
	all.Wait()
}
