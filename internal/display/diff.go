package display

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/placet-dev/placet/canon"
)

// Change is one difference between two documents.
type Change struct {
	// Path leads to the value that is different. Its indexes count the elements of the
	// document after the change; only the last one, of something removed, counts those before.
	Path   Path
	Sort   ChangeSort
	Before Node // of kind None if it was added
	After  Node // of kind None if it was removed
}

// ChangeSort is what became of a value.
type ChangeSort int

// What can become of a value.
const (
	Added ChangeSort = iota
	Removed
	Changed
)

// String is the sort in one word, in lower case.
func (s ChangeSort) String() string {
	return [...]string{"added", "removed", "changed"}[s]
}

// Bounds of the work that two documents make. The rest of it grows like their size times
// its logarithm.
const (
	maxChanges = 2000    // of a Diff
	maxTable   = 1 << 20 // pairs of elements that are compared for one array
	maxPairs   = 1 << 23 // the same, for all of them
)

// Diff is how two documents differ. There is no Change exactly if they are the same by
// [canon.Equal]: numbers are compared by their exact value, members by name, in whatever
// order. Beyond what package canon accepts, a member whose name is there more than once is
// compared with the one that has as many of that name before it, a number out of bounds
// by its digits as written, and what is no JSON by its bytes.
//
// Members come in the order of before, added ones behind them in that of after. In an
// array elements that stayed are found by what they are, so one put in between does not make
// others different, and of the others those that have most in common are compared. Where
// an array is too long for that, over about a thousand different elements, those
// that occur once in both documents are found, and the others compared place by place.
//
// There are at most 2000 changes. Where more of them would be found, values that differ
// are one Change as a whole, so the changes always make before into after.
//
// Secrets are compared by what they are, and shown masked; nothing inside of one is told.
// So the two sides of a secret that changed look the same, and so may those of a string
// that is JSON with a secret in it.
func (m *Mask) Diff(before, after []byte) []Change {
	d := differ{ids: map[string]int{}, pairs: maxPairs, count: 1}
	a, b := d.document(m.both(before)), d.document(m.both(after))
	if a.id != b.id {
		d.changed("", a, b)
	}
	return d.changes
}

// twin is a value as it is and as it is shown. Two of them are the same if and only if
// they have the same id.
type twin struct {
	real, shown *value
	id          int
	parts       []twin // what is inside, in the order it stands there
	byName      []int  // of an object: the places of its members in the order of their names
}

func (t twin) isOpen(kind byte) bool { return t.real.kind == kind && t.shown.kind == kind }

func (t twin) name(i int) string { return t.real.members[i].key }

type differ struct {
	ids     map[string]int
	pairs   int // of elements that may still be compared
	count   int // of changes that are certain
	changes []Change
	path    Path
}

func (d *differ) document(real, shown value) twin { return d.twin(&real, &shown) }

// twin gives a value its id, and those in it. What the id stands for is written with
// the ids of what is inside, so all of it together is about as long as the document.
func (d *differ) twin(real, shown *value) twin {
	t := twin{real: real, shown: shown, parts: make([]twin, len(real.members))}
	for i := range real.members {
		inside := shown // of a secret, nothing inside is shown
		if !shown.hidden {
			inside = &shown.members[i].val
		}
		t.parts[i] = d.twin(&real.members[i].val, inside)
	}
	key := []byte{real.kind}
	switch {
	case real.kind == '[':
		for _, p := range t.parts {
			key = binary.AppendUvarint(key, uint64(p.id))
		}
	case real.kind == '{':
		t.sortNames()
		for _, i := range t.byName {
			key = binary.AppendUvarint(key, uint64(len(t.name(i))))
			key = append(key, t.name(i)...)
			key = binary.AppendUvarint(key, uint64(t.parts[i].id))
		}
	case real.foreign:
		key = append([]byte("no JSON"), real.text...)
	case real.nodeKind() == Number:
		key = append(key, exact(real.text)...)
	default:
		key = append(key, real.text...)
	}
	t.id = d.id(key)
	return t
}

func (t *twin) sortNames() {
	t.byName = make([]int, len(t.parts))
	for i := range t.byName {
		t.byName[i] = i
	}
	slices.SortStableFunc(t.byName, func(i, j int) int { return cmp.Compare(t.name(i), t.name(j)) })
}

func (d *differ) id(key []byte) int {
	id, ok := d.ids[string(key)]
	if !ok {
		id = len(d.ids)
		d.ids[string(key)] = id
	}
	return id
}

// exact is a number in its canonical form, or as written if it has none.
func exact(number string) string {
	if form, err := canon.Canonical([]byte(number)); err == nil {
		return string(form)
	}
	return number
}

// changed tells how two values differ that are not the same.
func (d *differ) changed(name string, a, b twin) {
	var spots []spot
	switch {
	case a.isOpen('{') && b.isOpen('{'):
		spots = members(a, b)
	case a.isOpen('[') && b.isOpen('['):
		spots = d.elements(a.parts, b.parts)
	}
	if len(spots) == 0 || d.count-1+len(spots) > maxChanges {
		d.add(Changed, asNode(name, a), asNode(name, b))
		return
	}
	d.count += len(spots) - 1
	for _, s := range spots {
		d.follow(a, b, s)
	}
}

// spot is one place where two values differ: where it is in each of them, or none.
type spot struct{ before, after int }

const none = -1

func (d *differ) follow(a, b twin, s spot) {
	next := Key{Array: a.real.kind == '[', Index: s.after}
	if s.after == none {
		next.Index = s.before
	}
	if !next.Array {
		if next.Index = 0; s.after == none {
			next.Name = a.name(s.before)
		} else {
			next.Name = b.name(s.after)
		}
	}
	d.path = append(d.path, next)
	switch {
	case s.before == none:
		d.add(Added, Node{}, asNode(next.Name, b.parts[s.after]))
	case s.after == none:
		d.add(Removed, asNode(next.Name, a.parts[s.before]), Node{})
	default:
		d.changed(next.Name, a.parts[s.before], b.parts[s.after])
	}
	d.path = d.path[:len(d.path)-1]
}

func (d *differ) add(sort ChangeSort, before, after Node) {
	d.changes = append(d.changes, Change{slices.Clone(d.path), sort, before, after})
}

func asNode(name string, t twin) Node {
	n, _ := node(name, *t.real, *t.shown)
	return n
}

// members is where two objects differ.
func members(a, b twin) (spots []spot) {
	match := make([]int, len(b.parts)) // with which member of a, from 1
	for i, j := 0, 0; i < len(a.byName) && j < len(b.byName); {
		x, y := a.byName[i], b.byName[j]
		switch c := cmp.Compare(a.name(x), b.name(y)); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			match[y] = x + 1
			i, j = i+1, j+1
		}
	}
	found := make([]int, len(a.parts))
	for y, x := range match {
		if x > 0 {
			found[x-1] = y + 1
		}
	}
	for x, y := range found {
		switch {
		case y == 0:
			spots = append(spots, spot{x, none})
		case a.parts[x].id != b.parts[y-1].id:
			spots = append(spots, spot{x, y - 1})
		}
	}
	for y, x := range match {
		if x == 0 {
			spots = append(spots, spot{none, y})
		}
	}
	return spots
}
