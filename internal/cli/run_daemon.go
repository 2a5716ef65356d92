package cli

import (
	"context"

	"github.com/placet-dev/placet/run"
)

// leave makes a run that the daemon works on, also one that is started later.
func (w working) leave(ctx context.Context, goal string, limits run.Limits, ref run.AgentRef) error {
	r, err := w.driver.Leave(ctx, goal, limits, run.As(principal()), run.By(ref))
	if err != nil {
		return err
	}
	w.noteAbsentDaemon()
	if w.json {
		o, err := readRun(ctx, w.store, r.ID)
		if err == nil {
			w.emit(placedRun{w.runObject(o, false), theDaemon})
		}
		return err
	}
	w.say("Run %s is left to the daemon.", own(r.ID))
	w.say("Follow it: %s", own(w.withGlobals("events", "run:"+r.ID, "--follow")))
	if d, err := w.reach(); err == nil {
		w.sayWhere(theDaemon, d.at)
	}
	return nil
}

// noteAbsentDaemon tells people that nobody goes on with a daemon's work for now.
func (a *app) noteAbsentDaemon() {
	if text := a.absentDaemon(); text != "" {
		a.note("%s", own(text))
	}
}
