package dbcopy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/dbcopy"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/storetest"
)

func TestMain(m *testing.M) {
	if to := os.Getenv(childTo); to != "" {
		os.Exit(child(os.Getenv(childFrom), to))
	}
	pgtest.Main(m)
}

// instance is a place of either kind, as the suite of stores opens it.
func instance(at string) storetest.Instance {
	return storetest.Instance{
		Address: at,
		Open: func(t testing.TB, _ storetest.Options) *store.Store {
			t.Helper()
			s := open(t, at)
			t.Cleanup(func() { s.Close() })
			return s
		},
	}
}

func open(t testing.TB, at string) *store.Store {
	t.Helper()
	p, err := place.Parse(at, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(t.Context(), place.Options{})
	if err != nil {
		t.Fatalf("open %s: %v", p, err)
	}
	return s
}

// kinds make an empty place each.
var kinds = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return filepath.Join(t.TempDir(), "placet.db") },
	"PostgreSQL": pgtest.Schema,
}

// eachWay runs a test for every pair of kinds.
func eachWay(t *testing.T, do func(t *testing.T, from, to func(testing.TB) string)) {
	for a, from := range kinds {
		for b, to := range kinds {
			t.Run(a+" to "+b, func(t *testing.T) {
				t.Parallel()
				do(t, from, to)
			})
		}
	}
}

func copied(t testing.TB, from, to string) dbcopy.Result {
	t.Helper()
	r, err := dbcopy.Copy(t.Context(), from, to, dbcopy.Options{})
	if err != nil {
		t.Fatalf("copy: %v", err)
	}
	return r
}

// sound fails for anything that placet db check would tell.
func sound(t testing.TB, at string) place.Report {
	t.Helper()
	p, err := place.Parse(at, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Check(context.WithoutCancel(t.Context()))
	r.Problems = slices.DeleteFunc(r.Problems, func(s string) bool { return strings.HasPrefix(s, "fsync") }) // of the tests' server
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("%s: %q, %v", p, r.Problems, err)
	}
	return r
}

// Something of every kind goes to the other place and back, and is the same there; and the
// copy goes on with it.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b, c := from(t), to(t), from(t)
		lived := storetest.Fill(t, instance(a))
		before := sound(t, a)
		there := copied(t, a, b)
		for _, x := range there.Tables {
			if x.Rows == 0 {
				t.Errorf("the table %s was empty, so nothing is known of it", x.Name)
			}
		}
		back := copied(t, b, c)
		again := copied(t, a, to(t)) // the source is as it was
		for i, x := range there.Tables {
			if back.Tables[i] != x || again.Tables[i] != x {
				t.Errorf("%+v came back as %+v, and is %+v at its source", x, back.Tables[i], again.Tables[i])
			}
		}
		if there.StoreID != before.StoreID || there.Epoch != before.Epoch+1 || back.Epoch != before.Epoch+2 || there.Streams == 0 || there.Jobs == 0 {
			t.Errorf("%+v after epoch %d, then %d", there, before.Epoch, back.Epoch)
		}
		for at, last := range map[string]time.Time{b: before.LastAt, c: sound(t, b).LastAt} {
			if r := sound(t, at); r.StoreID != before.StoreID || r.RestoredAt.Before(last) || last.IsZero() || !r.RestoredTo.Equal(last) {
				t.Errorf("%+v, of a store whose last event was at %v", r, last)
			}
			lived.GoesOn(t, instance(at))
		}
		if r := sound(t, a); r.Epoch != before.Epoch || r.Events != before.Events {
			t.Errorf("the source was %+v and is %+v", before, r)
		}
		lived.GoesBack(t, instance(a))
	})
}

func TestEmptyStore(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		if err := open(t, a).Close(); err != nil {
			t.Fatal(err)
		}
		if err := open(t, b).Close(); err != nil { // made, and never used
			t.Fatal(err)
		}
		if r := copied(t, a, b); r.Rows() != 0 || r.Epoch != 2 || r.StoreID != sound(t, b).StoreID {
			t.Errorf("%+v", r)
		}
		storetest.Fill(t, instance(b))
	})
}

// refused wants an error, a source that still works and a target that is as it was.
func refused(t testing.TB, from, to string, want error, says ...string) {
	t.Helper()
	_, err := dbcopy.Copy(t.Context(), from, to, dbcopy.Options{})
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("copy: %v, want %v", err, want)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

func TestUsedTarget(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		storetest.Fill(t, instance(a))
		lived := storetest.Fill(t, instance(b))
		refused(t, a, b, whole.ErrUsed, "Nothing was copied")
		lived.GoesBack(t, instance(b))
		refused(t, a, a, nil, "are one store")
		refused(t, to(t), from(t), nil, "There is no")
	})
}

func TestRetired(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		lived := storetest.Fill(t, instance(a))
		if r, err := dbcopy.Copy(t.Context(), a, b, dbcopy.Options{Retire: true}); err != nil || !r.Retired {
			t.Fatalf("%+v, %v", r, err)
		}
		lived.ReadOnly(t, instance(a), whole.ErrRetired)
		refused(t, a, to(t), whole.ErrRetired, "--retire")
		lived.GoesOn(t, instance(b))
	})
}
