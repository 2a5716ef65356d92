package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/placet-dev/placet/canon"
)

// document writes an object of CEL values in canonical form: the same values give the same bytes.
func document(keys []string, values []ref.Val) (json.RawMessage, error) {
	b := []byte{'{'}
	var err error
	for i, key := range keys {
		if b, err = appendMember(b, key, values[i], 1); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return canon.Canonical(append(b, '}'))
}

func appendMember(b []byte, key string, v ref.Val, depth int) ([]byte, error) {
	b = separate(b)
	b, err := canon.AppendString(b, key)
	if err != nil {
		return nil, err
	}
	return appendValue(append(b, ':'), v, depth)
}

// separate adds the comma before a further member or element.
func separate(b []byte) []byte {
	if last := b[len(b)-1]; last != '{' && last != '[' {
		return append(b, ',')
	}
	return b
}

var errDepth = errors.New("the value is nested too deep")

// appendValue writes one value; numbers keep all digits.
func appendValue(b []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > canon.MaxDepth {
		return nil, errDepth
	}
	switch v := v.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(b, uint64(v), 10), nil
	case types.Double:
		return appendDouble(b, float64(v))
	case inexact:
		return append(b, v...), nil
	case types.String:
		return canon.AppendString(b, string(v))
	case traits.Lister:
		return appendList(b, v, depth)
	case traits.Mapper:
		return appendMap(b, v, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be shown; turn it into a text with string()", v.Type().TypeName())
}

func appendDouble(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("the calculation has no finite result")
	}
	return strconv.AppendFloat(b, f, 'e', -1, 64), nil
}

func appendList(b []byte, l traits.Lister, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for it := l.Iterator(); it.HasNext() == types.True; {
		if b, err = appendValue(separate(b), it.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, m traits.Mapper, depth int) ([]byte, error) {
	b = append(b, '{')
	var err error
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return nil, errors.New("a map to be shown needs texts as keys")
		}
		value, _ := m.Find(key)
		if b, err = appendMember(b, string(key), value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
