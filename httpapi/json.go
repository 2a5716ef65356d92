package httpapi

import (
	stdjson "encoding/json"
	"errors"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// format is strict about what comes in: duplicate names, unknown members, names in
// another case and invalid UTF-8 are refused, and raw values keep their bytes.
var format = huma.Format{Marshal: encode, Unmarshal: decode}

func encode(w io.Writer, v any) error {
	e := stdjson.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	var sem *json.SemanticError
	if errors.As(err, &sem) && sem.Err != nil {
		return sem.Err // without the names of our types
	}
	return err
}
