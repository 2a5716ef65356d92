package display

import "strings"

// Suspicious reports whether s has look-alikes, or escapes other than for line feeds and
// tabs: whether [Warning] has something to say.
func Suspicious(s string) bool {
	k := newKeeper(people)
	for i := 0; i < len(s); {
		r, n, how := k.next(s[i:])
		if odd(r, how) {
			return true
		}
		i += n
	}
	return len(lookAlikes(s)) > 0
}

// odd reports whether a character deserves a warning by how it is shown.
func odd(r rune, how shownAs) bool {
	return how > asSign || how == asSign && r < 0x20 && r != '\n' && r != '\t'
}

// Warning says in words what makes s [Suspicious], such as "2 characters that cannot be
// seen, 1 that looks like another". It is empty where nothing does.
func Warning(s string) string {
	var o oddities
	o.add(s)
	return o.String()
}

// Warning is the same for all the names and texts in a value. Secrets do not count.
func (n Node) Warning() string {
	var o oddities
	o.addNode(n)
	return o.String()
}

// Oddity is a character that is marked where it is shown, see [Pieces].
type Oddity struct {
	Title string // what it is, such as "U+202E RIGHT-TO-LEFT OVERRIDE"
	Count int    // how often it is there
}

// Oddities are the characters that [Pieces] marks in a text, in the order in which a
// reader meets them: what a [Warning] is about, for whoever cannot point at a mark.
func Oddities(s string) []Oddity {
	var l oddityList
	l.add(s)
	return l.found
}

// Oddities are those of all the names and texts in a value. Secrets do not count.
func (n Node) Oddities() []Oddity {
	var l oddityList
	l.addNode(n)
	return l.found
}

type oddityList struct {
	found []Oddity
	at    map[string]int // by title
}

func (l *oddityList) add(s string) {
	for _, p := range Pieces(s) {
		if p.Title == "" {
			continue
		}
		i, ok := l.at[p.Title]
		if !ok {
			if l.at == nil {
				l.at = map[string]int{}
			}
			i = len(l.found)
			l.at[p.Title], l.found = i, append(l.found, Oddity{Title: p.Title})
		}
		l.found[i].Count++
	}
}

func (l *oddityList) addNode(n Node) {
	l.add(n.Name)
	l.add(n.Text)
	for _, c := range n.Nodes {
		l.addNode(c)
	}
}

// oddities is how many characters deserve a warning.
type oddities struct{ unseen, marks, broken, alike int }

func (o *oddities) add(s string) {
	k := newKeeper(people)
	for i := 0; i < len(s); {
		r, n, how := k.next(s[i:])
		switch {
		case how == asMark:
			o.marks++
		case how == asByte || how == asHalf:
			o.broken++
		case odd(r, how):
			o.unseen++
		}
		i += n
	}
	o.alike += len(lookAlikes(s))
}

func (o *oddities) addNode(n Node) {
	o.add(n.Name)
	o.add(n.Text)
	for _, c := range n.Nodes {
		o.addNode(c)
	}
}

// String is the counts in words; none for none.
func (o oddities) String() string {
	var said []string
	say := func(n int, one, many string) {
		if n == 0 {
			return
		}
		noun, rest := "character ", one
		if n > 1 {
			noun, rest = "characters ", many
		}
		if len(said) > 0 {
			noun = ""
		}
		said = append(said, Count(n)+" "+noun+rest)
	}
	say(o.unseen, "that cannot be seen", "that cannot be seen")
	say(o.marks, "that covers others", "that cover others")
	say(o.broken, "that is broken", "that are broken")
	say(o.alike, "that looks like another", "that look like others")
	return strings.Join(said, ", ")
}
