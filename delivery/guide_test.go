package delivery_test

import (
	"os"
	"strings"
	"testing"

	"github.com/placet-dev/placet/event"
)

// The guide lists every type of event that a target can hear of.
func TestGuideListsTheTypes(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../docs/guide/wakes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range event.Types() {
		if !strings.Contains(string(b), "`"+string(typ)+"`") {
			t.Errorf("%s is not in the guide", typ)
		}
	}
}
