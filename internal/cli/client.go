package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
)

var errNoDaemon = fault.Sentinel(fault.Unavailable, "no_daemon", "No daemon serves this store.")

// client speaks to the daemon: at PLACET_URL with PLACET_TOKEN, else to the one that
// has this store, over its socket, with the home's admin token.
func (a *app) client() (*httpapi.Client, error) {
	if u := os.Getenv("PLACET_URL"); u != "" {
		return httpapi.NewClient(u, os.Getenv("PLACET_TOKEN")), nil
	}
	path, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	h, err := daemon.HomeOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, a.noDaemon()
	}
	if err != nil {
		return nil, err
	}
	found, err := h.Find()
	if err != nil { // its lock is free: a token is sent to nobody who listens where it listened
		return nil, a.noDaemon().Because(err)
	}
	secret := os.Getenv("PLACET_TOKEN")
	if secret == "" {
		if secret, err = h.Token(); err != nil {
			return nil, err
		}
	}
	if found.Socket != "" {
		return httpapi.NewSocketClient(found.Socket, secret), nil
	}
	return httpapi.NewClient(found.URL, secret), nil
}

func (a *app) noDaemon() *fault.Error {
	return errNoDaemon.Hint("Start one: %s.", a.withGlobals("serve"))
}
