// Package progress reads out of what a job tells how far it is, and the numbers in it.
package progress

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// pairs are the members that say how much of how much is done.
var pairs = [][2]string{{"current", "total"}, {"done", "of"}, {"done", "total"}, {"step", "total"}, {"step", "steps"}, {"epoch", "total"}, {"epoch", "epochs"}}

// Part is how much of its work a job says is done, from 0 to 1: {"fraction":0.3},
// {"percent":30}, {"done":3,"of":10}, {"current":3,"total":10}, {"step":3,"total":10} or
// {"epoch":3,"epochs":10}. ok is false where it says nothing of that sort, or more than all.
func Part(data []byte) (part float64, ok bool) {
	part, _ = partOf(numbers(data))
	return part, part >= 0 && part <= 1
}

// partOf also names the members that say so; it is below 0 where none does.
func partOf(ns []Number) (part float64, names []string) {
	at := func(name string) (float64, bool) {
		i := slices.IndexFunc(ns, func(n Number) bool { return strings.EqualFold(n.Name, name) })
		if i < 0 {
			return 0, false
		}
		return ns[i].Value, true
	}
	if v, ok := at("fraction"); ok {
		return v, []string{"fraction"}
	}
	if v, ok := at("percent"); ok {
		return v / 100, []string{"percent"}
	}
	for _, p := range pairs {
		if done, ok := at(p[0]); ok {
			if of, ok := at(p[1]); ok && of > 0 {
				return done / of, p[:]
			}
		}
	}
	return -1, nil
}

// Number is a named number that a job told.
type Number struct {
	Name  string // foreign
	Value float64
}

// Done is the name under which [Numbers] tells a part of the work.
const Done = "% done"

// Numbers are those in what a job told, in their order: the members that are numbers,
// those of objects in it as outer.inner, and a {"name":"loss","value":0.3} under that name.
// What says how far the job is comes first, in percent, in place of its members.
func Numbers(data []byte) []Number {
	ns := numbers(data)
	var named struct {
		Name  string   `json:"name"`
		Value *float64 `json:"value"`
	}
	if json.Unmarshal(data, &named) == nil && named.Name != "" && named.Value != nil {
		return []Number{{named.Name, *named.Value}}
	}
	part, names := partOf(ns)
	if part < 0 || part > 1 {
		return ns
	}
	rest := slices.DeleteFunc(ns, func(n Number) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(n.Name, name) })
	})
	return slices.Insert(rest, 0, Number{Done, part * 100})
}

// mostNumbers bounds what is taken from one document.
const mostNumbers = 50

func numbers(data []byte) []Number {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !json.Valid(data) {
		return nil
	}
	return members(d, "", nil)
}

// members are the numbers of the object that d stands in.
func members(d *json.Decoder, prefix string, ns []Number) []Number {
	for d.More() {
		name, _ := d.Token() // it was valid
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ns
		}
		text, _ := name.(string)
		var v float64
		switch {
		case len(ns) == mostNumbers:
			return ns
		case value[0] == '{' && prefix == "":
			inner := json.NewDecoder(bytes.NewReader(value))
			inner.UseNumber()
			_, _ = inner.Token()
			ns = members(inner, text+".", ns)
		case value[0] != '"' && json.Unmarshal(value, &v) == nil && value[0] != 'n' && !math.IsInf(v, 0):
			ns = append(ns, Number{prefix + text, v})
		}
	}
	return ns
}
