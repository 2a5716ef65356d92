package call_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// The test binary is also the other process: what it has to do stands in its environment.
const childEnv = "PLACET_CALL_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childEnv); task != "" {
		if err := beChild(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if !flagSet("rapid.checks") { // fewer where everything is slow, longer stories than the library's own
		_ = flag.Set("rapid.checks", fmt.Sprint(rounds(150)))
		_ = flag.Set("rapid.steps", "50")
	}
	goleak.VerifyTestMain(m)
}

func flagSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// task is what another process has to do.
type task struct {
	Path    string // of the store
	Witness string // file to which the tool adds a line for each effect
	Do      string // an action, or "serve" for those that come in line by line
	ID      string
	Die     string // where to be killed
	Ahead   time.Duration
}

func beChild(text string) error {
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	h, err := k.open()
	if err != nil {
		return err
	}
	if k.Do != "serve" {
		fmt.Println(h.do(k.Do, k.ID))
		return nil // as it is: without closing anything
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		do, id, _ := strings.Cut(in.Text(), " ")
		fmt.Println(h.do(do, id))
	}
	return in.Err()
}

// hand is what one process acts with.
type hand struct {
	ctx context.Context
	ex  *call.Executor
	op  decision.Operator
}

func (k task) open() (*hand, error) {
	now := func() time.Time { return time.Now().Add(k.Ahead) }
	ctx := context.Background()
	st, err := sqlite.Open(ctx, k.Path, &sqlite.Options{Now: now, BusyTimeout: 5 * time.Minute})
	if err != nil {
		return nil, err
	}
	reg, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation},
		Run:  tool.RunnerFunc(k.tool),
	})
	if err != nil {
		return nil, err
	}
	obs := event.ObserverFunc(func(e event.Event) { k.dieAt("after " + string(e.Type)) })
	rules := policy.Func(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
		k.dieAt("while judging")
		return policy.Default().Evaluate(ctx, r, v)
	})
	ex := call.NewExecutor(call.Config{Store: st, Tools: reg, Policy: rules, Observer: obs, Now: now, Log: slog.New(slog.DiscardHandler)})
	return &hand{ctx, ex, decision.Operator{Store: st, Observer: obs, Now: now}}, nil
}

// tool has an effect that outlives the process: one line, written at once.
func (k task) tool(_ context.Context, c tool.Call) (json.RawMessage, error) {
	k.dieAt("before the effect")
	f, err := os.OpenFile(k.Witness, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s\n", c.CallID, c.Args); err != nil {
		return nil, err
	}
	k.dieAt("after the effect")
	return json.RawMessage(`"done"`), nil
}

func (k task) dieAt(point string) {
	if k.Die == point {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
}

// do carries out one action and says how it ended, in a word.
func (h *hand) do(action, id string) string {
	var res call.Result
	var d decision.Decision
	var err error
	switch action {
	case "park":
		res, err = h.ex.Call(h.ctx, "refund", []byte(`{"n":1}`))
	case "resume":
		res, err = h.ex.Resume(h.ctx, id, nil)
	case "resume-yes":
		res, err = h.ex.Resume(h.ctx, id, yes("ana"))
	case "resume-no":
		res, err = h.ex.Resume(h.ctx, id, no("bo"))
	case "approve":
		d, err = h.op.Decide(h.ctx, id, *yes("ana"))
	case "reject":
		d, err = h.op.Decide(h.ctx, id, *no("bo"))
	case "withdraw":
		d, err = h.op.Withdraw(h.ctx, id, "bot", "")
	case "expire":
		d, err = h.op.Expire(h.ctx, id)
	case "sweep":
		_, err = h.ex.Sweep(h.ctx, 100)
		res.Status = "swept"
	case "resumes": // many at once, each with its own word
		words := make([]string, 25)
		race(len(words), func(i int) { words[i] = h.do("resume", id) })
		return strings.Join(words, " ")
	default:
		return "no such action"
	}
	var p *call.PendingError
	switch {
	case errors.As(err, &p):
		return "parked " + p.ApprovalID
	case err != nil:
		return reason(err)
	case d.Status != "":
		return string(d.Status)
	}
	return string(res.Status)
}

// child is another process that waits for actions.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (k task) command() *exec.Cmd {
	b, err := json.Marshal(k)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	cmd.Stderr = os.Stderr
	return cmd
}

// run is one action in a process of its own; killed: it did not live to tell.
func (k task) run(t tester) (word string, killed bool) {
	t.Helper()
	cmd := k.command()
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	if err != nil && k.Die == "" {
		t.Fatalf("%s: %v", k.Do, err)
	}
	return strings.TrimSpace(out.String()), err != nil
}

func (k task) serve(t *testing.T) *child {
	t.Helper()
	k.Do = "serve"
	cmd := k.command()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewScanner(out)}
	c.out.Buffer(nil, 1<<20)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if got := c.answer(); got != "ready" {
		t.Fatalf("the other process said %q", got)
	}
	return c
}

func (c *child) ask(action, id string) {
	if _, err := fmt.Fprintln(c.in, action, id); err != nil {
		c.t.Error(err)
	}
}

func (c *child) answer() string {
	if !c.out.Scan() {
		c.t.Errorf("the other process is gone: %v", c.out.Err())
	}
	return c.out.Text()
}

// shared is a world in real time that several processes share.
type shared struct {
	*world
	task
}

