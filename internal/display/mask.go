package display

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/placet-dev/placet/tool"
)

// Masked stands where a secret was.
const Masked = tool.Masked

// minLearnt is how long a secret has to be before it is looked for in other
// texts: shorter ones would be found everywhere, and count only where they are all
// of a value.
const minLearnt = 4

// Mask hides secrets. A value is one if the name it stands under says so
// ([SecretName]), or if a schema that the mask was taught marks that name, at
// whatever depth, inside arrays and inside JSON in strings. A nil Mask goes by
// names alone.
//
// It is safe for concurrent use once it was taught.
type Mask struct {
	marks marks

	mu     sync.RWMutex
	learnt []string        // secret values and their escaped forms, longest first
	brief  map[string]bool // those that are too short to be looked for inside a text
}

// Teach adds what a tool's schema marks as secret: writeOnly, or format password.
func (m *Mask) Teach(schema []byte) {
	if v, err := parse(schema); err == nil {
		m.marks.collect(v)
	}
}

// Learn remembers the secret values of documents, so that [Mask.Text] finds them
// in texts that repeat one, as they are or as JSON escapes them: a tool's message, a
// policy's sentence. A value that also stands under a name that is no secret's, in the
// same document, is shown there anyway; remembering it would only let a caller hide it
// elsewhere.
func (m *Mask) Learn(docs ...[]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.briefsToChange()
	for _, d := range docs {
		v, err := parse(d)
		if err != nil {
			continue
		}
		found := sighting{hidden: map[string]bool{}, open: map[string]bool{}}
		m.sight(found, v, m.marks.all, 0)
		for text := range found.hidden {
			if !found.open[text] {
				m.remember(text)
			}
		}
	}
	m.tidy()
}

func (m *Mask) remember(secret string) {
	if len(secret) >= minLearnt {
		m.learnt = append(append(m.learnt, secret), escapedForms(secret)...)
		return
	}
	m.brief[secret] = true
}

// briefsToChange makes m.brief one that nobody is reading.
func (m *Mask) briefsToChange() {
	if m.brief = maps.Clone(m.brief); m.brief == nil {
		m.brief = map[string]bool{}
	}
}

// escapedForms is s as it stands between the quotes of JSON: with no more escapes than
// needed, as encoding/json has it (<, > and & too), in ASCII only, and that with / too.
func escapedForms(s string) []string {
	var minimal, ascii strings.Builder
	for _, r := range s {
		switch e, special := shortEscapes[r]; {
		case special:
			minimal.WriteString(e)
			ascii.WriteString(e)
		case r < 0x20:
			fmt.Fprintf(&minimal, `\u%04x`, r)
			fmt.Fprintf(&ascii, `\u%04x`, r)
		case r >= 0x7f:
			minimal.WriteRune(r)
			writeRune(&ascii, r, machines)
		default:
			minimal.WriteRune(r)
			ascii.WriteRune(r)
		}
	}
	html, _ := json.Marshal(s) // a string always can be
	forms := []string{minimal.String(), ascii.String(), strings.ReplaceAll(ascii.String(), "/", `\/`), string(html[1 : len(html)-1])}
	return slices.DeleteFunc(forms, func(f string) bool { return f == s })
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// secrets are the values that were learnt.
func (m *Mask) secrets() []string {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.learnt // replaced as a whole, never changed
}

// isBrief reports whether s is one of the short secrets.
func (m *Mask) isBrief(s string) bool {
	return m != nil && len(s) < minLearnt && m.briefs()[s]
}

func (m *Mask) briefs() map[string]bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.brief // replaced as a whole, never changed
}

// tidy puts the longest first, so that no secret is left over because a part of
// it was masked.
func (m *Mask) tidy() {
	all := slices.Clone(m.learnt)
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.learnt = slices.Compact(all)
}

// sighting is which values of a document stand under a secret's name, and which under another.
type sighting struct{ hidden, open map[string]bool }

func (m *Mask) sight(found sighting, v value, secret bool, nested int) {
	if inner, ok := v.inside(nested); ok {
		m.sight(found, inner, secret, nested+1)
	}
	if len(v.members) == 0 && v.text != "" && v.text != "null" && v.text != "true" && v.text != "false" {
		if secret {
			found.hidden[v.text] = true
		} else {
			found.open[v.text] = true
		}
	}
	for _, c := range v.members {
		m.sight(found, c.val, secret || v.kind == '{' && m.secret(c.key), nested)
	}
}

// Text is s with every secret value that was learnt masked. Ids and digests in it
// stay whole: a "secret" that is a piece of one would hide what is talked about.
func (m *Mask) Text(s string) string {
	secrets := m.secrets()
	if len(secrets) == 0 {
		return s
	}
	var b strings.Builder
	from := 0
	for _, at := range ours().FindAllStringIndex(s, -1) {
		if slices.Contains(secrets, s[at[0]:at[1]]) {
			continue
		}
		b.WriteString(replace(s[from:at[0]], secrets))
		b.WriteString(s[at[0]:at[1]])
		from = at[1]
	}
	b.WriteString(replace(s[from:], secrets))
	return b.String()
}

