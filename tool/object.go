package tool

import "encoding/json"

// Object is a tool as every door writes it (spec 4.3).
type Object struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	SideEffect  SideEffect      `json:"side_effect"`
	Confirm     *bool           `json:"confirm,omitempty"` // nil: not told
	InputSchema json.RawMessage `json:"input_schema"`
	SpecDigest  string          `json:"spec_digest"`
}

// Object is the tool as every door writes it.
func (t *Tool) Object() Object {
	o := t.Spec.Object()
	o.SpecDigest, o.Confirm = t.SpecDigest(), &t.Confirm
	return o
}

// Object is what is known of a tool by its spec alone.
func (s Spec) Object() Object {
	digest, _ := s.Digest() // one without a digest cannot be registered
	return Object{Name: s.Name, Description: s.Description, SideEffect: s.SideEffect, InputSchema: s.InputSchema, SpecDigest: digest}
}
