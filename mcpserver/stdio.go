package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// maxLine bounds a message over standard input and output, in bytes.
const maxLine = 4 << 20

// leaveWithin bounds how long what was asked may take to be answered once the client has
// closed its end: it may be gone.
const leaveWithin = 3 * time.Second

// lines is a pair of streams of which every line is JSON: what is not is answered, and
// passed over. The SDK would end the connection, and with it what was asked before. The
// end of input is passed on once all that was asked is answered, and what follows
// initialize once that is: who writes all of its lines at once gets all of its answers.
func lines(in io.ReadCloser, out io.WriteCloser) (io.ReadCloser, io.WriteCloser) {
	to := &answering{WriteCloser: out, open: map[string]bool{}}
	to.changed.L = &to.mu
	r, w := io.Pipe()
	go func() {
		from := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(from)
			switch trimmed := bytes.TrimSpace(line); {
			case line != nil && len(trimmed) == 0:
			case line != nil && json.Valid(trimmed):
				id, first := to.asked(trimmed)
				if _, err := w.Write(append(trimmed, '\n')); err != nil {
					return // nobody reads any more
				}
				if first {
					to.until(func() bool { return !to.open[id] })
				}
			case line != nil || errors.Is(err, errLong):
				_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is no JSON message of at most 4 MiB."}}`+"\n")
			}
			if err != nil && !errors.Is(err, errLong) {
				defer time.AfterFunc(leaveWithin, to.leave).Stop()
				to.until(func() bool { return len(to.open) == 0 })
				w.CloseWithError(err)
				return
			}
		}
	}()
	return readCloser{r, in}, to
}

var errLong = errors.New("the line is too long")

// readLine reads to the end of a line; of one that is too long, nothing is kept.
func readLine(from *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, errLong
		case err != nil && len(line) == 0:
			return nil, err
		}
		return line, err
	}
}

// answering writes one whole message after the other, and knows which requests are not
// answered yet.
type answering struct {
	io.WriteCloser
	mu      sync.Mutex
	changed sync.Cond
	open    map[string]bool // by id
	over    bool            // nothing is answered any more
}

// envelope is what is looked at of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// asked notes a request; first says that nothing may follow before its answer.
func (w *answering) asked(line []byte) (id string, first bool) {
	var m envelope
	if json.Unmarshal(line, &m) != nil || m.Method == "" {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Method == "notifications/cancelled" { // it may stay without an answer
		delete(w.open, string(m.Params.RequestID))
	}
	if m.ID == nil {
		return "", false
	}
	w.open[string(m.ID)] = true
	return string(m.ID), m.Method == "initialize"
}

// until waits for something about the open requests.
func (w *answering) until(is func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !is() && !w.over {
		w.changed.Wait()
	}
}

// leave lets nobody wait any more.
func (w *answering) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.changed.Broadcast()
}

// Write is io.Writer's, for one message.
func (w *answering) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.WriteCloser.Write(b)
	var m envelope
	if json.Unmarshal(b, &m) == nil && m.Method == "" {
		delete(w.open, string(m.ID))
	}
	w.over = w.over || err != nil
	w.changed.Broadcast()
	return n, err
}

// Close is io.Closer's.
func (w *answering) Close() error {
	w.leave()
	return w.WriteCloser.Close()
}

// readCloser reads from a pipe, and closes what feeds it too.
type readCloser struct {
	*io.PipeReader
	in io.Closer
}

func (r readCloser) Close() error {
	return errors.Join(r.PipeReader.Close(), r.in.Close())
}
