// Package display makes foreign text fit to be shown: on a terminal, in a pipe,
// later on a page. It does two things, each by one rule.
//
// What cannot be seen, or changes how its surroundings are seen, is shown as a
// visible escape: [Line], [Excerpt], [Mask.Value], [Mask.Fields] for people,
// [Machine] for programs. The escapes are \u{202e} for a character, \x{ff} for a byte that is
// not UTF-8, and \n, \r and \t inside a text. A backslash that would read like
// one of them is shown as \u{5c}, so that every text has one reading.
//
// Secrets are replaced by [Masked]: a [Mask] knows them by the name they stand
// under and by what the tool's schema says. What is hashed and what a tool gets
// is never touched; this package only makes copies to look at.
package display
