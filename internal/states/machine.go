package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/source"
)

// machine is what the page says of one machine over subjects S.
type machine[S any] struct {
	title, about string
	dir          string // of the package
	states       []state[S]
	commands     []command
	// left are commands of the package that this machine does not have.
	left []string
	step func(s S, cmd any, now time.Time) answer
}

// state is a row of the table of states: a subject that stands so.
type state[S any] struct {
	name, means string
	at          S
}

// command is a row of the table of what can happen.
type command struct {
	name string
	cmd  any
	now  time.Time
}

// answer is what a machine said to a command.
type answer struct {
	to     string // the state that follows
	same   bool   // and it is the one before
	events []event.Event
	refuse error // committed with the change
	err    error // nothing is written
}

// write adds the machine's chapter to the page.
func (m machine[S]) write(p *paper) error {
	if err := m.whole(p.root); err != nil {
		return err
	}
	docs, err := source.Docs(filepath.Join(p.root, m.dir))
	if err != nil {
		return err
	}
	p.line("## %s\n\n%s\n", m.title, m.about)
	m.writeStates(p)
	m.writeCommands(p, docs)
	m.writeTable(p)
	m.writeTransitions(p)
	return nil
}

// whole refuses a page that leaves a command of the package out.
func (m machine[S]) whole(root string) error {
	known, err := source.Commands(filepath.Join(root, m.dir))
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, name := range m.left {
		has[name] = true
	}
	for _, c := range m.commands {
		has[typeOf(c.cmd)] = true
	}
	if got := slices.Sorted(maps.Keys(has)); !slices.Equal(got, known) {
		return fmt.Errorf("the page has the commands %v of %s; the package has %v", got, m.dir, known)
	}
	return nil
}

// typeOf is the name of a command's type within its package.
func typeOf(cmd any) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", cmd), ".")
	return name
}

func (m machine[S]) writeStates(p *paper) {
	p.line("| state | |\n| --- | --- |")
	for _, s := range m.states {
		p.line("| %s | %s |", s.name, s.means)
	}
	p.line("")
}

func (m machine[S]) writeCommands(p *paper, docs map[string]string) {
	p.line("| command | |\n| --- | --- |")
	seen := map[string]bool{}
	for _, c := range m.commands {
		if name := typeOf(c.cmd); !seen[name] {
			seen[name] = true
			p.line("| `%s` | %s |", name, saidOf(name, docs[name]))
		}
	}
	p.line("")
}

// saidOf is a type's comment without its name, as a sentence on one line.
func saidOf(name, doc string) string {
	s := strings.TrimPrefix(strings.Join(strings.Fields(strings.TrimPrefix(doc, name+" ")), " "), "is ")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// writeTable is every command in every state.
func (m machine[S]) writeTable(p *paper) {
	head, rule := "| |", "| --- |"
	for _, s := range m.states {
		head += " " + s.name + " |"
		rule += " --- |"
	}
	p.line("%s\n%s", head, rule)
	for _, c := range m.commands {
		row := "| " + c.name + " |"
		for _, s := range m.states {
			row += " " + p.cell(m.step(s.at, c.cmd, c.now)) + " |"
		}
		p.line("%s", row)
	}
	p.line("")
}

// writeTransitions lists what is accepted, with the events.
func (m machine[S]) writeTransitions(p *paper) {
	for _, s := range m.states {
		var lines []string
		for _, c := range m.commands {
			if a := m.step(s.at, c.cmd, c.now); a.err == nil {
				lines = append(lines, "- "+c.name+" → "+a.told())
			}
		}
		if lines == nil {
			p.line("From **%s** nothing leads on.\n", s.name)
			continue
		}
		p.line("From **%s**:\n\n%s\n", s.name, strings.Join(lines, "\n"))
	}
}

// told is a transition in words.
func (a answer) told() string {
	s := "**" + a.to + "**"
	var types []string
	for _, e := range a.events {
		types = append(types, "`"+string(e.Type)+"`")
	}
	if types == nil {
		s += ", no event of its own"
	} else {
		s += ", " + strings.Join(types, ", ")
	}
	if a.refuse != nil {
		s += "; who asked is answered `" + reason(a.refuse) + "`"
	}
	return s
}

// paper collects the page, and the reasons that it mentions.
type paper struct {
	root    string
	text    strings.Builder
	reasons map[string]bool
}

func (p *paper) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *paper) cell(a answer) string {
	switch {
	case a.err != nil:
		p.reasons[reason(a.err)] = true
		return "`" + reason(a.err) + "`"
	case a.refuse != nil:
		p.reasons[reason(a.refuse)] = true
		return "→ **" + a.to + "**, `" + reason(a.refuse) + "`"
	case a.same:
		return "stays"
	}
	return "→ **" + a.to + "**"
}

func reason(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
