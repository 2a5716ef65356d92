package config

import (
	"fmt"
	"time"

	"github.com/placet-dev/placet/tool"
)

// maxTools bounds the tools of a file.
const maxTools = 10_000

// anyObject is the schema of a tool that has none.
const anyObject = `{"type":"object"}`

func (l *loader) tools(c *Config, list *node) {
	seen := map[string]int{}
	items := l.items(list, "tools")
	if len(items) > maxTools {
		l.refuse(list, "there are %d tools; at most %d are read", len(items), maxTools)
		return
	}
	for i, item := range items {
		t, ok := l.tool(item, fmt.Sprintf("tool %d", i+1))
		if line, twice := seen[t.Name]; twice && t.Name != "" {
			l.refuse(item, "another tool (line %d) is named %s; write a different name", line, quoted(t.Name))
			continue
		}
		seen[t.Name] = item.Line
		if !ok {
			continue
		}
		if err := c.Tools.Register(t); err != nil {
			l.refuse(item, "tool %s: %s", quoted(t.Name), sentence(err))
		}
	}
}

// tool reads one tool; ok is false if something in it was refused.
func (l *loader) tool(n *node, what string) (_ tool.Tool, ok bool) {
	if !l.isMapping(n, what) {
		return tool.Tool{}, false
	}
	before := l.refused
	if name := find(n, "name"); name != nil && name.Value != "" {
		what = "tool " + quoted(name.Value)
	}
	f := l.fields(n, what, "name", "description", "input_schema", "side_effect", "timeout", "confirm",
		"exec", "http", "idempotency", "cancel_safe", "pin", "probe", "cost")
	t := tool.Tool{
		Spec: tool.Spec{
			Name:        l.text(f.get("name"), "the name of "+what),
			Description: l.text(f.get("description"), "the description of "+what),
			InputSchema: l.schema(f.get("input_schema"), what),
			SideEffect:  l.sideEffect(f.get("side_effect"), what),
			TimeoutMS:   l.timeout(f.get("timeout"), what).Milliseconds(),
		},
		Confirm:    l.flag(f.get("confirm"), "confirm of "+what),
		CancelSafe: l.flag(f.get("cancel_safe"), "cancel_safe of "+what),
		Idempotent: l.word(f.get("idempotency"), "idempotency of "+what, "call_id") != "",
		Cost:       l.count(f.get("cost"), "cost of "+what),
	}
	if f.get("name") == nil {
		l.refuse(n, "%s has no name; write name:", what)
	}
	l.carriedOut(&t, n, f, what)
	l.probe(&t, f.get("probe"), what)
	return t, l.refused == before
}

func (l *loader) schema(n *node, what string) []byte {
	if n == nil {
		return []byte(anyObject)
	}
	b, ok := l.json(n)
	if !ok {
		return nil
	}
	if _, err := tool.CompileSchema(b); err != nil {
		l.refuse(n, "input_schema of %s: %s", what, sentence(err))
	}
	return b
}

// sideEffect is destructive where the file does not say: by default nothing of it runs.
func (l *loader) sideEffect(n *node, what string) tool.SideEffect {
	if n == nil {
		return tool.Destructive
	}
	words := make([]string, 0, 4)
	for _, e := range tool.SideEffects() {
		words = append(words, string(e))
	}
	return tool.SideEffect(l.word(n, "side_effect of "+what, words...))
}

func (l *loader) timeout(n *node, what string) time.Duration {
	if n == nil {
		return tool.DefaultTimeout
	}
	d := l.duration(n, "timeout of "+what)
	if d > tool.MaxTimeout {
		l.refuse(n, "timeout of %s is %s; at most 24h are allowed", what, n.Value)
	}
	return d
}

// carriedOut sets what carries the tool out: exactly one of exec and http.
func (l *loader) carriedOut(t *tool.Tool, n *node, f fields, what string) {
	program, request := f.get("exec"), f.get("http")
	switch {
	case program != nil && request != nil:
		l.refuse(request, "%s has both exec and http; remove one", what)
	case program != nil:
		l.exec(t, program, f.get("pin"), what)
	case request != nil:
		l.http(t, request, what)
	case !f.mcp:
		l.refuse(n, "%s has nothing that carries it out; write exec: [./program.sh] or http: {method: POST, url: …}", what)
	}
	if pin := f.get("pin"); pin != nil && program == nil {
		l.refuse(pin, "pin of %s needs exec: it puts the program's SHA-256 into the spec", what)
	}
}

func (l *loader) exec(t *tool.Tool, n, pin *node, what string) {
	pinned := l.flag(pin, "pin of "+what)
	argv, ok := l.argv(n, "exec of "+what)
	if !ok {
		return
	}
	e, err := tool.NewExec(argv, l.dir, pinned)
	if err != nil {
		l.refuse(n, "exec of %s: %s", what, sentence(err))
		return
	}
	t.Run, t.Implementation = e, e.Implementation()
}

func (l *loader) probe(t *tool.Tool, n *node, what string) {
	if n == nil {
		return
	}
	argv, ok := l.argv(n, "probe of "+what)
	if !ok {
		return
	}
	p, err := tool.NewExecProbe(argv, l.dir)
	if err != nil {
		l.refuse(n, "probe of %s: %s", what, sentence(err))
		return
	}
	t.Probe = p
}
