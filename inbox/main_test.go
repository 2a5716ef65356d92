package inbox_test

import (
	"os"
	"testing"

	"github.com/placet-dev/placet/internal/tidy"
	"github.com/placet-dev/placet/job"
)

// TestMain makes this binary the runner of the jobs that its tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == job.RunnerCommand {
		os.Exit(job.Runner(os.Args[2]))
	}
	tidy.MainWithin(m)
}
