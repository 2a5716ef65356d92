package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
)

// RunnerCommand is the word by which a program is asked to be a runner.
const RunnerCommand = "job-runner"

const (
	markName   = "PLACET_JOB_LAUNCH"
	lingerFor  = time.Second            // how long what the command left may go on printing
	drainFor   = 5 * time.Second        // how long output may stay open once nothing runs
	lookAgain  = 20 * time.Millisecond  // between two looks at what still runs
	readyDesc  = 3                      // descriptor on which the supervisor hears that the command has begun
	reportOf   = 200 * time.Millisecond // between two tries to write the status
	stopReason = "The runner was told to end."
)

// Runner is a job's runner: it starts the command of the launch in dir, watches over
// it to its end and returns the exit code of its own process. Its order comes on
// standard input. A program answers with it to `job-runner DIR`, and does so on its
// main goroutine. It never opens the store.
func Runner(dir string) int {
	// The command dies with the thread that started it: this one must not end before.
	runtime.LockOSThread()
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	r := &runner{dir: launchDir(dir), ready: os.NewFile(readyDesc, "ready")}
	unix.CloseOnExec(readyDesc)
	if err := r.begin(); err != nil {
		fmt.Fprintln(os.Stderr, "placet job-runner:", err)
		return 1
	}
	r.watch()
	return 0
}

type runner struct {
	dir   launchDir
	order order
	ready *os.File
	held  *os.File // the lock
	id    identity

	ctl   *control
	group *process.Group
	stdin *os.File
	j     *journal
	logs  [2]*os.File
	caps  [2]*capture

	drained chan struct{} // both outputs have ended

	mu      sync.Mutex
	why     Status // what ends it before its time
	wake    chan struct{}
	killAt  time.Time
	failure string
}

// begin takes the launch and starts the command. An error says that there is nobody
// to tell but the log: the launch is not ours.
func (r *runner) begin() error {
	if err := json.NewDecoder(os.Stdin).Decode(&r.order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := os.Chdir(string(r.dir)); err != nil {
		return err
	}
	r.dir = "."
	var err error
	if r.held, err = r.dir.lock(); err != nil {
		return fmt.Errorf("lock the launch: %w", err)
	}
	if r.held == nil {
		return errors.New("another runner has the launch")
	}
	if ours, err := r.dir.claimed(r.order.Claim); err != nil || !ours {
		return errors.Join(errors.New("the claim is another one"), err)
	}
	if earlier, err := r.dir.begun(); err != nil || earlier != "" {
		return errors.Join(errBegunEarlier, err)
	}
	r.id = identity{V: Layout, Claim: r.order.Claim, Runner: self(), Session: ownSession(), Mark: r.order.Mark}
	if err := writeJSON(r.dir.file(identityFile), r.id); err != nil {
		return err
	}
	becomeReaper()
	if err := r.start(); err != nil {
		r.report(status{Status: Failed, ExitCode: -1, Failure: "The command could not be started: " + err.Error()})
		return err
	}
	return nil
}

// ownSession names the leader of a session that is ours: a runner that a script started
// makes its own, unless it leads a process group.
func ownSession() string {
	_, _ = unix.Setsid()
	sid, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	leader, err := process.Of(sid)
	if err != nil {
		return ""
	}
	return leader.String()
}

// start starts the command. What fails here is the job's failure.
func (r *runner) start() (err error) {
	var files []*os.File
	open := func(name string) *os.File {
		f, e := openAppend(r.dir.file(name))
		err = errors.Join(err, e)
		return f
	}
	files = append(files, open(outFile), open(errFile), open(eventsFile))
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", ctlFile)
	if err != nil {
		return err
	}
	r.wake = make(chan struct{}, 1)
	r.ctl = &control{
		claim: r.order.Claim, stop: r.stop, send: r.send, l: l,
		watchers: map[chan struct{}]struct{}{}, over: make(chan struct{}),
	}
	cmd, pipes, err := r.command()
	if err != nil {
		return err
	}
	r.group, err = process.Start(cmd)
	closeAll(pipes.theirs[:]...)
	if err != nil {
		return notStarted(cmd.Path, err)
	}
	if leader, err := process.Of(r.group.PID()); err == nil {
		r.id.Leader = leader.String()
	}
	r.id.StartedAt = time.Now().UTC().Truncate(time.Microsecond)
	r.stdin = pipes.stdin
	r.logs = [2]*os.File{files[0], files[1]}
	r.capture(pipes, files)
	go r.ctl.serve()
	if err := writeJSON(r.dir.file(identityFile), r.id); err != nil {
		r.fail("The runner could not write down that the command has begun: " + err.Error())
	}
	_, _ = io.WriteString(r.ready, "ready\n")
	r.ready.Close()
	return nil
}

type pipes struct {
	theirs   [3]*os.File
	stdin    *os.File
	out, err *os.File
}

func closeAll(fs ...*os.File) {
	for _, f := range fs {
		if f != nil {
			f.Close()
		}
	}
}

func (r *runner) command() (*exec.Cmd, pipes, error) {
	var p pipes
	if err := noFolder(r.order.Cwd); err != nil {
		return nil, p, err
	}
	path, err := lookUp(r.order.Argv[0], r.order.Cwd, r.order.Env)
	if err != nil {
		return nil, p, err
	}
	for _, pair := range []struct{ read, write **os.File }{
		{&p.theirs[0], &p.stdin}, {&p.out, &p.theirs[1]}, {&p.err, &p.theirs[2]},
	} {
		if *pair.read, *pair.write, err = os.Pipe(); err != nil {
			return nil, p, err
		}
	}
	cmd := &exec.Cmd{
		Path: path, Args: r.order.Argv, Dir: r.order.Cwd, Env: append(r.order.Env, markName+"="+r.order.Mark),
		Stdin: p.theirs[0], Stdout: p.theirs[1], Stderr: p.theirs[2], SysProcAttr: &syscall.SysProcAttr{},
	}
	boundToUs(cmd)
	return cmd, p, nil
}

// lookUp finds the program as the job would, in its own folder and PATH.
func lookUp(name, cwd string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(cwd, name), nil
	}
	path := ""
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if fi, err := os.Stat(full); err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in the job's PATH", name)
}

