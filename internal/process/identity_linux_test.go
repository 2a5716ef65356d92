package process

import "testing"

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21"
	for _, name := range []string{"sh", "a b", ") R 1 1", "((", "x) Z ("} {
		state, start, err := parseStat("12 (" + name + ") S" + rest)
		if state != 'S' || start != 98765 || err != nil {
			t.Errorf("%q: %c %d %v", name, state, start, err)
		}
	}
	for _, bad := range []string{"", "12", "12 (sh)", "12 (sh) S 1 2", "12 (sh) SS" + rest, "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"} {
		if _, _, err := parseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
