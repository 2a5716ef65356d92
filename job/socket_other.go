//go:build !linux

package job

import (
	"os"
	"path/filepath"
)

// socketPath is a name of the socket that is short enough: through a link in the
// folder for temporary files. done is called once it is connected.
func (d launchDir) socketPath() (path string, done func(), err error) {
	if path = d.file(ctlFile); len(path) < 100 {
		return path, func() {}, nil
	}
	tmp, err := os.MkdirTemp("", "placet-")
	if err != nil {
		return "", nil, err
	}
	if err := os.Symlink(string(d), filepath.Join(tmp, "d")); err != nil {
		os.RemoveAll(tmp)
		return "", nil, err
	}
	return filepath.Join(tmp, "d", ctlFile), func() { os.RemoveAll(tmp) }, nil
}
