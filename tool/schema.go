package tool

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/placet-dev/placet/canon"
)

// Limits of a schema and of checking against it. They keep a schema that somebody
// else wrote, and arguments that a model wrote, from costing more than about a second.
const (
	maxSchema      = 64 << 10 // bytes
	maxSchemaDepth = 64       // arrays and objects inside each other
	maxSubschemas  = 2_000    // schemas inside a schema
	maxSchemaPaths = 1 << 20  // bytes of their JSON Pointers together
	maxFanOut      = 1_000    // schemas that one value is checked against
	maxRefChain    = 64       // of them, one inside the other
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
//
// Drafts 4 to 2020-12 are understood, 2020-12 unless $schema says otherwise, and
// `format` is asserted. Numbers are exact: 1.0 and 1e6 are integers, 1.5 is not,
// and integers beyond 2^53 keep every digit. Defaults are not filled in.
type Schema struct {
	raw  json.RawMessage
	doc  any
	free chan *checker // those that nobody uses

	mu   sync.Mutex
	made int // checkers, used or free; at most cap(free)
}

// checker is one compiled form of a schema. Its meter counts one check at a time, so
// checks that run at once have one each.
type checker struct {
	meter   *meter
	root    *jsonschema.Schema
	verdict *jsonschema.Schema // {"not": root}: inside a not the library only asks whether, not why
}

// schemaURL is the address under which the schema is compiled. Nothing is ever loaded from it.
const schemaURL = "placet:///input_schema"

// CompileSchema compiles raw, one JSON object of at most 64 KiB and 64 levels. An
// error matches [ErrInvalidTool] and says where the fault lies: what is not a
// schema, a reference to another document or to itself, alternatives that multiply
// beyond 1,000 for one value, a pattern that Go's regular expressions cannot express.
func CompileSchema(raw []byte) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, ErrInvalidTool.Say("The schema has %d bytes; at most %d are allowed.", len(raw), maxSchema)
	}
	if err := canon.Valid(raw); err != nil {
		return nil, ErrInvalidTool.Say("The schema is not acceptable JSON: %s.", err)
	}
	doc, ok := decodeValue(raw).(map[string]any)
	if !ok {
		return nil, ErrInvalidTool.Say("The schema is not a JSON object.").
			Hint(`To accept any object, write {"type":"object"}.`)
	}
	if err := checkBounds(doc); err != nil {
		return nil, err
	}
	first, err := newChecker(doc)
	if err != nil {
		return nil, schemaRefused(err)
	}
	s := &Schema{
		raw: append(json.RawMessage(nil), raw...), doc: doc,
		free: make(chan *checker, runtime.GOMAXPROCS(0)), made: 1,
	}
	s.free <- first
	return s, nil
}

func newChecker(doc any) (*checker, error) {
	m := &meter{left: math.MaxInt}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(m.regexp)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	m.install(root)
	return &checker{meter: m, root: root, verdict: &jsonschema.Schema{DraftVersion: root.DraftVersion, Not: root}}, nil
}

// take is a free checker, a new one, or if there are enough the next that is given back.
func (s *Schema) take() *checker {
	select {
	case c := <-s.free:
		return c
	default:
	}
	s.mu.Lock()
	more := s.made < cap(s.free)
	if more {
		s.made++
	}
	s.mu.Unlock()
	if more {
		if c, err := newChecker(s.doc); err == nil { // it compiled before
			return c
		}
	}
	return <-s.free
}

// noLoader refuses every document: a schema stands alone. The library's default
// opens files.
type noLoader struct{}

var errOtherDocument = errors.New("it names another document")

func (noLoader) Load(string) (any, error) { return nil, errOtherDocument }

// schemaRefused is a sentence for an error of the compiler.
func schemaRefused(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var violation *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &violation):
		v := firstViolation(violation)
		return ErrInvalidTool.Say("The schema is not a valid JSON Schema at %s: %s.", v.where("the top"), v.what)
	case errors.Is(err, errOtherDocument):
		return ErrInvalidTool.Say("The schema needs another document, and none is ever loaded.").
			Hint("Put what it needs under $defs and refer to it as #/$defs/NAME; $schema names one of the published drafts.")
	}
	return ErrInvalidTool.Say("The schema cannot be compiled: %s.", short(strings.ReplaceAll(err.Error(), schemaURL, "")))
}

