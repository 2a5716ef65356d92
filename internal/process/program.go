package process

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// StopGrace is how long a program has between SIGTERM and SIGKILL, and how long
	// what it left running may keep its output open.
	StopGrace = 2 * time.Second
	// StderrKept is how many bytes of the end of standard error are kept.
	StderrKept = 4 << 10
)

// passedOn are the variables of ours that a program gets.
var passedOn = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

// Environment is the small safe environment of a program: PATH, HOME, LANG, TZ and
// TMPDIR of this process where they are set, and the given variables.
func Environment(more ...string) []string {
	env := make([]string, 0, len(passedOn)+len(more))
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// Program is something to start, feed, and read to its end.
type Program struct {
	Path      string
	Argv      []string // the first is its own name
	Dir       string
	Env       []string
	Stdin     []byte
	MaxOutput int          // bytes of standard output; one that prints more is killed
	Check     func() error // asked right before it is started; nil: nothing is
}

// Ended is how a program ended.
type Ended struct {
	State   *os.ProcessState
	Stdout  []byte
	TooMuch bool // it printed more than MaxOutput bytes
	Stopped bool // the context ended first
	Stderr  Tail
}

// Killed reports whether a signal ended it.
func (e Ended) Killed() bool { return e.State.ExitCode() < 0 }

// Started is a started program and the three pipes to it.
type Started struct {
	group  *Group
	stdin  *os.File
	stdout *os.File
	stderr *os.File

	printed capture
	said    Tail
	pumps   sync.WaitGroup
	drained chan struct{} // closed when both outputs have ended
}

// Run starts the program in a process group of its own. The pipes are our own rather
// than those of os/exec, so that the program can be waited for before it is
// collected, and its output given up without giving up its state. The caller calls
// [Started.Wait] exactly once.
func (p Program) Run() (_ *Started, err error) {
	r := &Started{printed: capture{limit: p.MaxOutput, over: make(chan struct{})}, drained: make(chan struct{})}
	cmd := &exec.Cmd{Path: p.Path, Args: p.Argv, Dir: p.Dir, Env: p.Env}
	var theirs [3]*os.File
	defer func() {
		closeAll(theirs[:]...)
		if err != nil {
			closeAll(r.stdin, r.stdout, r.stderr)
		}
	}()
	if theirs[0], r.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if r.stdout, theirs[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if r.stderr, theirs[2], err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if p.Check != nil {
		if err = p.Check(); err != nil {
			return nil, err
		}
	}
	if r.group, err = Start(cmd); err != nil {
		return nil, err
	}
	r.pump(p.Stdin)
	return r, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// pump feeds the program and takes in what it prints.
func (r *Started) pump(input []byte) {
	var outputs sync.WaitGroup
	outputs.Go(func() { r.printed.drain(r.stdout) })
	outputs.Go(func() { r.said.drain(r.stderr) })
	r.pumps.Go(func() {
		outputs.Wait()
		close(r.drained)
	})
	r.pumps.Go(func() {
		// A program need not read its input: an error here says nothing about it.
		_, _ = io.Copy(r.stdin, bytes.NewReader(input))
		r.stdin.Close()
	})
}

// Wait waits for the program, and stops it when ctx ends or when it prints too much.
// The error is about the waiting, not about how the program ended.
func (r *Started) Wait(ctx context.Context) (Ended, error) {
	stopped := false
	select {
	case <-r.group.Exited():
	case <-ctx.Done():
		stopped = true
		r.group.Stop(StopGrace, r.drained)
	case <-r.printed.over:
		r.group.Signal(os.Kill)
	}
	<-r.group.Exited()
	r.settle(ctx)
	state, err := r.group.Wait()
	if err != nil {
		return Ended{}, err
	}
	return Ended{State: state, Stdout: r.printed.data, TooMuch: r.printed.isOver(), Stopped: stopped, Stderr: r.said}, nil
}

// settle ends the pipes. Something that the program left running may hold them open;
// it gets a moment, and then nobody listens to it.
func (r *Started) settle(ctx context.Context) {
	timer := time.NewTimer(StopGrace)
	defer timer.Stop()
	select {
	case <-r.drained:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.printed.over:
	}
	closeAll(r.stdin, r.stdout, r.stderr)
	r.pumps.Wait()
}

// capture keeps what is printed up to a limit. What goes beyond is read, so that the
// program does not stand still, and forgotten.
type capture struct {
	limit int
	data  []byte
	over  chan struct{} // closed when the limit was passed
}

func (c *capture) drain(r io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := r.Read(chunk)
		room := c.limit - len(c.data)
		c.data = append(c.data, chunk[:min(n, room)]...)
		if n > room && !c.isOver() {
			close(c.over)
		}
		if err != nil {
			return
		}
	}
}

func (c *capture) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// Tail is the end of what was printed.
type Tail struct {
	data    []byte
	dropped bool
}

func (t *Tail) drain(r io.Reader) {
	chunk := make([]byte, StderrKept)
	for {
		n, err := r.Read(chunk)
		t.data = append(t.data, chunk[:n]...)
		if extra := len(t.data) - StderrKept; extra > 0 {
			t.data, t.dropped = append(t.data[:0], t.data[extra:]...), true
		}
		if err != nil {
			return
		}
	}
}

// Text is the end without the white space around it; cut: there was more in front,
// and it may begin in the middle of a line.
func (t Tail) Text() (text string, cut bool) { return t.Last(len(t.data)) }

// Last is the last n bytes or so of Text.
func (t Tail) Last(n int) (text string, cut bool) {
	s := strings.TrimSpace(string(t.data))
	from := max(0, len(s)-n)
	s, cut = s[from:], from > 0 || t.dropped
	for i := 0; cut && i < utf8.UTFMax && s != "" && !utf8.RuneStart(s[0]); i++ {
		s = s[1:] // it began in the middle of a character
	}
	return s, cut
}
