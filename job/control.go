package job

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// The runner's socket takes one request for each connection: a line of JSON,
// answered by a line. A watcher gets a byte at each news until the runner ends.
const (
	opStop  = "stop"
	opSend  = "send"
	opWatch = "watch"

	ctlPatience = 5 * time.Second
)

type ctlRequest struct {
	Op        string        `json:"op"`
	Claim     string        `json:"claim"`
	KillAfter time.Duration `json:"kill_after,omitempty"`
	Data      []byte        `json:"data,omitempty"`
	EOF       bool          `json:"eof,omitempty"`
}

type ctlAnswer struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// control serves the socket.
type control struct {
	claim string
	stop  func(killAfter time.Duration)
	send  func(data []byte, eof bool) ctlAnswer

	l        net.Listener
	mu       sync.Mutex
	watchers map[chan struct{}]struct{}
	over     chan struct{}
	ended    bool
	at       sync.WaitGroup // requests that are carried out, and whose answer is not told yet
}

func (c *control) serve() {
	for {
		conn, err := c.l.Accept()
		if err != nil {
			return
		}
		go c.answer(conn)
	}
}

func (c *control) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(ctlPatience))
	var q ctlRequest
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &q) != nil {
		return
	}
	if q.Op == opWatch && q.Claim == c.claim {
		c.watch(conn)
		return
	}
	if !c.begin() {
		return // nothing is done for it, and it is told nothing
	}
	defer c.at.Done()
	a := ctlAnswer{}
	switch {
	case q.Claim != c.claim:
		a.Error = "this is another launch"
	case q.Op == opStop:
		c.stop(q.KillAfter)
	case q.Op == opSend:
		a = c.send(q.Data, q.EOF)
	default:
		a.Error = "unknown request " + q.Op
	}
	b, _ := json.Marshal(a)
	_ = conn.SetWriteDeadline(time.Now().Add(ctlPatience))
	_, _ = conn.Write(append(b, '\n'))
}

// begin counts a request, unless the end has come.
func (c *control) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.at.Add(1)
	}
	return !c.ended
}

// watch writes a byte for each news. The first one says that the watcher is known.
func (c *control) watch(conn net.Conn) {
	news := make(chan struct{}, 1)
	news <- struct{}{}
	c.mu.Lock()
	c.watchers[news] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.watchers, news)
		c.mu.Unlock()
	}()
	for {
		select {
		case <-news:
		case <-c.over:
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(ctlPatience))
		if _, err := conn.Write([]byte{'\n'}); err != nil {
			return
		}
	}
}

// news wakes the watchers.
func (c *control) news() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// end lets go of the watchers: there is nothing more to come. What was done for
// somebody is told first: a command may end by the very input that it was sent.
func (c *control) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	close(c.over)
	c.l.Close()
	c.at.Wait()
}

// dial reaches the launch's runner.
func (d launchDir) dial(ctx context.Context) (net.Conn, error) {
	path, done, err := d.socketPath()
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, ctlPatience)
	defer cancel()
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

// ask sends one request to the runner and waits for its answer.
func (d launchDir) ask(ctx context.Context, q ctlRequest) error {
	conn, err := d.dial(ctx)
	if err != nil {
		return ErrNotReached.Because(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(ctlPatience))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return ErrNotReached.Because(err)
	}
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return ErrNotReached.Because(err)
	}
	var a ctlAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		return ErrNotReached.Because(err)
	}
	if a.Error != "" {
		return ErrRefused.Say("The job's runner refused: %s.", a.Error).Hint("%s", a.Hint)
	}
	return nil
}

// watch opens a connection on which each byte is news, and whose end is the runner's.
// It returns once the runner knows of it.
func (d launchDir) watch(ctx context.Context, claim string) (io.ReadCloser, error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	b, _ := json.Marshal(ctlRequest{Op: opWatch, Claim: claim})
	_ = conn.SetDeadline(time.Now().Add(ctlPatience))
	_, err = conn.Write(append(b, '\n'))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

func isClosed(err error) bool {
	return errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed)
}
