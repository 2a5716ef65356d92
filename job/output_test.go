package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
)

type printed struct {
	Type      string          `json:"type"`
	Level     string          `json:"level"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Truncated bool            `json:"truncated"`
	Bytes     int64           `json:"bytes"`
}

// printed are the job's events of output.
func (w *world) printed(id string) (all []printed) {
	w.Helper()
	for _, e := range w.events(id) {
		if e.Type == event.JobOutput {
			var p printed
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				w.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

func TestOutput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.run(shell(`cat <<'X'
AGENT_EVENT {"type":"progress","level":"info","message":"half","data":{"done":1,"of":2}}
AGENT_EVENT {"type":"metric","loss":0.25}
AGENT_EVENT no JSON
AGENT_EVENT [1]
 AGENT_EVENT {"type":"indented"}
AGENT_EVENT	{"type":"tab"}
AGENT_EVENT {"type":7,"data":null}
AGENT_EVENT {"type":"progress","message":"done"}
X
printf 'AGENT_EVENT {"type":"last"}'; echo 'AGENT_EVENT {"type":"of stderr"}' >&2`))
	got, err := json.Marshal(w.printed(j.ID))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"type":"progress","level":"info","message":"half","data":{"done":1,"of":2},"truncated":false,"bytes":0},` +
		`{"type":"metric","level":"","message":"","data":{"loss":0.25},"truncated":false,"bytes":0},` +
		`{"type":"","level":"","message":"","data":null,"truncated":false,"bytes":0},` +
		`{"type":"progress","level":"","message":"done","data":null,"truncated":false,"bytes":0},` +
		`{"type":"last","level":"","message":"","data":null,"truncated":false,"bytes":0}]`
	if string(got) != want {
		t.Errorf("%s", got)
	}
	if string(j.Progress) != `{"message":"done"}` || j.Outputs != 5 {
		t.Errorf("progress %s, %d outputs", j.Progress, j.Outputs)
	}
}

// What of a line is not text is left out of its event, which names it, and never
// replaced by other text. The line is in the log as it was printed.
func TestOutputThatIsNotText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var lines, want strings.Builder
	for _, l := range [][2]string{
		{`{"type":"progress","message":"half","data":{"done":1,"of":2}}`, `{"type":"progress","message":"half","data":{"done":1,"of":2}}`},
		{"{\"type\":\"progress\",\"message\":\"x\xff\",\"data\":{\"done\":2,\"of\":2}}", `{"type":"progress","data":{"done":2,"of":2},"invalid_text":["message"]}`},
		{"{\"type\":\"file\",\"message\":\"kept\",\"data\":{\"name\":\"x\xff\"}}", `{"type":"file","message":"kept","invalid_text":["data"]}`},
		{`{"type":"file","data":["\ud800"]}`, `{"type":"file","invalid_text":["data"]}`},
		{`{"type":"file","data":["\\ud800 \ud83d\ude00 \u00e9 é"]}`, `{"type":"file","data":["\\ud800 \ud83d\ude00 \u00e9 é"]}`},
		{"{\"type\":\"x\xff\",\"level\":\"\\udc00\",\"loss\":0.25}", `{"type":"","data":{"loss":0.25},"invalid_text":["type","level"]}`},
		{"{\"type\":\"metric\",\"x\xff\":1}", `{"type":"metric","invalid_text":["data"]}`},
		{`{"type":"metric","\ud800":1}`, `{"type":"metric","invalid_text":["data"]}`},
		{`{"type":"metric","a":"\ude00\ud83d"}`, `{"type":"metric","invalid_text":["data"]}`},
		{`{"type":"progress","data":"\ud83d"}`, `{"type":"progress","invalid_text":["data"]}`},
	} {
		lines.WriteString("AGENT_EVENT " + l[0] + "\n")
		want.WriteString(l[1] + "\n")
	}
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	j := w.run(shell("cat " + file))
	var got strings.Builder
	for _, e := range w.events(j.ID) {
		if e.Type == event.JobOutput {
			got.Write(append(e.Payload, '\n'))
		}
	}
	if got.String() != want.String() {
		t.Errorf("told:\n%s\nwant:\n%s", got.String(), want.String())
	}
	if string(j.Progress) != `{"done":2,"of":2}` {
		t.Errorf("progress %s", j.Progress)
	}
	if tail, err := w.s.Tail(t.Context(), j.ID, job.Tailing{}); err != nil || string(tail.Data) != lines.String() {
		t.Errorf("the log: %q, %v", tail.Data, err)
	}
}

