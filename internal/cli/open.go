package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/store"
)

// place is where the store is: --db, PLACET_DB, or a file in the home.
func (a *app) place() (place.Place, error) { return place.Named(a.db) }

// read opens the store to look at it. It creates nothing.
func (a *app) read(ctx context.Context) (*store.Store, error) {
	return a.open(ctx, place.Options{ReadOnly: true, Logger: a.logger()})
}

// write opens a store that is there. Deciding on what nobody can have asked for
// does not create a file either.
func (a *app) write(ctx context.Context) (*store.Store, error) {
	return a.open(ctx, place.Options{Logger: a.logger()})
}

func (a *app) open(ctx context.Context, o place.Options) (*store.Store, error) {
	p, err := a.place()
	if err == nil {
		err = p.Absent()
	}
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, o)
}

// create opens the store, and makes it where there is none.
func (a *app) create(ctx context.Context) (*store.Store, error) {
	p, err := a.placeToMake()
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, place.Options{Logger: a.logger()})
}

// placeToMake is the store's place, with the home made where it is missing.
func (a *app) placeToMake() (place.Place, error) {
	p, err := a.place()
	if err == nil {
		err = p.Prepare()
	}
	return p, err
}

// load reads the configuration.
func (a *app) load() (*config.Config, error) {
	path := a.config
	if path == "" {
		path = os.Getenv("PLACET_CONFIG")
	}
	return config.Load(path)
}

// executor is what calls and resumes.
func (a *app) executor(st *store.Store, c *config.Config) *call.Executor {
	return call.NewExecutor(call.Config{Store: st, Tools: c.Tools, Policy: c.Policy, Guards: c.Guards, Log: a.logger()})
}

// operator decides for whoever holds the store's file.
func operator(st *store.Store) decision.Operator {
	return decision.Operator{Store: st, Principal: principal(), MayOwn: true}
}

// withGlobals is a command line that reaches the same store and configuration. It has no
// password in it: whoever gave one in a URL has it, and it does not belong on a screen.
func (a *app) withGlobals(words ...string) string {
	line := []string{program()}
	if p, err := a.place(); a.db != "" && err == nil { // what PLACET_DB says holds for the next command, too
		line = append(line, "--db", p.String())
	}
	if a.config != "" {
		line = append(line, "--config", a.config)
	}
	line = append(line, words...)
	for i, w := range line {
		line[i] = display.ShellWord(w)
	}
	return strings.Join(line, " ")
}

// program is how this program was called, so that what we say to type works. A
// path is made absolute: it may be typed somewhere else. It is not needed where
// the name alone finds the same program.
func program() string {
	name := os.Args[0]
	if !strings.ContainsRune(name, filepath.Separator) || onPath(name) {
		return "placet"
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// onPath reports whether placet, found by its name, is the program at path.
func onPath(path string) bool {
	found, err := exec.LookPath("placet")
	if err != nil {
		return false
	}
	one, err := os.Stat(found)
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(one, other)
}
