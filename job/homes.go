package job

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Defaults of homes.
const (
	DefaultHomeLease   = 30 * time.Second
	DefaultOrphanAfter = time.Minute

	homeKept  = 30 * 24 * time.Hour // how long a lost home is remembered
	moveChunk = 5000                // jobs that one transaction gives to another home
)

// registers reports whether the home is told to others, and kept by a lease.
func (s *Supervisor) registers() bool { return s.conf.Home != s.conf.Dir }

// me is the home as this supervisor holds it.
func (s *Supervisor) me() Home {
	return Home{ID: s.conf.Home, Host: s.conf.Host, Dir: s.conf.Dir, URL: s.conf.URL, Version: s.conf.Version, Process: self()}
}

// keep holds the home by its lease until ctx ends. It does nothing else: what takes long
// would cost the home.
func (s *Supervisor) keep(ctx context.Context) {
	for every := time.Duration(0); idle(ctx, every); {
		every = s.conf.HomeLease / 3
		err := s.hold(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		every = min(every, passEvery)
		if s.holds() {
			s.conf.Log.Error("the home's lease could not be renewed; it is tried again", "home", s.conf.Home, "error", err)
		} else {
			s.conf.Log.Error("the home is not held, so its jobs are not looked after; it is tried again", "home", s.conf.Home, "error", err)
		}
	}
}

// judgeHomes orphans the jobs of homes that are lost, again and again until ctx ends, while its
// own home is held.
func (s *Supervisor) judgeHomes(ctx context.Context) {
	for every := time.Duration(0); idle(ctx, every); {
		every = min(s.conf.HomeLease/3, passEvery)
		if !s.holds() {
			continue
		}
		err := s.orphanLost(ctx)
		switch {
		case err == nil:
			every = s.conf.HomeLease / 3
		case ctx.Err() == nil:
			s.conf.Log.Error("lost homes could not be looked for, or what is left of them not be ended; it is tried again", "home", s.conf.Home, "error", err)
		}
	}
}

// idle waits so long; false: ctx has ended.
func idle(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Hold registers the home, or renews its lease, for whoever wants that done before
// [Supervisor.Loop] does it. Without [Config.Home] it does nothing. [ErrHomeTaken], the
// store's.
func (s *Supervisor) Hold(ctx context.Context) error {
	if s.misuse != nil || !s.registers() {
		return s.misuse
	}
	return s.hold(ctx)
}

// hold registers the home, or renews its lease.
func (s *Supervisor) hold(ctx context.Context) error {
	if !s.holds() {
		if err := s.moveIn(ctx); err != nil {
			return err
		}
	}
	var next Home
	err := s.update(ctx, func(tx Tx) error {
		next = Home{}
		h, err := tx.Home(s.conf.Home)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if next, err = h.Hold(s.me(), s.conf.HomeLease, tx.Epoch(), tx.Now()); err != nil {
			return err
		}
		return tx.PutHome(h, next)
	})
	switch {
	case errors.Is(err, ErrHomeTaken):
		s.noteHeld(Home{})
	case err == nil:
		s.noteHeld(next)
	}
	return err
}

// noteHeld notes how the home is held. Where there was a gap in that, its jobs may have
// been orphaned while their commands ran on: they are looked for.
func (s *Supervisor) noteHeld(h Home) {
	s.mu.Lock()
	gap := h.ID != "" && !h.Since.Equal(s.held.Since)
	s.held = h
	if gap {
		s.gaps++
	}
	s.mu.Unlock()
	if gap {
		s.poke()
	}
}

// holds reports whether the home was registered and nobody else has it.
func (s *Supervisor) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.ID != ""
}

// mayPass reports whether the home's jobs may be looked after by a loop.
func (s *Supervisor) mayPass() bool { return !s.registers() || s.holds() }

// moveIn gives the home the jobs that were started when homes were known by their folder.
// Only one that is alone knows that they are its own: another machine may have a folder of
// the same name.
func (s *Supervisor) moveIn(ctx context.Context) error {
	first := true
	for n := moveChunk; n == moveChunk; {
		err := s.update(ctx, func(tx Tx) error {
			n = 0
			hs, err := tx.Homes(HomeQuery{Limit: 2})
			if err != nil {
				return err
			}
			for _, h := range hs {
				if h.ID != s.conf.Home {
					return nil
				}
			}
			if len(hs) > 0 && first { // it has them, unless an older program was here since
				js, err := tx.ActiveJobs(s.conf.Dir, "", 1)
				if err != nil || len(js) == 0 {
					return err
				}
			}
			n, err = tx.MoveJobs(s.conf.Dir, s.conf.Home, moveChunk)
			return err
		})
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

// leavePatience bounds how long it takes to give a home up.
const leavePatience = time.Second

// leave gives the home up, so that nobody asks for it until it is held again.
func (s *Supervisor) leave(ctx context.Context) {
	s.noteHeld(Home{})
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	err := s.update(ctx, func(tx Tx) error {
		h, err := tx.Home(s.conf.Home)
		if errors.Is(err, ErrNotFound) || err == nil && h.Process != self() {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.PutHome(h, h.Left(tx.Now()))
	})
	if err != nil {
		s.conf.Log.Warn("the home could not be given up; its lease ends by itself", "home", s.conf.Home, "error", err)
	}
}

// stay is asked in the transaction that starts or claims a job: a home whose lease has
// ended is held anew first, so that the job is not orphaned at once. Where another machine
// has the home, nothing is launched from here: [ErrHomeTaken].
func (s *Supervisor) stay(tx Tx) error {
	if !s.registers() {
		return nil
	}
	h, err := tx.Home(s.conf.Home)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil // not yet, or by a process without a loop
	case err != nil || h.Present(tx.Now()) && !h.outOfSight(s.me()):
		return err
	}
	next, err := h.Hold(s.me(), s.conf.HomeLease, tx.Epoch(), tx.Now())
	if err != nil {
		return err
	}
	return tx.PutHome(h, next)
}

// orphanLost orphans the jobs of homes that are lost. One that fails holds up no other.
func (s *Supervisor) orphanLost(ctx context.Context) error {
	var failed error
	for after := ""; ; {
		var hs []Home
		var now time.Time
		err := txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
			now = tx.Now()
			hs, err = tx.Homes(HomeQuery{EndedBefore: now.Add(-s.conf.OrphanAfter), After: after, Limit: atOnce})
			return err
		})
		if err != nil || len(hs) == 0 {
			return errors.Join(failed, err)
		}
		for _, h := range hs {
			after = h.ID
			if h.ID != s.conf.Home {
				failed = errors.Join(failed, s.orphanAll(ctx, h, now))
			}
		}
	}
}

// orphanAll orphans the jobs of one home and deletes what was cleaned of it. The home is
// forgotten once it has been lost for long.
func (s *Supervisor) orphanAll(ctx context.Context, h Home, now time.Time) error {
	var failed error
	for after := ""; ; {
		var js []Job
		err := txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
			js, err = tx.ActiveJobs(h.ID, after, atOnce)
			return err
		})
		if err != nil {
			return errors.Join(failed, err)
		}
		if len(js) == 0 {
			break
		}
		for _, j := range js {
			after = j.ID
			lost, err := s.orphan(ctx, j.ID, h.ID)
			failed = errors.Join(failed, err)
			if err == nil && !lost || ctx.Err() != nil {
				return failed // it has come back
			}
		}
	}
	failed = errors.Join(failed, s.sweepHome(ctx, h.ID, s.deleteRows))
	if failed != nil || now.Sub(h.LeaseUntil) < homeKept {
		return failed
	}
	err := s.update(ctx, func(tx Tx) error { return tx.DropHome(h) })
	if errors.Is(err, decision.ErrMoved) {
		return nil // it has come back
	}
	return err
}

