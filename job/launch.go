package job

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/placet-dev/placet/internal/id"
)

// beginPatience bounds how long a runner takes to start the command.
const beginPatience = 30 * time.Second

// launching are the claims that this process is launching now. One that names this
// process and is not here is lost.
var launching sync.Map

// launchingNow draws the claim of a launch. done says that the launch is over with.
func launchingNow() (token string, done func()) {
	token = strings.TrimPrefix(id.New("clm_"), "clm_") + randomText()
	launching.Store(token, nil)
	return token, func() { launching.Delete(token) }
}

// markOf is what everything that a launch starts carries in its environment. The claim
// cannot be told from it.
func markOf(claim string) string {
	sum := sha256.Sum256([]byte("placet/job-mark/v1" + claim))
	return hex.EncodeToString(sum[:16])
}

func randomText() string { return "-" + strings.ToLower(rand.Text()) }

// launch starts the runner of a claimed job and returns once the store says how that
// went. The claim is held by this supervisor.
func (s *Supervisor) launch(ctx context.Context, j Job) error {
	why := s.startRunner(ctx, j)
	turn := s.oneAtATime(j.ID)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done(): // the next look, of whoever it is, finds what became of it
		return context.Cause(ctx)
	}
	defer turn.end()
	if why == nil {
		return s.bringIn(ctx, j.ID)
	}
	return s.notBegun(ctx, j, why)
}

// startRunner returns nil once the runner says that the command has begun, or that it
// could not: its directory tells which.
func (s *Supervisor) startRunner(ctx context.Context, j Job) error {
	d := s.dir(j)
	env, secrets, err := s.environment(ctx, j)
	if err != nil {
		return err
	}
	if err := d.prepare(j.Claim); err != nil {
		return err
	}
	argv := j.Spec.Command
	if j.Spec.Shell != "" {
		argv = []string{"/bin/sh", "-c", j.Spec.Shell}
	}
	b, err := json.Marshal(order{
		V: Layout, JobID: j.ID, Claim: j.Claim, Mark: markOf(j.Claim), Argv: argv, Cwd: j.Spec.Cwd, Env: env, Secrets: secrets,
		Timeout: j.Spec.Timeout, KillAfter: DefaultKillAfter, LogLimit: s.conf.LogLimit,
		MaxOutputs: s.conf.MaxOutputs, MaxEventBytes: s.conf.MaxEventBytes,
	})
	if err != nil {
		return err
	}
	ready, err := s.spawn(d, b)
	if err != nil {
		return err
	}
	defer ready.Close()
	return s.awaitReady(d, j.Claim, ready)
}

// spawn starts the runner in a session of its own, so that it outlives us and our
// terminal, and hands it its order.
func (s *Supervisor) spawn(d launchDir, b []byte) (ready *os.File, err error) {
	log, err := openAppend(d.file(runnerLog))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeAll(theirIn, ourIn)
	ready, theirReady, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirReady.Close()
	argv := append(append([]string{}, s.conf.Program...), RunnerCommand, string(d))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.base, theirIn, log, log
	cmd.ExtraFiles = []*os.File{theirReady}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		ready.Close()
		return nil, err
	}
	s.runners.Go(func() { _ = cmd.Wait() })
	theirIn.Close()
	_ = ourIn.SetWriteDeadline(time.Now().Add(s.beginPatience)) // it may hang before it reads
	if _, err := ourIn.Write(b); err != nil {
		_ = cmd.Process.Kill() // without its order it starts nothing
		ready.Close()
		return nil, fmt.Errorf("hand it its order: %w", err)
	}
	return ready, nil
}

func (s *Supervisor) awaitReady(d launchDir, claim string, ready *os.File) error {
	_ = ready.SetReadDeadline(time.Now().Add(s.beginPatience))
	_, err := bufio.NewReader(ready).ReadString('\n')
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // it lives and is slow: a later look finds out
	}
	if _, ended, _ := d.status(claim); ended {
		return nil
	}
	said, _ := os.ReadFile(d.file(runnerLog))
	return fmt.Errorf("it ended at once: %s", lastLine(said))
}

func lastLine(b []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "")
	}
	return s
}

// notBegun ends a launch of which no command was started, once it is sure that none
// will be.
func (s *Supervisor) notBegun(ctx context.Context, j Job, why error) error {
	if errors.Is(why, errBegunEarlier) { // that launch is taken over by the next look
		_, err := s.apply(ctx, j.ID, Requeue{Token: j.Claim})
		return err
	}
	d := s.dir(j)
	lock, err := s.own(d)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
		if _, begun, err := d.identity(j.Claim); err != nil || begun {
			return err // a later look judges it as lost
		}
		if err := writeWhole(d.file(claimFile), []byte(voidClaim)); err != nil {
			return err
		}
	}
	_, err = s.apply(ctx, j.ID, End{Token: j.Claim, Status: Failed, ExitCode: -1, Failure: "The runner could not be started: " + why.Error()})
	if err == nil {
		s.forget(j)
	}
	return err
}

// own takes the lock of a launch's directory. nil without an error: there is no such
// directory, and no runner that could have it.
func (s *Supervisor) own(d launchDir) (*os.File, error) {
	if _, err := os.Stat(string(d)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for n := 0; ; n++ {
		lock, err := d.lock()
		if err != nil || lock != nil {
			return lock, err
		}
		if n == 100 {
			return nil, ErrNotReached.Say("The runner still holds its lock.")
		}
		time.Sleep(lookAgain)
	}
}
