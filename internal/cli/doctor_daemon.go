package cli

import (
	"context"
	"errors"
	"time"
)

// patienceOfDoctor bounds how long a daemon may take to say how it is.
const patienceOfDoctor = 5 * time.Second

// lookDaemon asks the daemon, where one has the store.
func (a *app) lookDaemon(ctx context.Context, f *findings) {
	c, err := a.reach()
	switch {
	case errors.Is(err, errNoDaemon):
		f.note("daemon", "None serves this store%s: what came in over HTTP waits for placet serve, and the rest for placet resume.", a.fromHome())
		return
	case err != nil:
		f.failed("daemon", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patienceOfDoctor)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		f.failed("daemon", a.inOurWords(c, err))
		return
	}
	who, err := c.Whoami(ctx)
	if err != nil {
		f.failed("daemon", a.inOurWords(c, err))
		return
	}
	f.ok("daemon", "It is ready, and takes us for %s with scope %s.", who.Principal, who.Scope)
}

// fromHome is where a daemon was looked for, where others may serve the store from elsewhere.
func (a *app) fromHome() string {
	p, err := a.place()
	if err != nil {
		return ""
	}
	dir, ok := p.Folder()
	if !ok {
		return ""
	}
	return " from the home " + dir
}
