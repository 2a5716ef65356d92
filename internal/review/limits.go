package review

import (
	"encoding/json"
	"strings"
)

// limited is what a schema says of how large a value may be.
type limited struct {
	Minimum          json.RawMessage `json:"minimum"`
	Maximum          json.RawMessage `json:"maximum"`
	ExclusiveMinimum json.RawMessage `json:"exclusiveMinimum"`
	ExclusiveMaximum json.RawMessage `json:"exclusiveMaximum"`
	MultipleOf       json.RawMessage `json:"multipleOf"`
	MinLength        json.RawMessage `json:"minLength"`
	MaxLength        json.RawMessage `json:"maxLength"`
	MinItems         json.RawMessage `json:"minItems"`
	MaxItems         json.RawMessage `json:"maxItems"`
}

// words tell what a value of a type may be, before anybody writes one: "at least 1, at
// most 500". They are empty where the schema sets no limit that is easily said.
func (l limited) words(kind string) string {
	var w limitWords
	switch kind {
	case "integer", "number":
		w.add(sideOf(l.ExclusiveMinimum, "at least", "more than"), l.Minimum)
		w.add("more than", l.ExclusiveMinimum)
		w.add(sideOf(l.ExclusiveMaximum, "at most", "less than"), l.Maximum)
		w.add("less than", l.ExclusiveMaximum)
		w.add("a multiple of", l.MultipleOf)
	case "string":
		w.add("at least", l.MinLength, "character", "characters")
		w.add("at most", l.MaxLength, "character", "characters")
	case "array":
		w.add("at least", l.MinItems, "entry", "entries")
		w.add("at most", l.MaxItems, "entry", "entries")
	}
	return strings.Join(w, ", ")
}

// sideOf is how a limit is said to which draft 4 says whether it is allowed itself.
func sideOf(exclusive json.RawMessage, allowed, excluded string) string {
	if string(exclusive) == "true" {
		return excluded
	}
	return allowed
}

type limitWords []string

// longestLimit keeps a number of a thousand digits out of a sentence.
const longestLimit = 20

// add says a limit that is a number: of nouns the first is for one, the second for more.
func (w *limitWords) add(words string, n json.RawMessage, nouns ...string) {
	if kindOf(n) != "number" || len(n) > longestLimit || nouns != nil && words == "at least" && string(n) == "0" {
		return
	}
	words += " " + string(n)
	if nouns != nil {
		noun := nouns[1]
		if string(n) == "1" {
			noun = nouns[0]
		}
		words += " " + noun
	}
	*w = append(*w, words)
}
