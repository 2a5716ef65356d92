package config

func (l *loader) guards(c *Config, n *node) {
	if n == nil {
		return
	}
	f := l.fields(n, "guards", "calls_per_run", "calls_per_minute", "repeats", "cost")
	c.Guards.CallsPerRun = l.count(f.get("calls_per_run"), "the guard calls_per_run")
	c.Guards.CallsPerMinute = l.count(f.get("calls_per_minute"), "the guard calls_per_minute")
	c.Guards.Repeats = l.count(f.get("repeats"), "the guard repeats")
	c.Guards.Cost = l.count(f.get("cost"), "the guard cost")
}
