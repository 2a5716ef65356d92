package display

import (
	"bytes"
	"encoding/json"
)

// Members is a JSON object with some of its members shown in another way: how is by
// their names. The others keep their bytes, and all of them their order. What is no
// object comes back as it is.
func Members(doc []byte, how map[string]func([]byte) []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !json.Valid(doc) {
		return doc
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for d.More() {
		name, value, err := nextMember(d)
		if err != nil {
			return doc // it was valid
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(name) // a text always encodes
		out.Write(append(key, ':'))
		if f := how[name]; f != nil {
			value = f(value)
		}
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func nextMember(d *json.Decoder) (name string, value json.RawMessage, err error) {
	t, err := d.Token()
	if err != nil {
		return "", nil, err
	}
	name, _ = t.(string)
	return name, value, d.Decode(&value)
}
