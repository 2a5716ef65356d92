package job

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/placet-dev/placet/event"
)

// Limits of what a job prints (spec 3.1).
const (
	MaxLine       = 1 << 20             // bytes of a line that is to be told
	MaxEventBytes = 64 << 10            // of what is told of it
	MaxOutputs    = 100_000             // such lines of a job
	LogLimit      = 10 << 20            // bytes kept of each stream
	maxWord       = event.MaxOutputName // bytes of the type and level that a line names
	readSize      = 64 << 10            // at once
	agentEvent    = "AGENT_EVENT "      // what begins a line that is to be told
)

// journal is a launch's events file. The streams share it.
type journal struct {
	mu      sync.Mutex
	f       io.Writer
	buf     bytes.Buffer
	outputs int64
	limit   int64
	err     error
}

func (w *journal) add(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Kind == kindOutput {
		w.outputs++
		switch {
		case w.outputs == w.limit+1: // of what is dropped, one word
			r = record{Kind: kindDropped, Limit: w.limit}
		case w.outputs > w.limit:
			return
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return // our own value, and checked JSON
	}
	w.buf.Write(b)
	w.buf.WriteByte('\n')
}

// flush writes what was added, in whole lines.
func (w *journal) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf.Len() == 0 || w.err != nil {
		return
	}
	_, w.err = w.f.Write(w.buf.Bytes())
	w.buf.Reset()
}

func (w *journal) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// capture takes in one of the command's streams: masked, then to the log up to its
// limit, and of standard output the lines that are to be told.
type capture struct {
	name  string // stdout or stderr
	log   io.Writer
	left  int64 // bytes that still fit
	limit int64
	mask  *mask
	lines *lines // nil: nothing of it is told
	j     *journal
	news  func()
	lost  error // why a part of it is not in the log
}

// run reads until the stream ends. It always drains it: the command must not stand
// still because of our limits.
func (c *capture) run(from io.Reader) {
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			c.take(c.mask.write(buf[:n]))
		}
		if err != nil {
			if err != io.EOF && !isClosed(err) {
				c.fail(err)
			}
			break
		}
	}
	c.take(c.mask.end())
	if c.lines != nil {
		c.lines.end()
	}
	c.j.flush()
	c.news()
}

func (c *capture) take(b []byte) {
	if len(b) == 0 {
		return
	}
	if c.lines != nil {
		c.lines.write(b)
	}
	c.keep(b)
	c.j.flush()
	c.news()
}

func (c *capture) keep(b []byte) {
	if c.lost != nil || c.left < 0 {
		return
	}
	cut := int64(len(b)) > c.left
	if cut {
		b = b[:c.left]
	}
	if _, err := c.log.Write(b); err != nil {
		c.fail(err)
		return
	}
	c.left -= int64(len(b))
	if cut {
		c.left = -1
		c.j.add(record{Kind: kindLogTruncated, Stream: c.name, Limit: c.limit})
	}
}

func (c *capture) fail(err error) {
	if c.lost == nil {
		c.lost = err
		c.j.add(record{Kind: kindCaptureFailed, Stream: c.name, Reason: err.Error()})
	}
}

// lines finds the lines that are to be told. Of others it keeps nothing.
type lines struct {
	mask *mask
	max  int // bytes of what is told
	j    *journal

	line []byte // so far
	n    int    // its length, of which line may hold less
	skip bool   // it does not begin as one to be told
}

func (l *lines) write(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.part(b)
			return
		}
		l.part(b[:i])
		l.end()
		b = b[i+1:]
	}
}

func (l *lines) part(b []byte) {
	l.n += len(b)
	if l.skip {
		return
	}
	if room := MaxLine + 1 - len(l.line); len(b) > room {
		b = b[:room]
	}
	l.line = append(l.line, b...)
	k := min(len(l.line), len(agentEvent))
	l.skip = string(l.line[:k]) != agentEvent[:k]
}

