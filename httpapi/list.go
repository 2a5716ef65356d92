package httpapi

import (
	"errors"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
)

// pagesOfOthers is how many pages are looked through for what the caller sees among the
// records of others, before it is told to ask on.
const pagesOfOthers = 20

// listing is how the records of a list are read, newest first.
type listing[T any] struct {
	read func(after string, limit int) ([]T, error)
	id   func(T) string
	sees func(T) bool // whether the caller sees one
}

// page is what the caller sees behind an id: at most limit records, and the id behind
// which there is more, empty where there is none. Nobody has to have the record of that
// id in the list any more: it may have been decided meanwhile.
func (l listing[T]) page(after string, limit int) (list []T, next string, err error) {
	size := min(limit+1, 500) // one more tells whether there is a next page
	for range pagesOfOthers {
		got, err := l.read(after, size)
		if err != nil {
			return nil, "", err
		}
		for _, one := range got {
			after = l.id(one)
			switch {
			case !l.sees(one):
			case len(list) == limit:
				return list, l.id(list[limit-1]), nil
			default:
				list = append(list, one)
			}
		}
		if len(got) < size {
			return list, "", nil
		}
	}
	return list, after, nil
}

// behind refuses to go on behind an id that none of a list's records has: it would be
// the list's beginning, or nothing. read looks it up. Who sees only what is its own is
// not told which ids others have: for it any id of that kind is a place in the list.
func (c caller) behind(after, noun, prefix string, read func(id string) error) error {
	if after == "" {
		return nil
	}
	var err error = decision.ErrNotFound
	switch {
	case !id.Has(prefix, after) && (prefix != id.Run || !strings.HasPrefix(after, prefix)): // a run's id may be its starter's choice
	case !c.reads():
		return nil
	default:
		err = read(after)
	}
	if errors.Is(err, decision.ErrNotFound) {
		err = ErrMalformed.Say("query.after: there is no %s %q.", noun, after).
			Hint("Give the next of the page before, or leave it out to begin with the newest.")
	}
	return err
}

// objects is what a list shows of its records; a list of none is a list.
func objects[T, O any](list []T, object func(T) O) []O {
	os := make([]O, len(list))
	for i, one := range list {
		os[i] = object(one)
	}
	return os
}
