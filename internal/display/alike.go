package display

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// alike is a character that looks like another.
type alike struct {
	at   int    // bytes from the start of the text
	note string // "looks like a"
}

// look is what a character looks like.
type look struct {
	ascii  rune
	rule   lookRule
	script uint // of a letter: its place in likeLetter
}

type lookRule int

const (
	letterRule lookRule = iota
	digitRule
	signRule
	betweenRule
	hyphenRule
	dashRule
	wideRule // of a fullwidth letter or digit; in no table
)

// looks is the table of look-alikes by their character.
var looks = sync.OnceValue(func() map[rune]look {
	table := map[rune]look{}
	words := func(words string, rule lookRule, script int) {
		for _, word := range strings.Fields(words) {
			ascii, others := rune(word[0]), word[1:]
			for _, r := range others {
				table[r] = look{ascii, rule, uint(script)}
			}
		}
	}
	for i, l := range likeLetter {
		words(l.words, letterRule, i)
	}
	words(likeDigit, digitRule, 0)
	words(likeSign, signRule, 0)
	words(likeSignBetween, betweenRule, 0)
	words("-"+likeHyphen, hyphenRule, 0)
	words("-"+likeDash, dashRule, 0)
	return table
})

// lookAlikes finds the look-alikes in a text by the rules of [Pieces].
func lookAlikes(s string) []alike {
	if isASCII(s) {
		return nil
	}
	m := marker{s: s, looks: looks()}
	for i := 0; i < len(s); {
		i += m.next(i)
	}
	m.endLine()
	for _, w := range m.words {
		m.judge(w)
	}
	slices.SortFunc(m.found, func(a, b alike) int { return cmp.Compare(a.at, b.at) })
	return m.found
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// marker walks through a text once and keeps the words that can only be judged when all
// of it is known.
type marker struct {
	s     string
	looks map[rune]look
	found []alike

	clear   scripts // of which the text has letters that look like no other
	turkish bool    // it has letters that only Turkish and its relatives have

	word  word
	words []word
	maybe []sighted // in words, which know their own by number

	spaced     spaced
	spacedFrom int // the first of words in it

	other  scripts // of the last word that is not all look-alikes
	behind int     // the first of words that has not seen the next such word

	eastern bool    // the line has Chinese, Japanese or Korean
	wide    []alike // what is ordinary in such a line
}

// next looks at the character at s[i:] and is how many bytes it looked at.
func (m *marker) next(i int) int {
	r, n := utf8.DecodeRuneInString(m.s[i:])
	switch {
	case r < utf8.RuneSelf:
		return m.ascii(i, r)
	case r == utf8.RuneError:
		m.endWord()
		return n
	case unicode.IsSpace(r) || unicode.Is(unicode.Z, r):
		m.endSpaced()
		return n
	case Hidden(r) || unicode.Is(unicode.M, r):
		return n // it belongs to its word
	}
	if l, ok := m.looks[r]; ok {
		return m.look(i, n, r, l)
	}
	if form := norm.NFKC.PropertiesString(m.s[i:]).Decomposition(); form != nil && m.form(i, n, r, form) {
		return n
	}
	m.plain(i, n, r)
	return n
}

func (m *marker) ascii(i int, r rune) int {
	switch {
	case r == '\n':
		m.endLine()
	case r == ' ' || r < 0x20:
		m.endSpaced()
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		m.word.letters++
		m.word.latin, m.word.ascii = true, true
	case r >= '0' && r <= '9':
		m.word.digit = true
	case r == '-':
		return m.dashes(i)
	default:
		m.endWord()
	}
	return 1
}

// look is for a character that is in the table.
func (m *marker) look(i, n int, r rune, l look) int {
	switch l.rule {
	case letterRule:
		m.letter(i, r, l, string(l.ascii))
	case digitRule:
		m.sight(sighted{i, r, string(l.ascii), digitRule})
	case hyphenRule, dashRule:
		return m.dashes(i)
	case signRule:
		m.endWord()
		m.mark(i, string(l.ascii))
	case betweenRule:
		m.endWord()
		if m.between(i, i+n) {
			m.mark(i, string(l.ascii))
		}
	}
	return n
}

func (m *marker) letter(i int, r rune, l look, like string) {
	m.word.letters++
	m.word.alike++
	m.word.scripts |= 1 << l.script
	m.sight(sighted{i, r, like, letterRule})
}

// form is for a character that Unicode counts as a form of others. It reports whether it
// knew what to do with it.
func (m *marker) form(i, n int, r rune, form []byte) bool {
	if isASCII(string(form)) {
		m.asciiForm(i, n, r, string(form))
		return true
	}
	first, size := utf8.DecodeRune(form)
	l, ok := m.looks[first]
	if !ok || l.rule != letterRule {
		return false
	}
	m.letter(i, r, l, norm.NFC.String(string(l.ascii)+string(form[size:])))
	return true
}

// asciiForm is for a form of ASCII characters.
func (m *marker) asciiForm(i, n int, r rune, form string) {
	letter := unicode.IsLetter(r)
	switch {
	case typography(r):
		m.endWord()
		if r == '…' && m.besideSlash(i, i+n) {
			m.mark(i, form)
		}
	case !isWide(r):
		m.mark(i, form)
		if letter {
			m.word.letters++
			m.word.latin = true
		} else if !unicode.IsNumber(r) {
			m.endWord()
		}
	case letter:
		m.word.letters++
		m.word.latin = true
		m.sight(sighted{i, r, form, wideRule})
	case unicode.Is(unicode.Nd, r):
		m.sight(sighted{i, r, form, wideRule})
	case isFullwidth(r):
		m.endWord()
		m.wideSign(i, r, form)
	default:
		m.wide = append(m.wide, alike{i, "looks like " + form})
	}
}

// typography reports whether a form of ASCII characters is ordinary in prose.
func typography(r rune) bool {
	return strings.ContainsRune("ª²³¹º…№℠™", r) || r >= 0x2070 && r < 0x20a0 && !unicode.IsLetter(r)
}

func isFullwidth(r rune) bool { return r >= 0xff01 && r <= 0xff5e }

// isWide reports whether r is of those forms that are ordinary in Chinese, Japanese and Korean.
func isWide(r rune) bool {
	return isFullwidth(r) || r >= 0x2460 && r < 0x2500 || r >= 0x3200 && r < 0x3400
}

// wideSign is for fullwidth punctuation. What prose has is ordinary in an eastern line
// wherever it stands; the rest is not between ASCII letters or digits.
func (m *marker) wideSign(i int, r rune, form string) {
	if strings.ContainsRune("！（），？", r) || !m.wideBetween(i) {
		m.wide = append(m.wide, alike{i, "looks like " + form})
		return
	}
	m.mark(i, form)
}

// wideBetween reports whether the fullwidth character at s[i:] stands between ASCII
// letters or digits, perhaps with more of its kind.
func (m *marker) wideBetween(i int) bool {
	const enough = 8 // of a run, so that a long one is not gone through again and again
	from, to := i, i
	for range enough {
		if r, n := utf8.DecodeLastRuneInString(m.s[:from]); isFullwidth(r) {
			from -= n
		}
		if r, n := utf8.DecodeRuneInString(m.s[to:]); isFullwidth(r) {
			to += n
		}
	}
	return m.between(from, to)
}

// plain is for a character that looks like no other.
func (m *marker) plain(i, n int, r rune) {
	switch {
	case isEastern(r): // words are not set apart there
		m.eastern = true
		m.endWord()
	case unicode.IsLetter(r):
		m.word.letters++
		script, known := scriptOf(r)
		m.word.latin = m.word.latin || known && script == 0
		if known && script > 0 {
			m.word.clear |= 1 << script
		}
		m.turkish = m.turkish || strings.ContainsRune("ğĞşŞİəƏ", r)
	case unicode.Is(unicode.Nd, r):
		m.sight(sighted{at: i, r: r, rule: digitRule})
	case !unicode.IsNumber(r):
		m.endWord()
	}
}

func isEastern(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// scriptOf is the place of a character's script in likeLetter. That of Latin is 0.
func scriptOf(r rune) (uint, bool) {
	for i, l := range likeLetter {
		if unicode.Is(l.script, r) {
			return uint(i), true
		}
	}
	for i, t := range digitScripts {
		if unicode.Is(t, r) {
			return uint(len(likeLetter) + i), true
		}
	}
	return 0, false
}

// digitScripts have digits that look like others, and no such letters.
var digitScripts = []*unicode.RangeTable{unicode.Bengali, unicode.Gurmukhi}

func (m *marker) sight(s sighted) { m.maybe = append(m.maybe, s) }

func (m *marker) mark(at int, like string) {
	m.found = append(m.found, alike{at, "looks like " + like})
}

// between reports whether s[from:to] stands directly between ASCII letters or digits.
func (m *marker) between(from, to int) bool {
	return from > 0 && to < len(m.s) && isAlnum(m.s[from-1]) && isAlnum(m.s[to])
}

func (m *marker) besideSlash(from, to int) bool {
	return from > 0 && strings.IndexByte(`/\`, m.s[from-1]) >= 0 || to < len(m.s) && strings.IndexByte(`/\`, m.s[to]) >= 0
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// dashes is for a run of hyphens and dashes, those of ASCII included.
func (m *marker) dashes(from int) int {
	m.endWord()
	to := from
	var hyphens, all []int
	for to < len(m.s) {
		r, n := utf8.DecodeRuneInString(m.s[to:])
		switch l := m.looks[r]; {
		case l.rule == hyphenRule:
			hyphens = append(hyphens, to)
			all = append(all, to)
		case l.rule == dashRule:
			all = append(all, to)
		case r != '-':
			n = 0
		}
		if n == 0 {
			break
		}
		to += n
	}
	switch {
	case m.option(from, to):
	case m.between(from, to):
		all = hyphens
	default:
		all = nil
	}
	for _, at := range all {
		m.mark(at, "-")
	}
	return to - from
}

// option reports whether dashes in s[from:to] could begin an option or a negative number.
func (m *marker) option(from, to int) bool {
	if to == len(m.s) || !isAlnum(m.s[to]) {
		return false
	}
	r, n := utf8.DecodeLastRuneInString(m.s[:from])
	return n == 0 || Hidden(r) || unicode.IsSpace(r) || strings.ContainsRune("=|;&\"'`", r) || unicode.In(r, unicode.Ps, unicode.Pi)
}
