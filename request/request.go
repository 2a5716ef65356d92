// Package request is what exactly is wanted: which tool, as registered, with
// which argument bytes, for which run or call. A person's yes is bound to its
// digest (spec 1.2).
package request

import (
	"encoding/json"
	"fmt"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
)

// ErrUnencodable: the request has no canonical form, so it cannot be bound to an
// approval. No stand-in is ever hashed.
var ErrUnencodable = fault.Sentinel(fault.Invalid, "unencodable", "The request cannot be encoded.")

// Request is one wanted action. Exactly one of CallID, StepID and Node is set.
type Request struct {
	RunID  string
	CallID string // a call outside an agent's run
	StepID string // a step of an agent's run
	Node   string // a flow's approval node; it has Flow and Version and no tool

	Flow    string
	Version string

	Tool tool.Spec
	Args []byte // exactly as given; never reformatted, never coerced
}

// JSON is the object that is hashed and shown: {run_id, step_id|call_id, tool,
// args}, or {run_id, flow, version, node, args} for a flow's node. The argument
// bytes stand in it as given. An error matches [ErrUnencodable].
func (r Request) JSON() ([]byte, error) {
	if r.Node != "" {
		return r.JSONWith(nil)
	}
	spec, err := r.Tool.JSON()
	if err != nil {
		return nil, ErrUnencodable.Say("The tool %q cannot be encoded.", r.Tool.Name).Because(err)
	}
	return r.JSONWith(spec)
}

// JSONWith is [Request.JSON] where the tool's own JSON is at hand.
func (r Request) JSONWith(spec []byte) ([]byte, error) {
	o := newObject(len(r.Args) + len(spec) + 256)
	o.text("run_id", r.RunID)
	switch {
	case r.Node != "":
		o.text("flow", r.Flow)
		o.text("version", r.Version)
		o.text("node", r.Node)
	case r.StepID != "":
		o.text("step_id", r.StepID)
	default:
		o.text("call_id", r.CallID)
	}
	if r.Node == "" {
		o.raw("tool", spec)
	}
	o.raw("args", r.Args)
	return o.bytes()
}

// Digest is the digest a person's yes is bound to: over exactly {kind,
// capability, presentation, request} in the domain placet/approval/v1. An absent
// capability or presentation is {}. An error matches [ErrUnencodable].
func (r Request) Digest(kind string, capability, presentation []byte) (string, error) {
	req, err := r.JSON()
	if err != nil {
		return "", err
	}
	return ApprovalDigest(kind, capability, presentation, req)
}

// ApprovalDigest is [Request.Digest] over a request that is already JSON.
func ApprovalDigest(kind string, capability, presentation, req []byte) (string, error) {
	o := scratchObject()
	o.text("kind", kind)
	o.raw("capability", orEmpty(capability))
	o.raw("presentation", orEmpty(presentation))
	o.raw("request", req)
	return o.digest(canon.DomainApproval)
}

// ArgsDigest is the digest of argument bytes, domain placet/args/v1. An error matches [ErrUnencodable].
func ArgsDigest(args []byte) (string, error) {
	d, err := canon.Digest(canon.DomainArgs, args)
	if err != nil {
		return "", ErrUnencodable.Say("The arguments cannot be encoded.").Because(err)
	}
	return d, nil
}

// EffectiveDigest binds edited arguments to the approval they were edited in,
// domain placet/edited/v1 (spec 2.2).
func EffectiveDigest(approvalDigest, editedDigest string) (string, error) {
	o := scratchObject()
	o.text("approval_digest", approvalDigest)
	o.text("edited_digest", editedDigest)
	return o.digest(canon.DomainEdited)
}

func orEmpty(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}

// object writes a JSON object of known keys whose values are texts of ours or
// JSON bytes that must not be touched.
type object struct {
	buf  []byte
	err  error
	kept *[]byte // where buf came from, if it is scratch
}

// newObject expects to have about so many bytes.
func newObject(size int) object { return object{buf: make([]byte, 0, size)} }

// scratch is memory for objects that are only digested; large pieces are not kept.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 64 << 10

func scratchObject() object {
	kept := scratch.Get().(*[]byte)
	return object{buf: (*kept)[:0], kept: kept}
}

func (o *object) free() {
	if o.kept != nil && cap(o.buf) <= maxScratch {
		*o.kept = o.buf
		scratch.Put(o.kept)
	}
}

func (o *object) key(k string) {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(o.buf, '"')
	o.buf = append(o.buf, k...)
	o.buf = append(o.buf, '"', ':')
}

func (o *object) text(k, v string) {
	o.key(k)
	b, err := canon.AppendString(o.buf, v)
	if err != nil {
		o.fail(k, err)
		return
	}
	o.buf = b
}

// raw takes v as it is; that v is one JSON value is checked when the object is
// digested, and by Valid for callers that only show it.
func (o *object) raw(k string, v []byte) {
	o.key(k)
	if len(v) == 0 {
		o.fail(k, fmt.Errorf("no value"))
	}
	o.buf = append(o.buf, v...)
}

func (o *object) fail(k string, err error) {
	if o.err == nil {
		o.err = ErrUnencodable.Say("The field %s cannot be encoded.", k).Because(err)
	}
}

func (o *object) bytes() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(o.buf, '}'), nil
}

func (o *object) digest(domain string) (string, error) {
	defer o.free()
	b, err := o.bytes()
	if err != nil {
		return "", err
	}
	d, err := canon.Digest(domain, b)
	if err != nil {
		return "", ErrUnencodable.Because(err)
	}
	return d, nil
}

// Decode reads what [Request.JSON] wrote, keeping the argument bytes. Names that
// stand twice or differ in case are refused.
func Decode(b []byte) (Request, error) {
	var w struct {
		RunID   string          `json:"run_id"`
		CallID  string          `json:"call_id"`
		StepID  string          `json:"step_id"`
		Flow    string          `json:"flow"`
		Version string          `json:"version"`
		Node    string          `json:"node"`
		Tool    tool.Spec       `json:"tool"`
		Args    json.RawMessage `json:"args"`
	}
	if err := jsonv2.Unmarshal(b, &w); err != nil {
		return Request{}, ErrUnencodable.Say("The stored request cannot be read.").Because(err)
	}
	return Request{
		RunID: w.RunID, CallID: w.CallID, StepID: w.StepID,
		Flow: w.Flow, Version: w.Version, Node: w.Node,
		Tool: w.Tool, Args: w.Args,
	}, nil
}
