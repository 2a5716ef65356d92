package placettest

import (
	"path/filepath"
	"testing"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
)

// Open is an empty store in a temporary folder. It is closed when the test ends.
//
// It is stricter than a store in production: every closure runs twice, once to be
// undone, and one that opens another transaction is refused. So what would fail
// there only now and then fails here at once.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenFile(t, filepath.Join(t.TempDir(), "placet.db"), &sqlite.Options{Hooks: strict()})
}

func strict() *sqlite.Hooks { return &sqlite.Hooks{Twice: true, Strict: true} }

// OpenFile opens the store at path, for a test that has a file opened twice or
// sets a [Clock]: &sqlite.Options{Now: clock.Now}. o may be nil. The store is
// closed when the test ends; closing it earlier is fine.
func OpenFile(t testing.TB, path string, o *sqlite.Options) *store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}
