//go:build !race

package placettest_test

const raceFactor = 1