func share(t *testing.T) *shared {
	t.Helper()
	w := quick(t)
	w.clock.set(time.Now())
	return &shared{w, task{Path: w.path, Witness: filepath.Join(filepath.Dir(w.path), "witness")}}
}

// effects are the lines that the tool left of one call.
func (s *shared) effects(callID string) int {
	b, err := os.ReadFile(s.Witness)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.Count(string(b), callID+` {"n":1}`+"\n")
}

func (s *shared) do(action, id string) string {
	k := s.task
	k.Do, k.ID = action, id
	word, _ := k.run(s.t)
	return word
}

// 2: every step in a process of its own, and each of them knows only the store.
func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	s := share(t)
	id, ok := strings.CutPrefix(s.do("park", ""), "parked ")
	if !ok {
		t.Fatal("not parked")
	}
	callID := s.decision(id).CallID
	for _, turn := range []struct{ do, want string }{
		{"resume", "usage"}, {"approve", "approved"}, {"approve", "not_pending"}, {"resume", "succeeded"}, {"resume", "already_decided"}, {"resume-yes", "already_decided"},
	} {
		if got := s.do(turn.do, id); got != turn.want {
			t.Errorf("%s: %s, want %s", turn.do, got, turn.want)
		}
	}
	if n := s.effects(callID); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Killed with SIGKILL at every point on the way from a yes to a result: the effect is
// there once, or not and the next resume brings it, or a person is asked. Never twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	points := []struct {
		die, do string
		effects int    // when it died
		next    string // what the next resume says, once the lease ended
	}{
		{"after approval.decided", "approve", 0, "succeeded"},
		{"after approval.decided", "resume-yes", 0, "succeeded"},
		{"while judging", "resume", 0, "succeeded"},
		{"after call.started", "resume", 0, "parked"},
		{"before the effect", "resume", 0, "parked"},
		{"after the effect", "resume", 1, "parked"},
		{"after call.finished", "resume", 1, "already_decided"},
	}
	for _, p := range points {
		t.Run(p.do+" killed "+p.die, func(t *testing.T) {
			t.Parallel()
			for range rounds(3) {
				s := share(t)
				parked := s.park(`{"n":1}`)
				if p.do == "resume" {
					s.approve(parked.ApprovalID)
				}
				k := s.task
				k.Do, k.ID, k.Die = p.do, parked.ApprovalID, p.die
				if word, killed := k.run(t); !killed {
					t.Fatalf("it lived and said %s", word)
				}
				if n := s.effects(parked.CallID); n != p.effects {
					t.Fatalf("%d effects, want %d", n, p.effects)
				}
				// Before the lease ends nobody takes over.
				if p.next == "parked" {
					if got := s.do("resume", parked.ApprovalID); got != "already_decided" {
						t.Errorf("while the lease runs: %s", got)
					}
					if c := s.call(parked.CallID); c.Status != call.Running {
						t.Errorf("call %+v", c)
					}
				}
				s.task.Ahead = 2*call.DefaultLease + time.Second
				got := s.do("resume", parked.ApprovalID)
				word, again, _ := strings.Cut(got, " ")
				if word != p.next {
					t.Fatalf("the next resume: %s, want %s", got, p.next)
				}
				if word != "parked" {
					if n := s.effects(parked.CallID); n != 1 {
						t.Errorf("%d effects in the end", n)
					}
					continue
				}
				d, c := s.decision(again), s.call(parked.CallID)
				if d.Kind != decision.KindInterrupted || c.Status != call.Unknown || s.effects(parked.CallID) != p.effects {
					t.Errorf("call %s asks %s, %d effects", c.Status, d.Kind, s.effects(parked.CallID))
				}
				s.do("approve", again)
				if got := s.do("resume", again); got != "succeeded" {
					t.Errorf("after a new yes: %s", got)
				}
				if n := s.effects(parked.CallID); n != p.effects+1 {
					t.Errorf("%d effects after a new yes", n)
				}
			}
		})
	}
}

// 9: fifty resumes at once, over two processes.
func TestFiftyResumes(t *testing.T) {
	t.Parallel()
	s := share(t)
	a, b := s.serve(t), s.serve(t)
	for range rounds(20) {
		p := s.park(`{"n":1}`)
		s.approve(p.ApprovalID)
		a.ask("resumes", p.ApprovalID)
		b.ask("resumes", p.ApprovalID)
		words := strings.Fields(a.answer() + " " + b.answer())
		count := map[string]int{}
		for _, w := range words {
			count[w]++
		}
		if len(words) != 50 || count["succeeded"] != 1 || count["succeeded"]+count["already_decided"]+count["run_state"]+count["moved"] != 50 {
			t.Errorf("got %v", count)
		}
		if n := s.effects(p.CallID); n != 1 {
			t.Errorf("%d effects", n)
		}
	}
}

// Two processes at one approval: the table of race_test.go, over a pipe.
func TestRacesOfProcesses(t *testing.T) {
	t.Parallel()
	s := share(t)
	a, b := s.serve(t), s.serve(t)
	for _, r := range races {
		if r.later != 0 {
			continue
		}
		for range rounds(40) {
			p := r.ready(s.world)
			a.ask(r.a, p.ApprovalID)
			b.ask(r.b, p.ApprovalID)
			x, y := a.answer(), b.answer()
			if problem := r.judge(s.world, p, x, y, s.effects(p.CallID)); problem != "" {
				t.Errorf("%s %s, %s %s: %s", r.a, x, r.b, y, problem)
			}
		}
	}
}