// Check reports how args break the schema, as an error that matches
// [ErrInvalidArguments] and names the fields and what was expected; nil if they do
// not. Texts are compared by their characters: nothing is brought into another Unicode
// form, as a yes is bound to exactly the bytes that were sent. args must be acceptable
// JSON (canon.Valid), which Check does not look at again; [Tool.CheckArgs] does both.
func (s *Schema) Check(args []byte) error {
	return s.check(decodeValue(args), theArguments)
}

// CheckInput is [Schema.Check] for what a form asks a person for; its errors speak of
// the input.
func (s *Schema) CheckInput(input []byte) error {
	return s.check(decodeValue(input), theInput)
}

// called is what errors call the value that is checked.
type called string

const (
	theArguments called = "arguments"
	theInput     called = "input"
)

func (s *Schema) check(v any, what called) error {
	c := s.take()
	defer func() { s.free <- c }()
	misfits, inTime := c.run(c.verdict, v, maxWork)
	switch {
	case !inTime:
		return ErrInvalidArguments.Say("It takes too long to check the %s against the schema.", what).
			Hint("Send less nesting, shorter lists or texts, or smaller exponents.")
	case misfits != nil: // it contradicts that v does not fit
		return nil
	}
	// Collecting every fault takes memory for each, more the deeper the value is.
	why, inTime := c.run(c.root, v, maxWork/(4+nesting(v)))
	var bad *jsonschema.ValidationError
	if !inTime || !errors.As(why, &bad) {
		return ErrInvalidArguments.Say("The schema does not allow the %s; in a value so large it cannot be said where.", what)
	}
	return refusal(violations(bad), what)
}

// run validates v, spending at most that much work.
func (c *checker) run(root *jsonschema.Schema, v any, work int) (violation error, inTime bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != any(errSpent) {
				panic(p)
			}
			violation, inTime = nil, false
		}
	}()
	c.meter.left = work
	return root.Validate(v), true
}

// nesting is how many arrays and objects are inside each other in v.
func nesting(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			deepest = max(deepest, 1+nesting(inner))
		}
	case []any:
		for _, inner := range v {
			deepest = max(deepest, 1+nesting(inner))
		}
	}
	return deepest
}

// CheckArgs reports why t cannot be called with args: more than [MaxArgs] bytes, not
// acceptable JSON (the byte offset is named: syntax, a duplicate key, nesting,
// a number out of bounds), not an object, or not what the schema asks for. The
// error matches [ErrInvalidArguments]; its details are a [Refusal], or
// {"offset": …}, in bytes, where it is about such a place. For a tool that was not registered its schema is
// compiled each time, and the error may be [ErrInvalidTool].
func (t *Tool) CheckArgs(args []byte) error {
	if len(args) > MaxArgs {
		return ErrInvalidArguments.Say("The arguments have %d bytes; at most %d are allowed.", len(args), MaxArgs)
	}
	if err := canon.Valid(args); err != nil {
		return notAcceptable(err)
	}
	if i := skipSpace(args, 0); args[i] != '{' {
		return ErrInvalidArguments.Say("The arguments are %s; they must be a JSON object.", kindAt(args[i]))
	}
	if sealed := t.current(); sealed != nil {
		return sealed.schema.Check(args)
	}
	s, err := CompileSchema(t.InputSchema)
	if err != nil {
		return inTool(t.Name, err)
	}
	return s.Check(args)
}

func notAcceptable(err error) error {
	out := ErrInvalidArguments.Say("The arguments are not acceptable JSON: %s.", err)
	var at *canon.SyntaxError
	if errors.As(err, &at) {
		out = out.With(map[string]int64{"offset": at.Offset})
	}
	return out
}
