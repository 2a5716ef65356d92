package job

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/txn"
)

// Stop ends a job: it is asked to end, killed after killAfter (0: ten seconds), and
// cancelled once nothing of it runs any more. A queued one is cancelled at once; one
// that has ended stays as it is. Stop returns the job when it has ended, or with
// ctx's error while it is still being stopped: that goes on by itself. A job of another
// home is stopped by the supervisor there; where that one is away, Stop returns the job
// with the order, which is carried out once somebody looks after it.
func (s *Supervisor) Stop(ctx context.Context, id, by string, killAfter time.Duration) (Job, error) {
	if err := s.may(by); err != nil {
		return Job{}, err
	}
	switch {
	case killAfter < 0 || killAfter > MaxKillAfter:
		return Job{}, ErrUsage.Say("The patience before the kill is %s; it is from 0 to %s.", killAfter, MaxKillAfter)
	case killAfter == 0:
		killAfter = DefaultKillAfter
	}
	if _, err := s.Get(ctx, id); err != nil { // takes in what the store may not know, also after it went back in time
		return Job{}, err
	}
	j, err := s.apply(ctx, id, Stop{By: by, KillAfter: killAfter})
	if err != nil || j.Status.Terminal() {
		return j, err
	}
	if !s.mine(j) {
		if _, present, err := s.HomeOf(ctx, j); err != nil || !present {
			return j, err // whoever looks after it next finds the order
		}
	}
	return s.awaitEnd(ctx, j.ID)
}

// stopOrder is a stop that was passed on to a runner.
type stopOrder struct {
	until   time.Time // when its patience ends
	sent    bool      // the runner has it
	sending bool
}

// passStop carries a stop out, whoever wanted it and whether or not he still waits: the
// runner is told, and killed where it does not end in time. The order lies in the row.
// A runner that hangs takes little of the caller's time.
func (s *Supervisor) passStop(ctx context.Context, j Job, d launchDir) error {
	if j.StopBy == "" {
		return nil
	}
	var now time.Time
	if err := txn.View(ctx, s.conf.Store, func(tx Tx) error { now = s.clock(tx); return nil }); err != nil {
		return err
	}
	until := j.StopAt.Add(j.KillAfter)
	if now.After(until.Add(forceAfter)) {
		s.kill(j, d)
		return nil
	}
	if j.Status != Running { // it does not listen yet
		return nil
	}
	s.mu.Lock()
	o, told := s.stops[j.Claim]
	told = told && !o.until.After(until)
	if told && (o.sent || o.sending) {
		s.mu.Unlock()
		return nil
	}
	s.stops[j.Claim] = stopOrder{until: until, sending: true}
	s.mu.Unlock()
	done := make(chan struct{})
	s.runners.Go(func() {
		defer close(done)
		err := d.ask(context.WithoutCancel(ctx), ctlRequest{Op: opStop, Claim: j.Claim, KillAfter: max(0, until.Sub(now))})
		s.mu.Lock()
		if s.stops[j.Claim].until.Equal(until) {
			s.stops[j.Claim] = stopOrder{until: until, sent: err == nil}
		}
		s.mu.Unlock()
		if err != nil {
			s.conf.Log.Warn("a job's runner could not be told to stop; it is tried again", "job", j.ID, "error", err)
		}
	})
	if !told { // most answer at once, and a caller that ends has told them then
		timer := time.NewTimer(stopPatience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
	return nil
}

// stopPatience is how long a look at a job waits for its runner to hear of a stop.
const stopPatience = 200 * time.Millisecond

// forceAfter is how long a runner may take beyond the command's patience.
const forceAfter = 10 * time.Second

// kill kills a runner that does not do what it is told. What it leaves is killed when
// the job is judged.
func (s *Supervisor) kill(j Job, d launchDir) {
	who, found, err := d.identity(j.Claim)
	if err != nil || !found {
		return
	}
	if p, err := process.Parse(who.Runner); err == nil && process.Alive(p) {
		s.conf.Log.Warn("a job's runner does not stop; it is killed", "job", j.ID, "runner", who.Runner)
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
}

// awaitEnd looks after the job until it has ended.
func (s *Supervisor) awaitEnd(ctx context.Context, id string) (Job, error) {
	woken, stop := s.conf.Store.Watch(RefOf(id).Stream())
	defer stop()
	f := follower{s: s}
	defer f.close()
	for {
		j, err := s.Get(ctx, id)
		if err != nil || j.Status.Terminal() {
			return j, err
		}
		if err := f.wait(ctx, j, woken); err != nil {
			return j, err
		}
	}
}

// follower hears from the runner of one job.
type follower struct {
	s     *Supervisor
	claim string
	news  chan struct{} // closed when the runner has ended; nil: not connected
	conn  io.Closer
}

// tryAgain is how long a runner is left alone that cannot be reached, or a job that
// has none.
const tryAgain = 100 * time.Millisecond

// wait returns when there may be something new of the job: its runner says so, or
// ended, or its stream did.
func (f *follower) wait(ctx context.Context, j Job, woken <-chan struct{}) error {
	if f.claim != j.Claim || f.news == nil {
		f.connect(ctx, j)
	}
	var again <-chan time.Time
	switch {
	case !f.s.mine(j):
		again = time.After(passEvery) // its stream says more
	case f.news == nil:
		again = time.After(tryAgain)
	case j.StopBy != "": // so that it is killed in time
		again = time.After(passEvery)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-woken:
	case <-again:
	case _, ok := <-f.news:
		if !ok {
			f.close()
		}
	}
	return nil
}

func (f *follower) connect(ctx context.Context, j Job) {
	f.close()
	if !f.s.mine(j) || j.Status != Launching && j.Status != Running {
		return
	}
	conn, err := f.s.dir(j).watch(ctx, j.Claim)
	if err != nil {
		return
	}
	news := make(chan struct{}, 1)
	news <- struct{}{} // what came before
	f.claim, f.conn, f.news = j.Claim, conn, news
	go hear(conn, news)
}

// hear passes news on until the runner ends or the connection is closed.
func hear(conn io.Reader, news chan<- struct{}) {
	defer close(news)
	buf := make([]byte, 256)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
		select {
		case news <- struct{}{}:
		default:
		}
	}
}

func (f *follower) close() {
	if f.conn != nil {
		f.conn.Close()
	}
	f.claim, f.news, f.conn = "", nil, nil
}

// Send writes to a running job's standard input; eof closes it afterwards.
// [ErrRunState] where it does not run, [ErrElsewhere] where it is another home's, [ErrNotReached] where its runner does not answer.
func (s *Supervisor) Send(ctx context.Context, id string, data []byte, eof bool) error {
	if len(data) > MaxSend {
		return ErrUsage.Say("There are %d bytes to send; the limit is %d.", len(data), MaxSend).Hint("Send them in parts.")
	}
	j, err := s.Get(ctx, id)
	switch {
	case err != nil:
		return err
	case j.Status.Terminal():
		return j.errState()
	case !s.mine(j):
		return s.elsewhere(ctx, j)
	case j.Status != Running:
		return j.errState()
	}
	err = s.dir(j).ask(ctx, ctlRequest{Op: opSend, Claim: j.Claim, Data: data, EOF: eof})
	if errors.Is(err, ErrNotReached) {
		if now, e := s.Get(ctx, id); e == nil && now.Status.Terminal() {
			return now.errState()
		}
	}
	return err
}

// MaxSend bounds what is sent at once.
const MaxSend = 512 << 10
