package tool

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/placet-dev/placet/canon"
)

// JSON is the object that is hashed and shown: {name, description, input_schema,
// side_effect, timeout_ms} and, where there is one, implementation. The bytes of
// InputSchema stand in it as given. An error matches [ErrInvalidTool]: a text is
// not valid UTF-8, or InputSchema is not one JSON value.
func (s Spec) JSON() ([]byte, error) {
	if len(s.InputSchema) == 0 {
		return nil, ErrInvalidTool.Say("The tool %s has no input_schema.", shown(s.Name)).
			Hint(`To accept any object, write {"type":"object"}.`)
	}
	b := make([]byte, 0, 160+len(s.Name)+len(s.Description)+len(s.InputSchema)+len(s.Implementation))
	// By itself: in the whole, bytes could close the schema and add members of their own.
	err := canon.Valid(s.InputSchema)
	if err == nil {
		b, err = appendText(append(b, '{'), "name", s.Name)
	}
	if err == nil {
		b, err = appendText(append(b, ','), "description", s.Description)
	}
	if err == nil {
		b = append(append(b, `,"input_schema":`...), s.InputSchema...)
		b, err = appendText(append(b, ','), "side_effect", string(s.SideEffect))
	}
	if err == nil {
		b = strconv.AppendInt(append(b, `,"timeout_ms":`...), s.TimeoutMS, 10)
		if s.Implementation != "" {
			b, err = appendText(append(b, ','), "implementation", s.Implementation)
		}
	}
	if err != nil {
		return nil, ErrInvalidTool.Say("The tool %s has no canonical form: %s.", shown(s.Name), short(err.Error()))
	}
	return append(b, '}'), nil
}

// Digest is the digest of [Spec.JSON] in the domain placet/tool/v1. Errors are those of JSON.
func (s Spec) Digest() (string, error) {
	b, err := s.JSON()
	if err != nil {
		return "", err
	}
	return canon.Digest(canon.DomainTool, b)
}

func appendText(b []byte, key, value string) ([]byte, error) {
	b = append(append(append(b, '"'), key...), `":`...)
	return canon.AppendString(b, value)
}

// seal is what is computed once for a spec, when its tool is registered.
type seal struct {
	spec   Spec
	schema *Schema
	json   []byte
	digest string
}

// current is the tool's seal, nil if there is none or if the spec was changed since,
// which a copy of a registered tool may be.
func (t *Tool) current() *seal {
	s := t.sealed
	if s == nil {
		return nil
	}
	a, b := s.spec.InputSchema, t.InputSchema
	same := s.spec.Name == t.Name && s.spec.Description == t.Description &&
		s.spec.SideEffect == t.SideEffect && s.spec.TimeoutMS == t.TimeoutMS &&
		s.spec.Implementation == t.Implementation &&
		len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	if !same {
		return nil
	}
	return s
}

// SpecDigest is the digest of the tool's spec. For a tool that a registry handed
// out it costs nothing; for another it is computed, and empty if the spec has none.
func (t *Tool) SpecDigest() string {
	if s := t.current(); s != nil {
		return s.digest
	}
	d, _ := t.Digest()
	return d
}

// SpecJSON is [Spec.JSON] of the tool, computed when it was registered; nil if the
// spec has no JSON. It is shared: do not change it.
func (t *Tool) SpecJSON() []byte {
	if s := t.current(); s != nil {
		return s.json
	}
	b, _ := t.JSON()
	return b
}

// Limits of a spec's texts, in bytes.
const (
	maxName           = 128
	maxDescription    = 10_000
	maxImplementation = 64 << 10
)

// prepare checks t and returns it ready to be registered: schema compiled, spec
// encoded, in memory that the caller's later writes do not reach.
func (t Tool) prepare() (*Tool, error) {
	if t.TimeoutMS == 0 {
		t.TimeoutMS = DefaultTimeout.Milliseconds()
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	schema := t.compiled()
	if schema == nil {
		var err error
		if schema, err = CompileSchema(t.InputSchema); err != nil {
			return nil, inTool(t.Name, err)
		}
	}
	t.InputSchema = schema.raw
	spec, err := t.JSON()
	if err != nil {
		return nil, err
	}
	digest, err := canon.Digest(canon.DomainTool, spec)
	if err != nil {
		return nil, err
	}
	t.sealed = &seal{spec: t.Spec, schema: schema, json: spec, digest: digest}
	return &t, nil
}

// compiled is the schema that the tool was registered with, if it is still that.
func (t *Tool) compiled() *Schema {
	if t.sealed != nil && bytes.Equal(t.sealed.schema.raw, t.InputSchema) {
		return t.sealed.schema
	}
	return nil
}

func (t Tool) validate() error {
	if rule := nameRule(t.Name); rule != "" {
		return ErrInvalidTool.Say("The tool name %s is not allowed: %s.", shown(t.Name), rule).
			Hint("A name has 1 to %d characters: ASCII letters, digits and _ - . /, the first a letter or digit.", maxName)
	}
	if err := checkText("description", t.Description, maxDescription); err != "" {
		return t.refuse("%s", err)
	}
	if err := checkText("implementation", t.Implementation, maxImplementation); err != "" {
		return t.refuse("%s", err)
	}
	switch {
	case !t.SideEffect.known():
		return t.refuse("side_effect is %s; it must be one of read_only, local_mutation, remote_mutation, destructive", shown(string(t.SideEffect)))
	case t.TimeoutMS < 1 || t.TimeoutMS > MaxTimeout.Milliseconds():
		return t.refuse("the time limit is %d ms; it must be from 1 ms to 24 h", t.TimeoutMS)
	case t.Cost < 0:
		return t.refuse("cost is %d; it must be 0 or more", t.Cost)
	case t.Run == nil:
		return t.refuse("it has nothing that carries it out (Run)")
	case len(t.InputSchema) == 0:
		return t.refuse(`it has no input_schema; to accept any object, write {"type":"object"}`)
	}
	return nil
}

func (t Tool) refuse(format string, args ...any) error {
	return ErrInvalidTool.Say("The tool %s is refused: %s.", shown(t.Name), fmt.Sprintf(format, args...))
}

func (e SideEffect) known() bool {
	switch e {
	case ReadOnly, LocalMutation, RemoteMutation, Destructive:
		return true
	}
	return false
}

// nameRule is the rule that name breaks, or "".
func nameRule(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return "it is longer than " + strconv.Itoa(maxName) + " bytes"
	}
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if letter {
			continue
		}
		mark := r == '_' || r == '-' || r == '.' || r == '/'
		switch {
		case !mark:
			return "it has " + strconv.QuoteRuneToASCII(r)
		case i == 0:
			return "it starts with " + strconv.QuoteRuneToASCII(r)
		}
	}
	return ""
}

// checkText says what is wrong with a text of a spec, or "".
func checkText(field, s string, limit int) string {
	switch {
	case len(s) > limit:
		return field + " has " + strconv.Itoa(len(s)) + " bytes; at most " + strconv.Itoa(limit) + " are allowed"
	case !utf8.ValidString(s):
		return field + " is not valid UTF-8"
	case hasNUL(s):
		return field + " has a NUL character"
	}
	return ""
}
