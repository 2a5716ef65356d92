// Package review is what a reviewer sees of what waits for people, the same in the
// browser and at the terminal: an approval with exactly what will run, what was approved
// of the same tool before, who goes on once it is decided, and what has happened since.
//
// It reads, and turns what was typed into a form into JSON. It decides nothing.
package review
