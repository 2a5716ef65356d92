// Package migrate reads a store's numbered schema steps. It runs nothing: each
// backend applies them in its own kind of transaction.
package migrate

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Step is one forward step of a schema.
type Step struct {
	Number int    // 1, 2, 3 …: the schema's number once the step has run
	Name   string // file name, for messages
	SQL    string
}

// Load reads the *.sql files of fsys, in fsys itself or in its one folder
// "migrations". A name opens with the step's number: 0001_init.sql. Numbers run
// from 1 without a gap and without a double: what was numbered twice would run
// once, and nobody would notice.
func Load(fsys fs.FS) ([]Step, error) {
	dir := "."
	if s, err := fs.Stat(fsys, "migrations"); err == nil && s.IsDir() {
		dir = "migrations"
	}
	names, err := fs.Glob(fsys, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, fmt.Errorf("list the schema steps: %w", err)
	}
	steps := make([]Step, 0, len(names))
	for _, name := range names {
		s, err := read(fsys, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.Number - b.Number })
	return steps, whole(steps)
}

// Pending returns the steps that lead on from schema number from.
func Pending(steps []Step, from int) []Step {
	return steps[min(max(from, 0), len(steps)):]
}

func read(fsys fs.FS, name string) (Step, error) {
	base := path.Base(name)
	digits, _, ok := strings.Cut(base, "_")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 {
		return Step{}, fmt.Errorf("schema step %s: its name must open with a number and an underscore, as in 0001_init.sql", base)
	}
	sql, err := fs.ReadFile(fsys, name)
	if err != nil {
		return Step{}, fmt.Errorf("schema step %s: %w", base, err)
	}
	return Step{Number: n, Name: base, SQL: string(sql)}, nil
}

func whole(steps []Step) error {
	if len(steps) == 0 {
		return fmt.Errorf("there are no schema steps in this build")
	}
	for i, s := range steps {
		if i > 0 && s.Number == steps[i-1].Number {
			return fmt.Errorf("schema steps %s and %s have the same number %d: only one of them would run", steps[i-1].Name, s.Name, s.Number)
		}
		if s.Number != i+1 {
			return fmt.Errorf("schema step %d is missing: %s comes without it", i+1, s.Name)
		}
	}
	return nil
}
