package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.yaml anew")

// The committed document is the one that the routes make: go test ./httpapi -rewrite.
func TestDocumentIsFresh(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got, err := w.api.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("openapi.yaml", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.yaml is not what the routes make: go test ./httpapi -rewrite")
	}
	served := w.want(w.do("", "GET", "/v1/openapi.yaml", ""), 200)
	if served.text != string(want) {
		t.Error("another document is served")
	}
}

// The document is OpenAPI 3.1: its parts are where they belong, every reference leads
// somewhere, and every schema is one.
func TestDocumentIsSound(t *testing.T) {
	t.Parallel()
	c := theDocument(t)
	doc := c.whole.(map[string]any)
	if v, _ := doc["openapi"].(string); !regexp.MustCompile(`^3\.1\.\d+$`).MatchString(v) {
		t.Errorf("it is of version %q", v)
	}
	for key := range doc {
		if !slices.Contains([]string{"openapi", "info", "paths", "components"}, key) {
			t.Errorf("a part %q that OpenAPI does not know, or this test", key)
		}
	}
	info := doc["info"].(map[string]any)
	if info["title"] == "" || info["version"] == "" {
		t.Errorf("info: %v", info)
	}
	ids, paths := map[string]bool{}, map[string]bool{}
	for _, o := range c.ops {
		if ids[o.ID] || o.ID == "" {
			t.Errorf("operationId %q is none, or not the only one", o.ID)
		}
		ids[o.ID] = true
		shape := o.method + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(o.path, "{}")
		if paths[shape] || !strings.HasPrefix(o.path, "/") {
			t.Errorf("path %s is none, or not the only one of its shape", o.path)
		}
		paths[shape] = true
		soundParameters(t, o)
		soundAnswers(t, o)
	}
	used := map[string]bool{}
	references(doc, func(ref string) {
		used[ref] = true
		if _, ok := follow(doc, ref); !ok {
			t.Errorf("%s leads nowhere", ref)
		}
	})
	soundComponents(t, c, used)
}

func soundParameters(t *testing.T, o operation) {
	t.Helper()
	seen, inPath := map[string]bool{}, ""
	for _, p := range o.Parameters {
		if seen[p.In+p.Name] || !slices.Contains([]string{"path", "query", "header"}, p.In) || p.Name == "" || len(p.Schema) == 0 {
			t.Errorf("%s: parameter %+v", o.ID, p)
		}
		seen[p.In+p.Name] = true
		if p.In == "path" {
			inPath += "{" + p.Name + "}"
		}
		if p.Required != (p.In == "path") {
			t.Errorf("%s: parameter %s is required: %t", o.ID, p.Name, p.Required)
		}
	}
	if want := strings.Join(regexp.MustCompile(`\{\w+\}`).FindAllString(o.path, -1), ""); inPath != want {
		t.Errorf("%s: its path has %s, its parameters %s", o.ID, want, inPath)
	}
	if o.RequestBody != nil {
		if kinds := slices.Collect(maps.Keys(o.RequestBody.Content)); len(kinds) != 1 || kinds[0] != "application/json" || len(o.RequestBody.Content[kinds[0]].Schema) == 0 {
			t.Errorf("%s: its body is %v", o.ID, o.RequestBody.Content)
		}
	}
}

func soundAnswers(t *testing.T, o operation) {
	t.Helper()
	good := 0
	for status, r := range o.Responses {
		if !regexp.MustCompile(`^[2-5]\d\d$`).MatchString(status) {
			t.Errorf("%s: status %q", o.ID, status)
		}
		if status >= "4" {
			if !strings.HasPrefix(r.Ref, "#/components/responses/") {
				t.Errorf("%s: %s is no problem: %+v", o.ID, status, r)
			}
			continue
		}
		good++
		if r.Description == "" || len(r.Content) != 1 {
			t.Errorf("%s: %s is %+v", o.ID, status, r)
		}
	}
	if good == 0 {
		t.Errorf("%s has no good answer", o.ID)
	}
	for status, when := range map[string]bool{
		"400": true, "403": true, "500": true, "503": true, "401": !o.open(), "404": strings.Contains(o.path, "{"),
		"409": o.method != "GET", "408": o.RequestBody != nil, "413": o.RequestBody != nil, "415": o.RequestBody != nil,
	} {
		if _, ok := o.Responses[status]; when && !ok {
			t.Errorf("%s does not tell of %s", o.ID, status)
		}
	}
}

// soundComponents looks that each component is a schema or an answer, has a use, and
// is there once.
func soundComponents(t *testing.T, c *contract, used map[string]bool) {
	t.Helper()
	compiler, err := c.compiler()
	if err != nil {
		t.Fatal(err)
	}
	components := c.whole.(map[string]any)["components"].(map[string]any)
	for name, r := range components["responses"].(map[string]any) {
		if !used["#/components/responses/"+name] || r.(map[string]any)["description"] == "" {
			t.Errorf("response %s: %v", name, r)
		}
	}
	same := map[string]string{}
	for name, s := range components["schemas"].(map[string]any) {
		if !used["#/components/schemas/"+name] {
			t.Errorf("nothing uses schema %s", name)
		}
		if !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
			t.Errorf("a component of the name %q", name)
		}
		if _, err := compiler.Compile(documentURL + "#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := same[string(text)]; ok {
			t.Errorf("%s and %s are the same schema", other, name)
		}
		same[string(text)] = name
	}
}

// references calls found with each reference in a document.
func references(v any, found func(string)) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			references(one, found)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			found(ref)
		}
		for _, one := range v {
			references(one, found)
		}
	}
}

func follow(doc map[string]any, ref string) (v any, ok bool) {
	v = doc
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		if v, ok = m[step]; !ok {
			return nil, false
		}
	}
	return v, true
}

// The document says of single operations what no type does.
func TestDocumentSays(t *testing.T) {
	t.Parallel()
	c := theDocument(t)
	for id, want := range map[string]string{
		"callTool": "200 202 400 401 403 404 408 409 410 413 415 422 429 500 503", "reserveCall": "200 201 202 400 401 403 404 408 409 410 413 415 422 429 500 503",
		"decide": "200 400 401 403 404 408 409 410 413 415 422 500 503", "healthz": "200 400 403 500 503", "events": "200 400 401 403 404 500 503",
	} {
		i := slices.IndexFunc(c.ops, func(o operation) bool { return o.ID == id })
		if got := strings.Join(slices.Sorted(maps.Keys(c.ops[i].Responses)), " "); got != want {
			t.Errorf("%s answers %s, want %s", id, got, want)
		}
	}
	for id, kind := range map[string]string{"metrics": "text/plain", "openapi": "application/yaml", "events": "text/event-stream", "getCall": "application/json"} {
		i := slices.IndexFunc(c.ops, func(o operation) bool { return o.ID == id })
		if got := slices.Collect(maps.Keys(c.ops[i].Responses["200"].Content)); len(got) != 1 || got[0] != kind {
			t.Errorf("%s answers with %v, want %s", id, got, kind)
		}
	}
	compiler, err := c.compiler()
	if err != nil {
		t.Fatal(err)
	}
	starting, err := compiler.Compile(documentURL + "#/components/schemas/Starting")
	if err != nil {
		t.Fatal(err)
	}
	for command, fits := range map[string]bool{`["make","train"]`: true, `"make train"`: true, `[]`: false, `""`: false, `[1]`: false, `{}`: false, `null`: false} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"command":` + command + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := starting.Validate(v); (err == nil) != fits {
			t.Errorf("command %s: %v", command, err)
		}
	}
}
