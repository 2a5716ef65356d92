package httpapi

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/placet-dev/placet/call"
)

// asGiven writes a request as encoding/json does, but refuses what that would replace:
// bytes that are not UTF-8, and half a surrogate pair.
var asGiven = json.JoinOptions(
	jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false),
	jsontext.AllowInvalidUTF8(false), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false),
)

// written is the body of a request. Arguments that are all of it keep their bytes.
// [call.ErrUsage] names the field that cannot be written.
func written(in any) ([]byte, error) {
	b, err := json.Marshal(in, asGiven)
	var at *jsontext.SyntacticError
	switch raw, whole := in.(stdjson.RawMessage); {
	case err == nil && whole && raw != nil:
		return raw, nil
	case err == nil:
		return b, nil
	case errors.As(err, &at) && at.JSONPointer != "":
		return nil, call.ErrUsage.Say("The field %s cannot be sent as it is: %s.", at.JSONPointer, at.Err).Hint("Nothing was sent. Text is UTF-8.")
	}
	return nil, call.ErrUsage.Say("The request cannot be written as JSON.").Because(err)
}

// headersText refuses what cannot stand in a header.
func headersText(h http.Header) error {
	for name, values := range h {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
				return call.ErrUsage.Say("The header %s cannot be sent as it is: it is not text on one line.", name).Hint("Nothing was sent.")
			}
		}
	}
	return nil
}

// Command is a program and its arguments as [Starting] takes them.
func Command(argv ...string) stdjson.RawMessage {
	b := []byte{'['}
	for i, word := range argv {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendWord(b, word)
	}
	return append(b, ']')
}

// appendWord appends a JSON string. Bytes that are not UTF-8 stay what they are: who
// writes the request refuses them.
func appendWord(b []byte, word string) []byte {
	b = append(b, '"')
	for i := range len(word) {
		switch c := word[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
