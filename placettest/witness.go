package placettest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// Line is what a [Witness] wrote of one run of a tool. Args are as JSON, without
// the white space between.
type Line struct {
	CallID  string          `json:"call_id"`
	RunID   string          `json:"run_id"`
	Tool    string          `json:"tool"`
	Attempt int             `json:"attempt"`
	Args    json.RawMessage `json:"args"`
}

// Witness is a file outside the store to which tools append a line each time they
// run: what really happened, whatever the store says. Several processes may
// append to one file.
type Witness struct {
	t    testing.TB
	path string
}

// NewWitness is a witness with a file in a temporary folder.
func NewWitness(t testing.TB) *Witness {
	t.Helper()
	return WitnessAt(t, filepath.Join(t.TempDir(), "witness.jsonl"))
}

// WitnessAt is a witness with a file of the test's choice, which need not be there yet.
func WitnessAt(t testing.TB, path string) *Witness { return &Witness{t, path} }

// Tool is a tool with an effect to count: it takes any object, appends a line and
// returns {"done":true}. It is a remote_mutation, which the default policy asks
// about. Change what it declares before it is registered.
func (w *Witness) Tool(name string) tool.Tool {
	return tool.Tool{
		Spec: tool.Spec{
			Name: name, Description: "Leaves a line.", SideEffect: tool.RemoteMutation,
			InputSchema: json.RawMessage(`{"type":"object"}`),
		},
		Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			return json.RawMessage(`{"done":true}`), w.append(c)
		}),
	}
}

// Around is t, with a line appended each time before it runs.
func (w *Witness) Around(t tool.Tool) tool.Tool {
	inner := t.Run
	t.Run = tool.RunnerFunc(func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		if err := w.append(c); err != nil {
			return nil, err
		}
		return inner.Run(ctx, c)
	})
	return t
}

// append writes one line in one piece.
func (w *Witness) append(c tool.Call) error {
	line, err := json.Marshal(Line{c.CallID, c.RunID, c.Tool, c.Attempt, c.Args})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Lines is all that was written, oldest first.
func (w *Witness) Lines() []Line {
	w.t.Helper()
	lines, err := w.read()
	if err != nil {
		w.t.Errorf("read the witness: %v", err)
	}
	return lines
}

func (w *Witness) read() ([]Line, error) {
	b, err := os.ReadFile(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing ran yet
	}
	var lines []Line
	for text := json.NewDecoder(bytes.NewReader(b)); err == nil && text.More(); {
		var l Line
		err = text.Decode(&l)
		lines = append(lines, l)
	}
	return lines, err
}

// Count is how often tools ran for a call.
func (w *Witness) Count(callID string) int {
	w.t.Helper()
	n := 0
	for _, l := range w.Lines() {
		if l.CallID == callID {
			n++
		}
	}
	return n
}

// Missing is a [Match] for an honest reviewer: the call was interrupted and left
// no line, so that running it again does no harm.
func (w *Witness) Missing(d decision.Decision) bool {
	return Interrupted(d) && !w.left(d)
}

// Done is a [Match] for an honest reviewer: the call was interrupted after it
// had left its line, so that it should not run again.
func (w *Witness) Done(d decision.Decision) bool {
	return Interrupted(d) && w.left(d)
}

// left reports whether the call behind d left a line. The approval of a run's step does
// not name its call: there it is one of the same run, tool and arguments.
func (w *Witness) left(d decision.Decision) bool {
	w.t.Helper()
	if d.StepID == "" {
		return w.Count(d.CallID) > 0
	}
	req, err := request.Decode(d.Request)
	if err != nil {
		w.t.Errorf("approval %s: %v", d.ID, err)
		return true
	}
	args, err := json.Marshal(json.RawMessage(req.Args)) // as lines have them
	return err != nil || slices.ContainsFunc(w.Lines(), func(l Line) bool {
		return l.RunID == d.RunID && l.Tool == d.Tool && string(l.Args) == string(args)
	})
}

// Probe is a tool's probe that looks for the call's line.
func (w *Witness) Probe() tool.Prober {
	return tool.ProberFunc(func(_ context.Context, c tool.Call) (tool.ProbeResult, error) {
		lines, err := w.read()
		for _, l := range lines {
			if l.CallID == c.CallID {
				return tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`{"done":true}`)}, nil
			}
		}
		return tool.ProbeResult{Outcome: tool.ProbeNotFound}, err
	})
}
