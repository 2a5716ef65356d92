package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// ok runs a command that has to succeed.
func (w *world) ok(args ...string) (stdout, stderr string) {
	w.t.Helper()
	stdout, stderr, code := w.run(args...)
	if code != 0 {
		w.t.Fatalf("%q ended with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout, stderr
}

// refused runs a command that has to end with that code, and returns what it said.
func (w *world) refused(code int, args ...string) string {
	w.t.Helper()
	stdout, stderr, got := w.run(args...)
	if got != code {
		w.t.Errorf("%q ended with %d, not with %d: %s%s", args, got, code, stdout, stderr)
	}
	return stderr + stdout
}

// object is what a command prints with --json, which has to succeed.
func object[T any](w *world, args ...string) (o T) {
	w.t.Helper()
	out, _ := w.ok(append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		w.t.Fatalf("%q printed %s: %v", args, out, err)
	}
	return o
}

// job starts one and returns it.
func (w *world) job(name, script string) httpapi.Job {
	w.t.Helper()
	return object[httpapi.Job](w, "job", "start", "--name", name, "--", "sh", "-c", script)
}

// beginning is an id as a person types it: as much of it as no other one has.
func beginning(id string) string { return id[:len(id)-1] }

// What cannot be sent as it is is refused and names the field; nothing is started,
// asked or answered (the text of another job, question or answer).
func TestTextThatIsNotUTF8IsNotSent(t *testing.T) {
	t.Parallel()
	const bad = "x\xff"
	w := newWorld(t)
	s := w.serve()
	j := w.job("cat", "cat")
	q := object[httpapi.Question](w, "ask", j.JobID, "?")
	for field, line := range map[string][]string{
		"/command/2": {"job", "start", "--", "printf", "%s", bad},
		"/name":      {"job", "start", "--name", bad, "--", "true"},
		"/prompt":    {"ask", j.JobID, bad},
		"/options/1": {"ask", j.JobID, "?", "--option", "a", "--option", bad},
		"/choice":    {"resolve", q.DecisionID, bad},
		"/by":        {"resolve", q.DecisionID, "approve", "--by", bad},
		"/note":      {"resolve", q.DecisionID, "approve", "--note", bad},
	} {
		mustContain(t, w.refused(1, line...), "placet: The field "+field+" cannot be sent as it is", "Nothing was sent.")
	}
	mustContain(t, w.refused(1, "resolve", q.DecisionID, "approve", "--input", `{"a":"\ud800"}`), "The input cannot be used: ")
	if list, _ := w.ok("--json", "job", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("jobs were started: %s", list)
	}
	if qs, _ := w.ok("--json", "decisions", "--status", "all"); strings.Count(qs, "\n") != 1 || !strings.Contains(qs, `"status":"pending"`) {
		t.Errorf("questions: %s", qs)
	}
	s.end(syscall.SIGTERM)
}

// A job is sent any bytes, and a pipe gets any bytes back.
func TestJobSendAndTailAnyBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	j := w.job("cat", "cat; echo said >&2")
	want := "\xff\x00\x1b[31m\xed\xa0\x80é\n"
	w.ok("job", "send", j.JobID, strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\x00", "\x01"))
	c := w.command("job", "send", j.JobID, "--eof")
	c.Stdin = strings.NewReader(want)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, _ := w.ok("job", "tail", beginning(j.JobID), "--follow")
	if out != strings.ReplaceAll(want, "\x00", "\x01")+want {
		t.Errorf("got %q", out)
	}
	if out, _ = w.ok("job", "tail", j.JobID, "--stream", "stderr"); out != "said\n" {
		t.Errorf("standard error: %q", out)
	}
	if out, _ = w.ok("job", "tail", j.JobID, "--offset", fmt.Sprint(2*len(want)-3)); out != "é\n" {
		t.Errorf("from an offset: %q", out)
	}
	if out, _ = w.ok("--json", "job", "tail", j.JobID); !strings.Contains(out, `"data":"/wEbWzMxbe2ggMOpCv8AG1szMW3toIDDqQo="`) {
		t.Errorf("with --json: %s", out)
	}
	s.end(syscall.SIGTERM)
}

// At a terminal no character is cut at the end of a page, and what a terminal would obey
// is shown as an escape.
func TestJobTailAtATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	file := filepath.Join(w.dir, "text")
	text := "x" + strings.Repeat("é", 50_000) + " " + strings.Repeat("ab ", 30_000) + "\n\x1b[2K\xff\\u{202e}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j := w.job("cat", "cat text")
	w.ok("job", "wait", j.JobID)
	_, screen := w.atTerminal("job", "tail", j.JobID).end()
	want := "x" + strings.Repeat("é", 50_000) + " " + strings.Repeat("ab ", 30_000) + "\n" + `\u{1b}[2K\x{ff}\u{5c}u{202e}` + "\n"
	if got := strings.ReplaceAll(screen, "\r\n", "\n"); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("of %d bytes, %d wanted, it differs at %d: %.60q, want %.60q", len(got), len(want), at, got[at:], want[at:])
	}
	s.end(syscall.SIGTERM)
}

