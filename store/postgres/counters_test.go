package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

var errFull = errors.New("the counter is at its limit")

// counted is one counter of a store that several processes have open.
type counted struct {
	testing.TB
	name  string
	limit int64
	many  int64 // what may be added without a look at others, by all together
}

type counting interface {
	store.Tx
	Count(space, name string, limit int64) (int64, error)
	Add(space, name string, n int64) error
}

// counter is one that stands at limit - below.
func counter(t testing.TB, url, name string, below func(many int64) int64) counted {
	t.Helper()
	c := counted{TB: t, name: name}
	q := sql(t, url)
	if err := q.QueryRow(patient(t), "SELECT 4 * setting::bigint FROM pg_settings WHERE name = 'max_connections'").Scan(&c.many); err != nil {
		t.Fatal(err)
	}
	c.limit = 10 * c.many
	run(t, q, "INSERT INTO counter(space, name, slot, n) VALUES ('main', $1, 3, $2)", name, c.limit-below(c.many))
	return c
}

// up adds to the counter if there is room, as whoever asks does.
func (c counted) up(s *store.Store, times int, between func()) error {
	return txn.Update(patient(c), s, func(tx counting) error {
		for range times {
			n, err := tx.Count("main", c.name, c.limit)
			if err != nil {
				return err
			}
			if n >= c.limit {
				return errFull
			}
			between()
			if err := tx.Add("main", c.name, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// stands is what the counter stands at.
func (c counted) stands(s *store.Store) (n int64) {
	c.Helper()
	if err := txn.View(patient(c), s, func(tx counting) (err error) {
		n, err = tx.Count("main", c.name, 0)
		return err
	}); err != nil {
		c.Fatal(err)
	}
	return n
}

func nothing() {}

// Whoever found room, and was slow, finds that it is gone: the limit is held where the
// counter is written.
func TestLimitReachedMeanwhile(t *testing.T) {
	t.Parallel()
	for n, below := range []func(many int64) int64{
		func(many int64) int64 { return many + 1 }, // one may still add without a look at others
		func(many int64) int64 { return 2 * many },
	} {
		url := pgtest.Schema(t)
		a, b := open(t, url, postgres.Options{Conns: 4}), open(t, url, postgres.Options{Conns: 4})
		c := counter(t, url, fmt.Sprint("slow", n), below)
		var once sync.Once
		err := c.up(a, 1, func() {
			once.Do(func() {
				if _, err := sql(t, url).Exec(patient(t), "UPDATE counter SET n = $2 WHERE name = $1", c.name, c.limit-3); err != nil {
					t.Error(err)
				}
				if err := errors.Join(c.up(b, 1, nothing), c.up(b, 2, nothing)); err != nil {
					t.Error(err)
				}
			})
		})
		if got := c.stands(a); !errors.Is(err, errFull) || got != c.limit {
			t.Errorf("told %v; it stands at %d of %d", err, got, c.limit)
		}
	}
}

// Where many add at once the limit is reached, and never passed: neither where they need not
// look at each other, nor where they do, nor between.
func TestLimitUnderRace(t *testing.T) {
	t.Parallel()
	for name, below := range map[string]func(many int64) int64{
		"alone":   func(int64) int64 { return 40 },
		"between": func(many int64) int64 { return many + 20 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Schema(t)
			stores := []*store.Store{open(t, url, postgres.Options{Conns: 8}), open(t, url, postgres.Options{Conns: 8})}
			c := counter(t, url, name, below)
			var wg sync.WaitGroup
			var added, refused atomic.Int64
			before := c.stands(stores[0])
			barrier := make(chan struct{})
			for n := range 12 {
				times := 1 + n%5 // five are more than anybody may add without a look at others
				wg.Go(func() {
					<-barrier
					for {
						switch err := c.up(stores[n%2], times, nothing); {
						case err == nil:
							added.Add(int64(times))
						case errors.Is(err, errFull):
							refused.Add(1)
							return
						default:
							t.Error(err)
							return
						}
					}
				})
			}
			close(barrier)
			wg.Wait()
			if got := c.stands(stores[1]); got != c.limit || got != before+added.Load() || refused.Load() != 12 {
				t.Errorf("it stands at %d of %d; %d were added to %d, and %d refused", got, c.limit, added.Load(), before, refused.Load())
			}
		})
	}
}

// Of many who want the last place one gets it.
func TestLastPlace(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	stores := []*store.Store{open(t, url, postgres.Options{Conns: 4}), open(t, url, postgres.Options{Conns: 4})}
	for n := range 200 {
		c := counter(t, url, fmt.Sprint("last", n), func(int64) int64 { return 1 })
		var wg sync.WaitGroup
		var got atomic.Int64
		barrier := make(chan struct{})
		for i := range 4 {
			wg.Go(func() {
				<-barrier
				if err := c.up(stores[i%2], 1, nothing); err == nil {
					got.Add(1)
				} else if !errors.Is(err, errFull) {
					t.Error(err)
				}
			})
		}
		close(barrier)
		wg.Wait()
		if got.Load() != 1 || c.stands(stores[0]) != c.limit {
			t.Fatalf("round %d: %d got it; it stands at %d of %d", n, got.Load(), c.stands(stores[0]), c.limit)
		}
	}
}
