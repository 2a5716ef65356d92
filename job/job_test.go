package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/txn"
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.run(shell(`echo out; echo err >&2; echo $PLACET_JOB_ID`))
	if j.Status != job.Completed || j.ExitCode != 0 || j.StartedAt.IsZero() || j.EndedAt.Before(j.StartedAt) {
		t.Fatalf("%+v", j)
	}
	if got := w.output(j.ID, job.Stdout); got != "out\n"+j.ID+"\n" {
		t.Errorf("stdout %q", got)
	}
	if got := w.output(j.ID, job.Stderr); got != "err\n" {
		t.Errorf("stderr %q", got)
	}
	if got := types(w.events(j.ID)); got != "queued started completed" {
		t.Errorf("events: %s", got)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		spec   job.Spec
		status job.Status
		code   int
		failed string
	}{
		{shell("exit 7"), job.Failed, 7, "status 7"},
		{shell("kill -9 $$"), job.Failed, -1, "SIGKILL"},
		{job.Spec{Command: []string{"no-such-program"}}, job.Failed, -1, "no program"},
		{job.Spec{Command: []string{"/bin/true"}, Cwd: "/no/such/folder"}, job.Failed, -1, `could not be started: there is no folder "/no/such/folder" to run it in`},
		{job.Spec{Command: []string{"/bin/true"}, Cwd: "/dev/null"}, job.Failed, -1, `"/dev/null" is no folder`},
		{job.Spec{Command: []string{"/no/such/program"}}, job.Failed, -1, `there is no program "/no/such/program"`},
		{job.Spec{Command: []string{"/dev/null"}}, job.Failed, -1, `"/dev/null" may not be executed`},
		{job.Spec{Command: []string{script}}, job.Failed, -1, "or the interpreter that its first line names is not there"},
		{func() job.Spec { s := command("hang"); s.Timeout = time.Second; return s }(), job.TimedOut, -1, "time limit"},
	} {
		j := w.run(tt.spec)
		if j.Status != tt.status || j.ExitCode != tt.code || !strings.Contains(j.Failure, tt.failed) {
			t.Errorf("%v: %s, %d, %q", tt.spec, j.Status, j.ExitCode, j.Failure)
		}
	}
}

// What a command does not read is not taken for sent, and the refusal says so in words.
func TestSendToWhoDoesNotRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	deaf := w.start(command("hang"))
	err := w.s.Send(w.ctx, deaf.ID, make([]byte, 200_000), false)
	var f *fault.Error
	if !errors.As(err, &f) || !strings.Contains(f.Message, " of 200000 bytes, and then read nothing for 3 seconds.") ||
		f.Advice != "The rest was not sent. Send it from there on, once the command reads again." {
		t.Errorf("%v", err)
	}
	closed := w.start(shell("exec 0<&-; echo ready; sleep 60"))
	w.until(closed.ID, "ready")
	if err := w.s.Send(w.ctx, closed.ID, []byte("x"), false); err == nil || !strings.Contains(err.Error(), "has closed its standard input") {
		t.Errorf("%v", err)
	}
	if err := w.s.Send(w.ctx, deaf.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, deaf.ID, []byte("x"), false); err == nil || !strings.Contains(err.Error(), "was closed before") {
		t.Errorf("%v", err)
	}
	for _, j := range []job.Job{deaf, closed} {
		if _, err := w.s.Stop(w.ctx, j.ID, "ana", time.Second); err != nil {
			t.Error(err)
		}
	}
}

// A name that is to be masked and has no value masks nothing: it is a slip.
func TestSecretsAreInTheEnvironment(t *testing.T) {
	t.Parallel()
	w := setup(t)
	spec := shell("true")
	spec.Env, spec.SecretEnv = map[string]string{"API_KEY": "k"}, []string{"API_KEY", "API_KEYS"}
	if _, err := w.s.Start(w.ctx, job.Starting{Spec: spec}); !errors.Is(err, job.ErrUsage) || !strings.Contains(err.Error(), "API_KEYS") {
		t.Errorf("%v", err)
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	asked, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	if now := w.get(j.ID); now.Status != job.Running || now.Pending != 1 || now.Questions != 1 {
		t.Errorf("%+v", now)
	}
	if _, err := w.op.Resolve(w.ctx, j.ID, asked.ID, decision.Answering{Choice: "approve", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	got, err := w.s.Wait(w.ctx, job.Waiting{JobID: j.ID, DecisionID: asked.ID, After: asked.Cursor})
	if err != nil || got.Event.Type != "decision_resolved" {
		t.Fatalf("%+v, %v", got, err)
	}
	second, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "And now?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, j.ID, []byte("end\n"), false); err != nil {
		t.Fatal(err)
	}
	got, err = w.s.Wait(w.ctx, job.Waiting{JobID: j.ID, DecisionID: second.ID, After: second.Cursor})
	if err != nil || got.Event.Type != "decision_withdrawn" || got.Event.Actor != "system" {
		t.Fatalf("%+v, %v", got, err)
	}
	if j = w.get(j.ID); j.Status != job.Completed || j.Pending != 0 {
		t.Errorf("%+v", j)
	}
	if _, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Too late?"}); !errors.Is(err, decision.ErrRunState) {
		t.Errorf("a question of a job that has ended: %v", err)
	}
	if _, err := w.op.Ask(w.ctx, "main", "job_none", decision.Asking{Prompt: "Who?"}); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("a question of no job: %v", err)
	}
	if _, err := w.op.Ask(w.ctx, "other", j.ID, decision.Asking{Prompt: "Whose?"}); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("a question of another space's job: %v", err)
	}
	const want = "queued started decision_requested decision_resolved decision_requested decision_withdrawn completed"
	if got := types(w.events(j.ID)); got != want {
		t.Errorf("events: %s", got)
	}
}

