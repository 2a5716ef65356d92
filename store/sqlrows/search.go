package sqlrows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// searched are the columns of a decision in which a text is looked for at once. What keeps
// them apart is in no text that anybody types.
const searched = "instr(lower(id || '\x1f' || run_id || '\x1f' || call_id || '\x1f' || tool || '\x1f' || kind || '\x1f' || requested_by || '\x1f' || reason), ?) > 0"

// holding is true for decisions that hold a text. Nothing in it is special to a pattern:
// there is none.
func (x Rows) holding(text string) where {
	lower := lowerASCII(text)
	conds, args := []string{searched, x.held(`prompt`)}, []any{lower, []byte(lower)}
	for _, form := range jsonForms(text) {
		conds, args = append(conds, x.held(`request`)), append(args, []byte(lowerASCII(form)))
	}
	return where{`(` + strings.Join(conds, ` OR `) + `)`, args}
}

// held is true where a column of bytes holds those of an argument.
func (x Rows) held(column string) string {
	return strings.ReplaceAll(x.Dialect().Holds, "{}", column)
}

// lowerASCII is what both databases' lower does to A to Z, and to them alone.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// jsonForms are a text as it stands between the quotes of JSON: as it is, with no more
// escapes than needed, as encoding/json has it, in ASCII alone, and that with / escaped.
func jsonForms(s string) []string {
	html, _ := json.Marshal(s) // a string always can be
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // nor does the buffer fail
	least := strings.Trim(plain.String(), "\n")
	least = least[1 : len(least)-1]
	var ascii strings.Builder
	for _, r := range least {
		switch {
		case r < utf8.RuneSelf:
			ascii.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&ascii, `\u%04x`, r)
		}
	}
	forms := []string{s, least, string(html[1 : len(html)-1]), ascii.String(), strings.ReplaceAll(ascii.String(), "/", `\/`)}
	slices.Sort(forms)
	return slices.Compact(forms)
}
