package storetest

import "testing"

// regressions has one test for every fault of a backend that was found, so that
// it stays mended. A name says what was wrong.
func regressions(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){})
}