// An idempotency key answers only in the space of the job that it was used for.
// A question's key that comes again with other content is a conflict of keys: the
// question itself still waits.
func TestQuestionKeyUsedAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	ask := decision.Asking{Prompt: "Go on?", By: "bot", IdempotencyKey: "k"}
	first, err := w.op.Ask(w.ctx, "main", j.ID, ask)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.op.Ask(w.ctx, "main", j.ID, ask)
	if err != nil || again.ID != first.ID || again.Cursor != first.Cursor {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	ask.Prompt = "Stop?"
	_, err = w.op.Ask(w.ctx, "main", j.ID, ask)
	if !errors.Is(err, decision.ErrKeyConflict) || !errors.Is(err, job.ErrKeyConflict) || errors.Is(err, decision.ErrNotPending) || errors.Is(err, decision.ErrChoiceConflict) {
		t.Errorf("another question: %v", err)
	}
	if now := w.get(j.ID); now.Pending != 1 {
		t.Errorf("%d questions wait", now.Pending)
	}
}

func TestAKeyIsNoDoorToAnotherSpace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(shell("read x"))
	q := decision.Asking{Prompt: "Go on?", By: "bot", IdempotencyKey: "k"}
	first, err := w.op.Ask(w.ctx, "main", j.ID, q)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.op.Ask(w.ctx, "main", j.ID, q); err != nil || again.ID != first.ID {
		t.Errorf("asked again: %s instead of %s, %v", again.ID, first.ID, err)
	}
	if _, err := w.op.Ask(w.ctx, "other", j.ID, q); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("from another space: %v", err)
	}
}

// Answers that come while the job ends are stored, or refused: none is acknowledged and
// missing (case 012).
func TestAnswersAtTheEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop(w.s)
	for range 3 {
		j := w.start(command("echo"))
		qs := make([]decision.AskedAt, 3)
		for i := range qs {
			var err error
			if qs[i], err = w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.s.Send(w.ctx, j.ID, []byte("end\n"), false); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, len(qs))
		var all sync.WaitGroup
		for i, q := range qs {
			all.Go(func() { _, errs[i] = w.op.Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"}) })
		}
		all.Wait()
		w.end(j.ID)
		told := types(w.events(j.ID))
		answered := 0
		for i, q := range qs {
			d := w.question(q.ID)
			if (errs[i] == nil) != (d.Status == decision.Resolved) || errs[i] != nil && !errors.Is(errs[i], decision.ErrWithdrawn) {
				t.Errorf("%s: %v", d.Status, errs[i])
			}
			if errs[i] == nil {
				answered++
			}
		}
		if strings.Count(told, "decision_resolved") != answered || strings.Count(told, "decision_withdrawn") != len(qs)-answered {
			t.Errorf("%d answered, events: %s", answered, told)
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("hang"))
	w.until(j.ID, "ready")
	for range 2 {
		got, err := w.s.Stop(w.ctx, j.ID, "ana", time.Minute)
		if err != nil || got.Status != job.Cancelled {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	j = w.start(command("stubborn"))
	w.until(j.ID, "ready")
	got, err := w.s.Stop(w.ctx, j.ID, "ana", time.Millisecond)
	if err != nil || got.Status != job.Cancelled {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := types(w.events(j.ID)); got != "queued started cancelled" {
		t.Errorf("events: %s", got)
	}
}

func (w *world) question(id string) (d decision.Decision) {
	w.Helper()
	err := txn.View(w.ctx, w.st, func(tx job.Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// An overdue question expires once, however many look; the job's status stays, and a
// late answer is refused.
func TestQuestionExpires(t *testing.T) {
	t.Parallel()
	var clock placettest.Clock
	w := setupAt(t, clock.Now)
	j := w.start(command("echo"))
	ask := func() decision.AskedAt {
		q, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", Timeout: time.Second, By: "bot"})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q, late := ask(), ask()
	clock.Advance(time.Second + time.Microsecond)
	if _, err := w.op.Resolve(w.ctx, j.ID, late.ID, decision.Answering{Choice: "approve", By: "ana"}); !errors.Is(err, decision.ErrExpired) {
		t.Errorf("an answer that is late: %v", err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := w.op.ExpireDue(w.ctx, 10); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := w.op.WithdrawQuestion(w.ctx, j.ID, q.ID, "bot", ""); !errors.Is(err, decision.ErrExpired) {
		t.Errorf("a withdrawal that is late: %v", err)
	}
	if now := w.get(j.ID); now.Status != job.Running || now.Pending != 0 || now.Questions != 2 {
		t.Errorf("%+v", now)
	}
	if n := strings.Count(types(w.events(j.ID)), "decision_expired"); n != 2 {
		t.Errorf("%d questions expired", n)
	}
}