// A duration that would be lost on the way, and become the default there, is a wrong
// command line; so is a word that is not of the list.
func TestFlagsThatWouldMeanSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // no daemon is asked about any of these
	for _, tt := range []struct {
		line  string
		wants []string
	}{
		{"ask job_1 ? --timeout 500ms", []string{`--timeout takes whole seconds, from 1s to 87600h; "500ms" was given.`, "Write it like --timeout 90s or --timeout 1h."}},
		{"ask job_1 ? --timeout 1900ms", []string{"--timeout takes whole seconds"}},
		{"ask job_1 ? --timeout -1s", []string{"--timeout takes whole seconds"}},
		{"ask job_1 ? --timeout 0s", []string{"--timeout takes whole seconds"}},
		{"ask job_1 ? --timeout soon", []string{"--timeout takes whole seconds"}},
		{"ask job_1 ? --timeout 90000h", []string{"--timeout takes whole seconds"}},
		{"job start --timeout 500ms -- true", []string{"--timeout takes whole seconds"}},
		{"job start --timeout 0s -- true", []string{"--timeout takes whole seconds"}},
		{"job wait job_1 --timeout 500ms", []string{"--timeout takes whole seconds, from 1s to 24h"}},
		{"job wait job_1 --timeout 25h", []string{"--timeout takes whole seconds, from 1s to 24h"}},
		{"job stop job_1 --kill-after 500ms", []string{"--kill-after takes whole seconds, from 1s to 1h"}},
		{"job stop job_1 --kill-after 0s", []string{"--kill-after takes whole seconds"}},
		{"job cleanup --older-than 500ms", []string{"--older-than takes whole seconds, from 0s to 87600h"}},
		{"job cleanup --older-than -1s", []string{"--older-than takes whole seconds"}},
		{"serve --grant-ttl 0s", []string{"--grant-ttl has to be longer than nothing"}},
		{"serve --grant-ttl -5m", []string{"--grant-ttl has to be longer than nothing"}},
		{"job list --status nope", []string{`There is no status "nope".`, "It is queued, launching, running, completed, failed, timeout, cancelled, orphaned or all."}},
		{"decisions --status nope", []string{"It is pending, resolved, withdrawn, expired or all."}},
		{"job tail job_1 --stream out", []string{"It is stdout or stderr."}},
		{"job tail job_1 --offset -1", []string{"--offset is a number of bytes"}},
		{"job wait job_1 --type done", []string{"There are queued, started, completed", "and output:NAME"}},
		{"cancel job_1 --note why", []string{"keeps no note"}},
	} {
		mustContain(t, w.refused(2, strings.Fields(tt.line)...), tt.wants...)
	}
	for flag, want := range map[string]string{"job wait": "at most 24h (default 1h)", "job stop": "(default 10s)", "job cleanup": "(default 720h)", "ask": "for ever)"} {
		out, _ := w.ok(append(strings.Fields(flag), "--help")...)
		mustContain(t, out, want)
	}
}

