package display

import "slices"

// elements is where two arrays differ, in the order of their elements.
func (d *differ) elements(a, b []twin) []spot {
	l := aligner{d: d, a: a, b: b}
	l.stretch(0, len(a), 0, len(b), true)
	return l.spots
}

// aligner finds the elements of an array that stayed when it became another one.
type aligner struct {
	d     *differ
	a, b  []twin
	spots []spot
}

func (l *aligner) same(i, j int) bool { return l.a[i].id == l.b[j].id }

// stretch aligns a[i:n] with b[j:m].
func (l *aligner) stretch(i, n, j, m int, first bool) {
	for i < n && j < m && l.same(i, j) {
		i, j = i+1, j+1
	}
	for i < n && j < m && l.same(n-1, m-1) {
		n, m = n-1, m-1
	}
	switch {
	case i == n || j == m:
		l.byPlace(i, n, j, m)
	case l.d.afford((n-i)*(m-j), maxTable):
		stay := best(n-i, m-j, func(x, y int) int {
			if l.same(i+x, j+y) {
				return 1
			}
			return 0
		})
		l.between(stay, i, n, j, m, l.similar)
	case first:
		l.between(l.anchors(i, n, j, m), i, n, j, m, func(i, n, j, m int) { l.stretch(i, n, j, m, false) })
	default:
		l.byPlace(i, n, j, m)
	}
}

// afford reports whether n pairs may be compared, and takes them from the rest.
func (d *differ) afford(n, most int) bool {
	if n > most || n > d.pairs {
		return false
	}
	d.pairs -= n
	return true
}

// between aligns what is between pairs of elements that belong together. They are
// counted from i and j.
func (l *aligner) between(pairs []spot, i, n, j, m int, gap func(i, n, j, m int)) {
	fromA, fromB := i, j
	for _, p := range pairs {
		x, y := i+p.before, j+p.after
		gap(fromA, x, fromB, y)
		if !l.same(x, y) {
			l.spots = append(l.spots, spot{x, y})
		}
		fromA, fromB = x+1, y+1
	}
	gap(fromA, n, fromB, m)
}

// byPlace compares elements place by place. The longer rest was removed or added.
func (l *aligner) byPlace(i, n, j, m int) {
	for ; i < n && j < m; i, j = i+1, j+1 {
		if !l.same(i, j) {
			l.spots = append(l.spots, spot{i, j})
		}
	}
	for ; i < n; i++ {
		l.spots = append(l.spots, spot{i, none})
	}
	for ; j < m; j++ {
		l.spots = append(l.spots, spot{none, j})
	}
}

// similar pairs elements, none of which stayed, such that they have most in common.
func (l *aligner) similar(i, n, j, m int) {
	parts := 0
	for _, t := range l.a[i:n] {
		parts += (m - j) * len(t.parts)
	}
	for _, t := range l.b[j:m] {
		parts += (n - i) * len(t.parts)
	}
	if n-i == m-j && n-i <= 1 || parts == 0 || !l.d.afford(parts+(n-i)*(m-j), maxTable) {
		l.byPlace(i, n, j, m)
		return
	}
	pairs := best(n-i, m-j, func(x, y int) int { return common(l.a[i+x], l.b[j+y]) })
	l.between(pairs, i, n, j, m, l.byPlace)
}

// common is how many parts of two values are the same.
func common(a, b twin) (n int) {
	switch {
	case a.isOpen('[') && b.isOpen('['):
		for i := range min(len(a.parts), len(b.parts)) {
			if a.parts[i].id == b.parts[i].id {
				n++
			}
		}
	case a.isOpen('{') && b.isOpen('{'):
		for i, j := 0, 0; i < len(a.byName) && j < len(b.byName); {
			x, y := a.byName[i], b.byName[j]
			switch {
			case a.name(x) < b.name(y):
				i++
			case a.name(x) > b.name(y):
				j++
			default:
				if a.parts[x].id == b.parts[y].id {
					n++
				}
				i, j = i+1, j+1
			}
		}
	}
	return n
}

// best pairs n things with m others, keeping the order of both, such that the sum of
// their worths is the greatest. Pairs that are worth nothing are left out.
func best(n, m int, worth func(x, y int) int) (pairs []spot) {
	width := m + 1
	sum := make([]int32, (n+1)*width) // of the best pairs from x and y on
	for x := n - 1; x >= 0; x-- {
		for y := m - 1; y >= 0; y-- {
			sum[x*width+y] = max(sum[(x+1)*width+y], sum[x*width+y+1], sum[(x+1)*width+y+1]+int32(worth(x, y)))
		}
	}
	for x, y := 0, 0; x < n && y < m; {
		switch w := int32(worth(x, y)); {
		case w > 0 && sum[x*width+y] == sum[(x+1)*width+y+1]+w:
			pairs = append(pairs, spot{x, y})
			x, y = x+1, y+1
		case sum[x*width+y] == sum[(x+1)*width+y]:
			x++
		default:
			y++
		}
	}
	return pairs
}

// anchors pairs the elements that occur once in a[i:n] and once in b[j:m]: the longest
// row of them that is in order. They are counted from i and j.
func (l *aligner) anchors(i, n, j, m int) []spot {
	type places struct{ a, b, countA, countB int }
	at := map[int]*places{}
	for x, t := range l.a[i:n] {
		p := at[t.id]
		if p == nil {
			p = &places{}
			at[t.id] = p
		}
		p.a = x
		p.countA++
	}
	for y, t := range l.b[j:m] {
		if p := at[t.id]; p != nil {
			p.b = y
			p.countB++
		}
	}
	var pairs []spot
	for _, t := range l.a[i:n] {
		if p := at[t.id]; p.countA == 1 && p.countB == 1 {
			pairs = append(pairs, spot{p.a, p.b})
		}
	}
	return rising(pairs)
}

// rising is the longest row of pairs, which are in the order of before, that is in the
// order of after, too.
func rising(pairs []spot) []spot {
	var ends []int // the pair with the least after that ends a row of 1, 2, … pairs
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(ends, p.after, func(end, after int) int { return pairs[end].after - after })
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
		if k > 0 {
			previous[i] = ends[k-1]
		}
	}
	row := make([]spot, len(ends))
	for k, i := len(ends)-1, 0; k >= 0; k-- {
		if k == len(ends)-1 {
			i = ends[k]
		}
		row[k] = pairs[i]
		i = previous[i]
	}
	return row
}
