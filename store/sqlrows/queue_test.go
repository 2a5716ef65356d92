package sqlrows

import (
	"testing"
	"time"
)

// A search goes on for at least so many unless it takes far too long, and from there on for
// as many as it can look through in time.
func TestNextLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		last, all int
		took      time.Duration
		want      int
	}{
		{"twice as many as before", 100, 100, time.Millisecond, 200},
		{"some, behind a large one", 1, 1, 10 * time.Millisecond, fewest},
		{"no more than is enough", 1600, 3100, 20 * time.Millisecond, 1900},
		{"some, just before it is enough", 1600, enoughLook - 1, 20 * time.Millisecond, fewest},
		{"slow, and not enough yet", 1600, 3100, 290 * time.Millisecond, 1900},
		{"far too slow", 100, 100, 301 * time.Millisecond, 0},
		{"enough, in a moment", 1900, 5000, 0, 3800},
		{"enough, in half of the time", 8000, 9000, 30 * time.Millisecond, 9000},
		{"enough, and little time is left", 1900, 6000, 58 * time.Millisecond, 206},
		{"enough, and next to no time is left", 1900, 5000, 60*time.Millisecond - time.Microsecond, 0},
		{"enough, and no time is left", 1900, 5000, 61 * time.Millisecond, 0},
	} {
		if got := nextLook(c.last, c.all, c.took); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