// show has the object of every id, from the store; with a daemon it is the daemon's.
func TestShowJobQuestionToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	started := w.job("train", "read x")
	j := object[httpapi.Job](w, "job", "show", started.JobID)
	q := object[httpapi.Question](w, "ask", j.JobID, "Go on?", "--option", "--yes", "--option", "no")
	k := object[token.Object](w, "token", "create", "--scope", "agent", "--name", "ci")
	j.PendingDecisions = 1
	q.Cursor, k.Secret = "", ""
	for id, want := range map[string]any{j.JobID: j, q.DecisionID: q, k.ID: k} {
		b, _ := json.Marshal(want)
		if out, _ := w.ok("--json", "show", beginning(id)); strings.TrimSpace(out) != string(b) {
			t.Errorf("got %swant %s", out, b)
		}
	}
	out, _ := w.ok("show", j.JobID)
	mustContain(t, out, "Job "+j.JobID+" running", "name       train", "questions  1: placet decisions --job "+j.JobID)
	out, _ = w.ok("show", q.DecisionID)
	mustContain(t, out, "Question "+q.DecisionID+" pending", "asks       Go on?", "Answer it:  placet resolve -- "+q.DecisionID+" --yes   (or: no)")
	out, _ = w.ok("show", k.ID)
	mustContain(t, out, "Token "+k.ID, "scope      agent", "principal  ci")
	for _, other := range []string{"job_", "dec_", "tok_"} {
		w.refused(1, "show", other+"ffffffff-ffff-7fff-bfff-ffffffffffff")
	}
	s.end(syscall.SIGKILL)

	// With nobody to take it in, what the runner leaves is taken in by who looks.
	out, _ = w.ok("show", j.JobID)
	mustContain(t, out, "running")
	again := w.serve()
	w.ok("job", "send", j.JobID, "x")
	w.ok("job", "wait", j.JobID)
	again.end(syscall.SIGTERM)
}

// A job that ends while no daemon runs is shown as ended.
func TestShowTakesInWhatARunnerLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	fifo := filepath.Join(w.dir, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	j := w.job("late", `cat go; echo 'AGENT_EVENT {"type":"seen"}'; exit 3`)
	s.end(syscall.SIGKILL)
	if err := os.WriteFile(fifo, []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	for {
		if o := object[httpapi.Job](w, "show", j.JobID); o.Status == job.Failed {
			break
		} else if o.Status != job.Running {
			t.Fatalf("%+v", o)
		}
	}
	out, _ := w.ok("events", "job:"+beginning(j.JobID))
	mustContain(t, out, "job.output", "seen", "failed")
}

// cancel stops a job, withdraw takes a question back.
func TestCancelAJobWithdrawAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mustContain(t, w.refused(1, "cancel", "job_1"), "No daemon serves this store, ", "Start one: ")
	s := w.serve()
	j := w.job("train", "sleep 600")
	q, other := object[httpapi.Question](w, "ask", j.JobID, "Go on?"), object[httpapi.Question](w, "ask", j.JobID, "And now?")
	if o := object[httpapi.Question](w, "withdraw", beginning(q.DecisionID), "--by", "bo"); o.Status != "withdrawn" {
		t.Errorf("%+v", o)
	}
	out, _ := w.ok("withdraw", q.DecisionID)
	mustContain(t, out, "Question "+q.DecisionID+" is withdrawn.")
	out, _ = w.ok("job", "wait", j.JobID, "--decision", beginning(q.DecisionID))
	mustContain(t, out, "decision_withdrawn", `"by": "bo"`)
	if o := object[httpapi.Question](w, "withdraw", other.DecisionID, "--note", "why"); o.Status != "withdrawn" || o.Note != "why" {
		t.Errorf("with a note: %+v", o)
	}
	mustContain(t, w.refused(1, "withdraw", "dec_"), "dec_ begins the id of every question.", "placet decisions lists them.")
	mustContain(t, w.refused(1, "cancel", "job_"), "job_ begins the id of every job.")
	mustContain(t, w.refused(1, "cancel", other.DecisionID), "placet withdraw "+other.DecisionID)
	out, _ = w.ok("cancel", beginning(j.JobID), "--by", "bo")
	mustContain(t, out, "Job "+j.JobID+" cancelled")
	out, _ = w.ok("--json", "job", "events", j.JobID)
	mustContain(t, out, `"type":"cancelled","subject":"`+j.JobID+`","actor":"bo"`)
	if o := object[httpapi.Job](w, "cancel", j.JobID); o.Status != job.Cancelled {
		t.Errorf("once more: %+v", o)
	}
	s.end(syscall.SIGTERM)
}

