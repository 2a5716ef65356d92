// Package display makes foreign text fit to be shown: on a terminal, in a pipe,
// on a page. It does three things, each by one rule.
//
// What cannot be seen, or changes how its surroundings are seen, is shown as a
// visible escape: [Line], [Excerpt], [Mask.Value], [Mask.Fields] for people,
// [Machine] for programs. The escapes are \u{202e} for a character, \x{ff} for a byte that is
// not UTF-8, and \n, \r and \t inside a text. A backslash that would read like
// one of them is shown as \u{5c}, so that every text has one reading. [Pieces] is the
// same for whoever can show escapes in another way than text; it also points out
// characters that look like others. [Warning] says in a few words what is odd about a text.
//
// Secrets are replaced by [Masked]: a [Mask] knows them by the name they stand
// under and by what the tool's schema says.
//
// Documents are taken apart for display: [Mask.Fields] into lines, [Mask.Tree] into all
// that is in them, [Mask.Diff] into what is different in another one.
//
// What is hashed and what a tool gets is never touched; this package only makes
// copies to look at.
package display
