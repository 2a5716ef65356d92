package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/process"
)

// bringIn brings one job up to date: it launches it if it is due, takes in what its
// runner has left, and judges it where the runner is lost. The caller holds the
// job's turn.
func (s *Supervisor) bringIn(ctx context.Context, id string) error {
	for range 100 {
		j, err := s.stored(ctx, id)
		if err != nil || !s.mine(j) {
			return err
		}
		var again bool
		switch j.Status {
		case Queued:
			again, err = s.launchDue(ctx, j)
		case Launching, Running:
			again, err = s.readLaunch(ctx, j)
		default:
			s.forget(j)
			s.noteDeserted(j)
			s.poke() // others may wait for its end
			return nil
		}
		if errors.Is(err, decision.ErrMoved) {
			continue
		}
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// launchDue launches a queued job, unless something still holds it up.
func (s *Supervisor) launchDue(ctx context.Context, j Job) (again bool, err error) {
	if found, err := s.adopt(ctx, j); err != nil || found {
		return found, err
	}
	if due, err := s.isDue(ctx, j); err != nil || !due {
		return false, err
	}
	token, done := launchingNow()
	defer done()
	claimed, taken, err := s.claim(ctx, j.ID, token)
	if errors.Is(err, ErrRunState) {
		return false, nil // another supervisor was first
	}
	if err != nil || !taken {
		return false, err
	}
	defer s.poke() // so that a loop hears from it
	if why := s.startRunner(context.WithoutCancel(ctx), claimed); why != nil {
		return true, s.notBegun(ctx, claimed, why)
	}
	return true, nil
}

// readLaunch takes in what there is. The status is read first: what it ends was
// written before it.
func (s *Supervisor) readLaunch(ctx context.Context, j Job) (again bool, err error) {
	d := s.dir(j)
	st, ended, err := d.status(j.Claim)
	if err != nil {
		return false, err
	}
	if j, err = s.noteBegun(ctx, j, d, st); err != nil {
		return false, err
	}
	if j.Status == Running { // of one that has not begun there is nothing to take
		if err := s.takeEvents(ctx, &j, d); err != nil {
			return false, err
		}
	}
	if ended {
		return true, s.end(ctx, j, st)
	}
	if _, ours := launching.Load(j.Claim); ours {
		return false, nil // we are about to start it
	}
	return s.judge(ctx, j, d)
}

// noteBegun notes that the command has begun, before anything that it printed.
func (s *Supervisor) noteBegun(ctx context.Context, j Job, d launchDir, st status) (Job, error) {
	if j.Status != Launching {
		return j, nil
	}
	who, _, err := d.identity(j.Claim)
	if err != nil {
		return j, err
	}
	cmd := Began{j.Claim, who.Runner, who.StartedAt}
	if !st.StartedAt.IsZero() {
		cmd = Began{j.Claim, st.Runner, st.StartedAt}
	}
	if cmd.At.IsZero() {
		return j, nil
	}
	return s.apply(ctx, j.ID, cmd)
}

func (s *Supervisor) end(ctx context.Context, j Job, st status) error {
	if !st.Status.Terminal() || st.Status == Orphaned {
		st.Status, st.Failure = Failed, "The runner left a status that it cannot have meant."
	}
	_, err := s.apply(ctx, j.ID, End{
		Token: j.Claim, Status: st.Status, ExitCode: st.ExitCode, Signal: st.Signal, Failure: st.Failure,
		Began: st.StartedAt, Runner: st.Runner, At: st.EndedAt,
	})
	return err
}

// judge looks whether the launch's runner still lives, and says what became of the
// job where it does not.
func (s *Supervisor) judge(ctx context.Context, j Job, d launchDir) (again bool, err error) {
	if j.Status == Launching && launcherLives(j) {
		return false, nil
	}
	lock, err := d.lock()
	switch {
	case errors.Is(err, fs.ErrNotExist) && j.hidden(): // it may lie on another machine, and work there
		return s.unseen(ctx, j)
	case errors.Is(err, fs.ErrNotExist): // its directory is gone, or was never made
		s.abandon(j)
		return s.lost(ctx, j, d, false)
	case err != nil:
		return false, err
	case lock == nil:
		return false, s.passStop(ctx, j, d)
	}
	defer lock.Close()
	if _, ended, err := d.status(j.Claim); err != nil || ended {
		return ended, err
	}
	who, begun, err := d.identity(j.Claim)
	if err != nil {
		return false, err
	}
	if !begun {
		if err := writeWhole(d.file(claimFile), []byte(voidClaim)); err != nil {
			return false, err
		}
		s.abandon(j) // a part of its directory may be gone, the lock that it held with it
		return s.lost(ctx, j, d, false)
	}
	if j.Status == Launching && !who.StartedAt.IsZero() {
		return true, nil // it has begun since we looked
	}
	for n := 0; killLeftovers(who) > 0 && n < 100; n++ {
		time.Sleep(lookAgain / 4)
	}
	if j.Status == Running {
		if err := s.takeEvents(ctx, &j, d); err != nil {
			return false, err
		}
	}
	return s.lost(ctx, j, d, true)
}

// abandon kills a runner whose directory is gone, whole or in part, and what it
// started: nobody could hear from it any more.
func (s *Supervisor) abandon(j Job) {
	if who, err := process.Parse(j.Runner); err == nil && process.Alive(who) {
		_ = unix.Kill(who.PID, unix.SIGKILL)
	}
	killLeftovers(identity{Runner: j.Runner, Mark: markOf(j.Claim)})
}

// lost ends a launch whose runner is lost; of one that never began another is made.
func (s *Supervisor) lost(ctx context.Context, j Job, d launchDir, begun bool) (again bool, err error) {
	var cmd Command = Requeue{Token: j.Claim}
	switch {
	case begun || j.Status == Running:
		cmd = End{Token: j.Claim, Status: Orphaned, ExitCode: -1, Failure: "Its runner was lost."}
	case j.Launches >= maxLaunches:
		said, _ := os.ReadFile(d.file(runnerLog))
		cmd = End{Token: j.Claim, Status: Failed, ExitCode: -1, Failure: "It could not be launched: " + lastLine(said)}
	}
	_, err = s.apply(ctx, j.ID, cmd)
	return true, err
}

// launcherLives reports whether whoever claimed the job may still be launching it.
func launcherLives(j Job) bool {
	who, err := process.Parse(j.Launcher)
	return err == nil && who != process.Self() && process.Alive(who)
}

// hidden reports whether whoever launches the job, or runs it, cannot be seen from here.
func (j Job) hidden() bool {
	name := j.Runner
	if j.Status == Launching {
		name = j.Launcher
	}
	who, err := process.Parse(name)
	return err == nil && process.Look(who) == process.Hidden
}

// unseen leaves a launch alone of which nothing can be seen here: whoever began it may
// come back, as one who shares the home. When that has had its time, as a lost home has,
// the job is orphaned. It is not launched again, since it may have run.
func (s *Supervisor) unseen(ctx context.Context, j Job) (again bool, err error) {
	s.mu.Lock()
	since := s.held.Since
	s.mu.Unlock()
	if j.Began.After(since) {
		since = j.Began
	}
	err = s.update(ctx, func(tx Tx) error {
		again = false
		now, err := s.job(tx, j.ID)
		if err != nil || now.Claim != j.Claim || now.Status != j.Status || !s.clock(tx).After(since.Add(s.conf.OrphanAfter)) {
			return err
		}
		again = true
		return put(tx, now, Orphan{Failure: "It was launched on another machine, or before this one was started anew, and its folder is not here: whether it ran is not known."}, s.clock(tx))
	})
	return again, err
}

// takeEvents takes in the whole lines of the launch's events that are not in the
// store yet, with the offset in the same transaction.
func (s *Supervisor) takeEvents(ctx context.Context, j *Job, d launchDir) error {
	f, err := os.Open(d.file(eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		fi, err := f.Stat()
		if err != nil || fi.Size() <= j.Offset {
			return err
		}
		cmd, err := s.nextRecords(f, *j)
		if err != nil || cmd.Offset == j.Offset {
			return err
		}
		if *j, err = s.apply(ctx, j.ID, cmd); err != nil {
			return err
		}
	}
}

// maxRecord bounds a line of a launch's events. Ours are shorter.
const maxRecord = 4 << 20

// nextRecords reads up to a hundred lines.
func (s *Supervisor) nextRecords(f io.ReaderAt, j Job) (Record, error) {
	cmd := Record{Token: j.Claim, From: j.Offset, Offset: j.Offset, Dropped: j.Dropped}
	buf := make([]byte, 0, readSize)
	for n := 0; n < atOnce; {
		i := bytes.IndexByte(buf, '\n')
		if i < 0 {
			more, err := readMore(f, cmd.Offset+int64(len(buf)), &buf)
			if err != nil {
				return cmd, err
			}
			if !more {
				if len(buf) >= maxRecord { // not a line of ours: what is behind it cannot be told apart
					cmd.Offset += int64(len(buf))
				}
				break
			}
			continue
		}
		s.take(&cmd, j, buf[:i])
		cmd.Offset += int64(i + 1)
		buf = buf[i+1:]
		n++
	}
	return cmd, nil
}

func readMore(f io.ReaderAt, at int64, buf *[]byte) (more bool, err error) {
	if len(*buf) >= maxRecord {
		return false, nil
	}
	chunk := make([]byte, readSize)
	n, err := f.ReadAt(chunk, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	*buf = append(*buf, chunk[:n]...)
	return n > 0, err
}

// take makes an event of a line. Whatever the line says, it is one of four: what a
// job prints never becomes an event of its life or of a question.
func (s *Supervisor) take(cmd *Record, j Job, line []byte) {
	var r record
	if json.Unmarshal(line, &r) != nil {
		return
	}
	add := func(t event.Type, payload any) { cmd.Events = append(cmd.Events, j.event(t, event.System, payload)) }
	switch r.Kind {
	case kindOutput:
		if r.Output == nil {
			return
		}
		if j.Outputs+cmd.Outputs >= s.conf.MaxOutputs {
			s.drop(cmd, add, j)
			return
		}
		cmd.Outputs++
		add(event.JobOutput, r.Output)
		if r.Output.Type != progressType {
			return
		}
		if p := progressOf(r.Output); p != nil {
			cmd.Progress = p
		}
	case kindDropped:
		s.drop(cmd, add, j)
	case kindLogTruncated:
		add(event.LogTruncated, streamPayload{JobID: j.ID, Stream: r.Stream, Limit: r.Limit})
	case kindCaptureFailed:
		add(event.LogCaptureFailed, streamPayload{JobID: j.ID, Stream: r.Stream, Reason: r.Reason})
	}
}

func (s *Supervisor) drop(cmd *Record, add func(event.Type, any), j Job) {
	if !cmd.Dropped {
		cmd.Dropped = true
		add(event.OutputDropped, streamPayload{JobID: j.ID, Limit: s.conf.MaxOutputs})
	}
}

// progressType is the word of printed lines whose data is the job's progress.
const progressType = "progress"

func progressOf(p *outputPayload) []byte {
	switch {
	case p.Data != nil:
		return p.Data
	case p.Message == "" && p.InvalidText != nil: // nothing can be read of it: the last one stands
		return nil
	}
	b, err := json.Marshal(struct {
		Message string `json:"message,omitempty"`
	}{p.Message})
	if err != nil {
		return nil
	}
	return b
}