// What a job prints is never an event of its life or of a question, and no wait for
// one takes it.
func TestForgedOutput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var lines strings.Builder
	for _, typ := range job.Lifecycle() {
		fmt.Fprintf(&lines, `AGENT_EVENT {"type":%q,"decision_id":"dec_1","data":{"choice":"approve"}}`+"\n", typ)
	}
	j := w.start(shell("cat <<'X'\n" + lines.String() + "X\necho ready; read x"))
	w.until(j.ID, "ready")
	asked, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []job.Waiting{
		{Types: []string{"decision_resolved", "completed", "log_truncated"}, Progress: true}, {DecisionID: asked.ID},
	} {
		q.JobID, q.Timeout = j.ID, 1
		if got, err := w.s.Wait(w.ctx, q); err != nil || got.Result != job.GotTimeout {
			t.Errorf("%+v: %+v, %v", q, got, err)
		}
	}
	got, err := w.s.Wait(w.ctx, job.Waiting{JobID: j.ID, Types: []string{"output:decision_resolved"}})
	if err != nil || got.Event.Type != event.JobOutput {
		t.Errorf("by its own name: %+v, %v", got, err)
	}
	if err := w.s.Send(w.ctx, j.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	w.end(j.ID)
	for _, e := range w.events(j.ID) {
		if strings.Contains(string(e.Payload), "dec_1") && e.Type != event.JobOutput {
			t.Errorf("%s: %s", e.Type, e.Payload)
		}
	}
}

// Over the cap one event tells that the rest is dropped; questions and the end do not
// count.
func TestOutputCap(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *job.Config) { c.MaxOutputs = 150 })
	j := w.start(shell(`for i in $(seq 400); do echo 'AGENT_EVENT {"type":"decision_requested"}'; done; echo ready; read x`))
	w.until(j.ID, "ready")
	if _, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"}); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, j.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	if j = w.end(j.ID); j.Outputs != 150 || !j.Dropped {
		t.Errorf("%d outputs, dropped %v", j.Outputs, j.Dropped)
	}
	count := map[event.Type]int{}
	for _, e := range w.events(j.ID) {
		count[e.Type]++
	}
	if count[event.JobOutput] != 150 || count[event.OutputDropped] != 1 || count[event.DecisionRequested] != 1 || count[event.DecisionWithdrawn] != 1 {
		t.Errorf("%v", count)
	}
}

func TestLargeOutput(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *job.Config) { c.LogLimit = 1000 })
	big := strings.Repeat("x", job.MaxEventBytes)
	j := w.run(command("large"))
	got := w.printed(j.ID)
	if len(got) != 4 {
		t.Fatalf("%d events", len(got))
	}
	if !strings.Contains(string(got[0].Data), big[:job.MaxEventBytes-100]) || got[0].Truncated {
		t.Errorf("one that fits: %d bytes", len(got[0].Data))
	}
	if got[1].Type != "over" || !got[1].Truncated || got[1].Data != nil || got[1].Bytes < job.MaxEventBytes {
		t.Errorf("one that does not: %+v", got[1])
	}
	if !got[2].Truncated || got[2].Bytes <= job.MaxLine || got[2].Data != nil {
		t.Errorf("a line that is too long: %+v", got[2])
	}
	if got[3].Type != "after" {
		t.Errorf("the one behind it: %+v", got[3])
	}
	if n := len(w.output(j.ID, job.Stdout)); n != 1000 {
		t.Errorf("the log has %d bytes", n)
	}
	if n := strings.Count(types(w.events(j.ID)), "log_truncated"); n != 1 {
		t.Errorf("log_truncated %d times", n)
	}
	if j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
}

// Exit status 0 with a part of the output lost is a failure.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *job.Config) { c.NewID = func(prefix string) string { return prefix + "full" } })
	dir := filepath.Join(w.dir, "job_full", "1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	j := w.run(shell(`echo lost`))
	if j.Status != job.Failed || j.ExitCode != 0 || !strings.Contains(j.Failure, "stdout") {
		t.Errorf("%+v", j)
	}
	if got := types(w.events(j.ID)); got != "queued started log_capture_failed failed" {
		t.Errorf("events: %s", got)
	}
}

