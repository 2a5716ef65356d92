package simulate

import (
	"testing"

	"github.com/placet-dev/placet/internal/pgtest"
)

func TestMain(m *testing.M) {
	Part()
	pgtest.Main(m)
}