// end is the end of a line, or of the stream.
func (l *lines) end() {
	if !l.skip && l.n >= len(agentEvent) {
		if l.n > MaxLine {
			l.tell(outputPayload{Level: "warning", Truncated: true, Bytes: int64(l.n)})
		} else if p, ok := l.parse(l.line[len(agentEvent):]); ok {
			l.tell(p)
		}
	}
	if cap(l.line) > readSize {
		l.line = nil
	}
	l.line, l.n, l.skip = l.line[:0], 0, false
}

// parse reads what a line tells. The type that it names is only a word. A line that
// is no JSON object tells nothing: it is in the log. What of it is not text is left out
// and named, since text that was put in its place would be taken for the job's own.
func (l *lines) parse(b []byte) (p outputPayload, ok bool) {
	b = bytes.TrimSpace(b)
	var fields map[string]json.RawMessage
	if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &fields) != nil {
		return p, false
	}
	leaveOut := func(name string) {
		p.InvalidText = append(p.InvalidText, name)
		delete(fields, name)
	}
	for _, name := range []string{"type", "level", "message"} {
		if !isText(fields[name]) {
			leaveOut(name)
		}
	}
	p.Type, p.Level = word(fields, "type"), word(fields, "level")
	p.Message = text(fields, "message")
	data, has := fields["data"]
	delete(fields, "data")
	whole := isText(data)
	if !has && len(fields) > 0 {
		data, whole = rest(fields, isText(b))
	}
	if whole {
		p.Data = data
	} else {
		leaveOut("data")
	}
	p.Type, p.Level, p.Message, p.Data = l.mask.text(p.Type), l.mask.text(p.Level), l.mask.text(p.Message), l.mask.value(p.Data)
	return p, true
}

// rest is a line's other fields as one value; whole is false where something in them
// is not text. Of a line that is text all through, their names are.
func rest(fields map[string]json.RawMessage, line bool) (data json.RawMessage, whole bool) {
	for name, v := range fields {
		if !isText(v) || !line && strings.ContainsRune(name, utf8.RuneError) {
			return nil, false
		}
	}
	data, err := json.Marshal(fields)
	return data, err == nil
}

// isText reports whether a JSON value is UTF-8 without a half of a surrogate pair:
// encoding/json would put U+FFFD in the place of either.
func isText(v []byte) bool {
	if !utf8.Valid(v) {
		return false
	}
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		i++ // an escape has at least one character more
		high, ok := escapedUnit(v[i:])
		if !ok || !utf16.IsSurrogate(high) {
			continue
		}
		i += len("u1234")
		if i >= len(v) || v[i] != '\\' {
			return false
		}
		low, _ := escapedUnit(v[i+1:])
		if utf16.DecodeRune(high, low) == utf8.RuneError {
			return false
		}
		i += len("u1234")
	}
	return true
}

// escapedUnit reads the u1234 of an escape.
func escapedUnit(v []byte) (rune, bool) {
	if len(v) < 5 || v[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(v[1:5]), 16, 16)
	return rune(n), err == nil
}

// text takes a field out that is a text.
func text(fields map[string]json.RawMessage, name string) (s string) {
	if raw, ok := fields[name]; ok && json.Unmarshal(raw, &s) == nil {
		delete(fields, name)
	}
	return s
}

func word(fields map[string]json.RawMessage, name string) string {
	s := text(fields, name)
	if len(s) > maxWord {
		s = string(bytes.ToValidUTF8([]byte(s[:maxWord]), nil))
	}
	return s
}

func (l *lines) tell(p outputPayload) {
	if b, err := json.Marshal(p); err != nil || len(b) > l.max {
		p = outputPayload{Type: p.Type, Level: p.Level, Truncated: true, Bytes: int64(len(b)), InvalidText: p.InvalidText}
	}
	l.j.add(record{Kind: kindOutput, Output: &p})
}

// openAppend opens a file of the launch.
func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
