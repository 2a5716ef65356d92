package review

import (
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
)

// Way is who goes on with what waits, once it is approved.
type Way int

// The ways.
const (
	ByCaller   Way = iota // placet resume, or the program that made the call
	ByStarter             // placet run resume, or the program that started the run
	ByDaemon              // a daemon that knows what it needs
	ByReserver            // a program that reserved it over HTTP and carries it out itself
)

// WayOf is who goes on with a call that is its own root.
func WayOf(k call.Call) Way { return wayOf(nil, &k) }

func wayOf(r *run.Run, k *call.Call) Way {
	switch {
	case r != nil && r.ContinueBy == call.ByDaemon:
		return ByDaemon
	case r != nil || k != nil && k.Hosted():
		return ByStarter
	case k == nil:
		return ByCaller
	case decision.FromServer(k.Metadata) && k.ContinueBy == call.ByCaller:
		return ByReserver
	case decision.FromServer(k.Metadata) || k.ContinueBy == call.ByDaemon:
		return ByDaemon
	}
	return ByCaller
}

// Unpinned says what a yes does not cover where a program is named and not pinned; empty:
// it covers all.
func Unpinned(implementation string) string {
	if !strings.HasPrefix(implementation, "exec ") || strings.HasPrefix(implementation, "exec sha256:") {
		return ""
	}
	return "A yes covers this command line, not what its files hold when it runs; pin: true in placet.yaml covers that, too."
}
