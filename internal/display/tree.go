package display

import "strings"

// Node is a JSON value as it is shown. Its texts are as they stand in the document, not
// yet fit to be shown: that is for [Pieces] or [Line].
type Node struct {
	Name   string // of a member of an object; empty otherwise
	Kind   Kind
	Text   string // of a String; the digits of a Number as written; true, false or null
	Size   int    // bytes of the value, as in [Field]: of a String its text, of anything else its JSON without spaces
	Hidden bool   // a secret: a String whose text is [Masked], whatever the secret is; Size is the secret's
	Partly bool   // a String of JSON in which a secret is masked
	Nodes  []Node // members in their order, those with the same name too; elements of an array
}

// Kind is what a JSON value is.
type Kind int

// The kinds of values. None is that of no value, such as what an added one was before.
const (
	None Kind = iota
	Object
	Array
	String
	Number
	True
	False
	Null
)

// String is the kind in one word, in lower case.
func (k Kind) String() string {
	return [...]string{"none", "object", "array", "string", "number", "true", "false", "null"}[k]
}

// Tree is a document for display, with its secrets masked as [Mask.JSON] masks them, those
// in JSON inside strings too. What is no JSON is one String node of the whole.
func (m *Mask) Tree(doc []byte) Node {
	real, shown := m.both(doc)
	n, _ := node("", real, shown)
	return n
}

// node is the Node of a value, and how many bytes its JSON has.
func node(name string, real, shown value) (n Node, size int) {
	n = Node{Name: name, Kind: shown.nodeKind(), Text: shown.text, Hidden: shown.hidden}
	if real.kind == '"' {
		n.Partly = !n.Hidden && real.text != shown.text
		n.Size = len(real.text)
		return n, len(real.string(machines))
	}
	if len(shown.members) == 0 {
		n.Size = len(real.string(machines))
		return n, n.Size
	}
	n.Nodes = make([]Node, len(shown.members))
	n.Size = len("{}") + len(",")*(len(shown.members)-1)
	for i, c := range shown.members {
		child, size := node(c.key, real.members[i].val, c.val)
		if n.Kind == Object {
			size += len(value{kind: '"', text: c.key}.string(machines)) + len(":")
		}
		n.Nodes[i] = child
		n.Size += size
	}
	return n, n.Size
}

// JSON is the value on one line, as [Mask.JSON] has it.
func (n Node) JSON() string {
	var b strings.Builder
	n.writeTo(&b)
	return b.String()
}

func (n Node) writeTo(b *strings.Builder) {
	ends := map[Kind]string{Object: "{}", Array: "[]"}[n.Kind]
	switch {
	case n.Kind == String:
		writeString(b, n.Text, machines)
	case ends == "":
		b.WriteString(n.Text)
	default:
		b.WriteByte(ends[0])
		for i, c := range n.Nodes {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.Kind == Object {
				writeString(b, c.Name, machines)
				b.WriteByte(':')
			}
			c.writeTo(b)
		}
		b.WriteByte(ends[1])
	}
}

func (v value) nodeKind() Kind {
	switch v.kind {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	}
	switch v.text {
	case "true":
		return True
	case "false":
		return False
	case "null":
		return Null
	}
	return Number
}