// Any unambiguous beginning of an id will do, in every command that takes one; what
// changes something takes more than the kind.
func TestBeginningsOfIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	j := w.job("train", "read x; read x")
	q := object[httpapi.Question](w, "ask", beginning(j.JobID), "Go on?")
	k := object[token.Object](w, "token", "create", "--scope", "agent", "--name", "ci")
	for _, line := range [][]string{
		{"job", "show", "job_"},
		{"job", "tail", "job_"},
		{"job", "events", "job_"},
		{"show", "job_"},
		{"show", "dec_"},
		{"job", "show", beginning(j.JobID)},
		{"job", "tail", beginning(j.JobID)},
		{"job", "events", beginning(j.JobID)},
		{"decisions", "--job", beginning(j.JobID)},
		{"resolve", beginning(q.DecisionID), "approve"},
		{"job", "wait", beginning(j.JobID), "--decision", beginning(q.DecisionID)},
		{"job", "send", beginning(j.JobID), "x"},
		{"job", "stop", beginning(j.JobID)},
		{"show", beginning(k.ID)},
		{"token", "revoke", beginning(k.ID)},
	} {
		if out, _ := w.ok(line...); strings.Contains(out, "None") {
			t.Errorf("%q: %s", line, out)
		}
	}
	w.job("other", "true")
	for bare, lines := range map[string][][]string{
		"job_ begins the id of every job.":                  {{"job", "send", "job_", "x"}, {"job", "stop", "job_"}, {"job", "pause", "job_"}, {"job", "resume", "job_"}, {"ask", "job_", "?"}},
		"dec_ begins the id of every question.":             {{"resolve", "dec_", "approve"}},
		"tok_ begins the id of every token.":                {{"token", "revoke", "tok_"}},
		"More than one job has an id that begins with job_": {{"job", "show", "job_"}, {"show", "job_"}, {"decisions", "--job", "job_"}},
		"Here an id begins with job_.":                      {{"job", "show", "x"}, {"job", "show", q.DecisionID}, {"job", "tail", ""}, {"ask", k.ID, "?"}},
		"Here an id begins with dec_.":                      {{"resolve", j.JobID, "approve"}},
		"Here an id begins with tok_.":                      {{"token", "revoke", "x"}, {"token", "revoke", j.JobID}},
		"No job has an id that begins with job_x":           {{"job", "show", "job_x"}, {"job", "stop", "job_x"}, {"job", "show", "job_x" + strings.Repeat("x", 300)}},
		"No call has an id that begins with call_0":         {{"show", "call_0" + strings.Repeat("0", 300)}},
	} {
		for _, line := range lines {
			mustContain(t, w.refused(1, line...), bare)
		}
	}
	s.end(syscall.SIGTERM)
}

// Where no daemon listens, or does not take the token, the command says what to do.
func TestNoDaemonIsToldInWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, stderr, code := w.run("job", "list"); code != 1 || !regexp.MustCompile(`^placet: No daemon serves this store, \S+\.\n  Start one: \S*placet serve\.\n$`).MatchString(stderr) {
		t.Errorf("%d: %s", code, stderr)
	}
	s := w.serve()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	k := object[token.Object](w, "token", "create", "--scope", "operator", "--name", "ops")
	for _, tt := range []struct {
		url, token string
		wants      []string
	}{
		{nobody, "x", []string{"No daemon answers at " + nobody + ", which PLACET_URL names.", "placet serve"}},
		{s.at.URL, "", []string{"The daemon at " + s.at.URL + " wants a token, and PLACET_TOKEN is not set.", "placet token create"}},
		{s.at.URL, "x", []string{"does not take the token in PLACET_TOKEN.", "placet token create"}},
		{"", "x", []string{"does not take the token in PLACET_TOKEN.", "placet token create"}},
		{s.at.URL, "x\ny", []string{"The header Authorization cannot be sent as it is"}},
		{s.at.URL + "/v1", k.Secret, []string{`PLACET_URL is "` + s.at.URL + `/v1"; a daemon's address has nothing behind the host.`, "Write " + s.at.URL + "."}},
		{"localhost:7420", k.Secret, []string{`PLACET_URL is "localhost:7420", which is no address of a daemon.`, "Write it like http://"}},
		{"http://ana:x@127.0.0.1/", k.Secret, []string{"no address of a daemon"}},
		{strings.Replace(s.at.URL, "127.0.0.1", "127.0.0.2", 1), k.Secret, []string{"placet serve"}},
	} {
		for _, line := range [][]string{{"job", "list"}, {"decisions"}, {"resolve", "dec_1", "yes"}, {"cancel", "job_1"}} {
			c := w.command(line...)
			c.Env = append(c.Env, "PLACET_URL="+tt.url, "PLACET_TOKEN="+tt.token)
			out, _ := c.CombinedOutput()
			if c.ProcessState.ExitCode() != 1 {
				t.Errorf("%s %q: %s", tt.url, line, c.ProcessState)
			}
			mustContain(t, string(out), tt.wants...)
		}
	}
	c := w.command("job", "list")
	c.Env = append(c.Env, "PLACET_URL="+s.at.URL+"/", "PLACET_TOKEN="+k.Secret+"\n") // as a file has it
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Chmod(s.at.TokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	mustContain(t, w.refused(1, "job", "list"), "Others can read", "chmod 600")
	if err := os.Remove(s.at.TokenFile); err != nil {
		t.Fatal(err)
	}
	mustContain(t, w.refused(1, "job", "list"), "The admin token in "+s.at.TokenFile+" cannot be read.", "PLACET_TOKEN")
	s.end(syscall.SIGTERM)
}

