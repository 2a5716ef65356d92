package display

import (
	"fmt"
	"unicode"
)

// scripts is a set of places in likeLetter.
type scripts uint32

// spaced is what stands between two spaces.
type spaced struct {
	latin bool
	clear scripts
}

type word struct {
	from, to     int // in marker.maybe
	letters      int
	alike        int     // how many of the letters are look-alikes
	scripts      scripts // of those
	clear        scripts // of the other letters
	latin        bool    // it has Latin letters of any form
	ascii, digit bool    // it has ASCII letters, ASCII digits
	spaced       spaced
	around       scripts // of the next words on both sides that are not all look-alikes
}

// sighted is a character that may be a look-alike.
type sighted struct {
	at    int
	r     rune
	looks string
	rule  lookRule
}

// endWord keeps the word that ends if it has to be judged.
func (m *marker) endWord() {
	w := m.word
	w.to = len(m.maybe)
	m.word = word{from: w.to}
	if w.letters == 0 && w.to == w.from {
		return
	}
	m.clear |= w.clear
	m.spaced.clear |= w.clear
	m.spaced.latin = m.spaced.latin || w.latin
	alone := w.letters == w.alike
	if !alone {
		m.other = w.clear
		for ; m.behind < len(m.words); m.behind++ {
			m.words[m.behind].around |= w.clear
		}
	}
	if m.toJudge(w, alone) {
		w.around = m.other
		m.words = append(m.words, w)
		return
	}
	m.maybe = m.maybe[:w.from]
	m.word.from = w.from
}

// toJudge reports whether w has something to be judged when all is known. What is
// fullwidth is judged now: it is ordinary in an eastern line, but not among ASCII.
func (m *marker) toJudge(w word, alone bool) bool {
	some := false
	for _, s := range m.maybe[w.from:w.to] {
		switch {
		case s.rule != wideRule:
			some = some || alone || w.latin || s.rule == digitRule
		case w.ascii || w.digit:
			m.mark(s.at, s.looks)
		default:
			m.wide = append(m.wide, alike{s.at, "looks like " + s.looks})
		}
	}
	return some
}

func (m *marker) endSpaced() {
	m.endWord()
	for ; m.spacedFrom < len(m.words); m.spacedFrom++ {
		m.words[m.spacedFrom].spaced = m.spaced
	}
	m.spaced = spaced{}
}

func (m *marker) endLine() {
	m.endSpaced()
	if !m.eastern {
		m.found = append(m.found, m.wide...)
	}
	m.wide, m.eastern = nil, false
}

func (m *marker) judge(w word) {
	ordinary := !w.latin && !m.foreign(w)
	for _, s := range m.maybe[w.from:w.to] {
		switch s.rule {
		case letterRule:
			if !ordinary && !(s.r == 'ı' && m.turkish) {
				m.mark(s.at, s.looks)
			}
		case digitRule:
			m.digit(w, s)
		}
	}
}

// foreign reports whether the letters of w, which has no Latin ones, are look-alikes where
// they are met.
func (m *marker) foreign(w word) bool {
	switch of := w.scripts; {
	case w.alike < w.letters:
		return false
	case of&(of-1) != 0: // more than one script
		return true
	case m.clear&of == 0 || w.spaced.latin && w.spaced.clear&of == 0:
		return true
	default:
		return w.letters > 1 && w.around&of == 0
	}
}

// digit judges a digit of another script.
func (m *marker) digit(w word, s sighted) {
	value := digitValue(s.r)
	script, known := scriptOf(s.r)
	misleads := s.looks != "" && isAlnum(s.looks[0]) && s.looks[0] <= '9' && s.looks != value
	lone := misleads && !(known && m.clear&(1<<script) != 0)
	switch {
	case w.digit || lone:
		note := "a digit " + value
		if misleads {
			note = fmt.Sprintf("%s that looks like %s", note, s.looks)
		}
		m.found = append(m.found, alike{s.at, note})
	case s.looks != "" && w.latin:
		m.mark(s.at, s.looks)
	}
}

// digitValue is the value of a decimal digit: they stand in tens, from 0 on.
func digitValue(r rune) string {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return string('0' + (r-rune(t.Lo))%10)
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return string('0' + (r-rune(t.Lo))%10)
		}
	}
	return ""
}
