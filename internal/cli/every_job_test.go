package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// hostileJobs are a daemon's jobs and questions of which every word is hostile.
type hostileJobs struct {
	*served
	job, failed, ended string
	pending, answered  string
	target, relay      string // both hear of the job
	dead               string // a delivery to the target
}

func newHostileJobs(t *testing.T) *hostileJobs {
	t.Helper()
	h := &hostileJobs{served: newWorld(t).serve()}
	c := h.client(token.Admin, "admin")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{
		"type": "progress", "level": hostile, "message": hostile, "data": map[string]any{"done": 1, "of": 2, hostile: hostile, "password": marker},
	})
	must(err)
	file := filepath.Join(h.dir, "printed")
	must(os.WriteFile(file, append(append([]byte("AGENT_EVENT "), data...), "\n"+hostile+"\xff\xc3\n\x1b[2K"...), 0o600))
	start := func(argv ...string) string {
		j, err := c.StartJob(ctx, httpapi.Starting{Command: httpapi.Command(argv...), Cwd: h.dir, Name: "name" + hostile, Tags: []string{"tag" + hostile}})
		must(err)
		return j.JobID
	}
	h.job = start("sh", "-c", "cat printed; cat printed >&2; read x", hostile)
	h.ended = start("sh", "-c", "cat printed; read x", hostile)
	h.failed = start("/no/such/" + hostile)
	for _, id := range []string{h.job, h.ended} {
		_, err := c.WaitForJob(ctx, id, httpapi.Waiting{Types: []string{"output:progress"}})
		must(err)
	}
	ask := func(id string) string {
		form, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"n" + hostile: map[string]string{"type": "string", "title": hostile}}})
		must(err)
		q, err := c.Ask(ctx, id, httpapi.Asking{Prompt: "prompt" + hostile, Options: []string{"yes" + hostile, "no" + hostile}, Form: form})
		must(err)
		return q.DecisionID
	}
	told, err := c.AddWakeTarget(ctx, httpapi.Waking{JobID: h.job, Adding: delivery.Adding{
		Type: delivery.KindCommand, Command: []string{"sh", "-c", `printf %s "$0" >&2; exit 1`, hostile}, Name: "name" + hostile, MaxAttempts: 1,
	}})
	must(err)
	relay, err := c.AddWakeTarget(ctx, httpapi.Waking{JobID: h.job, Adding: delivery.Adding{Type: delivery.KindRelay, Name: "name" + hostile}})
	must(err)
	h.target, h.relay = told.TargetID, relay.TargetID
	h.pending, h.answered = ask(h.job), ask(h.ended)
	h.dead = h.given(c, h.target)
	input, err := json.Marshal(map[string]string{"n" + hostile: hostile})
	must(err)
	_, err = h.client(token.Reviewer, "rev").Resolve(ctx, h.ended, h.answered, httpapi.Resolving{
		Choice: "yes" + hostile, Input: input, By: "by" + hostile, Note: "note" + hostile,
	})
	must(err)
	_, err = c.StopJob(ctx, h.ended, httpapi.Stopping{By: "by" + hostile, KillAfterSeconds: 1})
	must(err)
	return h
}

