//go:build race

package delivery_test

// thorough divides the rounds of what is repeated: the race detector is slow.
const thorough = 5
