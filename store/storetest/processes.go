package storetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// processes runs copies of the test binary on one store.
func processes(t *testing.T, b Backend) {
	if !b.Processes {
		t.Skipf("%s does not declare that several processes may have one store open", b.Name)
	}
	cases(t, b, map[string]func(*world){
		"killed":          killedAtWork,
		"decide and exit": decideAndExit,
		"opened together": openedByProcesses,
	})
}

// part is what a copy of the test binary is to play.
type part struct{ Role, Address, Arg string }

// playRole is the whole life of a copy of the test binary.
func playRole(t *testing.T, b Backend, role string) {
	var p part
	if err := json.Unmarshal([]byte(role), &p); err != nil {
		t.Fatal(err)
	}
	place := b.At(t, p.Address)
	w := &world{T: t, b: b, place: place, s: place.Open(t, Options{Once: true, Busy: patience}), ctx: t.Context()}
	out := os.NewFile(3, "told")
	say := func(words ...string) { _, _ = out.WriteString(strings.Join(words, " ") + "\n") }
	switch p.Role {
	case "work":
		w.workForEver(say)
	case "decide":
		w.decideNow(p.Arg)
	case "open":
		w.write(park1)
		say("parked")
	default:
		t.Fatalf("no such role: %q", p.Role)
	}
}

// child is a copy of the test binary.
type child struct {
	cmd *exec.Cmd
	err bytes.Buffer
}

// start starts a copy, whose lines are sent to told until it ends.
func (w *world) start(role, arg string, told chan<- string, done *sync.WaitGroup) *child {
	w.Helper()
	b, err := json.Marshal(part{role, w.place.Address, arg})
	if err != nil {
		w.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	root, _, _ := strings.Cut(w.Name(), "/")
	c := &child{cmd: exec.Command(os.Args[0], "-test.run=^"+root+"$", "-test.count=1", "-test.timeout=5m")}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	c.cmd.ExtraFiles = []*os.File{in}
	c.cmd.Stdout, c.cmd.Stderr = &c.err, &c.err
	if err := c.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	in.Close()
	done.Go(func() {
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			told <- lines.Text()
		}
	})
	return c
}

// end waits for a copy that ends by itself.
func (c *child) end(w *world) {
	w.Helper()
	if err := c.cmd.Wait(); err != nil {
		w.Errorf("a process ended with %v\n%s", err, c.err.String())
	}
}

// workForEver does what stories tell, and says what it was told, until it is killed.
// A process that is told something else than it should be ends.
func (w *world) workForEver(say func(...string)) {
	p := w.openShop(w.s, func(c *call.Config) { c.Lease, c.ApprovalTTL = leaseOfWorkers, time.Hour })
	p.ran.tell(func(c tool.Call) { say("effect", c.CallID, strconv.Itoa(c.Attempt)) })
	together(4, func(i int) {
		for n := i; ; n++ {
			if err := p.workOnce(n, say); err != nil {
				fmt.Fprintln(os.Stderr, "told", err)
				os.Exit(9)
			}
		}
	})
}

const leaseOfWorkers = 200 * time.Millisecond

// workOnce parks a call or starts one, and takes it to one of the ends it may have.
func (p *shop) workOnce(n int, say func(...string)) error {
	if n%7 == 6 {
		res, err := p.Call(p.ctx, jot, []byte(`{}`))
		return said(err, say, "done", res.CallID, string(res.Status))
	}
	a, err := p.parkCall(p.ctx, refund)
	if err != nil {
		return err
	}
	say("parked", a.ApprovalID)
	switch n % 7 {
	case 0, 1, 2:
		err = said(p.approve(p.ctx, a), say, "yes", a.ApprovalID)
	case 3:
		err = said(p.op.Reject(p.ctx, "", a.ApprovalID, "Bo", ""), say, "no", a.ApprovalID)
	case 4:
		_, err = decision.Operator{Store: p.op.Store}.Withdraw(p.ctx, a.ApprovalID, "agent", "")
		err = said(err, say, "gone", a.ApprovalID)
	}
	if err != nil || n%7 == 2 || n%7 > 3 {
		return err
	}
	res, err := p.Resume(p.ctx, a.ApprovalID, nil)
	return said(err, say, "done", res.CallID, string(res.Status))
}

// said says what was told, unless that was an error.
func said(err error, say func(...string), words ...string) error {
	if err == nil {
		say(words...)
	}
	return err
}

// killedAtWork kills two processes at a random moment, again and again. What
// either was told is in the store, and all that must hold does.
func killedAtWork(w *world) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	w.Logf("seed %d", seed)
	l := &ledgerOfTold{effects: map[string]int{}}
	for round := range rounds(8) {
		alone := round%2 == 1 // then whoever opens the store next finds it as a crash left it
		if alone {
			w.close()
		}
		for _, line := range w.killAfter(1 + rnd.IntN(150)) {
			l.add(w, strings.Fields(line)...)
		}
		if alone {
			w.s = w.open(Options{Once: true})
		}
		l.check(w)
		CheckInvariants(w.T, w.s)
		if w.Failed() {
			w.Fatalf("in round %d", round)
		}
	}
	w.recoverAll()
	l.check(w)
}

