package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/process"
)

// MinderWord is the word by which a program is asked to be a minder.
const MinderWord = "wake-minder"

// Options are what a [Channel] may be told.
type Options struct {
	// Dir is where the programs run. Default: the working directory.
	Dir string
	// Minder is a program and its first arguments which, followed by a time and a
	// command, calls [Minder]. Without it a program outlives a process that is killed
	// while it runs, and the next attempt may run beside it. Default: none.
	Minder []string
}

// Channel starts a program for each attempt. It is safe for concurrent use.
type Channel struct {
	dir    string
	minder []string
}

var _ delivery.Channel = (*Channel)(nil)

// New is a channel that is ready.
func New(o Options) *Channel { return &Channel{o.Dir, o.Minder} }

// Check refuses a command that is no program and its arguments, or whose program is
// not there.
func (c *Channel) Check(t delivery.Target) error {
	if err := checkWords(t.Command); err != nil {
		return err
	}
	if _, err := find(t.Command[0]); err != nil {
		return delivery.ErrUsage.Say("%s", sentence(t.Command[0], err)).
			Hint("Write its absolute path, or a name that is found in PATH.")
	}
	return nil
}

// checkWords refuses what can never be a program and its arguments.
func checkWords(words []string) error {
	switch {
	case len(words) == 0 || words[0] == "":
		return delivery.ErrUsage.Say("The command names no program.").Hint("Write it as a list: the program, then its arguments.")
	case len(words) > delivery.MaxCommand:
		return delivery.ErrUsage.Say("The command has %d words; %d are allowed.", len(words), delivery.MaxCommand)
	}
	for i, w := range words {
		if !utf8.ValidString(w) || strings.ContainsRune(w, 0) {
			return delivery.ErrUsage.Say("Word %d of the command is not valid UTF-8, or has a NUL character.", i+1)
		}
	}
	if !filepath.IsAbs(words[0]) && filepath.Base(words[0]) != words[0] {
		return delivery.ErrUsage.Say("The program %s is a relative path.", shown(words[0])).
			Hint("Write its absolute path, or a name that is found in PATH.")
	}
	return nil
}

// find is the absolute path of a program. A name is looked for anew each time, and
// never found in the working directory.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case err != nil:
		return "", err
	case !filepath.IsAbs(path):
		return "", fs.ErrNotExist
	}
	return path, nil
}

// Send makes one attempt. A command that can never work is Refused; a program that is
// not there today is Failed.
func (c *Channel) Send(ctx context.Context, m delivery.Message) delivery.Outcome {
	if ctx.Err() != nil {
		return delivery.Outcome{Result: delivery.NotSent, Message: "Nothing was started: the time was up before it began."}
	}
	if err := checkWords(m.Target.Command); err != nil {
		return delivery.Outcome{Result: delivery.Refused, Message: err.Error()}
	}
	program := m.Target.Command[0]
	path, err := find(program)
	if err != nil {
		return failed(sentence(program, err))
	}
	if info, err := os.Stat(c.dir); c.dir != "" && (err != nil || !info.IsDir()) {
		return failed("There is no folder " + shown(c.dir) + " to start the program in.")
	}
	said := &tail{}
	cmd := c.command(path, m, said)
	if c.minder != nil {
		drop, err := c.mind(ctx, cmd)
		if err != nil {
			return failed("The program could not be started.")
		}
		defer drop()
	}
	ended, err := run(ctx, cmd)
	if err != nil {
		return failed(sentence(program, err))
	}
	return outcome(ended, said.text())
}

func failed(sentence string) delivery.Outcome {
	return delivery.Outcome{Result: delivery.Failed, Message: sentence}
}

func (c *Channel) command(path string, m delivery.Message, said *tail) *exec.Cmd {
	return &exec.Cmd{
		Path: path, Args: m.Target.Command, Dir: c.dir,
		Env: process.Environment(
			"PLACET_DELIVERY_ID="+m.DeliveryID, "PLACET_EVENT_TYPE="+m.Type, "PLACET_ATTEMPT="+strconv.FormatInt(m.Attempt, 10)),
		Stdin:  bytes.NewReader(m.Body),
		Stdout: nil, // the system's own hole: nothing of it is ever held here
		Stderr: said,
	}
}

// mind puts the minder in front of a command. The pipe that it holds ends with this
// process, or with drop.
func (c *Channel) mind(ctx context.Context, cmd *exec.Cmd) (drop func(), err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	limit := longestRun
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	cmd.Args = append(append(slices.Clone(c.minder), limit.String(), cmd.Path), cmd.Args[1:]...)
	cmd.Path = c.minder[0]
	cmd.ExtraFiles = []*os.File{theirs}
	return func() { ours.Close(); theirs.Close() }, nil
}

// longestRun bounds a program whose attempt has no deadline.
const longestRun = time.Hour

// ended is how a program ended.
type ended struct {
	state *os.ProcessState
	cause error // why it was stopped; nil: it was not
}

// run starts cmd and waits for it, to the end of ctx at the latest. The error says
// that it was not started.
func run(ctx context.Context, cmd *exec.Cmd) (ended, error) {
	soft, grace, cancel := early(ctx)
	defer cancel()
	cmd.WaitDelay = grace // for what it left running and what holds its standard error open
	g, err := process.Start(cmd)
	if err != nil {
		return ended{}, err
	}
	var e ended
	select {
	case <-g.Exited():
	case <-soft.Done():
		e.cause = soft.Err()
		g.Stop(grace, nil)
	}
	// An error here is about the pipes: input that was not read, or standard error that
	// something left behind holds open. It says nothing about the program.
	e.state, _ = g.Wait()
	return e, nil
}

// early ends some time before ctx does, so that there is twice the grace to end a
// program in, and the attempt is over when ctx is.
func early(ctx context.Context) (soft context.Context, grace time.Duration, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		soft, cancel = context.WithCancel(ctx)
		return soft, process.StopGrace, cancel
	}
	const share = 8 // of the time that is left
	grace = max(min(process.StopGrace, time.Until(deadline)/share), time.Millisecond)
	soft, cancel = context.WithDeadline(ctx, deadline.Add(-2*grace))
	return soft, grace, cancel
}

// outcome sorts how a program ended.
func outcome(e ended, said string) delivery.Outcome {
	if e.state == nil {
		return failed("How the program ended cannot be told.")
	}
	status := e.state.ExitCode()
	switch {
	case e.state.Success():
		return delivery.Outcome{Result: delivery.Arrived}
	case errors.Is(e.cause, context.DeadlineExceeded):
		return failed("The program did not end in time and was stopped." + words(said))
	case e.cause != nil:
		return failed("The program was stopped before it ended." + words(said))
	case status < 0:
		return failed(fmt.Sprintf("The program was killed (%s).%s", e.state, words(said)))
	}
	return delivery.Outcome{Result: delivery.Failed, Status: status, Message: fmt.Sprintf("The program ended with exit status %d.%s", status, words(said))}
}

func words(said string) string {
	if said == "" {
		return ""
	}
	return " Its last words: " + said
}

// sentence says why a program was not started.
func sentence(program string, err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrDot):
		return "There is no program " + shown(program) + ", or what its first line names is not there."
	case errors.Is(err, fs.ErrPermission):
		return "The program " + shown(program) + " may not be executed."
	}
	return "The program " + shown(program) + " could not be started."
}

func shown(name string) string {
	const most = 200 // characters
	return display.Short(name, most)
}
