//go:build !race

package httpapi_test

const raceFactor = 1
