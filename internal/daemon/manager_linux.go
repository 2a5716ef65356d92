package daemon

import "os"

// serviceUnit is the systemd service that this process is a part of; empty: none.
func serviceUnit() (unit string, ofUser bool) {
	if os.Getenv("INVOCATION_ID") == "" {
		return "", false
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	return unitOf(string(b))
}
