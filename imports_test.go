package placet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/source"
)

const module = "github.com/placet-dev/placet"

// law is the import law (docs/architecture.md): which of our packages each of
// ours may import. A package without a row fails, and so does a row without a
// package. "*" may know everything.
var law = map[string]string{
	"fault":                      "",
	"canon":                      "",
	"internal/id":                "",
	"internal/process":           "",
	"internal/migrate":           "",
	"internal/source":            "",
	"txn":                        "fault",
	"token":                      "fault txn internal/id",
	"event":                      "fault canon txn",
	"tool":                       "fault canon internal/process",
	"request":                    "fault canon tool",
	"policy":                     "fault canon tool request",
	"policy/rules":               "fault canon tool request policy",
	"decision":                   "fault canon txn event tool request policy internal/id",
	"call":                       "fault canon txn event tool request policy decision internal/id internal/process",
	"run":                        "fault canon txn event tool request policy decision call internal/id internal/process",
	"flow":                       "fault canon txn event tool request policy decision call run internal/id internal/process",
	"store":                      "fault canon txn event tool request policy decision call run delivery job token internal/id",
	"store/storetest":            "fault canon txn event tool request policy decision call run delivery job token store internal/id internal/process",
	"store/postgres":             "fault canon txn event tool request policy decision call run delivery job token store store/sqlrows internal/id internal/migrate internal/whole",
	"store/sqlrows":              "fault canon txn event tool request policy decision call run delivery job token store internal/id",
	"store/sqlite":               "fault canon txn event tool request policy decision call run delivery job token store store/sqlrows internal/id internal/migrate internal/whole",
	"delivery":                   "fault canon txn event internal/id",
	"job":                        "fault canon txn event decision delivery internal/id internal/process",
	"httpapi":                    "fault canon txn event tool request policy decision call run delivery job token internal/id internal/display internal/review internal/problem",
	"channel/webhook":            "fault delivery internal/display",
	"channel/command":            "fault delivery internal/display internal/process",
	"inbox":                      "fault txn event tool request decision call run job delivery token inbox/view internal/display internal/id internal/review internal/progress internal/problem",
	"inbox/gallery":              "event request decision call run job tool inbox/view internal/review delivery policy txn internal/display",
	"inbox/e2e":                  "",
	"inbox/view":                 "event decision call run job delivery internal/display internal/review internal/progress",
	"internal/review":            "fault canon txn event tool request policy decision call run job internal/display internal/id",
	"mcpserver":                  "fault canon txn event tool request policy decision call run job token internal/problem",
	"internal/daemon":            "*",
	"":                           "fault txn event tool request policy decision call run flow delivery job store",
	"placettest":                 "fault txn event tool request policy decision call run store store/sqlite",
	"internal/config":            "fault canon tool request policy policy/rules call",
	"internal/display":           "fault canon tool",
	"internal/problem":           "fault",
	"internal/progress":          "",
	"internal/cli":               "*",
	"internal/tui":               "fault canon txn event tool decision call internal/id internal/display internal/review",
	"internal/states":            "fault event tool request policy decision call run job internal/source delivery",
	"internal/bench":             "*",
	"cmd/placet":                 "internal/cli",
	"mcpserver/clients":          "", // its tests start everything
	"internal/pgtest":            "",
	"internal/pgtest/cmd/withpg": "internal/pgtest",
	"internal/place":             "fault store store/sqlite store/postgres",
	"internal/browsertest":       "internal/debian internal/tidy",
	"internal/daemontest":        "call event httpapi internal/process internal/source internal/tidy internal/whole job run token",
	"internal/debian":            "",
	"internal/tidy":              "internal/process",
	"internal/whole":             "fault txn",
	"internal/dbcopy":            "fault txn event internal/place internal/whole store/sqlite store/postgres",
	"internal/simulate":          "*",
}

// thirdParty says which packages may import which modules besides the standard
// library and golang.org/x. Packages that are not named may import none.
var thirdParty = map[string]string{
	"internal/id":          "github.com/google/uuid",
	"request":              "github.com/go-json-experiment/json",
	"call":                 "github.com/go-json-experiment/json",
	"run":                  "github.com/go-json-experiment/json",
	"tool":                 "github.com/santhosh-tekuri/jsonschema github.com/go-json-experiment/json github.com/google/jsonschema-go",
	"policy/rules":         "cel.dev/cel-go cel.dev/expr google.golang.org/protobuf github.com/go-json-experiment/json",
	"internal/config":      "go.yaml.in/yaml",
	"store/storetest":      "github.com/google/go-cmp",
	"store/sqlite":         "modernc.org/sqlite modernc.org/libc",
	"store/postgres":       "github.com/jackc/pgx",
	"internal/cli":         "github.com/spf13/cobra github.com/spf13/pflag",
	"internal/bench":       "modernc.org/sqlite github.com/jackc/pgx",
	"internal/pgtest":      "github.com/jackc/pgx",
	"internal/simulate":    "github.com/anishathalye/porcupine",
	"inbox":                "github.com/a-h/templ github.com/alexedwards/scs",
	"inbox/gallery":        "github.com/a-h/templ",
	"inbox/view":           "github.com/a-h/templ",
	"mcpserver":            "github.com/modelcontextprotocol/go-sdk",
	"httpapi":              "github.com/danielgtaylor/huma github.com/prometheus/client_golang github.com/prometheus/common github.com/go-json-experiment/json",
	"internal/daemontest":  "modernc.org/sqlite",
	"internal/browsertest": "github.com/chromedp/chromedp github.com/chromedp/cdproto",
	"internal/tui":         "charm.land/bubbletea charm.land/bubbles charm.land/lipgloss github.com/charmbracelet/x/ansi",
}

func TestImportLaw(t *testing.T) {
	t.Parallel()
	all, err := source.Imports(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, imports := range all {
		row, ok := law[name]
		if strings.HasPrefix(name, "examples/") {
			row, ok = "*", true
		}
		if !ok {
			t.Errorf("package %q has no row in the import law", name)
			continue
		}
		for _, imp := range imports {
			checkImport(t, name, row, imp)
		}
	}
	for name := range law {
		if _, ok := all[name]; !ok {
			t.Errorf("the import law has a row for %q, which does not exist", name)
		}
	}
}

func checkImport(t *testing.T, name, row, imp string) {
	t.Helper()
	if ours, ok := strings.CutPrefix(imp, module); ok {
		ours = strings.TrimPrefix(ours, "/")
		if row != "*" && !slices.Contains(strings.Fields(row), ours) {
			t.Errorf("%s may not import %s", name, ours)
		}
		return
	}
	if !strings.Contains(strings.Split(imp, "/")[0], ".") || strings.HasPrefix(imp, "golang.org/x/") || row == "*" && name != "internal/cli" {
		return
	}
	for _, allowed := range strings.Fields(thirdParty[name]) {
		if imp == allowed || strings.HasPrefix(imp, allowed+"/") {
			return
		}
	}
	t.Errorf("%s may not import %s", name, imp)
}
