package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/placet-dev/placet/canon"
)

// format is strict about what comes in: duplicate names, unknown members, names in
// another case and invalid UTF-8 are refused, and raw values keep their bytes.
var format = huma.Format{Marshal: encode, Unmarshal: decode}

func encode(w io.Writer, v any) error {
	e := stdjson.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func decode(data []byte, v any) error { return json.Unmarshal(data, v, strictly) }

var strictly = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(wholeNumber), json.UnmarshalFromFunc(anyNumber),
)))

var errNotWhole = errors.New("expected integer")

// wholeNumber takes an integer however it is written: 1.0 and 1e3 are integers in JSON
// Schema, and some languages write them so.
func wholeNumber(d *jsontext.Decoder, v *int64) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	if bytes.ContainsAny(text, ".eE") {
		if text, err = canon.Canonical(text); err != nil {
			return errNotWhole
		}
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), bytes.Contains(text, []byte("e+")):
		return errOverflow
	case err != nil:
		return errNotWhole
	}
	*v = n
	return nil
}

var errOverflow = errors.New("expected integer from " + strconv.FormatInt(math.MinInt64, 10) + " to " + strconv.FormatInt(math.MaxInt64, 10))

// anyNumber keeps a number of a raw value as it is written: what is too large for a
// float is no fault of a value that keeps its bytes.
func anyNumber(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	*v = stdjson.Number(text)
	return err
}

// checked is a body with rules of its own.
type checked interface{ check() error }

// strict refuses a body that is not JSON, or not of v's shape, and names the field.
func strict(b []byte, v any) error {
	var bad *canon.SyntaxError
	if err := canon.Valid(b); errors.As(err, &bad) {
		return ErrMalformed.Say("%s: %s, at byte %d.", fieldAt(b, bad.Offset), bad.Message, bad.Offset)
	}
	err := decode(b, v)
	var sem *json.SemanticError
	switch {
	case err == nil:
		if c, ok := v.(checked); ok {
			return c.check()
		}
		return nil
	case errors.As(err, &sem):
		return ErrMalformed.Say("%s: %s.", field(sem.JSONPointer), expected(sem))
	}
	return ErrMalformed.Say("body: it is not JSON.").Because(err)
}

// expected says what was wrong without the names of our types.
func expected(e *json.SemanticError) string {
	if errors.Is(e.Err, json.ErrUnknownName) {
		return "unknown field"
	}
	if errors.Is(e.Err, errNotWhole) || errors.Is(e.Err, errOverflow) {
		return e.Err.Error()
	}
	if e.GoType == reflect.TypeFor[[]byte]() {
		return "expected string in base64"
	}
	switch e.GoType.Kind() {
	case reflect.Bool:
		return "expected true or false"
	case reflect.String:
		return "expected string"
	case reflect.Int64:
		return errNotWhole.Error()
	case reflect.Slice:
		return "expected array"
	}
	return "expected object"
}

// fieldAt is the field in which a byte of the body lies.
func fieldAt(b []byte, offset int64) string {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	at := jsontext.Pointer("")
	for d.InputOffset() <= offset {
		if _, err := d.ReadToken(); err != nil {
			break
		}
		at = d.StackPointer()
	}
	return field(at)
}

// field is a pointer into the body as people write it: body.types[1].
func field(at jsontext.Pointer) string {
	var b strings.Builder
	b.WriteString("body")
	for name := range at.Tokens() {
		if b.Len() > 2*longestShown {
			b.WriteString("…")
			break
		}
		if _, err := strconv.ParseUint(name, 10, 31); err == nil {
			b.WriteString("[" + name + "]")
			continue
		}
		b.WriteString("." + shown(name))
	}
	return b.String()
}