// A token goes to nobody who listens where a daemon once did.
func TestNoTokenForAStaleAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	found, err := os.ReadFile(w.db() + ".serve.json")
	if err != nil {
		t.Fatal(err)
	}
	s.end(syscall.SIGKILL)
	called := make(chan string, 2)
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			if conn, err := l.Accept(); err == nil {
				called <- network
				conn.Close()
			}
		}()
		return l
	}
	if err := os.Remove(s.at.Socket); err != nil {
		t.Fatal(err)
	}
	listen("unix", s.at.Socket)
	there := listen("tcp", "127.0.0.1:0")
	stale := strings.ReplaceAll(string(found), s.at.URL, "http://"+there.Addr().String())
	for _, text := range []string{stale, strings.ReplaceAll(stale, s.at.Socket, "")} {
		if err := os.WriteFile(w.db()+".serve.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]string{{"job", "list"}, {"ask", "job_1", "?"}, {"job", "start", "--", "true"}, {"cancel", "job_1"}} {
			mustContain(t, w.refused(1, line...), "No daemon serves this store, ", "Start one: ")
		}
		w.ok("doctor")
	}
	select {
	case network := <-called:
		t.Errorf("whoever listened on %s was called", network)
	default:
	}
}

// Results say where they ran.
func TestWhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here := "Where: this process, on the store " + w.db() + "\n"
	run := func(want string, code int, args ...string) {
		t.Helper()
		if _, stderr, got := w.run(args...); got != code || !strings.Contains(stderr, want) {
			t.Errorf("%q ended with %d and said %q, not %q", args, got, stderr, want)
		}
	}
	agent := []string{"--", "sh", "-c", `echo '{"kind":"complete"}'`}
	run(here, 0, "call", "look")
	run(here, 4, "call", "refund", "--args", `{"order_id":"o-1","amount":60}`)
	run(here, 0, append([]string{"run", "start", "--goal", "x"}, agent...)...)
	p := w.park()
	w.ok("approve", p.ApprovalID, "--yes")
	run(here, 0, "resume", p.ApprovalID)
	type where struct{ Where string }
	if o := object[where](w, "call", "look"); o.Where != "process" {
		t.Errorf("%+v", o)
	}
	if o := object[where](w, append([]string{"run", "start", "--goal", "x"}, agent...)...); o.Where != "process" {
		t.Errorf("%+v", o)
	}
	s := w.serve()
	run("Where: the daemon at "+s.at.URL+"\n", 0, "job", "start", "--", "true")
	if o := object[where](w, "job", "start", "--", "true"); o.Where != "daemon" {
		t.Errorf("%+v", o)
	}
	s.end(syscall.SIGTERM)
}

