package rules

import (
	"bytes"
	"fmt"

	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/placet-dev/placet/canon"
)

// decode reads argument bytes into values for CEL: map[string]any, []any and
// scalars. It reads the canonical form, so two spellings of one request look alike to
// every rule, and what has no canonical form is an error.
func decode(args []byte) (any, error) {
	c, err := canon.Canonical(args)
	if err != nil {
		return nil, err
	}
	// The canonical form has no key twice; looking again would only cost time.
	d := jsontext.NewDecoder(bytes.NewReader(c), jsontext.AllowDuplicateNames(true))
	return decodeValue(d)
}

// decodeValue reads the next value. It recurses at most [canon.MaxDepth] deep.
func decodeValue(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return types.NullValue, nil
	case 't', 'f':
		return types.Bool(t.Bool()), nil
	case '"':
		return types.String(t.String()), nil
	case '0':
		return number([]byte(t.String())), nil
	case '[':
		return decodeArray(d)
	case '{':
		return decodeObject(d)
	}
	return nil, fmt.Errorf("unexpected %s", t)
}

func decodeArray(d *jsontext.Decoder) (any, error) {
	list := []any{}
	for d.PeekKind() != ']' {
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.ReadToken()
	return list, err
}

func decodeObject(d *jsontext.Decoder) (any, error) {
	object := map[string]any{}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := key.String()
		if object[name], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return object, err
}
