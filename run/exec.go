package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/tool"
)

// ExecAgent is an [Agent] in any language: a program that is started once for each
// decision (spec 4.4).
//
// It gets one JSON object on standard input, {v, run, steps, approvals, tools}, and
// prints exactly one of
//
//	{"kind":"tool_call","tool":"…","args":{…},"reason":"…"}
//	{"kind":"complete","result":…}
//	{"kind":"fail","message":"…"}
//
// with, if it likes, "usage":{"model_calls":1,"tokens":0,"cost":0} beside it, which is
// charged to the run. It runs with PATH, HOME, LANG, TZ and TMPDIR of this process
// where they are set, PLACET_RUN_ID, and nothing else. The arguments reach the tool as
// the bytes that it printed.
//
// Anything else that it prints, more than [MaxProposal] bytes, and an exit other than
// 0 are an error that says what it printed. When the context ends its process group
// gets SIGTERM and after 2 s SIGKILL.
type ExecAgent struct {
	argv []string
	dir  string
	path string

	working sync.WaitGroup
}

var _ Agent = (*ExecAgent)(nil)

// NewExecAgent finds the program argv[0]: a bare name through PATH, a relative path
// from dir, where it also runs (empty: the working directory). [ErrUsage] says what
// is missing.
func NewExecAgent(argv []string, dir string) (*ExecAgent, error) {
	e, err := tool.NewExec(argv, dir, false) // the program of a tool is looked for alike
	if err != nil {
		f := fault.From(err)
		return nil, ErrUsage.Say("%s", f.Message).Hint("%s", f.Advice)
	}
	return &ExecAgent{argv: slices.Clone(argv), dir: e.Dir, path: e.Path()}, nil
}

// Dir is where the program runs.
func (a *ExecAgent) Dir() string { return a.dir }

// Wait returns when none of the agent's processes runs any more. One that was told to
// stop has 2 s to do so.
func (a *ExecAgent) Wait() { a.working.Wait() }

// Decide starts the program and reads its decision.
func (a *ExecAgent) Decide(ctx context.Context, in StepInput) (Proposal, error) {
	a.working.Add(1)
	defer a.working.Done()
	if ctx.Err() != nil {
		return Proposal{}, context.Cause(ctx)
	}
	input, err := encodeInput(in)
	if err != nil {
		return Proposal{}, fmt.Errorf("its input could not be written: %w", err)
	}
	p, err := process.Program{
		Path: a.path, Argv: a.argv, Dir: a.dir, Env: process.Environment("PLACET_RUN_ID=" + in.Run.ID), Stdin: input, MaxOutput: MaxProposal,
	}.Run()
	if err != nil {
		return Proposal{}, fmt.Errorf("%s could not be started: %w", quoted(a.argv[0]), err)
	}
	ended, err := p.Wait(ctx)
	if err != nil {
		return Proposal{}, fmt.Errorf("how %s ended cannot be told: %w", quoted(a.argv[0]), err)
	}
	return a.understand(ctx, in, ended)
}

func (a *ExecAgent) understand(ctx context.Context, in StepInput, e process.Ended) (Proposal, error) {
	if why := badEnd(e); why != "" {
		return Proposal{}, a.failed(why, e)
	}
	p, used, err := parseAnswer(e.Stdout)
	if err != nil {
		return Proposal{}, a.failed("ended well, but "+err.Error(), e)
	}
	if m, ok := in.Meter.(interface {
		report(context.Context, Usage) error
	}); ok {
		if err := m.report(ctx, used); err != nil {
			return Proposal{}, notAgents{err}
		}
	}
	return p, nil
}

// badEnd is how a program ended from which no decision is taken; empty: well.
func badEnd(e process.Ended) string {
	switch {
	case e.TooMuch:
		return fmt.Sprintf("printed more than %d bytes", MaxProposal)
	case e.Stopped:
		return "was stopped (" + e.State.String() + ")"
	case e.Killed():
		return "was killed (" + e.State.String() + ")"
	case !e.State.Success():
		return "ended with " + e.State.String()
	}
	return ""
}

// failed says what went wrong with the agent's program and what it printed, in a
// form that is fit to be stored and shown.
func (a *ExecAgent) failed(why string, e process.Ended) error {
	const most = 500
	text := quoted(a.argv[0]) + " " + why + "."
	if out := bytes.TrimSpace(e.Stdout); len(out) > 0 {
		head := headOf(out, most)
		text += " It printed " + quoted(head)
		if len(out) > len(head) {
			text += fmt.Sprintf(" and more, %d bytes in all", len(e.Stdout))
		}
		text += "."
	}
	if words, cut := e.Stderr.Last(most); words != "" {
		text += " Its last words on standard error: "
		if cut {
			text += "…"
		}
		text += quoted(words) + "."
	}
	return errors.New(text)
}

// headOf is the first n bytes or so, and no part of a character.
func headOf(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	for cut := n; cut > n-utf8.UTFMax; cut-- {
		if utf8.RuneStart(b[cut]) {
			return string(b[:cut])
		}
	}
	return string(b[:n]) // it is no text
}

// quoted is a foreign text on one line, with everything visible that is not: a byte
// that is not UTF-8 is \xff, never another character. The end of a line is ⏎: \n would
// be a text of its own to whoever escapes what is shown.
func quoted(s string) string { return fmt.Sprintf("%q", lineEnds.Replace(s)) }

var lineEnds = strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\t", "    ")

// agentInput is what an agent's process reads.
type agentInput struct {
	V         int               `json:"v"`
	Run       Object            `json:"run"`
	Steps     []StepObject      `json:"steps"`
	Approvals []decision.Object `json:"approvals"`
	Tools     []tool.Object     `json:"tools"`
}

func encodeInput(in StepInput) ([]byte, error) {
	out := agentInput{V: 1, Run: in.Run.Object(time.Now()), Steps: []StepObject{}, Approvals: []decision.Object{}, Tools: []tool.Object{}}
	for _, s := range in.Steps {
		out.Steps = append(out.Steps, s.Object())
	}
	for _, d := range in.Approvals {
		out.Approvals = append(out.Approvals, d.Object())
	}
	for _, t := range in.Tools {
		out.Tools = append(out.Tools, t.Object())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // agents compare texts, and these characters are as good as any
	err := e.Encode(out)
	return b.Bytes(), err
}
