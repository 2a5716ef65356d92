package tool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/placet-dev/placet/internal/process"
)

const (
	// stopGrace is how long a program has between SIGTERM and SIGKILL, and how long
	// what it left running may keep its output open.
	stopGrace  = 2 * time.Second
	stderrKept = 4 << 10
)

// output runs the program and returns what it printed if it ended with exit status 0.
func (e *Exec) output(ctx context.Context, c Call) ([]byte, error) {
	if e.path == "" {
		return nil, ErrNotStarted.Say("The program was not started: the Exec was not made with NewExec.")
	}
	if err := ctx.Err(); err != nil {
		return nil, ErrNotStarted.Say("The program was not started: %s.", because(context.Cause(ctx)))
	}
	if err := e.checkPin(); err != nil {
		return nil, err
	}
	p, err := e.start(ctx, c)
	switch {
	case errors.Is(err, ErrNotStarted):
		return nil, err
	case err != nil:
		return nil, ErrNotStarted.Say("The program %s could not be started: %s.", shown(e.path), cause(err))
	}
	return p.wait(ctx)
}

// running is a started program and the three pipes to it.
type running struct {
	group  *process.Group
	stdin  *os.File
	stdout *os.File
	stderr *os.File

	printed capture
	said    tail
	pumps   sync.WaitGroup
	drained chan struct{} // closed when both outputs have ended
}

// start starts the program. The pipes are our own rather than those of os/exec, so
// that the program can be waited for before it is collected, and its output given
// up without giving up its state.
func (e *Exec) start(ctx context.Context, c Call) (_ *running, err error) {
	p := &running{printed: capture{limit: MaxResult + 1, over: make(chan struct{})}, drained: make(chan struct{})}
	cmd := &exec.Cmd{Path: e.path, Args: e.Argv, Dir: e.Dir, Env: environment(c)}
	var theirs [3]*os.File
	defer func() {
		closeAll(theirs[:]...)
		if err != nil {
			closeAll(p.stdin, p.stdout, p.stderr)
		}
	}()
	if theirs[0], p.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stdout, theirs[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stderr, theirs[2], err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err = mayStart(ctx, "The program "+shown(e.path)+" was not started"); err != nil {
		return nil, err
	}
	if p.group, err = process.Start(cmd); err != nil {
		return nil, err
	}
	p.pump(c.Args)
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// pump feeds the program and takes in what it prints.
func (p *running) pump(args []byte) {
	var outputs sync.WaitGroup
	outputs.Go(func() { p.printed.drain(p.stdout) })
	outputs.Go(func() { p.said.drain(p.stderr) })
	p.pumps.Go(func() {
		outputs.Wait()
		close(p.drained)
	})
	p.pumps.Go(func() {
		// A program need not read its input: an error here says nothing about it.
		_, _ = io.Copy(p.stdin, bytes.NewReader(args))
		p.stdin.Close()
	})
}

// wait waits for the program, stops it when ctx ends or when it prints too much, and
// sorts how it ended.
func (p *running) wait(ctx context.Context) ([]byte, error) {
	stopped := false
	select {
	case <-p.group.Exited():
	case <-ctx.Done():
		stopped = true
		p.group.Stop(stopGrace, p.drained)
	case <-p.printed.over:
		p.group.Signal(os.Kill)
	}
	<-p.group.Exited()
	p.settle(ctx)
	state, err := p.group.Wait()
	if err != nil {
		return nil, ErrOutcomeUnknown.Say("How the program ended cannot be told.").Because(err)
	}
	return p.sort(state, stopped)
}

// settle ends the pipes. Something that the program left running may hold them open;
// it gets a moment, and then nobody listens to it.
func (p *running) settle(ctx context.Context) {
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.drained:
	case <-timer.C:
	case <-ctx.Done():
	case <-p.printed.over:
	}
	closeAll(p.stdin, p.stdout, p.stderr)
	p.pumps.Wait()
}

func (p *running) sort(state *os.ProcessState, stopped bool) ([]byte, error) {
	killed := state.ExitCode() < 0
	switch {
	case p.printed.isOver() && killed:
		return nil, ErrOutcomeUnknown.Say("The program printed more than %d bytes and was killed.", MaxResult)
	case p.printed.isOver():
		return nil, endedAs{ErrOutcomeUnknown.Say("The program printed more than %d bytes and ended with %s.", MaxResult, state), errEnded}
	case state.Success():
		return p.printed.data, nil
	case stopped:
		return nil, ErrOutcomeUnknown.Say("The program was stopped (%s).%s", state, p.said.quoted())
	case killed:
		return nil, ErrOutcomeUnknown.Say("The program was killed (%s).%s", state, p.said.quoted())
	case p.said.text() == "":
		return nil, errors.New("The program ended with " + state.String() + " and said nothing on standard error.")
	}
	return nil, errors.New(p.said.text())
}

// passedOn are the variables of ours that a program gets.
var passedOn = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

func environment(c Call) []string {
	env := make([]string, 0, len(passedOn)+3)
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env,
		"PLACET_CALL_ID="+c.CallID,
		"PLACET_RUN_ID="+c.RunID,
		"PLACET_ATTEMPT="+strconv.Itoa(c.Attempt),
	)
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

// tail keeps the end of what is printed.
type tail struct {
	data    []byte
	dropped bool
}

func (t *tail) drain(r io.Reader) {
	chunk := make([]byte, stderrKept)
	for {
		n, err := r.Read(chunk)
		t.data = append(t.data, chunk[:n]...)
		if extra := len(t.data) - stderrKept; extra > 0 {
			t.data, t.dropped = append(t.data[:0], t.data[extra:]...), true
		}
		if err != nil {
			return
		}
	}
}

// text is the end of what was printed, as a message.
func (t *tail) text() string {
	return lastMessage(strings.TrimSpace(string(t.data)), t.dropped)
}

// quoted is the last line or so, to stand behind a sentence.
func (t *tail) quoted() string {
	const most = 500
	s := strings.TrimSpace(string(t.data))
	if s == "" {
		return ""
	}
	from := max(0, len(s)-most)
	return " Its last words: " + lastMessage(s[from:], from > 0 || t.dropped)
}
