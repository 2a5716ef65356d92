//go:build !race

package tool

const raceDetector = false
