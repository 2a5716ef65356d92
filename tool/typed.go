package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// Options are what a tool made with [New] may have besides what it must have. The
// zero value, and nil, mean all defaults.
type Options struct {
	Timeout        time.Duration   // how long one attempt may take, 1 ms to 24 h in whole milliseconds. Default: 30 s.
	Confirm        bool            // always ask a person, whatever the policy says
	Idempotent     bool            // a repeat with the same call id has no second effect
	CancelSafe     bool            // a timed-out, killed or panicked call had no effect
	Cost           int64           // what one call adds to the guard `cost`. Default: 0.
	Implementation string          // a version, say; part of what a yes is bound to. Default: none.
	Probe          Prober          // finds out what became of a call. Default: none.
	InputSchema    json.RawMessage // Default: made from the input type.
}

// New is a tool that calls fn. It must still be registered.
//
// The schema is made from In, a struct or a map: fields that are not tagged
// omitempty or omitzero are required, other fields are refused, a tag `jsonschema:"…"`
// describes a field. Arguments are decoded strictly: no unknown or duplicate names,
// names differ in case, only valid UTF-8; 1e6 and 1.0 fit an integer, and nothing is
// rounded into one. Out is encoded as it is, without HTML escapes; text in it that
// is not valid UTF-8 makes the outcome unknown rather than being replaced.
//
// An error of fn is the tool saying that it failed; fn may return [ErrNotStarted] or
// [ErrOutcomeUnknown] instead. fn learns its call id and attempt from [CallFrom].
//
// The error matches [ErrInvalidTool]: In has no schema, or one that does not fit
// how In is encoded (then give Options.InputSchema), or the tool is refused for what
// [Registry.Register] refuses.
func New[In, Out any](name, description string, effect SideEffect, fn func(ctx context.Context, in In) (Out, error), o *Options) (Tool, error) {
	if o == nil {
		o = &Options{}
	}
	t := Tool{
		Spec: Spec{
			Name: name, Description: description, SideEffect: effect,
			InputSchema: o.InputSchema, Implementation: o.Implementation,
			TimeoutMS: o.Timeout.Milliseconds(),
		},
		Confirm: o.Confirm, Idempotent: o.Idempotent, CancelSafe: o.CancelSafe,
		Cost: o.Cost, Probe: o.Probe,
	}
	if fn != nil {
		t.Run = typed(fn)
	}
	if o.Timeout%time.Millisecond != 0 || o.Timeout < 0 {
		return Tool{}, t.refuse("the time limit is %s; it must be a whole number of milliseconds from 1 ms to 24 h", o.Timeout)
	}
	if len(t.InputSchema) == 0 {
		schema, err := schemaOf[In]()
		if err != nil {
			return Tool{}, t.refuse("%s", short(err.Error()))
		}
		t.InputSchema = schema
	}
	ready, err := t.prepare()
	if err != nil {
		return Tool{}, err
	}
	if err := fits[In](ready, len(o.InputSchema) > 0); err != nil {
		return Tool{}, err
	}
	return *ready, nil
}

// MustNew is [New] for package variables: it panics where New returns an error.
func MustNew[In, Out any](name, description string, effect SideEffect, fn func(ctx context.Context, in In) (Out, error), o *Options) Tool {
	t, err := New(name, description, effect, fn, o)
	if err != nil {
		panic(err)
	}
	return t
}

type callKey struct{}

// CallFrom is the attempt that a function given to [New] carries out; false in any
// other context. Call.Args is not to be changed.
func CallFrom(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}

// typed decodes, calls and encodes.
func typed[In, Out any](fn func(context.Context, In) (Out, error)) Runner {
	return RunnerFunc(func(ctx context.Context, c Call) (json.RawMessage, error) {
		var in In
		if err := jsonv2.Unmarshal(c.Args, &in, decoding); err != nil {
			return nil, ErrNotStarted.Say("The tool was not started: its arguments do not fit its Go type: %s.", short(err.Error()))
		}
		if err := mayStart(ctx, "The tool was not started"); err != nil {
			return nil, err
		}
		out, err := fn(context.WithValue(ctx, callKey{}, c), in)
		if err != nil {
			return nil, err
		}
		b, err := jsonv2.Marshal(out, encoding)
		if err != nil {
			return nil, endedAs{ErrOutcomeUnknown.Say("The tool ended without an error, but its result cannot be encoded: %s.", short(err.Error())), errEnded}
		}
		return b, nil
	})
}

var (
	decoding = jsonv2.JoinOptions(
		jsonv2.RejectUnknownMembers(true),
		jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(wholeNumber)),
	)
	encoding = jsonv2.Deterministic(true)
)

// wholeNumber lets 1e6 and 1.0 be decoded into Go integers, as the schema lets them
// be integers (case 111). Everything else it leaves to the library.
func wholeNumber(dec *jsontext.Decoder, into any) error {
	v := reflect.ValueOf(into).Elem()
	if !v.CanInt() && !v.CanUint() || dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	if _, custom := into.(json.Unmarshaler); custom {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if strings.ContainsAny(text, ".eE") {
		text = wholeDigits(text)
	}
	return jsonv2.Unmarshal([]byte(text), into)
}

// wholeDigits is a number in plain digits if it is a whole one of a size that a Go
// integer may have, else as it was written.
func wholeDigits(number string) string {
	const most = 40
	if exponent(number) > most || len(number) > 2*most {
		return number
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || !r.IsInt() {
		return number
	}
	return r.Num().String()
}

// schemaOf is the JSON Schema of a Go type.
func schemaOf[In any]() (json.RawMessage, error) {
	s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[big.Int]():         {Type: "integer"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[jsontext.Value]():  {},
	}})
	if err != nil {
		return nil, fmt.Errorf("no schema can be made from its input type: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("its input type %s is not a struct or a map, so its arguments would not be an object", reflect.TypeFor[In]())
	}
	return json.Marshal(s)
}

// fits refuses an input type whose own encoding does not fit the schema: fields
// with a custom encoding, or tagged `string`, would refuse every call.
func fits[In any](t *Tool, givenSchema bool) error {
	var zero In
	b, err := jsonv2.Marshal(zero, encoding)
	if err != nil {
		return t.refuse("its input type cannot be encoded: %s", short(err.Error()))
	}
	if givenSchema || string(b) == "null" {
		return nil
	}
	if err := t.CheckArgs(b); err != nil {
		return t.refuse("the schema made from its input type does not fit how the type is encoded (%s); give Options.InputSchema", short(err.Error()))
	}
	return nil
}
