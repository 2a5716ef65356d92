package run_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// The test binary is also the other process: what it has to do stands in its environment.
const childEnv = "PLACET_RUN_TEST_CHILD"

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
		_ = flag.Set("rapid.checks", fmt.Sprint(rounds(30)))
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
	Witness string // file to which each tool adds a line for its effect
	Do      string // an action, or "serve" for those that come in line by line
	ID      string // of the run
	Die     string // where to be killed: after the n-th commit, or around an effect
	Ahead   time.Duration
}

func beChild(text string) error {
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	h, st, err := k.open()
	if err != nil {
		return err
	}
	if k.Do != "serve" {
		fmt.Println(act(h, st, k.Do, k.ID))
		return nil // as it is: without closing anything
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		do, id, _ := strings.Cut(in.Text(), " ")
		fmt.Println(act(h, st, do, id))
	}
	return in.Err()
}

// act finds out by itself what the run waits on.
func act(h *hand, st *store.Store, do, runID string) string {
	var approval string
	r, err := stored(h.ctx, st, runID)
	if err == nil {
		approval = r.ApprovalID
	} else if do != "start" {
		return word(err)
	}
	return h.do(do, runID, approval)
}

// plan is what every process's agent proposes: something that is allowed and two that
// a person has to agree to.
func plan() run.Agent {
	return placettest.NewAgent(calls("look", `{"n":1}`), calls("push", `{"n":2}`), calls("write", `{"n":3}`), calls("push", `{"n":4}`), completes(`"done"`))
}

func (k task) open() (*hand, *store.Store, error) {
	now := func() time.Time { return time.Now().Add(k.Ahead) }
	ctx := context.Background()
	st, err := sqlite.Open(ctx, k.Path, &sqlite.Options{Now: now, BusyTimeout: 5 * time.Minute})
	if err != nil {
		return nil, nil, err
	}
	reg := &tool.Registry{}
	for name, class := range classes {
		err := reg.Register(tool.Tool{
			Spec: tool.Spec{Name: name, InputSchema: json.RawMessage(schema), SideEffect: class}, Run: tool.RunnerFunc(k.tool),
		})
		if err != nil {
			return nil, nil, err
		}
	}
	n := 0
	obs := event.ObserverFunc(func(event.Event) { n++; k.dieAt(fmt.Sprintf("event %d", n)) })
	d := run.NewDriver(run.Config{Store: st, Tools: reg, Agent: plan(), Observer: obs, Now: now, Log: slog.New(slog.DiscardHandler)})
	return &hand{ctx, d, decision.Operator{Store: st, Observer: obs, Now: now}}, st, nil
}

// tool has an effect that outlives the process: one line, written at once.
func (k task) tool(_ context.Context, c tool.Call) (json.RawMessage, error) {
	k.dieAt("before the effect of " + string(c.Args))
	f, err := os.OpenFile(k.Witness, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s %s\n", c.RunID, c.Tool, c.Args); err != nil {
		return nil, err
	}
	k.dieAt("after the effect of " + string(c.Args))
	return json.RawMessage(`"done"`), nil
}

func (k task) dieAt(point string) {
	if k.Die == point {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
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
func (k task) run(t tester) (said string, killed bool) {
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

// child is another process that waits for actions.
type child struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
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
	c := &child{t, in, bufio.NewScanner(out)}
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
	w.clock.Set(time.Now())
	return &shared{w, task{Path: w.path, Witness: filepath.Join(filepath.Dir(w.path), "witness")}}
}

// effects are the lines that tools left of one run, in order.
func (s *shared) effects(runID string) string {
	b, err := os.ReadFile(s.Witness)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var all []string
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, runID+" "); ok {
			all = append(all, strings.ReplaceAll(rest, " ", ""))
		}
	}
	return strings.Join(all, " ")
}

func (s *shared) does(action, id string) string {
	k := s.task
	k.Do, k.ID = action, id
	said, _ := k.run(s.t)
	return said
}

// Every turn in a process of its own, and each of them knows only the store.
func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	s := share(t)
	for _, turn := range []struct{ do, want string }{
		{"start", "WAITING_FOR_APPROVAL"},
		{"start", "run_state"},
		{"resume", "run_state"},
		{"approve", "approved"},
		{"approve", "not_pending"},
		{"resume", "WAITING_FOR_APPROVAL"},
		{"resume", "run_state"},
		{"approve", "approved"},
		{"resume", "goal_completed"},
		{"resume", "run_state"},
		{"cancel", "run_state"},
	} {
		if got := s.does(turn.do, "run_x"); got != turn.want {
			t.Fatalf("%s: %s, want %s", turn.do, got, turn.want)
		}
	}
	const want = `look{"n":1} push{"n":2} write{"n":3} push{"n":4}`
	if got := s.effects("run_x"); got != want {
		t.Errorf("effects %s", got)
	}
}

