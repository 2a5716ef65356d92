// Command bench measures what a full cycle costs (park, approve, resume, done)
// against what the same store can do at all: transactions of two plain rows
// through the same grouping of commits.
//
//	go run ./internal/bench                  everything, about four minutes
//	go run ./internal/bench -only rate,count
//
// It asserts nothing. A machine that others use gives other rates from one
// second to the next, so what is compared is measured in turns, in one run, and
// the ratio is what counts. The targets stand beside the figures.
package main
