//go:build !linux

package browsertest

import (
	"testing"

	"github.com/placet-dev/placet/internal/tidy"
)

func TestMain(m *testing.M) { tidy.Main(m) }
