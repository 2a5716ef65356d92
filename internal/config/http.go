package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/placet-dev/placet/tool"
)

func (l *loader) http(t *tool.Tool, n *node, what string) {
	before := l.refused
	what = "http of " + what
	if !l.isMapping(n, what) {
		return
	}
	f := l.fields(n, what, "method", "url", "headers")
	method := l.text(f.get("method"), "method in "+what)
	url := l.text(f.get("url"), "url in "+what)
	switch {
	case f.get("url") == nil:
		l.refuse(n, "%s has no url; write url: \"https://…\"", what)
	case strings.Contains(url, "${"):
		l.refuse(f.get("url"), "url in %s: variables are put into header values only, since the URL is shown to reviewers", what)
	}
	headers := l.headers(f.get("headers"), what)
	if l.refused > before {
		return
	}
	h, err := tool.NewHTTP(method, url, headers)
	if err != nil {
		l.refuse(n, "%s: %s", what, sentence(err))
		return
	}
	t.Run, t.Implementation = h, h.Implementation()
}

// headers reads header values and puts variables of the environment into them.
func (l *loader) headers(n *node, what string) map[string]string {
	headers := map[string]string{}
	if n == nil {
		return headers
	}
	for key, value := range l.pairs(n, "headers in "+what) {
		headers[key.Value] = l.expand(value, "the header "+quoted(key.Value)+" in "+what)
	}
	return headers
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces each ${NAME} by the environment's value. Values are secrets: no
// message shows one.
func (l *loader) expand(n *node, what string) string {
	if n.Kind != yaml.ScalarNode || isPlain(n) && n.ShortTag() != "!!str" {
		l.refuse(n, "%s has to be a text; write it in quotes", what)
		return ""
	}
	return variable.ReplaceAllStringFunc(n.Value, func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		if !strings.HasSuffix(found, "}") || !variableName.MatchString(name) {
			l.refuse(n, "%s has a ${ that names no variable; write ${NAME}", what)
			return ""
		}
		value, set := l.env(name)
		switch {
		case !set:
			l.refuse(n, "%s needs the environment variable %s, which is not set", what, name)
		case value == "":
			l.refuse(n, "%s needs the environment variable %s, which is empty", what, name)
		}
		return value
	})
}
