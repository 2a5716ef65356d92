package daemontest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/internal/tidy"
	"github.com/placet-dev/placet/job"
)

// daemon is one process of placet serve.
type daemon struct {
	group  *process.Group
	secret string        // of the home's admin token
	ended  chan struct{} // closed once state is known
	state  *os.ProcessState
}

// told is what serve prints of where it is.
type told struct {
	URL       string `json:"url"`
	TokenFile string `json:"token_file"`
}

// serve starts a daemon and returns once it serves.
func (w *World) serve() {
	w.tb.Helper()
	cmd := w.Command(append([]string{"--json", "serve", "--listen", w.listen}, w.o.Flags...)...)
	d, at, err := begin(cmd, &w.log)
	if err != nil {
		w.tb.Fatalf("placet serve: %v\n%s", err, w.log.String())
	}
	w.daemon, w.URL, w.listen = d, at.URL, strings.TrimPrefix(at.URL, "http://")
}

func begin(cmd *exec.Cmd, log io.Writer) (d *daemon, at told, err error) {
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, at, err
	}
	d = &daemon{ended: make(chan struct{})}
	if d.group, err = process.Start(cmd); err != nil {
		return nil, at, err
	}
	if err := tidy.Group(d.group.PID()); err != nil {
		d.group.Signal(os.Kill)
		return nil, at, err
	}
	late := time.AfterFunc(patience, func() { d.group.Signal(os.Kill) })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	late.Stop()
	go d.await(out)
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err == nil {
		var secret []byte
		secret, err = os.ReadFile(at.TokenFile)
		d.secret = strings.TrimSpace(string(secret))
	}
	if err != nil {
		d.group.Signal(os.Kill)
		<-d.ended
		return nil, at, fmt.Errorf("it did not begin to serve (%s): %w", d.state, err)
	}
	return d, at, nil
}

// await notes how it ended.
func (d *daemon) await(out io.Reader) {
	defer close(d.ended)
	_, _ = io.Copy(io.Discard, out) // its end is the process's
	d.state, _ = d.group.Wait()
	_ = tidy.Forget(d.group.PID()) // there is nobody in it: jobs have sessions of their own
}

// Stop tells the daemon to end, and waits until it has: as its service manager would.
func (w *World) Stop() {
	w.tb.Helper()
	w.daemon.group.Signal(syscall.SIGTERM)
	w.await()
	if !w.daemon.state.Success() {
		w.tb.Fatalf("placet serve was told to stop, and ended with %s:\n%s", w.daemon.state, w.log.String())
	}
}

// Kill9 ends the daemon as a crash would. Jobs go on.
func (w *World) Kill9() {
	w.tb.Helper()
	w.daemon.group.Signal(syscall.SIGKILL)
	w.await()
}

func (w *World) await() {
	w.tb.Helper()
	select {
	case <-w.daemon.ended:
	case <-time.After(patience):
		w.tb.Fatalf("placet serve does not end:\n%s", w.log.String())
	}
}

// Running reports whether there is a daemon.
func (w *World) Running() bool {
	select {
	case <-w.daemon.ended:
		return false
	default:
		return true
	}
}

// Restart serves the world again, at the same address, after the daemon was stopped where
// one still runs.
func (w *World) Restart() {
	w.tb.Helper()
	if w.Running() {
		w.Stop()
	}
	w.serve()
}

// end stops everything. Jobs are stopped by whoever can: what is left of them ends with
// the folder.
func (w *World) end() {
	if w.daemon == nil {
		return
	}
	if w.Running() {
		w.stopJobs()
		w.Stop()
	}
	if w.tb.Failed() {
		w.tb.Logf("placet serve said:\n%s", w.log.String())
	}
}

func (w *World) stopJobs() {
	ctx, cancel := within(patience)
	defer cancel()
	l, _ := w.Admin.Jobs(ctx, httpapi.JobQuery{Status: job.Running, Limit: 500}) // a daemon that does not answer fails to stop, too
	for _, j := range l.Jobs {
		_, _ = w.Admin.StopJob(ctx, j.JobID, httpapi.Stopping{KillAfterSeconds: 1})
	}
}

// logs is what the daemons said, one after the other.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