func (r *runner) capture(p pipes, files []*os.File) {
	o := r.order
	r.j = &journal{f: files[2], limit: o.MaxOutputs}
	each := func(name string, log *os.File) *capture {
		return &capture{name: name, log: log, left: o.LogLimit, limit: o.LogLimit, mask: newMask(o.Secrets), j: r.j, news: r.ctl.news}
	}
	r.caps = [2]*capture{each("stdout", files[0]), each("stderr", files[1])}
	r.caps[0].lines = &lines{mask: newMask(o.Secrets), max: o.MaxEventBytes, j: r.j}
	r.drained = make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() { r.caps[0].run(p.out) })
	both.Go(func() { r.caps[1].run(p.err) })
	go func() {
		both.Wait()
		close(r.drained)
	}()
}

// stop wants the command ended; the shorter patience of several wins.
func (r *runner) stop(killAfter time.Duration) { r.want(Cancelled, "", killAfter) }

func (r *runner) fail(why string) { r.want(Failed, why, r.order.KillAfter) }

func (r *runner) want(why Status, failure string, killAfter time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == "" {
		r.why, r.failure = why, failure
	}
	if at := time.Now().Add(killAfter); r.killAt.IsZero() || at.Before(r.killAt) {
		r.killAt = at
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *runner) wanted() (Status, string, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why, r.failure, r.killAt
}

// sendPatience bounds how long the command may leave its input unread.
const sendPatience = 3 * time.Second

func (r *runner) send(data []byte, eof bool) (a ctlAnswer) {
	_ = r.stdin.SetWriteDeadline(time.Now().Add(sendPatience))
	n, err := r.stdin.Write(data)
	if err == nil && eof {
		err = r.stdin.Close()
	}
	if err != nil {
		return notSent(n, len(data), err)
	}
	return a
}

// watch waits for the command's end, brings it about where it has to, and tells.
func (r *runner) watch() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	var late <-chan time.Time
	if r.order.Timeout > 0 {
		late = time.After(r.order.Timeout)
	}
	for stopping := false; !stopping; {
		select {
		case <-r.group.Exited():
			stopping = true
		case <-r.wake:
			stopping = true
		case <-late:
			r.want(TimedOut, fmt.Sprintf("Its time limit of %s passed.", r.order.Timeout), r.order.KillAfter)
		case <-told:
			r.fail(stopReason)
		case <-children:
			remaining(r.group.PID()) // collects what others left to us
		}
	}
	if why, _, _ := r.wanted(); why != "" {
		r.bringDown()
	} else {
		r.linger()
	}
	r.finish()
}

