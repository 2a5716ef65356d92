package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/placet-dev/placet/canon"
)

// listed reports whether an array can be written with one entry on each line: all that it
// may have, and all that it has, are texts of one line or numbers.
func listed(items string, now json.RawMessage) bool {
	if items != "string" && items != "integer" && items != "number" {
		return false
	}
	if now == nil {
		return true
	}
	entries, ok := elementsOf(now)
	return ok && !slices.ContainsFunc(entries, func(v json.RawMessage) bool { return !onLine(items, v) })
}

// onLine reports whether an entry comes back from its line as it was.
func onLine(items string, v json.RawMessage) bool {
	if items != "string" {
		return kindOf(v) == "number"
	}
	text := OptionText(v)
	same, err := canon.Equal(quoted(text), v) // half a character does not come back
	return same && err == nil && kindOf(v) == "string" && text != "" && text == strings.TrimSpace(text) && !strings.ContainsAny(text, "\r\n")
}

func elementsOf(list json.RawMessage) (entries []json.RawMessage, ok bool) {
	return entries, json.Unmarshal(list, &entries) == nil && entries != nil
}

// lines is a list with one entry on each line.
func lines(list json.RawMessage) string {
	entries, _ := elementsOf(list)
	var b strings.Builder
	for i, v := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(OptionText(v))
	}
	return b.String()
}

// list is the array that lines stand for, or what is wrong with one of them. Lines without
// anything on them do not count.
func (f Field) list(text string) (v json.RawMessage, problem string) {
	var entries [][]byte
	for line := range strings.Lines(text) {
		entry := strings.TrimSpace(line)
		if entry == "" {
			continue
		}
		v := quoted(entry)
		if f.Items != "string" {
			v = []byte(entry)
			if canon.Valid(v) != nil || kindOf(v) != "number" {
				return nil, fmt.Sprintf("entry %d is no number.", len(entries)+1)
			}
		}
		entries = append(entries, v)
	}
	return slices.Concat([]byte("["), bytes.Join(entries, []byte(",")), []byte("]")), ""
}
