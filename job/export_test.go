package job

// Wait4Runners waits until the runners that s started are collected.
func (s *Supervisor) Wait4Runners() { s.runners.Wait() }