// A secret is in no log, no event and no row that is shown, however it is printed; and
// nothing of the supervisor's own environment reaches the job.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const secret = "first/\"line\"\nsecond"
	w := setup(t, func(c *job.Config) {
		c.Environ = func(context.Context, job.Job) (map[string]string, error) {
			return map[string]string{"PLACET_TOKEN": "tok-secret", "PLACET_URL": "http://127.0.0.1"}, nil
		}
	})
	inJSON, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	spec := shell(`printf '%s\n' "$KEY" "$PLACET_TOKEN" "$PLAIN" "$PLACET_URL" "$OF_THE_SUPERVISOR"
		printf '%s' "$KEY" | sed 's/$/\r/' >&2; printf '%s' 'AGENT_EVENT {"type":"k","data":' '` + string(inJSON) + `}'; echo; env | grep -c '^PLACET_'`)
	spec.Env, spec.SecretEnv = map[string]string{"KEY": secret, "PLAIN": "seen"}, []string{"KEY"}
	j := w.run(spec)
	if got := w.output(j.ID, job.Stdout); got != "[masked]\n[masked]\nseen\nhttp://127.0.0.1\n\nAGENT_EVENT {\"type\":\"k\",\"data\":\"[masked]\"}\n4\n" {
		t.Errorf("stdout %q", got)
	}
	if got := w.output(j.ID, job.Stderr); strings.Contains(got, "second") {
		t.Errorf("stderr %q", got)
	}
	if got := w.printed(j.ID); len(got) != 1 || string(got[0].Data) != `"[masked]"` {
		t.Errorf("%+v", got)
	}
	if len(j.Secrets) != 0 || j.Spec.Env["KEY"] != "" || j.Spec.Env["PLAIN"] != "seen" {
		t.Errorf("%+v", j)
	}
	err = filepath.WalkDir(filepath.Join(w.dir, j.ID), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSocket != 0 || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "second") || strings.Contains(string(b), "tok-secret") {
			t.Errorf("%s has a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A secret that comes a byte at a time is hidden too.
func TestSplitSecret(t *testing.T) {
	t.Parallel()
	w := setup(t)
	spec := command("split", "before KEYKEYKEY1 after\n")
	spec.Env, spec.SecretEnv = map[string]string{"K": "KEYKEY1"}, []string{"K"}
	j := w.run(spec)
	if got := w.output(j.ID, job.Stdout); got != "before KEY[masked] after\n" {
		t.Errorf("%q", got)
	}
}

// Many jobs print while questions are asked and answered: nothing is lost, and each
// one's order is kept.
func TestManyPrintWhileQuestionsAreAsked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop(w.s)
	const jobs, events, questions = 6, 700 / raceFactor, 20
	var js []job.Job
	for range jobs {
		js = append(js, w.start(command("print", fmt.Sprint(events), "150")))
	}
	asker := w.start(command("echo"))
	var asking sync.WaitGroup
	for i := range questions {
		asking.Go(func() {
			q, err := w.op.Ask(w.ctx, "main", asker.ID, decision.Asking{Prompt: fmt.Sprint("Go on past ", i, "?"), By: "bot"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := w.op.Resolve(w.ctx, asker.ID, q.ID, decision.Answering{Choice: "deny", By: "ana"}); err != nil {
				t.Error(err)
			}
			got, err := w.s.Wait(w.ctx, job.Waiting{JobID: asker.ID, DecisionID: q.ID, After: q.Cursor})
			if err != nil || got.Event.Type != event.DecisionResolved {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	asking.Wait()
	for _, j := range js {
		if j = w.end(j.ID); j.Status != job.Completed || j.Outputs != events {
			t.Errorf("%s: %s, %d outputs", j.ID, j.Status, j.Outputs)
		}
		for i, p := range w.printed(j.ID) {
			var d struct{ N int }
			if json.Unmarshal(p.Data, &d) != nil || d.N != i {
				t.Fatalf("event %d of %s is %s", i, j.ID, p.Data)
			}
		}
	}
	if now := w.get(asker.ID); now.Pending != 0 || now.Questions != questions {
		t.Errorf("%+v", now)
	}
}