// killAfter starts two workers, kills both after n lines, and returns all lines.
func (w *world) killAfter(n int) (lines []string) {
	w.Helper()
	told := make(chan string)
	var readers sync.WaitGroup
	children := []*child{w.start("work", "", told, &readers), w.start("work", "", told, &readers)}
	go func() { readers.Wait(); close(told) }()
	for line := range told {
		if lines = append(lines, line); len(lines) == n {
			for _, c := range children {
				if err := c.cmd.Process.Kill(); err != nil {
					w.Errorf("kill: %v", err)
				}
			}
		}
	}
	for _, c := range children {
		err := c.cmd.Wait()
		if exit := (*exec.ExitError)(nil); len(lines) < n || !errors.As(err, &exit) || exit.Exited() {
			w.Errorf("a worker ended by itself after %d lines: %v\n%s", len(lines), err, c.err.String())
		}
	}
	if w.place.Quiet != nil {
		w.place.Quiet(w.T)
	}
	return lines
}

// ledgerOfTold is what callers were told, those that were killed afterwards too.
type ledgerOfTold struct {
	mu      sync.Mutex
	lines   [][]string
	effects map[string]int
}

func (l *ledgerOfTold) add(w *world, words ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(words) < 2 {
		w.Errorf("a process said %q", words)
		return
	}
	if line := strings.Join(words, " "); words[0] == "effect" {
		if l.effects[line]++; l.effects[line] > 1 {
			w.Errorf("%s: a second time", line)
		}
	}
	l.lines = append(l.lines, words)
}

func (l *ledgerOfTold) check(w *world) {
	w.Helper()
	m := w.look()
	for _, words := range l.lines {
		d, c := m.Decisions[words[1]], m.Calls[words[1]]
		ok := false
		switch words[0] {
		case "parked":
			ok = d.ID != ""
		case "yes":
			ok = d.Choice == decision.ChoiceApprove
		case "no":
			ok = d.Choice == decision.ChoiceReject
		case "gone":
			ok = d.Status == decision.Withdrawn
		case "done":
			ok = string(c.Status) == words[2]
		case "effect":
			n, err := strconv.Atoi(words[2])
			ok = err == nil && n >= 1 && n <= len(m.Attempts[words[1]])
		}
		if !ok {
			w.Errorf("told %v, stored: approval %q %q, call %q", words, d.Status, d.Choice, c.Status)
		}
	}
}

// recoverAll looks after what the killed left: each attempt is unknown now, and a
// person is asked. No tool runs.
func (w *world) recoverAll() {
	p := w.openShop(w.s, nil)
	for _, c := range w.look().Calls {
		if c.Status == call.Running {
			w.until(c.LeaseUntil)
		}
	}
	for {
		n, err := p.Sweep(w.ctx, 1000)
		if err != nil {
			w.Fatalf("sweep: %v", err)
		}
		if n == 0 {
			break
		}
	}
	for _, c := range w.look().Calls {
		if c.Status == call.Running || p.ran.times(c.ID) > 0 {
			w.Errorf("call %s is %s, and ran %d times", c.ID, c.Status, p.ran.times(c.ID))
		}
	}
	CheckInvariants(w.T, w.s)
}

// decideAndExit: a process decides and ends at once (case 083). Two others that
// wait hear of it.
func decideAndExit(w *world) {
	p := w.openShop(w.s, nil)
	a := p.mustPark(refund)
	var waiting, readers sync.WaitGroup
	for _, s := range []*store.Store{w.s, w.open(Options{})} {
		waiting.Go(func() {
			got, err := event.Wait(w.ctx, s, event.Waiting{Stream: "call:" + a.CallID, Types: []event.Type{event.ApprovalDecided}})
			if err != nil || got.Event.Subject != a.ApprovalID || got.Event.Actor != "Cli" {
				w.Errorf("heard of %+v, %v", got.Event, err)
			}
		})
	}
	w.start("decide", a.ApprovalID, nil, &readers).end(w)
	waiting.Wait()
	readers.Wait()
	w.stands(a.CallID, call.Pending, decision.Approved)
	if res, err := p.Resume(w.ctx, a.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		w.Errorf("resumed: %s, %v", res.Status, err)
	}
}

// decideNow is a command that decides and ends without closing anything.
func (w *world) decideNow(approvalID string) {
	err := decision.Operator{Store: w.s}.Approve(context.Background(), "", approvalID, "Cli", "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// openedByProcesses: a store that several processes open at one moment is created
// once (case 166).
func openedByProcesses(w *world) {
	w.place = w.b.New(w.T)
	told := make(chan string, 4)
	var readers sync.WaitGroup
	var children []*child
	for range cap(told) {
		children = append(children, w.start("open", "", told, &readers))
	}
	for _, c := range children {
		c.end(w)
	}
	readers.Wait()
	v := w.with(w.place.Open(w.T, Options{}))
	w.same([]int{4, 4}, []int{len(told), len(v.look().Calls)})
	v.verify()
}
