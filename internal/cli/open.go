package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
)

// dbPath is the database's path: --db, PLACET_DB, or a file in the home.
func (a *app) dbPath() (string, error) {
	path := a.db
	if path == "" {
		path = os.Getenv("PLACET_DB")
	}
	if strings.Contains(path, "://") {
		return "", errUse.Say("The store %q is a URL; this program keeps its store in a SQLite file.", path).Hint("Give the path of a file.")
	}
	if path != "" {
		return path, nil
	}
	home, err := homePath()
	return filepath.Join(home, "placet.db"), err
}

// homePath is where files of ours lie unless said otherwise.
func homePath() (string, error) {
	if home := os.Getenv("PLACET_HOME"); home != "" {
		return home, nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", errUse.Say("Your home folder is not known, so neither is the database.").Hint("Give --db PATH, or set PLACET_HOME.").Because(err)
	}
	return filepath.Join(dir, ".placet"), nil
}

// read opens the store to look at it. It creates nothing.
func (a *app) read(ctx context.Context) (*store.Store, error) {
	path, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	if err := absent(path); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, &sqlite.Options{ReadOnly: true, Logger: a.logger()})
}

// write opens a store that is there. Deciding on what nobody can have asked for
// does not create one either.
func (a *app) write(ctx context.Context) (*store.Store, error) {
	path, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	if err := absent(path); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, &sqlite.Options{Logger: a.logger()})
}

// create opens the store, and makes it where there is none.
func (a *app) create(ctx context.Context) (*store.Store, error) {
	path, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	if home, err := homePath(); err == nil && filepath.Dir(path) == home {
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, fault.New(fault.Invalid, "The folder %s cannot be made.", home).Hint("Give --db PATH, or set PLACET_HOME.").Because(err)
		}
	}
	return sqlite.Open(ctx, path, &sqlite.Options{Logger: a.logger()})
}

// absent says that there is no database, and what to do; nil if there is something.
func absent(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.New(fault.NotFound, "There is no database at %s.", path).
		Hint("Check --db or PLACET_DB. The first placet call makes one; placet demo shows how.")
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

// withGlobals is a command line that reaches the same store and configuration.
func (a *app) withGlobals(words ...string) string {
	line := []string{program()}
	if a.db != "" {
		line = append(line, "--db", a.db)
	}
	if a.config != "" {
		line = append(line, "--config", a.config)
	}
	line = append(line, words...)
	for i, w := range line {
		line[i] = shellWord(w)
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

// shellWord is w so that a shell takes it as one word.
func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
