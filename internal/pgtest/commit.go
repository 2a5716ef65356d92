package pgtest

import "strings"

// commitAt is which of the statements in sql commits, counted from zero, or -1.
// Text in quotes and comments may say commit without meaning it. Strings with
// backslashes (E'…') and bodies of functions outside quotes are not understood.
func commitAt(sql string) int {
	n := 0
	for i := blank(sql, 0); i < len(sql); i = blank(sql, i) {
		if sql[i] == ';' {
			i++
			continue // the server answers nothing to an empty statement among others
		}
		if commits(sql[i:]) {
			return n
		}
		for i < len(sql) && sql[i] != ';' {
			i = token(sql, i)
		}
		n++
	}
	return -1
}

func commits(statement string) bool {
	first := word(statement)
	if strings.EqualFold(first, "END") {
		return true
	}
	second := word(statement[blank(statement, len(first)):])
	return strings.EqualFold(first, "COMMIT") && !strings.EqualFold(second, "PREPARED")
}

// blank is where the white space and the comments that begin at i end.
func blank(s string, i int) int {
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f\v", s[i]) >= 0:
			i++
		case strings.HasPrefix(s[i:], "--"):
			i = after(s, i, "\n")
		case strings.HasPrefix(s[i:], "/*"):
			i = comment(s, i)
		default:
			return i
		}
	}
	return i
}

// comment is where the comment that begins at i ends; it may hold others.
func comment(s string, i int) int {
	for depth := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth, i = depth+1, i+2
		case strings.HasPrefix(s[i:], "*/"):
			if depth, i = depth-1, i+2; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// token is where what begins at i ends: a text in quotes, a word, or one character.
func token(s string, i int) int {
	if end := blank(s, i); end > i {
		return end
	}
	switch w := word(s[i:]); {
	case w != "":
		return i + len(w)
	case s[i] == '\'' || s[i] == '"':
		return after(s, i+1, s[i:i+1]) // a doubled quote makes two texts of one, which is as good
	case s[i] == '$':
		if tag := word(s[i+1:]); strings.HasPrefix(s[i+1+len(tag):], "$") && !strings.ContainsAny(tag[:min(1, len(tag))], "0123456789") {
			return after(s, i+len(tag)+2, s[i:i+len(tag)+2])
		}
	}
	return i + 1
}

func word(s string) string {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && s[i] != '_' && s[i] < 0x80 {
			return s[:i]
		}
	}
	return s
}

// after is the place behind the next mark, or the end.
func after(s string, i int, mark string) int {
	if n := strings.Index(s[i:], mark); n >= 0 {
		return i + n + len(mark)
	}
	return len(s)
}
