package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/httpapi"
)

// What a job printed and what a person answered shows no secret at a terminal, to
// whoever it belongs: neither by name nor by what the question's form marks.
func TestJobCommandsShowNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	told := filepath.Join(w.dir, "told")
	line := `AGENT_EVENT {"type":"progress","message":"with ` + marker + `","data":{"token":"` + marker + `","done":3}}` + "\n"
	if err := os.WriteFile(told, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	var j httpapi.Job
	out, stderr, code := w.run("--json", "job", "start", "--", "sh", "-c", "cat told; read x")
	if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
		t.Fatalf("exit code %d: %s %s", code, out, stderr)
	}
	if _, stderr, code := w.run("job", "wait", j.JobID, "--type", "output:progress"); code != 0 {
		t.Fatal(stderr)
	}
	secret, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	own := httpapi.NewClient(s.at.URL, strings.TrimSpace(string(secret))) // who started the job: the daemon shows it all
	q, err := own.Ask(t.Context(), j.JobID, httpapi.Asking{
		Prompt: "Open it?", Options: []string{"yes", "no"},
		Form: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string","writeOnly":true},"password":{"type":"string"},"epochs":{"type":"integer"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	input := `{"answer":"` + marker + `","password":"` + marker + `","epochs":5}`
	for _, args := range [][]string{
		{"resolve", q.DecisionID, "yes", "--input", input, "--note", "with " + marker},
		{"--json", "resolve", q.DecisionID, "yes", "--input", input},
		{"job", "events", j.JobID},
		{"--json", "job", "events", j.JobID},
		{"events", "job:" + j.JobID},
		{"--json", "events", "job:" + j.JobID},
		{"job", "wait", j.JobID, "--decision", q.DecisionID},
		{"--json", "job", "wait", j.JobID, "--decision", q.DecisionID},
		{"job", "wait", j.JobID, "--type", "output:progress"},
		{"--json", "job", "wait", j.JobID, "--type", "output:progress"},
		{"decisions", "--status", "all"},
		{"--json", "decisions", "--status", "all"},
		{"job", "show", j.JobID},
		{"--json", "job", "show", j.JobID},
		{"job", "list"},
		{"--json", "job", "list"},
	} {
		out, stderr, code := w.run(args...)
		if code != 0 || strings.Contains(out+stderr, marker) {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, stderr)
		}
		if what := strings.Join(args, " "); (strings.Contains(what, "--decision") || strings.Contains(what, "events")) && !strings.Contains(strings.ReplaceAll(out, " ", ""), `"epochs":5`) {
			t.Errorf("%s: the rest of the answer is not shown:\n%s", what, out)
		}
	}
	if got, err := own.GetQuestion(t.Context(), q.DecisionID); err != nil || string(got.Input) != input {
		t.Errorf("who asked gets %s, %v", got.Input, err)
	}
	w.run("job", "stop", j.JobID)
	s.end(syscall.SIGTERM)
}
