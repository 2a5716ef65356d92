//go:build !race

package call_test

const raceFactor = 1
