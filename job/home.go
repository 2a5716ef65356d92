package job

import (
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/txn"
)

// Home is a place from which jobs are launched: a folder on one machine, with the
// supervisor that looks after it. Where several machines share a store, each has one,
// and says by a lease that it is there.
type Home struct {
	ID      string
	Host    string // name of the machine, for people
	Dir     string // folder of its launches, on that machine
	URL     string // at which other daemons reach the one of this home; empty: they do not
	Version string // of the program
	Process string // that holds it

	Since      time.Time // it has been held without a gap
	LeaseUntil time.Time // it is there until then, if it is not renewed
	Epoch      int64     // life of the store in which it was last renewed
}

// HomeQuery selects homes, by id.
type HomeQuery struct {
	// EndedBefore keeps those whose lease ended earlier; zero: all.
	EndedBefore time.Time
	After       string // id of the last one seen
	Limit       int    // 1 to 500; 0 means 50
}

// HomeTx is what homes need of a transaction.
type HomeTx interface {
	// Home reads a registered home and, in a write transaction, locks it: behind the root,
	// where there is one. [ErrNotFound].
	Home(id string) (Home, error)
	// Homes lists those that are registered. It locks none.
	Homes(q HomeQuery) ([]Home, error)
	// PutHome writes a home; prev without an id: a new one. It is guarded by the process
	// and the lease of prev; decision.ErrMoved when another writer won.
	PutHome(prev, next Home) error
	// DropHome forgets a home, guarded in the same way.
	DropHome(h Home) error
	// MoveJobs gives up to limit jobs of one home to another, and reports how many; fewer
	// than limit: that were the last.
	MoveJobs(from, to string, limit int) (int, error)
}

// ErrHomeTaken: another machine holds this home now. Its folder was copied, with the id
// in it. This machine is another one, too, once it was started anew: what held the home
// before is out of sight then, and counts as there until its lease ends. Its details are
// a [Holder].
var ErrHomeTaken = fault.Sentinel(fault.Conflict, "home_taken", "Another machine has this home.")

// Holder says who has a home, and until when if the lease is not renewed.
type Holder struct {
	HomeID  string `json:"home_id"`
	Host    string `json:"host"`
	Process string `json:"process"`
	Until   string `json:"lease_until"`
}

// Present reports whether the home's lease has not ended yet.
func (h Home) Present(now time.Time) bool { return h.ID != "" && !now.After(h.LeaseUntil) }

// Hold is the home as by holds it for a lease from now on: h is how it is registered,
// the zero Home if it is not. [ErrHomeTaken] where another machine has it.
func (h Home) Hold(by Home, lease time.Duration, epoch int64, now time.Time) (Home, error) {
	there := h.Present(now) && h.Epoch == epoch
	if there && h.outOfSight(by) {
		until := txn.Stamp(h.LeaseUntil)
		return Home{}, ErrHomeTaken.With(Holder{h.ID, h.Host, h.Process, until}).
			Say("Home %s is held by %s on %s until %s.", h.ID, h.Process, h.Host, until).
			Hint("If this machine or container was started anew, its own lease ends then: try again. If the lease is renewed, the folder was copied: " +
				"delete the file with the id on one of the two machines, and start the daemon there again.")
	}
	by.Since, by.LeaseUntil, by.Epoch = h.Since, now.Add(lease), epoch
	if !there || h.Process != by.Process {
		by.Since = now
	}
	return by, nil
}

// outOfSight reports whether the home was last held by one that cannot be looked for from
// where by is, or has another folder: then it is a copy. Two machines may have one host
// name; no two have one boot.
func (h Home) outOfSight(by Home) bool {
	if h.Process == by.Process {
		return false
	}
	was, err := process.Parse(h.Process)
	is, e := process.Parse(by.Process)
	return h.Host != by.Host || h.Dir != by.Dir || err == nil && e == nil && !was.Beside(is)
}

// Left is the home as nobody holds it any more.
func (h Home) Left(now time.Time) Home {
	h.LeaseUntil, h.URL = now, ""
	if now.Before(h.Since) {
		h.LeaseUntil = h.Since
	}
	return h
}

// LostTo reports whether the home is lost, as the holder of another one judges: nothing
// was heard of it for so long although the judge has been there all the while. So whoever
// was cut off from the store, or has only just come, judges nobody before those that were
// cut off with him had their time to come back.
func (h Home) LostTo(judge Home, after time.Duration, now time.Time) bool {
	if h.ID == "" || h.ID == judge.ID || !judge.Present(now) {
		return false
	}
	from := h.LeaseUntil
	if judge.Since.After(from) {
		from = judge.Since
	}
	return now.After(from.Add(after))
}
