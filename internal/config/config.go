package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/tool"
)

// DefaultName is the file that is read when none is named.
const DefaultName = "placet.yaml"

// Config is what a placet.yaml says.
type Config struct {
	Path   string // of the file, absolute; empty: there is none
	Dir    string // its folder, absolute: where relative paths start
	Tools  *tool.Registry
	Policy policy.Policy // the rules, and the side-effect default where none matches
	Guards call.Guards
	Agents map[string]Agent
}

// Agent is a program that decides what a run does next: one process for each decision.
type Agent struct {
	Name string
	Argv []string // the program and its arguments; a program written as a path is absolute
	Dir  string   // absolute; where it runs
}

// Load reads the configuration at path. With an empty path that is [DefaultName] in the
// working directory, or [Empty] if there is no such file.
//
// An error matches [ErrConfig]; its message has one line for each thing that is wrong.
func Load(path string) (*Config, error) {
	return load(path, os.LookupEnv)
}

func load(path string, env func(string) (string, bool)) (*Config, error) {
	shown := path
	if path == "" {
		shown = DefaultName
		if _, err := os.Lstat(DefaultName); errors.Is(err, fs.ErrNotExist) {
			return Empty()
		}
	}
	abs, err := filepath.Abs(shown)
	if err != nil {
		return nil, ErrConfig.Say("The folder of %s cannot be found.", shown).Because(err)
	}
	text, err := readFile(abs, shown)
	if err != nil {
		return nil, err
	}
	return parse(text, shown, abs, env)
}

// Empty is the configuration without a file: no tools, the default policy, no guards.
func Empty() (*Config, error) {
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, ErrConfig.Say("The working directory cannot be found.").Because(err)
	}
	return &Config{Dir: dir, Tools: &tool.Registry{}, Policy: policy.Default(), Agents: map[string]Agent{}}, nil
}

// parse turns the text of a file into a configuration. shown is the file's name in messages.
func parse(text []byte, shown, abs string, env func(string) (string, bool)) (*Config, error) {
	l := &loader{file: shown, dir: filepath.Dir(abs), env: env}
	c := &Config{Path: abs, Dir: l.dir, Tools: &tool.Registry{}, Policy: policy.Default(), Agents: map[string]Agent{}}
	if root, ok := l.document(text); ok {
		l.config(c, root)
	}
	if err := l.error(); err != nil {
		return nil, err
	}
	return c, nil
}

// loader reads one file and collects what is wrong with it.
type loader struct {
	file     string // its name in messages
	dir      string // where relative paths start
	env      func(string) (string, bool)
	problems []problem
	refused  int // how often something was refused, kept or not
}

func (l *loader) config(c *Config, root *node) {
	f := l.fields(root, "the file", "tools", "agents", "rules", "guards")
	l.tools(c, f.get("tools"))
	l.agents(c, f.get("agents"))
	l.rules(c, f.get("rules"))
	l.guards(c, f.get("guards"))
}
