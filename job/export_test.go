package job

import (
	"context"
	"time"
)

// ForceAfter is how long a runner may take beyond the command's patience.
const ForceAfter = forceAfter

// SetBeginPatience bounds how long a runner takes to start the command.
func (s *Supervisor) SetBeginPatience(d time.Duration) { s.beginPatience = d }

// Wait4Runners waits until the runners that s started are collected.
func (s *Supervisor) Wait4Runners() { s.runners.Wait() }

// KeepOnce is one round of what [Supervisor.Loop] does for its home, and about others.
func (s *Supervisor) KeepOnce(ctx context.Context) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	return s.orphanLost(ctx)
}
