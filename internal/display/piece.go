package display

import (
	"fmt"
	"strings"
)

// Piece is a stretch of a text as it is shown.
type Piece struct {
	Text  string // fit to be shown
	Sort  Sort
	Title string // of an Escape or an Alike: what it is, such as "U+202E RIGHT-TO-LEFT OVERRIDE"
}

// Sort is what a piece of a text is.
type Sort int

// The sorts of pieces.
const (
	Plain  Sort = iota // to be read as it is
	Escape             // stands for what cannot be seen, or changes how its surroundings are seen
	Alike              // one character, shown as it is, that looks like another; see [Pieces]
	Break              // a line feed, shown as \n; a new line may begin behind it
)

// String is the sort in one word, in lower case.
func (s Sort) String() string {
	switch s {
	case Escape:
		return "escape"
	case Alike:
		return "alike"
	case Break:
		return "break"
	}
	return "plain"
}

// Pieces takes a text apart for whoever can show its pieces in different ways. Their
// texts, joined, are [Line] of s. Every escape and every look-alike is a piece of its own.
//
// A character is a look-alike where it can be taken for one of ASCII, or for several:
//
//   - Unicode counts it as a form of them: fullwidth, mathematical, circled letters,
//     ligatures, Roman numerals. Raised and lowered digits and signs, ª, º, …, № and ™ are
//     ordinary; so are fullwidth and circled characters in a line that has Chinese,
//     Japanese or Korean, unless they are inside of an ASCII word or address.
//   - It is a letter of another script, or a rare Latin one, that Unicode lists as
//     confusable, and its word (letters, digits and marks) has Latin letters too, or has
//     look-alikes of two scripts. Where all letters of a word are look-alikes of one
//     script, they are ordinary only as part of a text in that script: the text has other
//     letters of it; so has what stands between the same spaces, if Latin letters stand
//     there too; and so has one of the next words before and behind that are not such words
//     themselves, unless the word is a single letter. The dotless ı is ordinary in a text
//     that has a letter only Turkish and its relatives use.
//   - It is a digit of another script in a word with ASCII digits; one that looks like
//     a letter in a word of Latin letters; or one that looks like an ASCII digit of another
//     value, in a text without letters of its script.
//   - It is a sign that passes for one with a meaning in a path, an address or a command:
//     slashes, bars, colons, asterisks, angles and the like. Full stops and decimal
//     signs of other scripts, hyphens and the minus sign are such signs directly between
//     ASCII letters or digits, three dots in one next to a slash. Any dash is where an
//     option or a negative number begins: behind a space, a bracket or =, and directly
//     before an ASCII letter or digit. Elsewhere dashes are ordinary, and quotes always.
//
// What looks alike within ASCII (l, 1 and I; O and 0) is not told apart.
func Pieces(s string) []Piece { return pieces(s, people) }

// JSONPieces is Pieces of a JSON document as it is written: its own escapes are left as
// they are, and what else cannot be seen stands as JSON would escape it.
func JSONPieces(doc string) []Piece { return pieces(doc, written) }

func pieces(s string, st style) []Piece {
	if s != "" && st == people && plain(s) {
		return []Piece{{Text: s}}
	}
	w := pieceWriter{k: newKeeper(st), alike: lookAlikes(s), titles: map[rune]string{}}
	for i := 0; i < len(s); {
		i += w.next(s, i)
	}
	w.flush(Plain, "")
	return w.out
}

type pieceWriter struct {
	k      keeper
	out    []Piece
	text   strings.Builder // of the piece that is not finished
	alike  []alike         // those that are still to come
	titles map[rune]string // of a text full of one character
}

// next writes the character at s[i:] and is how many bytes it has.
func (w *pieceWriter) next(s string, i int) int {
	r, n, how := w.k.next(s[i:])
	spelled := how == asSign && w.k.spelled(s[i:])
	switch sort := sortOf(r, how, spelled); {
	case len(w.alike) > 0 && w.alike[0].at == i:
		return w.lookAlike(s, i, r, n)
	case sort == Plain:
		w.k.write(&w.text, s[i:], r, n, how)
	default:
		w.flush(Plain, "")
		w.k.write(&w.text, s[i:], r, n, how)
		w.flush(sort, w.title(sort, r, how, spelled))
	}
	return n
}

// lookAlike writes the look-alike at s[i:] with the marks on it.
func (w *pieceWriter) lookAlike(s string, i int, r rune, n int) int {
	w.flush(Plain, "")
	w.text.WriteString(s[i : i+n])
	for i+n < len(s) {
		k := w.k
		_, m, how := k.next(s[i+n:])
		if how != asItself || k.marks == 0 {
			break
		}
		w.text.WriteString(s[i+n : i+n+m])
		w.k, n = k, n+m
	}
	w.flush(Alike, named(r)+", "+w.alike[0].note)
	w.alike = w.alike[1:]
	return n
}

func (w *pieceWriter) flush(sort Sort, title string) {
	if w.text.Len() > 0 {
		w.out = append(w.out, Piece{Text: w.text.String(), Sort: sort, Title: title})
		w.text.Reset()
	}
}

func sortOf(r rune, how shownAs, spelled bool) Sort {
	switch {
	case how == asItself || how == asSign && r >= 0x20 && !spelled:
		return Plain
	case how == asSign && r == '\n':
		return Break
	}
	return Escape
}

func (w *pieceWriter) title(sort Sort, r rune, how shownAs, spelled bool) string {
	switch {
	case sort == Break:
		return ""
	case how == asByte:
		return fmt.Sprintf("byte %02X, part of no character", r)
	case how == asHalf:
		return fmt.Sprintf("%U, half of a character", r)
	}
	title, ok := w.titles[r]
	if !ok {
		title = named(r)
		w.titles[r] = title
	}
	switch {
	case how == asMark:
		title += ", on too many others or on none"
	case spelled:
		title += ", which would read as an escape here"
	}
	return title
}
