package tool

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/placet-dev/placet/fault"
)

// maxMessage bounds what an outcome says, in bytes.
const maxMessage = 4 << 10

// maxShort bounds what an error repeats of a foreign text, in bytes.
const maxShort = 300

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// shown is a foreign name as an error may show it: quoted, in ASCII, so that two
// names that look alike are told apart.
func shown(name string) string {
	const limit = maxName
	if len(name) <= limit {
		return strconv.QuoteToASCII(name)
	}
	return strconv.QuoteToASCII(cut(name, limit)) + "…"
}

// short is a foreign text on one line: controls and invisible characters as
// escapes, at most [maxShort] bytes.
func short(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= maxShort {
			b.WriteString("…")
			break
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// cut is the first n bytes of s at most, never half a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

const alteredNote = " [altered: the text was not valid UTF-8]"

// message is a tool's text fit to be stored and shown: valid UTF-8 without NUL, at
// most [maxMessage] bytes. A change of its characters is said in it (case 106).
func message(s string) string {
	altered := !utf8.ValidString(s) || hasNUL(s)
	if altered {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	}
	room := maxMessage
	if altered {
		room -= len(alteredNote)
	}
	if len(s) > room {
		const mark = "…"
		s = cut(s, room-len(mark)) + mark
	}
	if altered {
		s += alteredNote
	}
	return s
}

// inTool puts the tool's name in front of what [CompileSchema] refused.
func inTool(name string, err error) error {
	f := fault.From(err)
	return ErrInvalidTool.Say("The tool %s: %s", shown(name), f.Message).Hint("%s", f.Advice).Because(f.Unwrap())
}
