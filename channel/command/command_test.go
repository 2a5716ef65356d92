package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/process"
)

// message for the test binary in a role.
func message(t *testing.T, role string, args ...string) delivery.Message {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return delivery.Message{
		DeliveryID: "dlv_1", Attempt: 3, Type: "approval.requested", Body: []byte(`{"id":"evt_1"}`),
		Target: delivery.Target{Kind: delivery.KindCommand, Command: append([]string{exe, "helper", role}, args...)},
	}
}

// both are a channel that starts programs itself, and one that has them minded.
func both(dir string) map[string]*Channel {
	return map[string]*Channel{"alone": New(Options{Dir: dir}), "minded": New(Options{Dir: dir, Minder: []string{os.Args[0], MinderWord}})}
}

func TestWhatTheProgramGets(t *testing.T) {
	t.Parallel()
	for name := range both("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whatTheProgramGets(t, name)
		})
	}
}

func whatTheProgramGets(t *testing.T, name string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "told")
	m := message(t, "tell", file, "two words", "$HOME")
	o := both(dir)[name].Send(t.Context(), m)
	if o != (delivery.Outcome{Result: delivery.Arrived}) {
		t.Fatalf("%+v", o)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got told
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.In != string(m.Body) || !slices.Equal(got.Argv, []string{file, "two words", "$HOME"}) {
		t.Errorf("it got %q and %q", got.In, got.Argv)
	}
	if real, _ := filepath.EvalSymlinks(dir); got.Dir != real {
		t.Errorf("it ran in %s, not in %s", got.Dir, real)
	}
	want := process.Environment("PLACET_DELIVERY_ID=dlv_1", "PLACET_EVENT_TYPE=approval.requested", "PLACET_ATTEMPT=3")
	for _, v := range got.Env {
		if !slices.Contains(want, v) && !strings.HasPrefix(v, "PWD=") {
			t.Errorf("its environment has %s", v)
		}
	}
	for _, v := range want {
		if !slices.Contains(got.Env, v) {
			t.Errorf("its environment has no %s", v)
		}
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		role string
		args []string
		want delivery.Outcome
	}{
		{"exit", []string{"0", "all is well"}, delivery.Outcome{Result: delivery.Arrived}},
		{"exit", []string{"75", "later\n"}, delivery.Outcome{Result: delivery.Failed, Status: 75, Message: "The program ended with exit status 75. Its last words: later"}},
		{"exit", []string{"1", ""}, delivery.Outcome{Result: delivery.Failed, Status: 1, Message: "The program ended with exit status 1."}},
		{"exit", []string{"255", "a\x1b[2J\u202eb"}, delivery.Outcome{Result: delivery.Failed, Status: 255, Message: "The program ended with exit status 255. Its last words: a"}},
		{"exit", []string{"1", strings.Repeat("é", 10_000) + "x"}, delivery.Outcome{Result: delivery.Failed, Status: 1, Message: "Its last words: …é"}},
		{"kill", nil, delivery.Outcome{Result: delivery.Failed, Message: "The program was killed (signal: killed). Its last words: about to die"}},
		{"loud", nil, delivery.Outcome{Result: delivery.Failed, Status: 3, Message: "the end"}},
	} {
		t.Run(tt.role, func(t *testing.T) {
			t.Parallel()
			for name, c := range both("") {
				o := c.Send(t.Context(), message(t, tt.role, tt.args...))
				if o.Result != tt.want.Result || o.Status != tt.want.Status || !strings.Contains(o.Message, tt.want.Message) {
					t.Errorf("%s: %+v, want %+v", name, o, tt.want)
				}
				if len(o.Message) > delivery.MaxMessage || strings.ContainsAny(o.Message, "\x1b\u202e\uFFFD\n") {
					t.Errorf("%s: the message is %q", name, o.Message)
				}
			}
		})
	}
}

func TestInputThatIsNotRead(t *testing.T) {
	t.Parallel()
	m := message(t, "unread")
	m.Body = make([]byte, 10<<20)
	if o := New(Options{}).Send(t.Context(), m); o.Result != delivery.Arrived {
		t.Errorf("%+v", o)
	}
}

// An attempt is over by the end of its time, and so is everything that it started.
func TestStoppedInTime(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"hang", "stubborn", "parent"} {
		for name, c := range both("") {
			t.Run(role+" "+name, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "began")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				given := make(chan delivery.Outcome, 1)
				go func() { given <- c.Send(ctx, message(t, role, file)) }()
				appears(t, file)
				cancel()
				if o := <-given; o.Result != delivery.Failed || !strings.Contains(o.Message, "was stopped") {
					t.Errorf("%+v", o)
				}
				if role == "parent" {
					endedProcess(t, file+".pid")
				}
			})
		}
	}
}

