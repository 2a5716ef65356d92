//go:build !race

package run_test

const raceFactor = 1
