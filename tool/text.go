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

// short is the start of a foreign text on one line, at most about [maxShort] bytes.
func short(s string) string {
	if c := cut(s, maxShort); c != s {
		return printable(c) + "…"
	}
	return printable(s)
}

// printable is s with controls and invisible characters as escapes: on one line,
// and nothing in it that reorders what stands around it.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			b.WriteString(strconv.Quote(s[i : i+1])[1:5]) // \xff
			continue
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

const alteredNote = " [altered: bytes that are no text were replaced]"

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

// lastMessage is [message] for the end of a text, whose last bytes matter most.
// dropped says that the text had more in front of it.
func lastMessage(s string, dropped bool) string {
	const mark = "…"
	if dropped { // it may begin in the middle of a character
		for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(s[0]); i++ {
			s = s[1:]
		}
	}
	note := ""
	if !utf8.ValidString(s) || hasNUL(s) {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
		note = alteredNote
	}
	if room := maxMessage - len(note); dropped || len(s) > room {
		from := max(0, len(s)-(room-len(mark)))
		for from < len(s) && !utf8.RuneStart(s[from]) {
			from++
		}
		s = mark + s[from:]
	}
	return s + note
}
