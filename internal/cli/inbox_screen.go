package cli

import (
	"context"
	"errors"
	"os"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/tui"
)

// wholeTerminal is the keyboard and the screen of somebody for whom a whole screen can be
// drawn; nil where there is none.
func (a *app) wholeTerminal() (in, out *os.File) {
	if a.json || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return nil, nil
	}
	keys, screen := terminalOf(a.in), terminalOf(a.out.to)
	if keys == nil || screen == nil {
		return nil, nil
	}
	return keys.f, screen.f
}

// openInbox shows the inbox on the terminal until it is left.
func (a *app) openInbox(ctx context.Context, in, out *os.File, by string) error {
	if err := decision.CheckAnswer(decision.Answer{By: by}); err != nil {
		return err
	}
	defer a.errs.hold()() // what is logged meanwhile would stand in the middle of the screen
	st, err := a.write(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	last, err := tui.Run(ctx, tui.Config{
		Store: st, Space: event.MainSpace, Operator: operator(st), By: by, Command: a.withGlobals, Absent: a.absentDaemon,
	}, in, out)
	if last != "" {
		a.note("%s", last)
	}
	return err
}

// absentDaemon says that nobody goes on with a daemon's work for now; empty: a daemon does.
func (a *app) absentDaemon() string {
	if _, err := a.reach(); errors.Is(err, errNoDaemon) {
		return "No daemon serves this store now: " + a.withGlobals("serve")
	}
	return ""
}