// queued puts jobs into the store that no daemon of this machine starts.
func (w *world) queued(n int) (ids []string) {
	w.t.Helper()
	err := txn.Update(w.t.Context(), w.store, func(tx job.Tx) error {
		ids = nil
		for range n {
			j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Home: "/elsewhere", Spec: job.Spec{Shell: "true", Name: "waits"}}
			ch, err := j.Step(job.Create{}, tx.Now())
			if err != nil {
				return err
			}
			if err := tx.InsertJob(ch); err != nil {
				return err
			}
			ids = append(ids, j.ID)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// A list leaves nothing out without a word.
func TestJobListOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	w.queued(503)
	for _, line := range [][]string{{"--status", "queued"}, {"--status", "all"}, {"--name", "waits"}, {"--json"}} {
		out, stderr := w.ok(append([]string{"job", "list"}, line...)...)
		if n := strings.Count(out, "\n"); n != 503 && n != 504 || stderr != "" { // with a head, or without
			t.Errorf("%q: %d of 503 jobs, %q", line, n, stderr)
		}
	}
	out, stderr := w.ok("job", "list")
	if n := strings.Count(out, "job_"); n != 500 {
		t.Errorf("%d jobs", n)
	}
	mustContain(t, stderr, "These are the 500 that need a person most; there may be more.", "placet job list --status all")
	s.end(syscall.SIGTERM)
}

// At a terminal those come first that need a person; running ones show how far they
// are, and a question how it is answered. With --json the newest comes first.
func TestJobListAtATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	progress := func(data string) string {
		return `echo 'AGENT_EVENT {"type":"progress","data":` + data + `}'; echo ready; read x`
	}
	started := map[string]string{}
	var order []string
	start := func(name, script string) {
		started[name] = w.job(name, script).JobID
		order = append(order, name)
	}
	start("asking", progress(`{"done":12,"of":80}`))
	start("failed", "exit 2")
	start("half", progress(`{"percent":50}`))
	start("第三", progress(`{"fraction":1}`))
	start("old", "true")
	start("", progress(`{"current":1,"total":4}`))
	start("strange", progress(`{"percent":500}`))
	for _, name := range []string{"failed", "old"} {
		w.run("job", "wait", started[name])
	}
	for _, name := range []string{"asking", "half", "第三", "", "strange"} {
		w.ok("job", "wait", started[name], "--type", "output:progress")
	}
	q := object[httpapi.Question](w, "ask", started["asking"], "Continue past epoch 40?", "--option", "keep going", "--option", "stop")
	code, screen := w.atTerminal("job", "list").end()
	screen = regexp.MustCompile(`\d+[sm] ago *`).ReplaceAllString(strings.ReplaceAll(screen, "\r\n", "\n"), "1s ago  ") // however long it took
	screen = regexp.MustCompile(` +name\n`).ReplaceAllString(screen, "   name\n")
	want := fmt.Sprintf(`id                                        status     since   name
%s  running    1s ago  asking                    [###.................]  15%%  asks: Continue past epoch 40?
%s  failed     1s ago  failed                    It exited with status 2.
%s  running    1s ago  strange
%s  running    1s ago  sh -c 'echo '\''AGENT_E…  [#####...............]  25%%
%s  running    1s ago  第三                      [####################] 100%%
%s  running    1s ago  half                      [##########..........]  50%%
%s  completed  1s ago  old

A question waits for an answer:
  asking asks: Continue past epoch 40?
    placet resolve %s 'keep going'   (or: stop)
`, started["asking"], started["failed"], started["strange"], started[""], started["第三"], started["half"], started["old"], q.DecisionID)
	if code != 0 || screen != want {
		t.Errorf("exit code %d:\n%s\nwant:\n%s", code, screen, want)
	}
	out, _ := w.ok("--json", "job", "list")
	var ids []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var j httpapi.Job
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.JobID)
	}
	slices.Reverse(order)
	var newest []string
	for _, name := range order {
		newest = append(newest, started[name])
	}
	if !slices.Equal(ids, newest) {
		t.Errorf("with --json: %s, want %s", ids, newest)
	}
	out, _ = w.ok("job", "list", "--status", "failed")
	if !strings.Contains(out, started["failed"]) || strings.Contains(out, started["half"]) {
		t.Errorf("only the failed ones: %s", out)
	}
	s.end(syscall.SIGTERM)
}

