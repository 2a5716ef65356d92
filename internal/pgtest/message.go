package pgtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// What a client may say before the first message that has a type.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

const maxMessage = 1 << 30 // PostgreSQL's own limit

var errNotPostgres = errors.New("a length that no PostgreSQL message has")

// message is one message of PostgreSQL's protocol as it came, header and all.
type message []byte

func (m message) kind() byte   { return m[0] }
func (m message) body() []byte { return m[5:] }

func readMessage(r io.Reader) (message, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	return readRest(r, head, head[1:])
}

// readStartup reads a message from before messages have types.
func readStartup(r io.Reader) (raw []byte, code uint32, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	raw, err = readRest(r, head, head)
	if err != nil {
		return nil, 0, err
	}
	if len(raw) < 8 {
		return nil, 0, errNotPostgres
	}
	return raw, binary.BigEndian.Uint32(raw[4:]), nil
}

// readRest reads what length, which counts itself, announces after head.
func readRest(r io.Reader, head, length []byte) ([]byte, error) {
	n := binary.BigEndian.Uint32(length)
	if n < 4 || n > maxMessage {
		return nil, errNotPostgres
	}
	m := append(make([]byte, 0, len(head)+int(n)-4), head...)[:len(head)+int(n)-4]
	_, err := io.ReadFull(r, m[len(head):])
	return m, err
}

// text takes the text off b that ends with a zero byte.
func text(b []byte) (s string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}

// code is the SQLSTATE of an error that the server reports.
func (m message) code() string {
	for b := m.body(); len(b) > 1; {
		field := b[0]
		value, rest := text(b[1:])
		if field == 'C' {
			return value
		}
		b = rest
	}
	return ""
}

// talk follows the two sides of one connection, far enough to know what is executed
// and which answer belongs to it.
//
// A client may send much before it reads. The server answers in order: each group of
// messages up to a Sync, and each simple query, ends with one ReadyForQuery, and an
// error ends the answers of its group. Within a group every statement has one.
type talk struct {
	statements, portals map[string]string // texts by name
	executed            []string          // texts since the last commit

	group    int // the group that the client is at; the first answers the startup
	position int // statements executed in it so far

	answering int // the group that the server is at
	answers   int // statements answered in it so far
}

func newTalk() *talk {
	return &talk{statements: map[string]string{}, portals: map[string]string{}, group: 1}
}

// asked is what the client sends with m: a text that commits, with its place.
type asked struct {
	commits    bool
	texts      []string // of the transaction, this one's last
	group, pos int
}

func (t *talk) fromClient(m message) asked {
	name, rest := text(m.body())
	switch m.kind() {
	case 'P': // Parse
		t.statements[name], _ = text(rest)
	case 'B': // Bind
		statement, _ := text(rest)
		t.portals[name] = t.statements[statement]
	case 'E': // Execute
		a := t.execute(t.portals[name])
		t.position++
		return a
	case 'Q': // Query
		a := t.execute(name)
		t.nextGroup()
		return a
	case 'S', 'F': // Sync, FunctionCall
		t.nextGroup()
	}
	return asked{}
}

func (t *talk) nextGroup() { t.group, t.position = t.group+1, 0 }

func (t *talk) execute(sql string) asked {
	t.executed = append(t.executed, sql)
	at := commitAt(sql)
	if at < 0 {
		return asked{}
	}
	a := asked{commits: true, texts: t.executed, group: t.group, pos: t.position + at}
	t.executed = nil
	return a
}

// answer is what the server says with m.
type answer struct {
	tag        string // of a statement; "ERROR" and the SQLSTATE where it failed
	group, pos int
	last       bool // m is the end of its group
}

func (t *talk) fromServer(m message) answer {
	a := answer{group: t.answering, pos: t.answers}
	switch m.kind() {
	case 'C': // CommandComplete
		a.tag, _ = text(m.body())
		t.answers++
	case 'I', 's': // EmptyQueryResponse, PortalSuspended
		t.answers++
	case 'E': // ErrorResponse
		a.tag = "ERROR " + m.code()
	case 'Z': // ReadyForQuery
		t.answering, t.answers = t.answering+1, 0
		a.last = true
		if t.answering == t.group && t.position == 0 && strings.HasPrefix(string(m.body()), "I") {
			t.executed = nil // outside a transaction, with nothing on its way
		}
	}
	return a
}

// has says whether the texts of a transaction hold each of the fragments.
func has(texts, fragments []string) bool {
	all := strings.Join(texts, "\n")
	for _, f := range fragments {
		if !strings.Contains(all, f) {
			return false
		}
	}
	return true
}
