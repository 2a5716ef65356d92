package cli

import (
	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/config"
)

// servedCall is an approved call that a daemon carries out by itself.
type servedCall struct {
	call.Call
	overlooked bool // a daemon that could act on the yes would have
	later      bool // it was refused, and is tried again later
}

// apart keeps the yeses that somebody has to act on, apart from those on calls that a
// daemon carries out.
func apart(tx call.Tx, granted []decision.Decision) (others []decision.Decision, served []servedCall, err error) {
	for _, d := range granted {
		var c call.Call
		if d.Owner.Kind == decision.OwnerCall {
			if c, err = tx.Call(d.Owner.ID); err != nil {
				return nil, nil, err
			}
		}
		if c.ContinueBy != call.ByDaemon || c.ApprovalID != d.ID {
			others = append(others, d)
			continue
		}
		served = append(served, servedCall{c, call.Overlooked(d, tx.Now()), tx.Now().Before(c.NextTryAt)})
	}
	return others, served, nil
}

// lookServed finds approved calls that a daemon would have carried out by now, had one
// been able to.
func lookServed(f *findings, served []servedCall, conf *config.Config) {
	if n := len(served); n > 0 {
		f.ok("served", "%s that placet serve carries out by itself", upTo(n, "approved call"))
	}
	var idle []servedCall
	for _, c := range served {
		why, hint := "", ""
		if conf != nil {
			why, hint = c.Unserved(conf.Tools)
		}
		switch {
		case !c.overlooked:
		case why != "":
			f.attention("unserved", "%s is %s. %s", c.ID, why, hint)
		case c.later:
			f.attention("unserved", "%s is approved, and was refused when it was about to run; it is tried again at %s. What was in its way: placet events call:%[1]s",
				c.ID, stamp(c.NextTryAt))
		default:
			idle = append(idle, c)
		}
	}
	if n := len(idle); n > 0 {
		f.attention("unserved", "%s came in over HTTP, approved for over a minute and not run, such as %s: placet serve carries them out", upTo(n, "call"), idle[0].ID)
	}
}