// Killed with SIGKILL after every event of a run's life, and around every effect. The
// witness never has two lines of one approved action: where the effect may have been,
// the next process asks a person.
func TestKilled(t *testing.T) {
	t.Parallel()
	points := []string{}
	for n := 1; n <= 34; n++ {
		points = append(points, fmt.Sprintf("event %d", n))
	}
	for n := 1; n <= 4; n++ {
		points = append(points, fmt.Sprintf(`before the effect of {"n":%d}`, n), fmt.Sprintf(`after the effect of {"n":%d}`, n))
	}
	type result struct {
		deaths, asked int
	}
	results := make(chan result, len(points))
	t.Run("points", func(t *testing.T) {
		for i, die := range points {
			if i%max(raceFactor/2, 1) != 0 {
				continue
			}
			t.Run(die, func(t *testing.T) {
				t.Parallel()
				s := share(t)
				deaths, asked := s.live(t, die)
				results <- result{deaths, asked}
			})
		}
	})
	close(results)
	var all result
	for r := range results {
		all.deaths += r.deaths
		all.asked += r.asked
	}
	t.Logf("%d deaths, %d questions whether to run again", all.deaths, all.asked)
	if raceFactor == 1 && (all.deaths < 40 || all.asked < 6) {
		t.Errorf("only %d deaths and %d questions", all.deaths, all.asked)
	}
}

// live brings a run to its end, through processes each of which dies at the same
// point until nobody comes to it any more. An honest reviewer looks at the witness.
func (s *shared) live(t *testing.T, die string) (deaths, asked int) {
	k := s.task
	k.ID, k.Do = "run_x", "start"
	expect := map[string]int{}
	for turn := range 40 {
		k.Die = ""
		if deaths < 3 {
			k.Die = die
		}
		_, killed := k.run(t)
		if killed {
			deaths++
			k.Ahead += 2*call.DefaultLease + time.Second
		}
		r, err := stored(context.Background(), s.st, "run_x")
		if err != nil {
			if turn > 4 {
				t.Fatal(err)
			}
			continue
		}
		for args, n := range s.count() {
			if n > 1+expect[args] && args != `look{"n":1}` { // which may be repeated
				t.Fatalf("%s ran %d times, with %d repeats agreed to", args, n, expect[args])
			}
		}
		switch {
		case r.Status.Terminal():
			want := run.GoalCompleted
			if r.Reason != want {
				t.Fatalf("it ended as %s: %s", r.Reason, r.Detail)
			}
			for _, args := range []string{`push{"n":2}`, `write{"n":3}`, `push{"n":4}`} {
				if n := s.count()[args]; n < 1 || n > 1+expect[args] {
					t.Errorf("%s ran %d times in the end", args, n)
				}
			}
			return deaths, asked
		case r.Status == run.Waiting && s.decision(r.ApprovalID).Status == decision.Pending:
			d := s.decision(r.ApprovalID)
			if d.Kind == decision.KindInterrupted {
				asked++
				expect[r.Current.Tool+r.Current.Args]++ // a person agrees to a repeat, whatever the witness says
			}
			k.Do = "approve"
		default:
			k.Do = "resume"
		}
	}
	t.Fatalf("it came to no end after %d deaths: %s", deaths, s.told("run_x"))
	return deaths, asked
}

// count is how often each effect was had.
func (s *shared) count() map[string]int {
	n := map[string]int{}
	for _, line := range strings.Fields(s.effects("run_x")) {
		n[line]++
	}
	return n
}

// Two processes at one run: the table of race_test.go, over a pipe, 200 times.
func TestRacesOfProcesses(t *testing.T) {
	t.Parallel()
	s := share(t)
	a, b := s.serve(t), s.serve(t)
	w := s.world
	w.agent = placettest.NewAgent(calls("look", `{"n":1}`), calls("push", `{"n":2}`))
	for name := range classes { // as the other processes have them
		w.register(name, func(rt *tool.Tool) { rt.Description = "" })
	}
	for _, r := range races {
		if r.later != 0 {
			continue
		}
		ended := map[string]int{}
		for range rounds(200) {
			w.clock.Set(time.Now())
			q := w.waiting()
			if r.approved {
				w.approve(q)
			}
			a.ask(r.a, q.ID)
			b.ask(r.b, q.ID)
			x, y := a.answer(), b.answer()
			now, d, ran := w.run(q.ID), w.decision(q.ApprovalID), strings.Count(s.effects(q.ID), "push")
			// The other processes' agents have more in mind: then the run waits again.
			if now.Status == run.Waiting && d.Status == decision.Consumed {
				now.Reason = run.GoalCompleted
				x, y = strings.Replace(x, string(run.Waiting), string(run.GoalCompleted), 1), strings.Replace(y, string(run.Waiting), string(run.GoalCompleted), 1)
			}
			if !oneOf(r.may, x, y, now, d, ran) {
				t.Fatalf("%s %s, %s %s: the run is %s %s, its approval %s, the tool ran %d times", r.a, x, r.b, y, now.Status, now.Reason, d.Status, ran)
			}
			ended[x+" "+y]++
		}
		t.Log(r.a, r.b, ended)
	}
}
