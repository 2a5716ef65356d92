package daemon

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"time"
)

// killsJobs warns where the service manager would end jobs together with the daemon;
// empty: it would not, there is none, or there are no jobs.
func (d *daemon) killsJobs() string {
	if d.jobs == nil {
		return ""
	}
	unit, ofUser := serviceUnit()
	if unit == "" {
		return ""
	}
	return warnOf(unit, killMode(unit, ofUser))
}

// warnOf is what to say of a service of that unit, by its KillMode; empty: not known.
func warnOf(unit, mode string) string {
	sets := fmt.Sprintf("Set KillMode=process in the [Service] section of %s, then systemctl daemon-reload.", unit)
	switch mode {
	case "process", "none":
		return ""
	case "":
		return fmt.Sprintf("This daemon runs as the service %s. Unless that has KillMode=process, stopping it ends every job with it. %s", unit, sets)
	}
	return fmt.Sprintf("This daemon runs as the service %s with KillMode=%s: stopping or restarting it ends every job with it. %s", unit, mode, sets)
}

// unitOf reads the service out of what the kernel says of a process's control groups
// (/proc/self/cgroup): the last part of systemd's path, where that is a service. A shell
// of a session, or a container, is in none.
func unitOf(cgroups string) (unit string, ofUser bool) {
	for line := range strings.Lines(cgroups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[1] != "" && f[1] != "name=systemd" {
			continue
		}
		if name := path.Base(f[2]); strings.HasSuffix(name, ".service") {
			return name, strings.Contains(f[2], "/user@") && !strings.HasPrefix(name, "user@")
		}
	}
	return "", false
}

// asking bounds how long the service manager may take to answer.
const asking = 2 * time.Second

// killMode asks systemd how it ends the unit; empty: it could not be found out.
func killMode(unit string, ofUser bool) string {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	args := []string{"show", "--property=KillMode", "--value", "--", unit}
	if ofUser {
		args = append([]string{"--user"}, args...)
	}
	out, err := exec.CommandContext(ctx, "systemctl", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
