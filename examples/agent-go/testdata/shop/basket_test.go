package shop

import "testing"

func TestTotal(t *testing.T) {
	if got := Total([]int{300, 700}, 10); got != 900 {
		t.Errorf("Total = %d, want 900", got)
	}
}