// The commands that look after jobs, from the asking to the end.
func TestJobCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	c := s.client(token.Agent, "bot")
	first, err := c.StartJob(t.Context(), httpapi.Starting{Name: "first", Command: httpapi.Command("sh", "-c", "read x; echo one; echo two >&2; read x")})
	if err != nil {
		t.Fatal(err)
	}
	behind, err := c.StartJob(t.Context(), httpapi.Starting{
		Command: httpapi.Command("true"), Tags: []string{"gpu"}, TimeoutSeconds: 3600,
		Trigger: &job.Trigger{JobID: first.JobID, Status: job.Cancelled},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := w.ok("job", "show", behind.JobID)
	mustContain(t, out, "Job "+behind.JobID+" queued", "command    true", "tags       gpu", "started by bot", "time limit 1h", "trigger    starts when "+first.JobID+" is cancelled")
	if o := object[httpapi.Job](w, "job", "pause", behind.JobID, "--by", "ana"); !o.Paused {
		t.Errorf("%+v", o)
	}
	out, _ = w.ok("job", "show", behind.JobID)
	mustContain(t, out, "paused     it does not start until placet job resume "+behind.JobID)
	out, _ = w.ok("job", "list")
	mustContain(t, out, "queued", "paused")
	mustContain(t, w.refused(1, "job", "pause", first.JobID), "is running")

	follow := w.command("job", "tail", first.JobID, "--follow", "--stream", "stderr")
	stdout, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	w.ok("job", "send", first.JobID, "x")
	buf := make([]byte, 4)
	if _, err := stdout.Read(buf); err != nil || string(buf) != "two\n" {
		t.Errorf("followed %q, %v", buf, err)
	}
	q, err := c.Ask(t.Context(), first.JobID, httpapi.Asking{Prompt: "How many?", Form: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	out, stderr := w.ok("decisions")
	mustContain(t, out, q.DecisionID, "How many?", "approve, deny")
	mustContain(t, stderr, "Answer: placet resolve --input @FILE "+q.DecisionID+" approve   (or: deny)")
	w.refused(1, "resolve", q.DecisionID, "approve", "--input", `{"n":"x"}`)
	mustContain(t, w.refused(1, "resolve", q.DecisionID, "approve", "--input", `{"n":`), "The input cannot be used")
	if err := os.WriteFile(filepath.Join(w.dir, "input.json"), []byte(`{"n":9007199254740993}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := object[httpapi.Question](w, "resolve", q.DecisionID, "approve", "--input", "@input.json", "--by", "ana", "--note", "fine"); string(o.Input) != `{"n":9007199254740993}` || o.By != "ana" || o.Note != "fine" {
		t.Errorf("%+v", o)
	}
	for status, want := range map[string]string{"resolved": q.DecisionID, "all": "approve by ana", "pending": "", "withdrawn": "", "expired": ""} {
		if out, _ := w.ok("decisions", "--status", status); !strings.Contains(out, want) || want == "" && out != "" {
			t.Errorf("%s: %s", status, out)
		}
	}

	out, _ = w.ok("job", "stop", first.JobID, "--kill-after", "2s", "--by", "bo")
	mustContain(t, out, "Job "+first.JobID+" cancelled", "ended")
	if err := follow.Wait(); err != nil {
		t.Errorf("following does not end with the job: %v", err)
	}
	if o := object[httpapi.Job](w, "job", "show", behind.JobID); o.Status != job.Queued {
		t.Errorf("a paused job started: %+v", o)
	}
	w.ok("job", "resume", behind.JobID)
	w.ok("job", "wait", behind.JobID)
	out, _ = w.ok("job", "events", behind.JobID)
	if got := regexp.MustCompile(`Z  (\S+)`).FindAllStringSubmatch(out, -1); len(got) != 5 || got[1][1] != "paused" || got[2][1] != "unpaused" {
		t.Errorf("events: %s", out)
	}
	for _, e := range strings.Split(strings.TrimSpace(first.JobID+"\n"+behind.JobID), "\n") {
		out, stderr := w.ok("job", "cleanup", "--older-than", "0s", "--dry-run")
		mustContain(t, out, e)
		mustContain(t, stderr, "2 jobs would be deleted.")
	}
	w.ok("job", "cleanup")
	w.ok("job", "show", first.JobID) // it ended less than 30 days ago
	_, stderr = w.ok("job", "cleanup", "--older-than", "0s")
	mustContain(t, stderr, "2 jobs deleted.")
	w.refused(1, "job", "show", first.JobID)
	s.end(syscall.SIGTERM)
}

// A yes at the terminal to what came in over HTTP says who runs it, since placet resume
// is refused for it, and doctor does not send anybody there either.
func TestWhoGoesOnWithWhatCameOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent := s.client(token.Agent, "bot")
	p := s.parkOver(agent)
	s.end(syscall.SIGKILL)
	out, stderr := w.ok("approve", p.ApprovalID, "--yes")
	mustContain(t, out, "Nothing has run yet. The daemon runs it.")
	mustContain(t, stderr, "No daemon serves this store now: ")
	if strings.Contains(out, "placet resume") {
		t.Errorf("it sends people to placet resume: %s", out)
	}
	out, _ = w.ok("doctor")
	mustContain(t, out, "what came in over HTTP waits for placet serve")

	// Calls of the same door whose outcome nobody knows.
	lose := tool.Spec{Name: "lose", Description: "Lose.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.LocalMutation}
	lost := func(context.Context, tool.Call) (json.RawMessage, error) { return nil, tool.ErrOutcomeUnknown }
	reg, err := tool.NewRegistry(tool.Tool{Spec: lose, Run: tool.RunnerFunc(lost)})
	if err != nil {
		t.Fatal(err)
	}
	allow := policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{Outcome: policy.Allow}, nil
	})
	door := call.NewExecutor(call.Config{Store: w.store, Tools: reg, Policy: allow}).Server("http")
	res, err := door.Call(t.Context(), "bot", "lose", []byte("{}"))
	var asked *call.PendingError
	if err != nil && !errors.As(err, &asked) {
		t.Fatalf("%+v %v", res, err)
	}
	h, _, err := door.Reserve(t.Context(), "bot", "lose", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := door.Confirm(t.Context(), "bot", h.Call.ID, h.Attempt.Fence, call.Outcome{Status: call.Unknown}); err != nil {
		t.Fatal(err)
	}
	out = w.refused(1, "doctor")
	mustContain(t, out, "it came in over HTTP, so placet serve finds out", "the program that reserved it over HTTP says how it went: POST /v1/calls/"+h.Call.ID+"/confirm")
	if strings.Contains(out, "placet resume call_") {
		t.Errorf("it sends people to placet resume: %s", out)
	}
}

// What a job is given stands on the command line that starts it, secrets in the shell.
func TestJobStartWithVariables(t *testing.T) {
	t.Setenv("REGION", "eu")
	t.Setenv("API_KEY", "Planted-Secret-7f3a")
	w := newWorld(t)
	s := w.serve()
	defer s.end(syscall.SIGTERM)
	sub := filepath.Join(w.dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	j := object[httpapi.Job](w, "job", "start", "--cwd", sub, "--env", "REGION", "--env", "STAGE=one=1", "--secret-env", "API_KEY", "--tag", "nightly", "--",
		"sh", "-c", `echo "$REGION $STAGE $API_KEY $(pwd)"`)
	w.ok("job", "wait", j.JobID)
	out, _ := w.ok("job", "tail", j.JobID)
	mustContain(t, out, "eu one=1 [masked] ", "/sub")
	if strings.Contains(out, "Planted") || !slices.Equal(j.Tags, []string{"nightly"}) {
		t.Errorf("%s %v", out, j.Tags)
	}
	mustContain(t, w.refused(2, "job", "start", "--secret-env", "NO_SUCH_THING", "--", "true"), `The variable "NO_SUCH_THING" is not set here.`)
	mustContain(t, w.refused(2, "job", "start", "--env", "NO_SUCH_THING", "--", "true"), `The variable "NO_SUCH_THING" is not set here.`)
	if _, _, code := w.run("job", "start", "--", filepath.Join(sub, "nothing")); code != 1 {
		t.Errorf("a program that is not there: exit code %d", code)
	}
}

// A question may ask for more than a choice, and its form is shown whole.
func TestAskWithAForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	defer s.end(syscall.SIGTERM)
	j := w.job("train", "sleep 600")
	form := `{"type":"object","required":["password"],"properties":{"password":{"type":"string","minLength":8,"description":"of the staging database"}}}`
	q := object[httpapi.Question](w, "ask", j.JobID, "Which one?", "--form", form, "--option", "go on", "--option", "stop")
	out, _ := w.ok("show", q.DecisionID)
	mustContain(t, out, "of the staging database", "minLength")
	_, stderr := w.ok("inbox")
	mustContain(t, stderr, "Jobs ask too, 1 question: ", "placet", "decisions")
	mustContain(t, w.refused(1, "ask", j.JobID, "p", "--form", "{"), "The form cannot be used")
	w.ok("resolve", q.DecisionID, "go on", "--input", `{"password":"12345678"}`)
}