// linger lets what the command left go on printing for a moment, then kills it.
func (r *runner) linger() {
	timer := time.NewTimer(lingerFor)
	defer timer.Stop()
	select {
	case <-r.drained:
	case <-r.wake:
	case <-timer.C:
	}
	r.killAll()
}

// bringDown asks all that runs to end, and kills what is left when its time is over.
func (r *runner) bringDown() {
	pid := r.group.PID()
	signalAll(pid, unix.SIGTERM)
	_ = unix.Kill(-pid, unix.SIGCONT) // a stopped one hears nothing else
	for remaining(pid) > 0 {
		_, _, at := r.wanted()
		if !time.Now().Before(at) {
			break
		}
		select {
		case <-r.wake:
		case <-time.After(min(lookAgain, time.Until(at))):
		}
	}
	r.killAll()
}

// killAll returns once nothing of the command runs.
func (r *runner) killAll() {
	for signalAll(r.group.PID(), unix.SIGKILL) > 0 {
		time.Sleep(lookAgain / 4)
	}
}

// finish tells how it ended: what was printed first, the status last.
func (r *runner) finish() {
	ended := time.Now().UTC().Truncate(time.Microsecond)
	timer := time.NewTimer(drainFor)
	defer timer.Stop()
	lost := ""
	select {
	case <-r.drained:
		for _, c := range r.caps {
			if c.lost != nil {
				lost = c.name + ": " + c.lost.Error()
			}
		}
	case <-timer.C:
		lost = "it did not end"
	}
	if err := r.j.failure(); err != nil {
		lost = "its events: " + err.Error()
	}
	state, err := r.group.Wait()
	r.report(r.outcome(state, err, lost, ended))
	r.ctl.end()
}

func (r *runner) outcome(state *os.ProcessState, err error, lost string, ended time.Time) status {
	s := status{Status: Completed, ExitCode: -1, EndedAt: ended}
	if err == nil {
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			s.Signal = unix.SignalName(ws.Signal())
			s.Status, s.Failure = Failed, "It was ended by signal "+s.Signal+"."
		} else if s.ExitCode = state.ExitCode(); s.ExitCode != 0 {
			s.Status, s.Failure = Failed, fmt.Sprintf("It exited with status %d.", s.ExitCode)
		}
	} else {
		s.Status, s.Failure = Failed, "How it ended is not known: "+err.Error()
	}
	if s.Status == Completed && lost != "" {
		s.Status, s.Failure = Failed, "What it printed is not all there: "+lost+"."
	}
	if why, failure, _ := r.wanted(); why != "" {
		s.Status, s.Failure = why, failure
	}
	return s
}

// report writes the status. Where the disk refuses, it tries for ten seconds: without
// it the job counts as orphaned.
func (r *runner) report(s status) {
	s.V, s.Claim, s.Runner, s.StartedAt = Layout, r.order.Claim, r.id.Runner, r.id.StartedAt
	if s.EndedAt.IsZero() {
		s.EndedAt = time.Now().UTC().Truncate(time.Microsecond)
	}
	for n := 0; ; n++ {
		err := writeJSON(r.dir.file(statusFile), s)
		if err == nil || n == 50 {
			return
		}
		time.Sleep(reportOf)
	}
}