// given waits until a delivery to a target was given up.
func (h *hostileJobs) given(c *httpapi.Client, targetID string) string {
	h.t.Helper()
	for {
		l, err := c.Deliveries(h.t.Context(), httpapi.DeliveryQuery{TargetID: targetID, Status: delivery.Dead})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(l.Deliveries) > 0 {
			return l.Deliveries[0].DeliveryID
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Whatever a job is called, prints and asks, no command obeys it: in a pipe, at a
// terminal, and with --json.
func TestNoCommandOfJobsObeysText(t *testing.T) {
	t.Parallel()
	h := newHostileJobs(t)
	printed := 0
	for _, line := range [][]string{
		{"job", "list"},
		{"job", "list", "--status", "all"},
		{"job", "list", "--status", "failed"},
		{"job", "list", "--name", "name" + hostile},
		{"job", "list", "--tag", "tag" + hostile},
		{"job", "list", "--status", "x" + hostile},
		{"job", "show", h.job},
		{"job", "show", h.failed},
		{"job", "show", h.ended},
		{"job", "show", "job_" + sly},
		{"job", "show", hostile},
		{"show", h.job},
		{"show", h.failed},
		{"show", h.ended},
		{"show", h.pending},
		{"show", h.answered},
		{"show", "dec_" + sly},
		{"job", "events", h.job},
		{"job", "events", h.ended},
		{"job", "events", h.job, "--after", "x" + hostile},
		{"events", "job:" + h.job},
		{"events", "job:" + h.ended},
		{"job", "tail", h.job},
		{"job", "tail", h.job, "--stream", "stderr"},
		{"job", "tail", h.ended, "--follow"},
		{"job", "tail", h.job, "--stream", hostile},
		{"job", "wait", h.job, "--type", "output:progress"},
		{"job", "wait", h.failed},
		{"job", "wait", h.ended, "--decision", h.answered},
		{"job", "wait", h.job, "--type", "x" + hostile},
		{"job", "wait", h.job, "--decision", "dec_" + sly},
		{"job", "wait", h.ended, "--type", "output:" + hostile},
		{"job", "start", "--name", "name" + hostile, "--", "/no/such/" + hostile},
		{"job", "send", h.ended, hostile},
		{"job", "pause", h.failed, "--by", "by" + hostile},
		{"job", "resume", h.failed, "--by", "by" + hostile},
		{"job", "stop", h.failed, "--by", "by" + hostile},
		{"job", "cleanup", "--dry-run", "--older-than", "0s"},
		{"job", "cleanup", "--older-than", "x" + hostile},
		{"cancel", h.failed, "--by", "by" + hostile},
		{"ask", h.job, "prompt" + hostile, "--option", "o" + hostile},
		{"ask", h.failed, "prompt" + hostile},
		{"ask", h.job, hostile[:1], "--idempotency-key", "k" + hostile},
		{"decisions"},
		{"decisions", "--status", "all"},
		{"decisions", "--job", h.ended, "--status", "resolved"},
		{"decisions", "--status", hostile},
		{"resolve", h.pending, "x" + hostile},
		{"resolve", h.pending, "yes" + hostile, "--input", `{"x` + sly + `":1}`},
		{"resolve", h.answered, "no" + hostile, "--by", "by" + hostile},
		{"resolve", h.pending, "yes" + hostile, "--input", "{" + hostile},
		{"resolve", "dec_" + sly, "x"},
		{"withdraw", h.answered, "--by", "by" + hostile},
		{"wake", "list"},
		{"wake", "show", h.target},
		{"wake", "show", h.relay},
		{"wake", "enable", h.target},
		{"wake", "rotate", h.target},
		{"wake", "add", "--job", h.job, "--relay", "--name", "name" + hostile},
		{"wake", "add", "--job", h.failed, "--relay"},
		{"wake", "add", "--url", "https://x" + hostile},
		{"show", h.target},
		{"show", h.dead},
		{"deliveries"},
		{"deliveries", "--status", "dead"},
		{"deliveries", "--target", h.target, "--job", h.job},
		{"deliveries", "--status", "x" + hostile},
		{"deliveries", "show", h.dead},
		{"deliveries", "retry", h.dead, "--by", "by" + hostile},
		{"deliveries", "show", "dlv_" + sly},
		{"doctor"},
		{"wake", "remove", h.relay},
		{"token", "list"},
	} {
		for _, globals := range [][]string{nil, {"--json"}} {
			full := append(append(line[:len(line):len(line)], globals...), "--db", h.db())
			if i := strings.Index(strings.Join(line, "\x00"), "\x00--\x00"); i >= 0 {
				full = append(append([]string{"--db", h.db()}, globals...), line...)
			}
			out, _ := piped(t, full, hostile)
			if strings.Contains(out, `\u202e`) || strings.Contains(out, `\u{202e}`) {
				printed++
			}
			if line[0] != "job" || line[1] != "tail" || globals != nil || strings.HasPrefix(out, "placet: ") { // a pipe gets the bytes themselves
				mustBeSafe(t, full, out)
			}
			screen := atTerminal(t, full, hostile)
			if line[0] == "job" && line[1] == "tail" { // a log has what was printed, but for the values of secret_env
				screen = strings.ReplaceAll(screen, marker, "")
			}
			mustBeSafe(t, full, screen)
		}
	}
	if printed < 40 {
		t.Errorf("only %d commands showed a hostile text: the test proves little", printed)
	}
	h.end(syscall.SIGTERM)
}

// What is stored is printed: half of a surrogate pair as the escape that it is.
func TestEventsPrintWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.queued(1)[0]
	err := txn.Update(t.Context(), w.store, func(tx job.Tx) error {
		j, err := tx.Job(id)
		if err != nil {
			return err
		}
		return tx.PutJob(j, job.Change{Next: j, Events: []event.Event{{Type: event.JobOutput, Subject: id, Actor: event.System, Payload: []byte(`{"data":"x\ud800"}`)}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := w.ok("--json", "events", "job:"+id)
	mustContain(t, out, `"payload":{"data":"x\ud800"}`)
	out, _ = w.ok("events", "job:"+id)
	mustContain(t, out, `{"data":"x\ud800"}`)
}
