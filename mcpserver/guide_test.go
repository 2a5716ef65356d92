package mcpserver_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/placet-dev/placet/mcpserver"
)

// The guide's table has each tool once, with an example that the tool takes.
func TestGuide(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../docs/guide/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	s := at(t, &door{scope: "admin"}, mcpserver.Config{}, nil, versions[0])
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var registered, told []string
	for _, tool := range listed.Tools {
		registered = append(registered, tool.Name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| `(\\{.*\\})` \\|$").FindAllStringSubmatch(string(b), -1) {
		told = append(told, row[1])
		if a := invoke(t, s, row[1], row[2]); a.IsError {
			t.Errorf("%s does not take %s: %s", row[1], row[2], a.text)
		}
	}
	slices.Sort(registered)
	slices.Sort(told)
	if !slices.Equal(told, registered) {
		t.Errorf("the guide has %q, and there are %q", told, registered)
	}
}
