package daemontest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/placet-dev/placet/internal/source"
	"github.com/placet-dev/placet/internal/tidy"
)

// ProgramVariable names a placet that was built already, where that one is meant.
const ProgramVariable = "PLACET_TEST_PROGRAM"

// Program is the path of the real program, which is built the first time.
var Program = sync.OnceValues(func() (string, error) {
	if named := os.Getenv(ProgramVariable); named != "" {
		return exec.LookPath(named)
	}
	if err := source.Depend(); err != nil {
		return "", err
	}
	dir, err := tidy.Dir("program")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "placet")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/placet-dev/placet/cmd/placet")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build placet: %w: %s", err, out)
	}
	return path, nil
})
