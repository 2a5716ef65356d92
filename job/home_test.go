package job_test

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/job"
)

const lease = 30 * time.Second

func at(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }

// A home is held without a gap as long as the same process renews it in time, in one life
// of the store.
func TestHoldHome(t *testing.T) {
	t.Parallel()
	me := job.Home{ID: "hom_a", Host: "a", Dir: "/a", URL: "https://a:1", Process: "p1"}
	restarted, copied := me, me
	restarted.Process = "p2"
	copied.Process, copied.Host = "p3", "b"
	seen, beside, booted, contained := me, me, me, me
	seen.Process, beside.Process = "v1:boot:1:7:9", "v1:boot:1:8:99"
	booted.Process, contained.Process = "v1:other:1:7:9", "v1:boot:2:7:9"
	aside := restarted
	aside.Dir = "/copy"
	seenHeld := seen
	seenHeld.Since, seenHeld.LeaseUntil, seenHeld.Epoch = at(0), at(30), 1
	held := me
	held.Since, held.LeaseUntil, held.Epoch = at(0), at(30), 1
	for name, tt := range map[string]struct {
		was   job.Home
		by    job.Home
		epoch int64
		at    int
		since int // -1: refused
	}{
		"new":                         {job.Home{}, me, 1, 5, 5},
		"renewed":                     {held, me, 1, 10, 0},
		"renewed at the last moment":  {held, me, 1, 30, 0},
		"renewed too late":            {held, me, 1, 31, 31},
		"restarted in time":           {held, restarted, 1, 10, 10},
		"restarted later":             {held, restarted, 1, 99, 99},
		"another machine has it":      {held, copied, 1, 10, -1},
		"another machine had it":      {held, copied, 1, 31, 31},
		"restarted on the same boot":  {seenHeld, beside, 1, 10, 10},
		"a copy beside it":            {held, aside, 1, 10, -1},
		"a clone of the same name":    {seenHeld, booted, 1, 30, -1},
		"started anew, later":         {seenHeld, booted, 1, 31, 31},
		"another container":           {seenHeld, contained, 1, 10, -1},
		"the store went back":         {held, me, 2, 10, 10},
		"the store went back, copied": {held, copied, 2, 10, 10},
	} {
		got, err := tt.was.Hold(tt.by, lease, tt.epoch, at(tt.at))
		if tt.since < 0 {
			if !errors.Is(err, job.ErrHomeTaken) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		want := tt.by
		want.Since, want.LeaseUntil, want.Epoch = at(tt.since), at(tt.at+30), tt.epoch
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	if left := held.Left(at(10)); left.LeaseUntil != at(10) || left.URL != "" || left.Present(at(11)) || !held.Present(at(11)) {
		t.Errorf("left: %+v", left)
	}
}

// A home is lost to a judge who was there himself for as long as nothing was heard of it.
func TestLostHome(t *testing.T) {
	t.Parallel()
	const after = time.Minute
	home := job.Home{ID: "hom_a", Since: at(0), LeaseUntil: at(30)}
	judge := job.Home{ID: "hom_b", Since: at(0), LeaseUntil: at(100)}
	late, gone := judge, judge
	late.Since, gone.LeaseUntil = at(80), at(85)
	for name, tt := range map[string]struct {
		home, judge job.Home
		at          int
		want        bool
	}{
		"it is there":                    {home, judge, 30, false},
		"its time is not over":           {home, judge, 90, false},
		"its time is over":               {home, judge, 91, true},
		"the judge has only just come":   {home, late, 91, false},
		"the judge's own lease is over":  {home, gone, 91, false},
		"the judge is nobody":            {home, job.Home{}, 91, false},
		"it is the judge's own":          {judge, judge, 999, false},
		"it was never registered":        {job.Home{}, judge, 91, false},
		"as long after the judge's came": {home, job.Home{ID: "hom_b", Since: at(80), LeaseUntil: at(150)}, 141, true},
	} {
		if got := tt.home.LostTo(tt.judge, after, at(tt.at)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
