package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// maxLine bounds a message over standard input and output, in bytes.
const maxLine = 4 << 20

// lines is a pair of streams of which every line is JSON: what is not is answered, and
// passed over. The SDK would end the connection, and with it what was asked before.
func lines(in io.ReadCloser, out io.WriteCloser) (io.ReadCloser, io.WriteCloser) {
	to := &lockedWriter{WriteCloser: out}
	r, w := io.Pipe()
	go func() {
		from := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(from)
			switch trimmed := bytes.TrimSpace(line); {
			case line != nil && len(trimmed) == 0:
			case line != nil && json.Valid(trimmed):
				if _, err := w.Write(append(trimmed, '\n')); err != nil {
					return // nobody reads any more
				}
			case line != nil || errors.Is(err, errLong):
				_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is no JSON message of at most 4 MiB."}}`+"\n")
			}
			if err != nil && !errors.Is(err, errLong) {
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

// lockedWriter writes one whole message after the other.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(b)
}

// readCloser reads from a pipe, and closes what feeds it too.
type readCloser struct {
	*io.PipeReader
	in io.Closer
}

func (r readCloser) Close() error {
	return errors.Join(r.PipeReader.Close(), r.in.Close())
}
