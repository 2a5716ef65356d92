package job

import (
	"context"
	"sync"
	"time"
)

// Loop looks after the home's jobs until ctx ends: it hears from each runner as
// things happen, and passes over all jobs every second. Jobs go on when it ends. With
// [Config.Home] it registers the home, keeps it by its lease, orphans the jobs of homes
// that are lost, and gives the home up when it ends.
func (s *Supervisor) Loop(ctx context.Context) error {
	if s.misuse != nil {
		return s.misuse
	}
	s.setLooping(true)
	defer s.setLooping(false)
	if s.registers() {
		var keeping sync.WaitGroup
		keeping.Go(func() { s.keep(ctx) })
		keeping.Go(func() { s.judgeHomes(ctx) })
		defer s.leave(context.WithoutCancel(ctx)) // nothing is launched any more by then
		defer keeping.Wait()
	}
	tick := time.NewTicker(passEvery)
	defer tick.Stop()
	for {
		s.lookAfter(ctx)
		s.conf.Alive()
		select {
		case <-ctx.Done():
			s.following.Wait()
			return nil
		case <-tick.C:
		case <-s.kick:
		}
	}
}

// lookAfter passes over the jobs once, if the home is ours.
func (s *Supervisor) lookAfter(ctx context.Context) {
	if !s.mayPass() {
		return
	}
	if err := s.pass(ctx, &s.following, func(j Job) { s.hear(ctx, j); s.conf.Alive() }); err != nil && ctx.Err() == nil {
		s.conf.Log.Error("a pass over the jobs failed; it is tried again", "error", err)
	}
	if err := s.sweepCleaned(ctx); err != nil && ctx.Err() == nil {
		s.conf.Log.Error("cleaned jobs could not be deleted; it is tried again", "error", err)
	}
}

func (s *Supervisor) setLooping(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looping = on
}

// hear sees to it that a job's launch is heard of. One that was queued a moment ago
// may be launched now: the kick of its end, or the next pass, comes back to it.
func (s *Supervisor) hear(ctx context.Context, j Job) {
	if j.Status == Running && s.mark(j.Claim) {
		s.following.Go(func() { s.follow(ctx, j) })
	}
}

// mark reports whether nobody follows the launch yet.
func (s *Supervisor) mark(claim string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[claim] {
		return false
	}
	s.followed[claim] = true
	return true
}

// follow takes in what one runner has left, each time it says so, until it ends.
func (s *Supervisor) follow(ctx context.Context, j Job) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followed, j.Claim)
	}()
	conn, err := s.dir(j).watch(ctx, j.Claim)
	if err != nil {
		s.settle(ctx, j) // it has ended, or the next pass tries again
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	buf := make([]byte, 256)
	for {
		s.settle(ctx, j)
		if _, err := conn.Read(buf); err != nil {
			break
		}
	}
	s.afterEnd(ctx, j)
}

// afterEnd takes the end in. A runner's lock may outlast its connection for a moment.
func (s *Supervisor) afterEnd(ctx context.Context, j Job) {
	for range 50 {
		if ctx.Err() != nil {
			return
		}
		s.settle(ctx, j)
		now, err := s.stored(ctx, j.ID)
		if err != nil || now.Status.Terminal() || now.Claim != j.Claim {
			return
		}
		time.Sleep(lookAgain)
	}
}
