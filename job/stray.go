package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/txn"
)

// strays are folders of jobs that the store does not know: it went back to a time
// before they were started. What runs in one is ended, since nobody can ask for it, stop
// it or hear of its end. The folder stays, for whoever wants to know what it printed.
// Those of jobs that others orphaned, since nothing was heard of this home, are ended in
// the same way: an end is final, and nothing that their commands do counts any more.
type strays struct {
	looked bool
	epoch  int64                   // life of the store in which was looked
	gaps   int                     // of the home's lease, until which was looked
	left   []string                // ids of those in which something may still run
	told   map[launchDir]time.Time // when a runner was told to end
}

// endStrays looks for strays once for each life of the store, and goes on with those
// it found until nothing of them runs.
func (s *Supervisor) endStrays(ctx context.Context) error {
	if !s.straying.TryLock() {
		return nil // another pass is at it
	}
	defer s.straying.Unlock()
	var epoch int64
	if err := txn.View(ctx, s.conf.Store, func(tx Tx) error { epoch = tx.Epoch(); return nil }); err != nil {
		return err
	}
	s.mu.Lock()
	gaps := s.gaps
	s.mu.Unlock()
	if !s.strays.looked || s.strays.epoch != epoch || s.strays.gaps != gaps {
		found, deserted, err := s.findStrays(ctx)
		if err != nil {
			return err
		}
		s.strays = strays{looked: true, epoch: epoch, gaps: gaps, left: found, told: map[launchDir]time.Time{}}
		if len(found) > 0 {
			s.conf.Log.Warn("there are folders of jobs that the store does not know; what runs in them is ended, the folders stay",
				"in", s.conf.Dir, "folders", len(found), "one", found[0])
		}
		for _, j := range deserted {
			s.noteDeserted(j)
		}
	}
	s.strays.left = append(s.strays.left, s.takeDeserted(s.strays.left)...)
	var left []string
	for _, name := range s.strays.left {
		over, err := s.endStray(filepath.Join(s.conf.Dir, name))
		if err != nil {
			s.conf.Log.Warn("a job that the store does not know could not be ended; it is tried again", "job", name, "error", err)
		}
		if err != nil || !over {
			left = append(left, name)
		}
	}
	s.strays.left = left
	return nil
}

// noteDeserted notes an orphaned job whose launch still runs: it was orphaned from
// elsewhere.
func (s *Supervisor) noteDeserted(j Job) {
	if j.Status != Orphaned || j.Launches == 0 || !s.dir(j).inUse() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deserted[j.ID] = true
}

// takeDeserted hands out those that were noted, and are not among the ones known.
func (s *Supervisor) takeDeserted(known []string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.deserted {
		if !slices.Contains(known, id) {
			ids = append(ids, id)
			s.conf.Log.Warn("a job was orphaned while its command ran on here; the command is ended, and nothing of it changes the job", "job", id)
		}
	}
	clear(s.deserted)
	return ids
}

// inUse reports whether a runner has the launch's lock.
func (d launchDir) inUse() bool {
	if _, err := os.Stat(d.file(lockFile)); err != nil {
		return false
	}
	lock, err := d.lock()
	if lock != nil {
		lock.Close()
	}
	return err == nil && lock == nil
}

// findStrays lists the folders of jobs without a row, and the orphaned jobs. A row is
// there before its folder and goes after it. The rows are read in write transactions,
// which a store refuses that must not act: there nothing is ended.
func (s *Supervisor) findStrays(ctx context.Context) (found []string, orphaned []Job, err error) {
	entries, err := os.ReadDir(s.conf.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && id.Has(id.Job, e.Name()) {
			names = append(names, e.Name())
		}
	}
	for len(names) > 0 {
		some := names[:min(atOnce, len(names))]
		names = names[len(some):]
		var unknown []string
		var over []Job
		err := s.update(ctx, func(tx Tx) error {
			unknown, over = nil, nil
			for _, name := range some {
				j, err := tx.Job(name)
				switch {
				case errors.Is(err, ErrNotFound):
					unknown = append(unknown, name)
				case err != nil:
					return err
				case j.Status == Orphaned:
					over = append(over, j)
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		found, orphaned = append(found, unknown...), append(orphaned, over...)
	}
	return found, orphaned, nil
}

// endStray ends what runs of the launches in a folder; over: nothing does any more.
func (s *Supervisor) endStray(folder string) (over bool, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) { // it was being cleaned up
		return true, nil
	}
	over = err == nil
	for _, e := range entries {
		if _, e := strconv.ParseInt(e.Name(), 10, 64); e != nil {
			continue
		}
		ended, e := s.endLaunch(launchDir(filepath.Join(folder, e.Name())))
		over, err = over && ended, errors.Join(err, e)
	}
	return over, err
}

// endLaunch tells a launch's runner to end, and kills it where it does not.
func (s *Supervisor) endLaunch(d launchDir) (over bool, err error) {
	lock, err := d.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var who identity
	_, err = readJSON(d.file(identityFile), &who)
	if lock != nil {
		defer lock.Close()
		return err == nil && killLeftovers(who) == 0, err
	}
	p, e := process.Parse(who.Runner)
	if err != nil || e != nil || !process.Alive(p) {
		return false, err // it has only just begun, or just ended
	}
	told, again := s.strays.told[d]
	switch {
	case !again:
		s.strays.told[d] = time.Now()
		_ = unix.Kill(p.PID, unix.SIGTERM)
	case time.Since(told) > DefaultKillAfter+forceAfter:
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
	return false, nil
}
