// Package whole says what a whole store is made of, for who copies one to a place of
// another kind: tables in the words that every backend understands, and the few things
// that a store knows about itself.
//
// In these words an event's seq is its place among all events, a delivery's seq is that
// of its event, and a counter has one row. What a backend keeps for itself alone (the
// row meta, slots of counters, an order that is given later) is not in the tables, nor are
// sign-ins.
package whole

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Kind is what a column holds.
type Kind string

// The kinds. Each column may hold NULL as well.
const (
	Integer Kind = "integer" // int64
	Text    Kind = "text"    // string
	Bytes   Kind = "bytes"   // []byte, never nil
)

// Column is one column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Table is one table.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // of the primary key, in its order
	Refers  []string // tables that have to be filled before this one
}

// At is the position of a column; -1 if there is none.
func (t Table) At(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// Rows are the rows of a table, in the order of its key. A row has nil, int64, string or
// []byte for each column; it is valid until the next one is asked for. An error is the last
// that is given.
type Rows = iter.Seq2[[]any, error]

// Life is what a store knows about itself. Times are microseconds; 0: none.
type Life struct {
	StoreID string
	Epoch   int64
	Last    int64 // highest place that was given to an event
	LastAt  int64 // time of the last commit that is known
	Targets int64 // changes of wake targets
}

// Source is a store that is read in one snapshot, while nobody can write to it.
type Source interface {
	Life() Life
	// Tables are all there are, in the order of their names.
	Tables() []Table
	Rows(ctx context.Context, t Table) Rows
	// Retire ends the source's use for good: from then on it can only be read. It is
	// asked for when the source is opened, and durable when this returns nil.
	Retire(ctx context.Context) error
	// Close lets others write again.
	Close() error
}

// Target is a place for a store in which there is none, or one that was never used.
// Nothing of what is done to it can be seen by others, or is left after a crash, before
// Commit has returned nil.
type Target interface {
	// Make makes the tables, where there are none.
	Make(ctx context.Context) error
	// Tables are all there are, in the order of their names; after Make.
	Tables() []Table
	Fill(ctx context.Context, t Table, rows Rows) error
	// Begin has the store go on where the life that was copied ended: in its next one,
	// whose epoch is returned.
	Begin(ctx context.Context, was Life) (epoch int64, err error)
	// Rows are what was written, read again.
	Rows(ctx context.Context, t Table) Rows
	// Verify is whether everything in it fits together, and runs check on it as on an
	// opened store. After Begin.
	Verify(ctx context.Context, check func(txn.Store) error) error
	// Commit makes it the store at its place.
	Commit(ctx context.Context) error
	// Close undoes what was not committed.
	Close() error
}

// ErrUsed: the place has a store that was used.
var ErrUsed = fault.Sentinel(fault.Conflict, "target_used", "The target has a store in it already. Nothing was copied.")

// ErrOpen: another process has the store open.
var ErrOpen = fault.Sentinel(fault.Conflict, "store_open", "Another process has the store open. Nothing was copied.")

// ErrRetired: the store was moved elsewhere for good.
var ErrRetired = fault.Sentinel(fault.Conflict, "store_retired", "The store was moved to another place, and this one can only be read.", txn.ErrNotCommitted)

// ErrTables: the two sides do not have the same tables and columns, so that something would
// be lost.
var ErrTables = fault.Sentinel(fault.Conflict, "tables_differ", "The two stores do not have the same tables. Nothing was copied.")

// Odd is [ErrTables] about one store.
func Odd(place string, err error) error {
	return ErrTables.Say("The tables of %s cannot be copied: %s. Nothing was copied.", place, err).
		Hint("What another program keeps among Placet's tables has to be moved away first; else use the Placet that made the store.")
}

// Retired stands for min_writer in a store that was moved elsewhere for good: no program
// is new enough to write to it. Older programs know no more than that.
const Retired = 1 << 62

// Moved says that a store was retired.
func Moved(what string) error {
	return ErrRetired.Say("%s was moved to another place by placet db copy --retire, and can only be read. Nothing was changed.", what).
		Hint("Use the copy (--db, PLACET_DB). To come back to this place, copy the copy to a new file or schema.")
}

// Differ says in what two stores' tables differ; "" if they do not.
func Differ(a, b []Table) string {
	name := func(t Table) string { return t.Name }
	if s := differ("table", names(a, name), names(b, name)); s != "" {
		return s
	}
	for i, t := range a {
		column := func(c Column) string { return t.Name + "." + c.Name }
		x, y := sorted(t.Columns), sorted(b[i].Columns)
		if s := differ("column", names(x, column), names(y, column)); s != "" {
			return s
		}
		for j := range x {
			if x[j].Kind != y[j].Kind {
				return fmt.Sprintf("the column %s holds %s on one side and %s on the other", column(x[j]), x[j].Kind, y[j].Kind)
			}
		}
		if !slices.Equal(t.Key, b[i].Key) {
			return fmt.Sprintf("the key of the table %s is %s on one side and %s on the other", t.Name, strings.Join(t.Key, ", "), strings.Join(b[i].Key, ", "))
		}
	}
	return ""
}

func sorted(cs []Column) []Column {
	return slices.SortedFunc(slices.Values(cs), func(a, b Column) int { return strings.Compare(a.Name, b.Name) })
}

func names[T any](list []T, name func(T) string) (ns []string) {
	for _, x := range list {
		ns = append(ns, name(x))
	}
	return ns
}

func differ(what string, a, b []string) string {
	for _, one := range [][2][]string{{a, b}, {b, a}} {
		for _, n := range one[0] {
			if !slices.Contains(one[1], n) {
				return fmt.Sprintf("only one side has the %s %s", what, n)
			}
		}
	}
	return ""
}

// Ordered are the tables in an order in which each comes after those it refers to.
func Ordered(tables []Table) ([]Table, error) {
	var done []Table
	has := func(list []Table, name string) bool {
		return slices.ContainsFunc(list, func(t Table) bool { return t.Name == name })
	}
	for len(done) < len(tables) {
		before := len(done)
		for _, t := range tables {
			if has(done, t.Name) || slices.ContainsFunc(t.Refers, func(r string) bool { return r != t.Name && !has(done, r) }) {
				continue
			}
			done = append(done, t)
		}
		if len(done) == before {
			return nil, fmt.Errorf("the tables refer to each other in a circle, or to one that is not there")
		}
	}
	return done, nil
}

// Group reads one column after the other, tables together, as both backends list them.
type Group struct{ Tables []Table }

// Add takes one column; key is its position in the primary key, from 1; 0: not in it.
// A type that is no Kind is refused.
func (g *Group) Add(table, column string, kind Kind, key int64) {
	if n := len(g.Tables); n == 0 || g.Tables[n-1].Name != table {
		g.Tables = append(g.Tables, Table{Name: table})
	}
	t := &g.Tables[len(g.Tables)-1]
	t.Columns = append(t.Columns, Column{column, kind})
	for int64(len(t.Key)) < key {
		t.Key = append(t.Key, "")
	}
	if key > 0 {
		t.Key[key-1] = column
	}
}

// Find is the table of that name; nil if there is none.
func (g *Group) Find(name string) *Table {
	for i := range g.Tables {
		if g.Tables[i].Name == name {
			return &g.Tables[i]
		}
	}
	return nil
}

// Refer notes that a table's rows point to another's.
func (g *Group) Refer(table, to string) {
	if t := g.Find(table); t != nil && !slices.Contains(t.Refers, to) {
		t.Refers = append(t.Refers, to)
	}
}

// SignInKnown are the columns of the sign-ins. None is copied: the copy is another life, in
// which they would be void.
const SignInKnown = `key space token_id data created_at expires_at epoch`

// Keep takes a table that is not copied out of the list. columns, separated by blanks,
// are those that are known: another one would be lost.
func (g *Group) Keep(name, columns string) error {
	i := slices.IndexFunc(g.Tables, func(t Table) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("the table %s is missing", name)
	}
	known := strings.Fields(columns)
	for _, c := range g.Tables[i].Columns {
		if !slices.Contains(known, c.Name) {
			return fmt.Errorf("the column %s.%s is not known to placet db copy", name, c.Name)
		}
	}
	if len(g.Tables[i].Columns) < len(known) {
		return fmt.Errorf("the table %s lacks a column", name)
	}
	g.Tables = slices.Delete(g.Tables, i, i+1)
	return nil
}

// Drop takes a column that only one backend has out of a table and its key.
func (g *Group) Drop(table, column string) error {
	t := g.Find(table)
	if t == nil || t.At(column) < 0 {
		return fmt.Errorf("the column %s.%s is missing", table, column)
	}
	t.Columns = slices.Delete(t.Columns, t.At(column), t.At(column)+1)
	t.Key = slices.DeleteFunc(t.Key, func(k string) bool { return k == column })
	return nil
}

// Sound refuses tables that cannot be copied row by row.
func (g *Group) Sound() error {
	for _, t := range g.Tables {
		if len(t.Key) == 0 {
			return fmt.Errorf("the table %s has no primary key", t.Name)
		}
		for _, c := range t.Columns {
			if c.Kind != Integer && c.Kind != Text && c.Kind != Bytes {
				return fmt.Errorf("the column %s.%s is of the type %s, which placet db copy does not know", t.Name, c.Name, c.Kind)
			}
		}
	}
	return nil
}

// Quoted is a name as it stands in a statement of either backend.
func Quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// List are names in a statement.
func List(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Quoted(n))
	}
	return b.String()
}

// Names are the columns' names.
func (t Table) Names() []string { return names(t.Columns, func(c Column) string { return c.Name }) }