// orphan ends one job of a home, if that is still lost: its row is locked behind the
// job's, so a home that comes back in time wins. lost is false where it has come back.
func (s *Supervisor) orphan(ctx context.Context, jobID, home string) (lost bool, err error) {
	s.mu.Lock()
	judge := s.held
	s.mu.Unlock()
	var was Status
	err = s.update(ctx, func(tx Tx) error {
		lost, was = true, ""
		j, err := s.job(tx, jobID)
		if errors.Is(err, ErrNotFound) || err == nil && (j.Home != home || j.Status.Terminal()) {
			return nil
		}
		if err != nil {
			return err
		}
		h, err := tx.Home(home)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if lost = judge.Epoch == tx.Epoch() && h.LostTo(judge, s.conf.OrphanAfter, tx.Now()); !lost {
			return nil
		}
		was = j.Status
		return put(tx, j, Orphan{Failure: h.lostWords(j)}, s.clock(tx))
	})
	if errors.Is(err, decision.ErrMoved) {
		return true, nil // the next look judges it again
	}
	if err == nil && was != "" {
		s.conf.Log.Warn("a job was orphaned: its home is lost", "job", jobID, "was", was, "home", home)
	}
	return lost, err
}

// lostWords is why a job of the home is orphaned.
func (h Home) lostWords(j Job) string {
	said := "Its home " + h.ID + " on " + h.Host + " was lost; its lease ended at " + txn.Stamp(h.LeaseUntil) + "."
	switch {
	case j.StopBy != "":
		return said + " It was to stop; whether it did is not known."
	case j.Status == Queued:
		return said + " The job had not been launched."
	}
	return said
}
