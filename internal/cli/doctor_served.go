package cli

import (
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/config"
)

// daemonsCalls are those of the granted calls that a daemon carries out by itself, by
// their approval.
func daemonsCalls(tx call.Tx, granted []decision.Decision) (map[string]call.Call, error) {
	calls := map[string]call.Call{}
	for _, d := range granted {
		if d.Owner.Kind != decision.OwnerCall {
			continue
		}
		c, err := tx.Call(d.Owner.ID)
		if err != nil {
			return nil, err
		}
		if c.ContinueBy == call.ByDaemon && c.ApprovalID == d.ID {
			calls[d.ID] = c
		}
	}
	return calls, nil
}

// lookServed finds approved calls that a daemon would have carried out by now, had one
// been able to.
func lookServed(f *findings, granted []decision.Decision, served map[string]call.Call, now time.Time, conf *config.Config) {
	var idle []call.Call
	for _, d := range granted {
		c, ok := served[d.ID]
		if !ok || !call.Overlooked(d, now) {
			continue
		}
		why, hint := "", ""
		if conf != nil {
			why, hint = c.Unserved(conf.Tools)
		}
		switch {
		case why != "":
			f.attention("unserved", "%s is %s. %s", c.ID, why, hint)
		case now.Before(c.NextTryAt):
			f.attention("unserved", "%s is approved, and was refused when it was about to run; it is tried again at %s. What was in its way: placet events call:%[1]s", c.ID, stamp(c.NextTryAt))
		default:
			idle = append(idle, c)
		}
	}
	if n := len(idle); n > 0 {
		f.attention("unserved", "%s came in over HTTP, approved for over a minute and not run, such as %s: placet serve carries them out", upTo(n, "call"), idle[0].ID)
	}
}
