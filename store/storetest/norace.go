//go:build !race

package storetest

// thorough is 1 for everything; more leaves that part of the repetitions out.
const thorough = 1
