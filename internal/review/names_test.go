package review_test

import (
	"strings"
	"testing"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
)

// Each type of events is told in words of its own, so that one can be chosen by them.
func TestTypeWords(t *testing.T) {
	t.Parallel()
	of := map[string]event.Type{}
	for _, typ := range event.Stored() {
		w := review.TypeWords(typ)
		if other, taken := of[w]; taken {
			t.Errorf("%s and %s are both %q", typ, other, w)
		}
		if !strings.Contains(w, " ") && typ != event.JobPaused || strings.ContainsAny(w, "_.") {
			t.Errorf("%s is only %q", typ, w)
		}
		of[w] = typ
	}
}
