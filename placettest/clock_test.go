package placettest_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

func TestClock(t *testing.T) {
	t.Parallel()
	var c placettest.Clock
	if !c.Now().Equal(placettest.Start) {
		t.Errorf("starts at %s", c.Now())
	}
	if got := c.Advance(time.Hour); !got.Equal(placettest.Start.Add(time.Hour)) || !got.Equal(c.Now()) {
		t.Errorf("advanced to %s, shows %s", got, c.Now())
	}
	c.Set(placettest.Start.AddDate(1, 0, 0))
	if got := c.Now().Year(); got != placettest.Start.Year()+1 {
		t.Errorf("set to %d", got)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { c.Advance(time.Second); c.Now() })
	}
	all.Wait()
	if want := placettest.Start.AddDate(1, 0, 0).Add(8 * time.Second); !c.Now().Equal(want) {
		t.Errorf("shows %s, want %s", c.Now(), want)
	}
}

func TestClockMovesDeadlines(t *testing.T) {
	t.Parallel()
	var clock placettest.Clock
	st := placettest.OpenFile(t, filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Now: clock.Now})
	reg, err := tool.NewRegistry(placettest.NewWitness(t).Tool("refund"))
	if err != nil {
		t.Fatal(err)
	}
	calls := call.NewExecutor(call.Config{Store: st, Tools: reg, ApprovalTTL: time.Hour})
	waits := park(t, calls, "refund")
	clock.Advance(2 * time.Hour)
	if _, err := calls.Resume(t.Context(), waits.ApprovalID, nil); !errors.Is(err, call.ErrApprovalExpired) {
		t.Errorf("got %v", err)
	}
}
