package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/placet-dev/placet/tool"
)

var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

func (l *loader) agents(c *Config, n *node) {
	if n == nil {
		return
	}
	for key, value := range l.pairs(n, "agents") {
		what := "agent " + quoted(key.Value)
		if !agentName.MatchString(key.Value) {
			l.refuse(key, "the name of %s is not allowed; write ASCII letters, digits and _ - . only, the first a letter or digit", what)
		}
		if !l.isMapping(value, what) {
			continue
		}
		f := l.fields(value, what, "exec")
		if program := f.get("exec"); program != nil {
			c.Agents[key.Value] = l.agent(key.Value, program, what)
		} else {
			l.refuse(key, "%s has no program; write exec: [./agent.py]", what)
		}
	}
}

func (l *loader) agent(name string, n *node, what string) Agent {
	argv, ok := l.argv(n, "exec of "+what)
	if !ok {
		return Agent{}
	}
	// A tool's program is looked for alike, with the same refusals.
	if _, err := tool.NewExec(argv, l.dir, false); err != nil {
		l.refuse(n, "exec of %s: %s", what, sentence(err))
		return Agent{}
	}
	argv = slices.Clone(argv)
	if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(l.dir, argv[0])
	}
	return Agent{Name: name, Argv: argv, Dir: l.dir}
}
