// Package tui is where people see what waits for them and decide it, at a terminal.
//
// It shows what package review reads, in the same words as the inbox in a browser. Nothing
// is decided by a single key: an answer is a word, typed in a view that states what will be
// recorded, once nobody has typed for a moment. It is bound to the digest of what was shown.
//
// Foreign text comes in only through the methods of sheet named text, long, line and tree:
// they show what cannot be seen, mark what looks like something else, and set each line of
// it off with a bar that no line of ours begins with.
package tui