// ours finds ids and digests.
var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[a-z]{3,4}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\bsha256-[a-z0-9]+:[0-9a-f]{64}\b`)
})

func replace(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, Masked)
	}
	return s
}

// Hides reports whether whatever stands under a name, at the top of a document, is hidden.
func (m *Mask) Hides(name string) bool { return m.secret(name) || m != nil && m.marks.all }

func (m *Mask) secret(name string) bool {
	return SecretName(name) || m != nil && m.marks.has(name)
}

// JSON is a document with its secrets masked, in one line that a program can
// read: numbers keep their digits, members their order. What is not JSON comes
// back as a JSON string.
func (m *Mask) JSON(doc []byte) []byte {
	return []byte(m.tree(doc).string(machines))
}

// Value is the same on one line for people.
func (m *Mask) Value(doc []byte) string {
	v := m.tree(doc)
	if v.kind == '"' {
		return `"` + Excerpt(v.text, 0) + `"`
	}
	return v.string(quoted)
}

// Brief is [Mask.Value] of a document that may be long: only its head and its tail
// are shown.
func (m *Mask) Brief(doc []byte) string {
	if v := m.tree(doc); v.kind != '"' {
		return excerptOf(v.string(quoted))
	}
	return m.Value(doc)
}

// tree is the masked document.
func (m *Mask) tree(doc []byte) value {
	_, shown := m.both(doc)
	return shown
}

// both is a document as it is and as it is shown: the same, but for secrets and for
// strings that are JSON with secrets in it. What is no JSON is one string.
func (m *Mask) both(doc []byte) (real, shown value) {
	v, err := parse(doc)
	switch {
	case err != nil:
		real = value{kind: '"', text: string(doc), foreign: true}
		shown = real
		shown.text = m.Text(real.text)
		return real, shown
	case m != nil && m.marks.all:
		return v, aSecret
	}
	return v, m.apply(v, 0)
}

// apply masks by name. nested counts JSON inside strings.
func (m *Mask) apply(v value, nested int) value {
	if inner, ok := v.inside(nested); ok {
		if masked := m.apply(inner, nested+1); m.differs(inner, masked) {
			return value{kind: '"', text: masked.string(machines)}
		}
		return v
	}
	if len(v.members) == 0 {
		return v
	}
	out := value{kind: v.kind, members: make([]member, len(v.members))}
	for i, c := range v.members {
		if v.kind == '{' && m.secret(c.key) && c.val.text != "null" {
			c.val = aSecret
		} else {
			c.val = m.apply(c.val, nested)
		}
		out.members[i] = c
	}
	return out
}

func (m *Mask) differs(a, b value) bool { return a.string(machines) != b.string(machines) }

// maxNested bounds JSON inside strings inside JSON; each level costs its escapes twice.
const maxNested = 6

// inside is the JSON in a string.
func (v value) inside(nested int) (value, bool) {
	t := strings.TrimSpace(v.text)
	if v.kind != '"' || nested >= maxNested || len(t) < 2 || t[0] != '{' && t[0] != '[' {
		return value{}, false
	}
	inner, err := parseText([]byte(t))
	return inner, err == nil
}

// Scrub is [Mask.JSON], and masks secret values that were learnt wherever they
// stand in a string. It is for what a policy or a tool wrote about arguments.
// Arguments themselves go by name alone: a caller could otherwise hide one
// argument by repeating it under a secret's name.
func (m *Mask) Scrub(doc []byte) []byte {
	return []byte(m.scrub(m.tree(doc)).string(machines))
}

func (m *Mask) scrub(v value) value {
	switch {
	case v.kind != '"':
	case m.isBrief(v.text):
		v.text = Masked
	default:
		v.text = m.Text(v.text)
	}
	out := value{kind: v.kind, text: v.text, members: slices.Clone(v.members), foreign: v.foreign}
	for i, c := range out.members {
		out.members[i] = member{m.Text(c.key), m.scrub(c.val)}
	}
	return out
}

// maxName is how many characters of a field's name are shown.
const maxName = 100

// Fields takes a masked document apart into lines.
func (m *Mask) Fields(doc []byte) []Field {
	whole, err := parse(doc)
	if err != nil || whole.kind != '{' || m != nil && m.marks.all {
		return []Field{m.field("", whole, m.tree(doc), len(doc))}
	}
	masked := m.tree(doc)
	fs := make([]Field, len(whole.members))
	for i, c := range whole.members {
		fs[i] = m.field(Excerpt(m.Text(c.key), maxName), c.val, masked.members[i].val, 0)
	}
	return fs
}

func (m *Mask) field(name string, real, masked value, size int) Field {
	f := Field{Name: name, Size: size}
	if size == 0 {
		if f.Size = len(real.text); real.kind != '"' {
			f.Size = len(real.string(machines))
		}
	}
	switch {
	case masked.kind == '"' && masked.text == Masked:
		f.Text = Masked
	case masked.kind == '"':
		f.Text = `"` + Excerpt(masked.text, 0) + `"`
	default:
		f.Text = excerptOf(masked.string(quoted))
	}
	return f
}

// excerptOf cuts what is escaped already.
func excerptOf(s string) string {
	if len(s) <= Long {
		return s
	}
	from, to := forward(s, Long*3/4), backward(s, Long/4)
	if from >= to {
		return s
	}
	return s[:from] + " [… " + Bytes(to-from) + " not shown; " + Bytes(len(s)) + " in all …] " + s[to:]
}

// Share makes m find what o learnt, too.
func (m *Mask) Share(o *Mask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learnt = append(slices.Clip(m.learnt), o.secrets()...)
	m.briefsToChange()
	maps.Copy(m.brief, o.briefs())
	m.tidy()
}
