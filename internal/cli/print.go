package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/placet-dev/placet/internal/display"
)

// emit prints one object for programs on one line. Names that mean a secret are
// masked in all of it, whatever the object is.
func (a *app) emit(v any) {
	a.emitMasked(a.mask.JSON(encode(v)))
}

// emitMasked prints an object whose secrets are masked already.
func (a *app) emitMasked(b []byte) {
	fmt.Fprintf(a.out, "%s\n", display.Machine(b))
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a reader compares texts, and these characters are as good as any
	if err := e.Encode(v); err != nil {
		return []byte(fmt.Sprintf("%q", err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// say prints a line for people on standard output. Strings among args are
// foreign until proved otherwise: each is masked and escaped.
func (a *app) say(format string, args ...any) { a.print(a.out, format, args) }

// note prints a line for people on standard error.
func (a *app) note(format string, args ...any) { a.print(a.errs, format, args) }

func (a *app) print(w *writer, format string, args []any) {
	for i, v := range args {
		switch v := v.(type) {
		case safe:
			args[i] = string(v)
		case string:
			args[i] = a.line(v)
		case error:
			args[i] = a.line(v.Error())
		case fmt.Stringer:
			args[i] = a.line(v.String())
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// safe is a text that is fit to be shown already.
type safe string

// own is a text that holds no secret: an id, a status, a time, a path, a name
// that somebody gave for themselves. It is escaped and not searched for secrets,
// so that one which looks like an id cannot hide it.
func own[S ~string](s S) safe { return safe(display.Line(string(s))) }

func (a *app) line(s string) string { return display.Line(a.mask.Text(s)) }

// excerpt is line for a text that may be long.
func (a *app) excerpt(s string) safe { return safe(display.Excerpt(a.mask.Text(s), 0)) }

// table collects lines of cells, which hold no secrets, and prints them in columns.
type table struct {
	a    *app
	rows [][]string
}

func (a *app) table(head ...string) *table {
	t := &table{a: a}
	if len(head) > 0 {
		t.rows = append(t.rows, head)
	}
	return t
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = display.Short(cells[i], 64)
	}
	t.rows = append(t.rows, cells)
}

// list prints a table with a head, or says that nothing stands under it. With --json
// each row was printed already.
func (t *table) list() {
	switch {
	case t.a.json:
	case len(t.rows) == 1:
		t.a.note("None.")
	default:
		t.print()
	}
}

// print aligns with spaces, two between columns; the last one is as long as it is.
func (t *table) print() {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-columns(c)+2))
			}
		}
		t.a.say("%s", safe(strings.TrimRight(b.String(), " ")))
	}
}

// columns is how many columns of a terminal a text takes that is fit to be shown.
func columns(s string) (n int) {
	for _, r := range s {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.M, r): // it sits on the one before
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// count is a number with its noun.
func count(n int, one, many string) safe {
	if n == 1 {
		return safe("1 " + one)
	}
	return safe(display.Count(n) + " " + many)
}

// quote sets a foreign text off from ours. Escaping is left to where it is printed.
func quote(s string) string { return `"` + s + `"` }
