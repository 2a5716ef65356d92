package review

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/placet-dev/placet/decision"
)

// Choice is one value that a part of a filter can have.
type Choice struct {
	Value  string // as it stands in a filter; an age as in 24h
	Text   string // foreign where it is a kind's or tool's
	N      int64  // how many would be shown, age and search aside; below 0: not known
	Chosen bool
	Filter Filter // with this value
}

// Sorts are the sorts of things that wait.
var Sorts = []What{Runs, Calls, Questions}

// Whats are the sorts of things that wait.
func (f Filter) Whats(counts []decision.QueueCount) []Choice {
	names, values := map[string]string{"": "everything"}, make([]string, len(Sorts))
	for i, w := range Sorts {
		names[string(w)], values[i] = WhatWords(w), string(w)
	}
	return f.choices(counts, func(f *Filter) *string { return (*string)(&f.What) }, names, values)
}

// Kinds are the policy's words for what waits.
func (f Filter) Kinds(counts []decision.QueueCount) []Choice {
	words := f.words(counts, f.Kind, func(c decision.QueueCount) string { return c.Kind })
	names := map[string]string{"": "any kind"}
	for _, w := range words {
		names[w] = KindWords(w)
	}
	return f.choices(counts, func(f *Filter) *string { return &f.Kind }, names, words)
}

// Tools are the tools that are to be used.
func (f Filter) Tools(counts []decision.QueueCount) []Choice {
	words := f.words(counts, f.Tool, func(c decision.QueueCount) string { return c.Tool })
	return f.choices(counts, func(f *Filter) *string { return &f.Tool }, map[string]string{"": "any tool"}, words)
}

// Ages are how long ago something was asked; the one that is chosen is among them.
func (f Filter) Ages() (all []Choice) {
	ages := []time.Duration{0, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	if !slices.Contains(ages, f.Age) {
		ages = append(ages, f.Age)
	}
	for _, age := range ages {
		to := f
		to.Age = age
		all = append(all, Choice{AgeText(age), AgeWords(age), -1, age == f.Age, to})
	}
	return all
}

// AgeText is an age as it stands in an address, such as 24h; empty: any.
func AgeText(age time.Duration) string {
	switch {
	case age <= 0:
		return ""
	case age%time.Hour == 0:
		return strconv.Itoa(int(age/time.Hour)) + "h"
	}
	return age.String()
}

// AgeWords says it in words, behind "asked before".
func AgeWords(age time.Duration) string {
	switch age {
	case 0:
		return "any time"
	case time.Hour:
		return "an hour ago"
	case 24 * time.Hour:
		return "a day ago"
	case 7 * 24 * time.Hour:
		return "a week ago"
	}
	return AgeText(age) + " ago"
}

// WhatWords says what a filter leaves in; empty: everything.
func WhatWords(w What) string {
	return map[What]string{Runs: "steps of runs", Calls: "calls", Questions: "questions"}[w]
}

func (f Filter) choices(counts []decision.QueueCount, field func(*Filter) *string, names map[string]string, values []string) []Choice {
	now := *field(&f)
	cs := make([]Choice, 0, len(values)+1)
	for _, v := range append([]string{""}, values...) {
		*field(&f) = v
		cs = append(cs, Choice{Value: v, Text: cmp.Or(names[v], v), N: Matches(counts, f), Chosen: v == now, Filter: f})
	}
	return cs
}

// words are those that there are, those of which most wait first, and the one that is
// chosen even where none waits.
func (f Filter) words(counts []decision.QueueCount, chosen string, of func(decision.QueueCount) string) []string {
	ns := map[string]int64{chosen: 0}
	for _, c := range counts {
		ns[of(c)] += c.N
	}
	delete(ns, "")
	return slices.SortedFunc(maps.Keys(ns), func(a, b string) int {
		return cmp.Or(cmp.Compare(ns[b], ns[a]), cmp.Compare(a, b))
	})
}