// A process that is killed while it sends leaves nothing running, however much the
// program has started and whatever signals it minds.
func TestKilledWhileItSends(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "began")
	sender := exec.Command(os.Args[0], "helper", "send", "parent", file)
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	appears(t, file)
	if err := sender.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = sender.Wait()
	endedProcess(t, file+".pid")
}

// A program whose time is over is killed also where nobody is there to say so: its minder
// does it.
func TestMinderKeepsTheTime(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "began")
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	minder := exec.Command(os.Args[0], MinderWord, "1s", os.Args[0], "helper", "parent", file)
	minder.ExtraFiles = []*os.File{theirs}
	g, err := process.Start(minder)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	if state, err := g.Wait(); err != nil && state == nil || state.Success() {
		t.Errorf("%v %v", state, err)
	}
	endedProcess(t, file+".pid")
}

// A program that does not obey is killed.
func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	o := New(Options{}).Send(ctx, message(t, "stubborn", filepath.Join(t.TempDir(), "began")))
	if o.Result != delivery.Failed || o.Message != "The program did not end in time and was stopped." {
		t.Errorf("%+v", o)
	}
}

func TestEarly(t *testing.T) {
	t.Parallel()
	if _, grace, cancel := early(t.Context()); grace != process.StopGrace {
		t.Errorf("without a deadline the grace is %s", grace)
	} else {
		cancel()
	}
	for _, left := range []time.Duration{time.Hour, delivery.DefaultTimeout, time.Second, 0, -time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		soft, grace, cancelSoft := early(ctx)
		end, _ := ctx.Deadline()
		if at, ok := soft.Deadline(); !ok || at.Add(2*grace).After(end) || grace <= 0 || grace > process.StopGrace {
			t.Errorf("of %s: it is stopped %s before the end, with a grace of %s", left, end.Sub(at), grace)
		}
		cancelSoft()
		cancel()
	}
}

func TestNotSentOnlyBeforeAnythingBegan(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := New(Options{}).Send(ctx, message(t, "exit", "0", "")); o.Result != delivery.NotSent {
		t.Errorf("%+v", o)
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		program, dir, says string
		want               delivery.Result
	}{
		{"/no/such/program", "", "There is no program /no/such/program", delivery.Failed},
		{"no-such-program-of-placet", "", "There is no program no-such-program-of-placet", delivery.Failed},
		{file("plain", "x", 0o600), "", "may not be executed", delivery.Failed},
		{file("lost", "#!/no/such/interpreter\n", 0o700), "", "what its first line names", delivery.Failed},
		{file("garbage", "\x00\x01", 0o700), "", "could not be started", delivery.Failed},
		{"true", "/no/such/folder", "There is no folder /no/such/folder", delivery.Failed},
		{"./true", "", "a relative path", delivery.Refused},
		{"", "", "names no program", delivery.Refused},
	} {
		m := message(t, "exit")
		m.Target.Command = []string{tt.program}
		o := New(Options{Dir: tt.dir}).Send(t.Context(), m)
		if o.Result != tt.want || !strings.Contains(o.Message, tt.says) {
			t.Errorf("%q: %+v; want one that says %q", tt.program, o, tt.says)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	full := append([]string{"true"}, make([]string, delivery.MaxCommand-1)...)
	for _, tt := range []struct {
		words []string
		says  string // empty: it is accepted
	}{
		{[]string{"true"}, ""},
		{[]string{"true", "", "ü\n", "-x"}, ""},
		{message(t, "exit").Target.Command, ""},
		{full, ""},
		{append(full, ""), "101 words; 100 are allowed"},
		{nil, "names no program"},
		{[]string{""}, "names no program"},
		{[]string{"true", "a\x00"}, "Word 2"},
		{[]string{"true", "\xff"}, "Word 2"},
		{[]string{"bin/true"}, "a relative path"},
		{[]string{"./true"}, "a relative path"},
		{[]string{".."}, "There is no program"},
		{[]string{"/no/such/program"}, "There is no program"},
		{[]string{"no-such-program-of-placet"}, "There is no program"},
		{[]string{"/"}, "could not be started"},
	} {
		err := New(Options{}).Check(delivery.Target{Command: tt.words})
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, delivery.ErrUsage) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%q: %v; want one that says %q", tt.words, err, tt.says)
		}
	}
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if o := c.Send(t.Context(), message(t, "exit", "4", "no")); o.Status != 4 {
				t.Errorf("%+v", o)
			}
		})
	}
	all.Wait()
}

// appears waits for a file that another process writes.
func appears(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%s did not appear", path)
		}
	}
}

// endedProcess waits for the process whose id is in the file to be gone.
func endedProcess(t *testing.T, file string) {
	t.Helper()
	appears(t, file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Of(pid)
	if err != nil {
		return // it is gone
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for process.Alive(child) {
		<-tick.C
	}
}
