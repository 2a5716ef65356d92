package job

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A launch's directory as the first release wrote it is read by this one: the layout only
// gains files and fields.
func TestLayoutOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	const d, claim = launchDir("testdata/launch-v1"), "claim-1"
	began := time.Date(2026, 1, 1, 12, 0, 0, 1000, time.UTC)
	const runner, leader = "v1:boot-1:4026531836:41:9001", "v1:boot-1:4026531836:42:9002"
	if ours, err := d.claimed(claim); err != nil || !ours {
		t.Errorf("claim: %v", err)
	}
	id, found, err := d.identity(claim)
	if want := (identity{V: 1, Claim: claim, Runner: runner, Session: runner, Mark: "mark-1", Leader: leader, StartedAt: began}); err != nil || !found || id != want {
		t.Errorf("identity: %+v, %v", id, err)
	}
	st, found, err := d.status(claim)
	if want := (status{
		V: 1, Claim: claim, Runner: runner, Status: Failed, ExitCode: 3, Signal: "SIGTERM", Failure: "It exited with status 3.",
		StartedAt: began, EndedAt: began.Truncate(time.Second).Add(2 * time.Second),
	}); err != nil || !found || st != want {
		t.Errorf("status: %+v, %v", st, err)
	}
	f, err := os.Open(d.file(eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{conf: Config{MaxOutputs: MaxOutputs}}
	got, err := s.nextRecords(f, Job{ID: "job_1", Status: Running, Claim: claim})
	if err != nil || got.Offset != fi.Size() || got.Outputs != 2 || string(got.Progress) != `{"done":1}` || !got.Dropped {
		t.Errorf("%+v, %v", got, err)
	}
	var list []string
	for _, e := range got.Events {
		list = append(list, string(e.Type))
	}
	if told := strings.Join(list, " "); told != "job.output job.output log_truncated log_capture_failed output_dropped" {
		t.Errorf("events: %s", told)
	}
	for name, want := range map[string]string{outFile: "to stdout\n", errFile: "to stderr\n"} {
		if b, err := os.ReadFile(d.file(name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	// What this release writes has every field of the first one's.
	for name, v := range map[string]any{identityFile: id, statusFile: st} {
		var first, now map[string]any
		old, _ := os.ReadFile(d.file(name))
		b, _ := json.Marshal(v)
		if json.Unmarshal(old, &first) != nil || json.Unmarshal(b, &now) != nil {
			t.Fatal(name)
		}
		for field := range first {
			if _, there := now[field]; !there {
				t.Errorf("%s has no %s any more", name, field)
			}
		}
	}
}

// runIn runs a runner in a directory to its end, with an order for that claim.
func runIn(t *testing.T, d launchDir, claim string, argv ...string) (stderr string) {
	t.Helper()
	b, err := json.Marshal(order{
		V: Layout, JobID: "job_1", Claim: claim, Mark: randomText(), Argv: argv, Cwd: "/", Env: []string{"PATH=" + os.Getenv("PATH")},
		KillAfter: time.Second, LogLimit: LogLimit, MaxOutputs: 10, MaxEventBytes: MaxEventBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	read, ready, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(read, ready)
	cmd := exec.Command(os.Args[0], RunnerCommand, string(d))
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = bytes.NewReader(b), &said, []*os.File{ready}
	_ = cmd.Run()
	return said.String()
}

// A runner whose claim was replaced, or that comes to a launch that has begun, starts
// nothing and leaves the directory as it is.
func TestRunnerOfAnotherClaim(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claim, file, content string
		begins               bool
	}{
		"its own":                      {"mine", "", "", true},
		"another's claim":              {"other", "", "", false},
		"a void claim":                 {voidClaim, "", "", false},
		"another has begun":            {"mine", identityFile, `{"claim":"other"}`, false},
		"another has begun and ended":  {"mine", statusFile, `{"claim":"other"}`, false},
		"an identity it does not know": {"mine", identityFile, `broken`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := launchDir(t.TempDir())
			witness := filepath.Join(t.TempDir(), "witness")
			if err := os.WriteFile(d.file(claimFile), []byte(tt.claim), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.file != "" {
				if err := os.WriteFile(d.file(tt.file), []byte(tt.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said := runIn(t, d, "mine", "touch", witness)
			if _, err := os.Stat(witness); (err == nil) != tt.begins {
				t.Errorf("the command ran: %v; the runner said %q", err == nil, said)
			}
			if _, found, _ := d.identity("mine"); found != tt.begins {
				t.Errorf("it wrote its identity: %v", found)
			}
			if _, found, _ := d.status("mine"); found != tt.begins {
				t.Errorf("it wrote a status: %v", found)
			}
		})
	}
}

// Who the runner is, is written before the command is started: also where that fails.
func TestIdentityComesFirst(t *testing.T) {
	t.Parallel()
	d := launchDir(filepath.Join(t.TempDir(), "1"))
	if err := d.prepare("mine"); err != nil {
		t.Fatal(err)
	}
	runIn(t, d, "mine", "/no/such/program")
	id, found, err := d.identity("mine")
	if err != nil || !found || id.Runner == "" || id.Session == "" || !id.StartedAt.IsZero() {
		t.Errorf("%+v, %v, %v", id, found, err)
	}
	if st, found, err := d.status("mine"); err != nil || !found || st.Status != Failed || !st.StartedAt.IsZero() {
		t.Errorf("%+v, %v", st, err)
	}
	if fi, err := os.Stat(string(d)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", fi.Mode(), err)
	}
}

// A directory in which a launch has begun is never prepared for another.
func TestPrepareLeavesWhatBegan(t *testing.T) {
	t.Parallel()
	for _, name := range []string{identityFile, statusFile} {
		d := launchDir(t.TempDir())
		if err := os.WriteFile(d.file(name), []byte(`{"claim":"other"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.prepare("mine"); err == nil {
			t.Errorf("with a %s of another claim", name)
		}
		if _, err := os.Stat(d.file(claimFile)); err == nil {
			t.Error("the claim was written")
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := NewSupervisor(Config{Log: slog.New(slog.DiscardHandler)}).conf
	if c.LogLimit != 10<<20 || c.MaxOutputs != 100_000 || c.MaxEventBytes != 64<<10 || MaxLine != 1<<20 {
		t.Errorf("limits: %+v", c)
	}
	if DefaultKillAfter != 10*time.Second || MaxKillAfter != time.Hour || atOnce != 100 {
		t.Error("the patience of a stop, or what is taken in at once")
	}
}
