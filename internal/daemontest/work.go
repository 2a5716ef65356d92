package daemontest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/run"
)

// within is a context that is good after the test's own has ended.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// Call has the agent call a tool that a person has to agree to.
func (w *World) Call(tool, args string) httpapi.Result {
	w.tb.Helper()
	r, err := w.Agent.Call(w.tb.Context(), tool, []byte(args), "")
	if err != nil || r.Status != call.Pending {
		w.tb.Fatalf("%s %s is to wait for a person: it is %s %s: %v", tool, args, r.Status, r.Message, err)
	}
	return r
}

// Hold has tools wait before they do anything, until let is called.
func (w *World) Hold() (let func()) {
	w.tb.Helper()
	path := w.path("hold")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.tb.Fatal(err)
	}
	let = sync.OnceFunc(func() {
		w.tb.Helper()
		// Who waits for somebody to write has it open from here on, and finds its end; who
		// comes later finds no pipe.
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = errors.Join(os.Remove(path), f.Close())
		}
		if err != nil {
			w.tb.Error(err)
		}
	})
	w.tb.Cleanup(let)
	return let
}

// Ended waits until the call has ended, and returns how.
func (w *World) Ended(callID string) call.Object {
	w.tb.Helper()
	o, err := w.Agent.GetCall(w.tb.Context(), callID, patience)
	if err != nil {
		w.tb.Fatal(err)
	}
	return o
}

// Job has the agent start a job, and returns once its command has begun. One without a
// command goes on until it is stopped.
func (w *World) Job(s httpapi.Starting) httpapi.Job {
	w.tb.Helper()
	if s.Command == nil {
		s.Command = json.RawMessage(`["sleep","100000"]`)
	}
	j, err := w.Agent.StartJob(w.tb.Context(), s)
	if err == nil {
		_, err = w.Agent.WaitForJob(w.tb.Context(), j.JobID, httpapi.Waiting{Types: []string{"started"}})
	}
	if err == nil {
		j, err = w.Agent.GetJob(w.tb.Context(), j.JobID)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
	return j
}

// Ask has the agent ask a question for a job. Without options they are approve and deny.
func (w *World) Ask(jobID, prompt string, options ...string) httpapi.Question {
	w.tb.Helper()
	q, err := w.Agent.Ask(w.tb.Context(), jobID, httpapi.Asking{Prompt: prompt, Options: options})
	if err != nil {
		w.tb.Fatal(err)
	}
	return q
}

// StartRun leaves a run of the clerk to the daemon, and returns once it waits for a person:
// the clerk wants a refund of 75 on o-9.
func (w *World) StartRun(goal string) run.Object {
	w.tb.Helper()
	out, stderr, code := w.Run("", "--json", "run", "start", "--goal", goal, "--agent", "clerk", "--daemon")
	var r run.Object
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.RunID == "" {
		w.tb.Fatalf("placet run start ended with %d: %s%s", code, out, stderr)
	}
	ctx, cancel := context.WithTimeout(w.tb.Context(), patience)
	defer cancel()
	err := w.Operator.Follow(ctx, "run:"+r.RunID, "", func(e event.Object) error {
		if e.Type == event.ApprovalRequested {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		r, err = w.Operator.GetRun(ctx, r.RunID)
	}
	if err != nil {
		w.tb.Fatalf("the run does not come to wait for a person: %v", err)
	}
	return r
}

// errSeen ends following.
var errSeen = errors.New("seen")
