//go:build race

package tool

const raceDetector = true
