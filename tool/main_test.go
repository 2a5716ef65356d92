package tool

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the program that the tests of Exec run: its environment
// is not passed on, so the role is named by the first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}
