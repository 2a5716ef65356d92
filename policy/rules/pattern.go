package rules

import "regexp/syntax"

// wholeValue reports whether whatever the pattern matches is the whole text: each
// way through it begins at the text's start and ends at its end. "^a|b$" has two
// ways, and neither does both.
func wholeValue(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return true // compiling says what is wrong with it
	}
	return bounded(re, syntax.OpBeginText, first) && bounded(re, syntax.OpEndText, last)
}

func first(re *syntax.Regexp) *syntax.Regexp { return re.Sub[0] }

func last(re *syntax.Regexp) *syntax.Regexp { return re.Sub[len(re.Sub)-1] }

// bounded reports whether every way through re has the anchor at its edge.
func bounded(re *syntax.Regexp, anchor syntax.Op, edge func(*syntax.Regexp) *syntax.Regexp) bool {
	switch re.Op {
	case anchor:
		return true
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return bounded(edge(re), anchor, edge)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !bounded(sub, anchor, edge) {
				return false
			}
		}
		return true
	}
	return false
}
