package display

import (
	"bytes"
	"encoding/json"
)

// Members is a JSON object with some of its members shown in another way: how is by
// their names. The others keep their bytes, and all of them their order. What is no
// object comes back as it is.
func Members(doc []byte, how map[string]func([]byte) []byte) []byte {
	if !isObject(doc) {
		return doc
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, one := range MembersOf(doc) {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(one.Name) // a text always encodes
		out.Write(append(key, ':'))
		if f := how[one.Name]; f != nil {
			one.Value = f(one.Value)
		}
		out.Write(one.Value)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func isObject(doc []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(doc, " \t\r\n"), []byte("{")) && json.Valid(doc)
}

// Member is one of a JSON object: its name, and its value as it stands there.
type Member struct {
	Name  string
	Value json.RawMessage
}

// MembersOf takes a JSON object apart, in its order; nothing else has any.
func MembersOf(doc []byte) (ms []Member) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, value, err := nextMember(d)
		if err != nil {
			return ms
		}
		ms = append(ms, Member{name, value})
	}
	return ms
}

func nextMember(d *json.Decoder) (name string, value json.RawMessage, err error) {
	t, err := d.Token()
	if err != nil {
		return "", nil, err
	}
	name, _ = t.(string)
	return name, value, d.Decode(&value)
}
