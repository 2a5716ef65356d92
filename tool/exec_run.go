package tool

import (
	"context"
	"errors"
	"strconv"

	"github.com/placet-dev/placet/internal/process"
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
	p, err := process.Program{
		Path: e.path, Argv: e.Argv, Dir: e.Dir, Env: environment(c), Stdin: c.Args, MaxOutput: MaxResult + 1,
		Check: func() error { return mayStart(ctx, "The program "+shown(e.path)+" was not started") },
	}.Run()
	switch {
	case errors.Is(err, ErrNotStarted):
		return nil, err
	case err != nil:
		return nil, ErrNotStarted.Say("The program %s could not be started: %s.", shown(e.path), cause(err))
	}
	ended, err := p.Wait(ctx)
	if err != nil {
		return nil, ErrOutcomeUnknown.Say("How the program ended cannot be told.").Because(err)
	}
	return sorted(ended)
}

// sorted is what a program printed, or what its end means for the tool.
func sorted(e process.Ended) ([]byte, error) {
	switch {
	case e.TooMuch && e.Killed():
		return nil, ErrOutcomeUnknown.Say("The program printed more than %d bytes and was killed.", MaxResult)
	case e.TooMuch:
		return nil, endedAs{ErrOutcomeUnknown.Say("The program printed more than %d bytes and ended with %s.", MaxResult, e.State), errEnded}
	case e.State.Success():
		return e.Stdout, nil
	case e.Stopped:
		return nil, ErrOutcomeUnknown.Say("The program was stopped (%s).%s", e.State, lastWords(e.Stderr))
	case e.Killed():
		return nil, ErrOutcomeUnknown.Say("The program was killed (%s).%s", e.State, lastWords(e.Stderr))
	}
	text, dropped := e.Stderr.Text()
	if text == "" && !dropped {
		return nil, errors.New("The program ended with " + e.State.String() + " and said nothing on standard error.")
	}
	return nil, errors.New(lastMessage(text, dropped))
}

func environment(c Call) []string {
	return process.Environment("PLACET_CALL_ID="+c.CallID, "PLACET_RUN_ID="+c.RunID, "PLACET_ATTEMPT="+strconv.Itoa(c.Attempt))
}

// lastWords is the last line or so of standard error, to stand behind a sentence.
func lastWords(t process.Tail) string {
	const most = 500
	s, cut := t.Last(most)
	if s == "" {
		return ""
	}
	return " Its last words: " + lastMessage(s, cut)
}
