package txn_test

import (
	"testing"

	"github.com/placet-dev/placet/txn"
)

func TestText(t *testing.T) {
	t.Parallel()
	for s, as := range map[string]string{
		"":        "",
		"aé\n\t🙂": "aé\n\t🙂",
		"a\x00b":  "a\uFFFDb",
		"a\xffb":  "a\uFFFDb",
		"\xc3":    "\uFFFD",
	} {
		if got := txn.AsText(s); got != as || txn.IsText(s) != (s == as) || !txn.IsText(got) {
			t.Errorf("AsText(%q) = %q, want %q; IsText = %v", s, got, as, txn.IsText(s))
		}
	}
}
