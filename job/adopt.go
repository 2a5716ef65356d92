package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/placet-dev/placet/txn"
)

// adopt looks whether a launch of a queued job lies in its folder. The store then went
// back to a time before it, by a restore, and the folder is the witness: the command
// may have run, and is not started again. The job goes on as that launch.
func (s *Supervisor) adopt(ctx context.Context, j Job) (found bool, err error) {
	cmd, found, err := lastBegun(s.conf.Dir, j)
	if err != nil || !found {
		return false, err
	}
	s.conf.Log.Warn("a launch that the store does not know is in the job's folder; the job goes on as that launch", "job", j.ID, "launch", cmd.Launch)
	_, err = s.applyIn(ctx, j.ID, func(tx Tx) Command {
		cmd.Epoch, cmd.Note = tx.Epoch(), wentBack(tx)+" The command had been started since, and was not started again."
		return cmd
	})
	if errors.Is(err, ErrRunState) {
		return false, nil // another supervisor was first
	}
	s.poke()
	return true, err
}

// lastBegun finds the last launch in the job's folder that has begun.
func lastBegun(dir string, j Job) (last Adopt, found bool, err error) {
	names, err := os.ReadDir(filepath.Join(dir, j.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return last, false, nil
	}
	if err != nil {
		return last, false, err
	}
	for _, name := range names {
		n, err := strconv.ParseInt(name.Name(), 10, 64)
		if err != nil || n <= last.Launch {
			continue
		}
		claim, err := dirOf(dir, j.ID, n).begun()
		if err != nil {
			return last, false, err
		}
		if claim != "" {
			last, found = Adopt{Token: claim, Launch: n}, true
		}
	}
	return last, found, nil
}

// wentBack says what became of the store.
func wentBack(tx Tx) string {
	if at := tx.RestoredTo(); !at.IsZero() {
		return "The store went back to " + txn.Stamp(at) + "."
	}
	return "The store went back to an earlier time."
}
