//go:build unix

package daemontest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
)

func approve(t *testing.T, w *World, r httpapi.Result) {
	t.Helper()
	if _, err := w.Reviewer.Decide(t.Context(), r.ApprovalID, httpapi.Deciding{Approved: true, Digest: r.Digest}); err != nil {
		t.Fatal(err)
	}
}

// Every tool does what its description says.
func TestTools(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{})
	long := `{"text":"` + strings.Repeat("x", 41) + `"}`
	for _, tt := range []struct {
		tool, args string
		end        call.Status
	}{
		{"refund", `{"order_id":"o-7","amount":75}`, call.Succeeded},
		{"write_note", long, call.Succeeded},
		{"deploy", `{"version":"1.2","api_key":"k"}`, call.Succeeded},
		{"publish", `{"anything":[1]}`, call.Succeeded},
		{"break", `{}`, call.Failed},
	} {
		before := len(w.Effects())
		parked := w.Call(tt.tool, tt.args)
		if got := w.Effects(); len(got) != before {
			t.Errorf("%s ran before anybody agreed: %q", tt.tool, got)
		}
		approve(t, w, parked)
		if o := w.Ended(parked.CallID); o.Status != tt.end {
			t.Errorf("%s is %s %s", tt.tool, o.Status, o.Message)
		}
		if got := w.Effects(); len(got) != before+1 || got[before] != tt.tool+" "+tt.args {
			t.Errorf("effects of %s: %q", tt.tool, got)
		}
	}
	for tool, want := range map[string]call.Status{"look": call.Succeeded, "wipe": call.Denied} {
		args := `{}`
		if tool == "look" {
			args = `{"order_id":"o-7"}`
		}
		if r, err := w.Agent.Call(t.Context(), tool, []byte(args), ""); err != nil || r.Status != want {
			t.Errorf("%s: %+v %v", tool, r, err)
		}
	}
}

// A daemon that was killed comes back at the same address, to the same store, and jobs went on.
func TestKill9AndRestart(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{})
	parked := w.Call("refund", `{"order_id":"o-7","amount":75}`)
	j := w.Job(httpapi.Starting{Name: "long"})
	was := w.URL
	w.Kill9()
	if w.Running() {
		t.Error("it runs")
	}
	if res, err := http.Get(was + "/healthz"); err == nil {
		res.Body.Close()
		t.Errorf("a killed daemon answers %s", res.Status)
	}
	w.Restart()
	if w.URL != was || !w.Running() {
		t.Errorf("%s is now %s", was, w.URL)
	}
	if o, err := w.Agent.GetJob(t.Context(), j.JobID); err != nil || o.Status != j.Status {
		t.Errorf("the job was %s and is %s: %v", j.Status, o.Status, err)
	}
	approve(t, w, parked)
	if o := w.Ended(parked.CallID); o.Status != call.Succeeded {
		t.Errorf("%s %s", o.Status, o.Message)
	}
	w.Restart() // one that still runs is stopped
	if _, err := w.Reviewer.Whoami(t.Context()); err != nil || w.URL != was {
		t.Errorf("%s: %v", w.URL, err)
	}
}

func TestQuestionsAndRuns(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{})
	j := w.Job(httpapi.Starting{Name: "train"})
	q := w.Ask(j.JobID, "How many epochs?", "ten", "twenty")
	list, err := w.Reviewer.Questions(t.Context(), httpapi.QuestionQuery{})
	if err != nil || len(list.Decisions) != 1 || list.Decisions[0].DecisionID != q.DecisionID || !slices.Equal(list.Decisions[0].Options, []string{"ten", "twenty"}) {
		t.Errorf("%+v %v", list, err)
	}
	if r := w.StartRun("give the money back"); r.Status != run.Waiting || r.PendingApproval == "" || r.Goal != "give the money back" {
		t.Errorf("%+v", r)
	}
}

// With a world everything ends that its daemon left running, also one that was killed.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*World){"served": func(*World) {}, "stopped": (*World).Stop, "killed": (*World).Kill9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ids []process.Identity
			var dir string
			t.Run("world", func(t *testing.T) {
				w := Start(t, Options{})
				dir = w.Dir
				w.Job(httpapi.Starting{Command: json.RawMessage(`"trap '' TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 1000; done"`), Cwd: dir})
				for _, pid := range []int{w.daemon.group.PID(), pidIn(t, filepath.Join(dir, "pid"))} {
					id, err := process.Of(pid)
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, id)
				}
				end(w)
			})
			for _, id := range ids {
				if process.Alive(id) {
					t.Errorf("process %d still runs", id.PID)
				}
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", dir, err)
			}
		})
	}
}

// pidIn reads the file once it is there.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatalf("%s does not come", file)
	return 0
}

func TestOptions(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{
		Flags: []string{"--may-own"},
		Files: map[string]string{"placet.yaml": "tools:\n  - {name: hail, side_effect: read_only, confirm: true, exec: [tools/hail]}\n", "tools/hail": "#!/bin/sh\necho '\"hail\"'\n"},
	})
	r := w.Call("hail", `{}`)
	if _, err := w.Admin.Decide(t.Context(), r.ApprovalID, httpapi.Deciding{Approved: true, Digest: r.Digest}); err != nil {
		t.Error(err)
	}
	if o := w.Ended(r.CallID); o.Status != call.Succeeded || string(o.Result) != `"hail"` {
		t.Errorf("%+v", o)
	}
	out, stderr, code := w.Run("", "--json", "approvals", "--status", string(decision.Consumed))
	if code != 0 || !strings.Contains(out, r.ApprovalID) {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// A world's store may be a PostgreSQL database.
func TestPostgres(t *testing.T) {
	t.Parallel()
	w := Start(t, Options{DB: pgtest.Schema(t)})
	parked := w.Call("refund", `{"order_id":"o-7","amount":75}`)
	w.Kill9()
	w.Restart()
	approve(t, w, parked)
	if o := w.Ended(parked.CallID); o.Status != call.Succeeded {
		t.Errorf("%s %s", o.Status, o.Message)
	}
	if j := w.Job(httpapi.Starting{Name: "long"}); j.Status != job.Running {
		t.Errorf("the job is %s", j.Status)
	}
	if _, err := os.Stat(w.path("placet.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file all the same: %v", err)
	}
}
