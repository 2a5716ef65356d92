package e2e

import (
	"testing"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/internal/tidy"
)

func TestMain(m *testing.M) { tidy.Main(pgtest.Tests{M: m}) }
