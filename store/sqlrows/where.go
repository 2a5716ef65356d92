package sqlrows

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Selected is a list of columns for a SELECT. For every query the driver fetches
// the name and the declared type of each column, which takes longer than the
// values; an expression named "" has neither.
func Selected(columns string) string { return selectedOf("", columns) }

// of is Selected for the columns of one table among several.
func of(table, columns string) string { return selectedOf(table+".", columns) }

func selectedOf(table, columns string) string {
	names := strings.Split(columns, ",")
	for i, n := range names {
		names[i] = "+" + table + strings.TrimSpace(n) + ` AS ""`
	}
	return strings.Join(names, ", ")
}

// where collects the conditions of a list. The texts are constants; what comes
// from outside is only ever an argument.
type where struct {
	sql  string
	args []any
}

// and adds a condition with its argument. A trailing false leaves it out.
func (w *where) and(cond string, arg ...any) {
	if n := len(arg); n > 1 {
		if on, ok := arg[n-1].(bool); ok {
			if !on {
				return
			}
			arg = arg[:n-1]
		}
	}
	if w.sql == "" {
		w.sql = ` WHERE ` + cond
	} else {
		w.sql += ` AND ` + cond
	}
	for _, a := range arg {
		if a != nil {
			w.args = append(w.args, a)
		}
	}
}

// prefix keeps ids that begin so; the range uses the index, and compares bytes.
func (w *where) prefix(column, p string) {
	if p != "" {
		w.and(column+` >= ? AND `+column+` < ?`, p, p+"\U0010FFFF")
	}
}

// metadataJSON is NULL for none. The encoder would replace what is not UTF-8
// without a word, so that is refused (case 106).
func metadataJSON(m map[string]string) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	for k, v := range m {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("the metadata %q is not valid UTF-8", k)
		}
	}
	return json.Marshal(m)
}

func scanMetadata(b []byte) (map[string]string, error) {
	if b == nil {
		return nil, nil
	}
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("stored metadata: %w", err)
	}
	return m, nil
}
