package job

import (
	"os"
	"strconv"
)

// socketPath is a name of the socket that is short enough: through a descriptor of
// its directory. done is called once it is connected.
func (d launchDir) socketPath() (path string, done func(), err error) {
	f, err := os.Open(string(d))
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + ctlFile, func() { f.Close() }, nil
}
