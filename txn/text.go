package txn

import (
	"strings"
	"unicode/utf8"
)

// IsText reports whether s can be stored as text on every backend: valid UTF-8
// without NUL.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// What to do about a text that [IsText] refuses, and about one that may also be too long.
const (
	TextHint      = "Write it in UTF-8, without NUL."
	ShortTextHint = "Write it shorter, or in UTF-8 without NUL."
)

// AsText is s as it can be stored as text: what cannot is replaced by U+FFFD.
func AsText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
