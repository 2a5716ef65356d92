package tool

import (
	"slices"
	"strings"
	"sync"
)

// Registry holds the tools of a process by name. It is safe for concurrent use;
// its zero value is empty and ready.
//
// A tool that it hands out is immutable: [Registry.Replace] puts another in its
// place and leaves calls that hold the old one alone.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]*Tool
}

// NewRegistry is a registry of tools. Errors are those of [Registry.Register].
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{}
	for _, t := range tools {
		if err := r.Register(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Register adds t: its schema is compiled, its spec encoded and digested. A time
// limit of 0 becomes [DefaultTimeout]. An error matches [ErrInvalidTool] and says
// what to change; a name that is taken is one too.
func (r *Registry) Register(t Tool) error {
	return r.put(t, false)
}

// Replace is Register for a name that may be taken: the tool of that name, if any,
// is no longer handed out.
func (r *Registry) Replace(t Tool) error {
	return r.put(t, true)
}

func (r *Registry) put(t Tool, replace bool) error {
	ready, err := t.prepare()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.tools[t.Name]; taken && !replace {
		return ErrInvalidTool.Say("The tool %s is registered already.", shown(t.Name)).
			Hint("Give one of the two another name.")
	}
	if r.tools == nil {
		r.tools = map[string]*Tool{}
	}
	r.tools[t.Name] = ready
	return nil
}

// Lookup is the tool of exactly that name. An error matches [ErrUnknown]; it names
// registered tools that are spelled nearly the same or only look the same. The
// tool is shared: do not change it.
func (r *Registry) Lookup(name string) (*Tool, error) {
	r.mu.RLock()
	t, ok := r.tools[name]
	r.mu.RUnlock()
	if ok {
		return t, nil
	}
	return nil, unknownName(name, r.names())
}

// List is every tool, sorted by name.
func (r *Registry) List() []Tool {
	r.mu.RLock()
	out := make([]Tool, 0, len(r.tools))
	for _, t := range r.tools {
		out = append(out, *t)
	}
	r.mu.RUnlock()
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (r *Registry) names() []string {
	r.mu.RLock()
	out := make([]string, 0, len(r.tools))
	for n := range r.tools {
		out = append(out, n)
	}
	r.mu.RUnlock()
	slices.Sort(out)
	return out
}
