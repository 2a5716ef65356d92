package httpapi_test

import (
	"bytes"
	"encoding/json"
	"mime"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// operation is one of the committed document's.
type operation struct {
	method, path string
	ID           string `yaml:"operationId"`
	Description  string
	Security     []any
	RequestBody  *struct {
		Content map[string]media
	} `yaml:"requestBody"`
	Parameters []parameter
	Responses  map[string]struct {
		Ref         string `yaml:"$ref"`
		Description string
		Content     map[string]media
	}
}

type media struct{ Schema map[string]any }

type parameter struct {
	Name, In string
	Required bool
	Schema   map[string]any
}

// contract is the committed document as tests hold the server to it.
type contract struct {
	ops     []operation
	schemas map[string]any // components
	whole   any            // as JSON
	answers map[string]*jsonschema.Schema
}

var theContract = sync.OnceValues(func() (*contract, error) {
	b, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	c := &contract{schemas: doc.Components.Schemas, answers: map[string]*jsonschema.Schema{}}
	for path, methods := range doc.Paths {
		for m, op := range methods {
			op.method, op.path = strings.ToUpper(m), path
			c.ops = append(c.ops, op)
		}
	}
	slices.SortFunc(c.ops, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	if c.whole, err = asJSON(b); err != nil {
		return nil, err
	}
	return c, c.compile()
})

func asJSON(text []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(b))
}

const documentURL = "http://placet/openapi.json"

func (c *contract) compiler() (*jsonschema.Compiler, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	return compiler, compiler.AddResource(documentURL, c.whole)
}

// compile makes ready the schemas of all answers.
func (c *contract) compile() error {
	compiler, err := c.compiler()
	if err != nil {
		return err
	}
	for _, o := range c.ops {
		for status, r := range o.Responses {
			at := "/paths/" + escaped(o.path) + "/" + strings.ToLower(o.method) + "/responses/" + status
			content := r.Content
			if r.Ref != "" {
				at, content = strings.TrimPrefix(r.Ref, "#"), map[string]media{"application/problem+json": {}}
			}
			for kind := range content {
				if !strings.HasSuffix(kind, "json") {
					continue
				}
				s, err := compiler.Compile(documentURL + "#" + at + "/content/" + escaped(kind) + "/schema")
				if err != nil {
					return err
				}
				c.answers[o.ID+" "+status] = s
			}
		}
	}
	return nil
}

// escaped is a step of a JSON pointer in a URL.
func escaped(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B").Replace(s)
}

func theDocument(t testing.TB) *contract {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func operations(t testing.TB) (ops []operation, schemas map[string]any) {
	t.Helper()
	c := theDocument(t)
	if len(c.ops) < 35 {
		t.Fatalf("the document has only %d operations", len(c.ops))
	}
	return c.ops, c.schemas
}

// at is the operation's path with ids in the place of its variables.
func (o operation) at(id string) string { return o.with(func(string) string { return id }) }

func (o operation) open() bool { return len(o.Security) == 0 }

// streams reports whether its answer does not end by itself.
func (o operation) streams() bool { return o.ID == "events" }

// of is the operation that a request means; nil: none.
func (c *contract) of(method, path string) *operation {
	parts := strings.Split(path, "/")
	var found *operation
	for i := range c.ops {
		o := &c.ops[i]
		template := strings.Split(o.path, "/")
		if o.method != method || len(template) != len(parts) {
			continue
		}
		exact, fits := true, true
		for j, p := range template {
			variable := strings.HasPrefix(p, "{")
			exact, fits = exact && !variable, fits && (p == parts[j] || variable && parts[j] != "")
		}
		if fits && (found == nil || exact) {
			found = o
		}
	}
	return found
}

// keepsTo holds an answer to the document: it has the status, the type and the shape
// that stand there.
func keepsTo(t testing.TB, method, path string, r reply) {
	t.Helper()
	c := theDocument(t)
	o := c.of(method, path)
	if o == nil {
		return
	}
	status := strconv.Itoa(r.status)
	told, ok := o.Responses[status]
	if !ok {
		t.Errorf("%s answers %s, of which the document says nothing: %.300s", o.ID, status, r.text)
		return
	}
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if _, ok := told.Content[kind]; err != nil || !ok && (r.status < 400 || kind != "application/problem+json") {
		t.Errorf("%s answers %s with %q, of which the document says nothing", o.ID, status, r.header.Get("Content-Type"))
	}
	schema := c.answers[o.ID+" "+status]
	if schema == nil {
		return
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(r.text))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Errorf("%s answers %s with what the document does not say: %v: %.500s", o.ID, status, err, r.text)
	}
}
