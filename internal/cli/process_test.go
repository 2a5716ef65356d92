package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// Following prints what is there and what comes, whoever writes it; an interrupt is its proper end.
func TestFollowEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	c := w.command("--json", "events", "call:"+p.CallID, "--follow")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), `"type":"`+want+`"`) {
			t.Fatalf("got %q, want %s", lines.Text(), want)
		}
	}
	next("call.created")
	next("approval.requested")
	if err := (decision.Operator{Store: w.store}).ApproveShown(t.Context(), p.RunID, p.ApprovalID, p.Digest, "ana", ""); err != nil {
		t.Fatal(err)
	}
	next("approval.decided")
	if _, err := w.ex.Resume(t.Context(), p.ApprovalID, nil); err != nil {
		t.Fatal(err)
	}
	next("call.started")
	next("call.finished")
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// Of several that wait for one call, one runs it, and all of them tell its outcome.
func TestAllWhoWaitForOneCallGetItsOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := []string{"--json", "call", "refund", "--args", `{"order_id":"o-1","amount":60}`, "--run", "r", "--call", "c"}
	stdout, _, code := w.run(args...)
	var parked struct {
		ApprovalID string `json:"approval_id"`
	}
	if err := json.Unmarshal([]byte(stdout), &parked); err != nil || code != 4 {
		t.Fatalf("exit code %d: %s", code, stdout)
	}
	const waiters = 4
	var outs [waiters]bytes.Buffer
	var ended sync.WaitGroup
	for i := range waiters {
		c := w.command(append(args, "--wait", "60s")...)
		c.Stdout, c.Stderr = &outs[i], &outs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended.Add(1)
		go func() {
			defer ended.Done()
			_ = c.Wait() // its answer tells
		}()
	}
	if _, stderr, code := w.run("approve", parked.ApprovalID, "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	ended.Wait()
	won := 0
	for i := range outs {
		text := outs[i].String()
		if strings.Contains(text, `"status":"succeeded"`) {
			won++
			continue
		}
		// One that came when it was over already asked for a call that is done.
		if !strings.Contains(text, `"reason":"already_decided"`) {
			t.Errorf("got %s", text)
		}
	}
	if won == 0 {
		t.Error("none of them tells the outcome")
	}
	ran, err := os.ReadFile(filepath.Join(w.dir, "ran.txt"))
	if err != nil || string(ran) != `{"order_id":"o-1","amount":60}`+"\n" {
		t.Errorf("the tool ran: %q, %v", ran, err)
	}
}

// An interrupt while the tool runs ends the tool, and what is known of it is stored.
func TestInterruptWhileTheToolRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := filepath.Join(w.dir, "started")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho x >started\nexec sleep 60\n"
	if err := os.WriteFile(filepath.Join(w.dir, "refund.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := w.park()
	if _, stderr, code := w.run("approve", p.ApprovalID, "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	c := w.command("--json", "resume", p.ApprovalID)
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(fifo); err != nil { // the tool is running
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if c.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), `"status":"unknown"`) {
		t.Errorf("%s: %s", c.ProcessState, out.String())
	}
	stdout, _, _ := w.run("--json", "show", p.CallID)
	mustContain(t, stdout, `"status":"`+string(call.Unknown)+`"`, `"outcome":"unknown"`)
}

// An interrupt while it waits for a person leaves the call parked, and tells its id.
func TestInterruptWhileItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.command("--json", "call", "refund", "--args", `{"order_id":"o-1","amount":60}`, "--wait", "60s")
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := event.Wait(t.Context(), w.store, event.Waiting{Types: []event.Type{event.ApprovalRequested}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if c.ProcessState.ExitCode() != 4 {
		t.Errorf("%s: %s", c.ProcessState, out.String())
	}
	mustContain(t, out.String(), `"status":"pending","approval_id":"`+got.Event.Subject+`"`)
	if d := w.show(got.Event.Subject); d.Status != decision.Pending {
		t.Errorf("it is %s", d.Status)
	}
}

// An answer that could not be written was not given.
func TestFullOutputIsAFailure(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	w := newWorld(t)
	w.park()
	c := w.command("approvals")
	c.Stdout = full
	var errs bytes.Buffer
	c.Stderr = &errs
	_ = c.Run()
	if c.ProcessState.ExitCode() != 1 {
		t.Errorf("%s: %s", c.ProcessState, errs.String())
	}
	mustContain(t, errs.String(), "no space left")
}
