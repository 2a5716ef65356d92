package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/txn"
)

// child is this test binary in another role: another process on the same file.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	done  bool
}

func start(t *testing.T, role string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PLACET_TEST_ROLE="+role, "PLACET_TEST_ARGS="+strings.Join(args, "\x1f"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, lines: bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	return c
}

// line waits for what the child says next; "" at its end.
func (c *child) line() string {
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

func (c *child) expect(want string) {
	c.t.Helper()
	if got := c.line(); got != want {
		c.t.Fatalf("the child said %q, want %q", got, want)
	}
}

// rest reads what the child says until it ends.
func (c *child) rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.cmd.Wait()
	c.done = true
	return lines
}

func (c *child) kill() {
	if c.done {
		return
	}
	c.done = true
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// playRole is the child's main.
func playRole(role string) int {
	args := strings.Split(os.Getenv("PLACET_TEST_ARGS"), "\x1f")
	if err := roles[role](args); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		return 1
	}
	return 0
}

var roles = map[string]func(args []string) error{
	"write":   childWrites,
	"open":    childOpens,
	"hold":    childHolds,
	"paced":   childWritesPaced,
	"migrate": childMigrates,
	"restore": childRestores,
	"ioerror": childMeetsIOError,
}

// childWrites writes from several callers at once and says each id after it was
// acknowledged, until it is killed.
func childWrites(args []string) error {
	e, err := openEngine(context.Background(), args[0], Options{}, testMigrations())
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", args[1], c, i)
				if err := e.update(context.Background(), noteWriter(id)); err != nil {
					fmt.Fprintln(os.Stderr, "write:", err)
					os.Exit(1)
				}
				mu.Lock()
				_, err := os.Stdout.WriteString(id + "\n")
				mu.Unlock()
				if err != nil {
					os.Exit(1)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// A process that is killed at any moment loses nothing that it had been told is
// durable, and leaves no half of anything.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	kills := 50
	if raceEnabled {
		kills = 3
	}
	for lane := range 4 {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "placet.db")
			var acked []string
			for round := range kills {
				acked = append(acked, killOnce(t, path, strconv.Itoa(round))...)
				if t.Failed() {
					return
				}
			}
			if len(acked) < kills {
				t.Errorf("only %d writes were acknowledged over %d kills: the test tests nothing", len(acked), kills)
			}
			checkAcked(t, path, acked)
			t.Logf("%d kills, %d acknowledged writes", kills, len(acked))
		})
	}
}

func killOnce(t *testing.T, path, prefix string) (acked []string) {
	c := start(t, "write", path, prefix)
	after := 1 + rand.IntN(60)
	for c.lines.Scan() {
		acked = append(acked, c.lines.Text())
		if len(acked) == after {
			_ = c.cmd.Process.Kill() // what is in the pipe was acknowledged too, and is read on
		}
	}
	_ = c.cmd.Wait()
	c.done = true
	checkAcked(t, path, acked)
	return acked
}

// checkAcked opens the store, without Cleanup's help: there are many.
func checkAcked(t *testing.T, path string, acked []string) {
	e, err := openEngine(context.Background(), path, Options{}, testMigrations())
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{engine: e, t: t, path: path}
	for _, id := range acked {
		if !b.has(id) {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	if events, notes := b.number(`SELECT count(*) FROM event`), b.number(countNotesSQL); events != notes {
		t.Errorf("%d events and %d notes: half a transaction", events, notes)
	}
	b.sound()
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

func childOpens(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return openMany(args[0], n, Options{BusyTimeout: time.Minute})
}

func openMany(path string, n int, o Options) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			e, err := openEngine(context.Background(), path, o, testMigrations())
			if err == nil {
				err = errors.Join(e.update(context.Background(), noteWriter(fmt.Sprintf("%d-%d", os.Getpid(), i))), e.close())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestManyFirstOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "placet.db")
	here, there := 300, 25
	if raceEnabled {
		here, there = 40, 5
	}
	var children []*child
	for range 4 {
		children = append(children, start(t, "open", path, strconv.Itoa(there)))
	}
	if err := openMany(path, here, Options{BusyTimeout: time.Minute}); err != nil {
		t.Error(err)
	}
	for _, c := range children {
		c.rest()
		if !c.cmd.ProcessState.Success() {
			t.Errorf("a child ended with %v", c.cmd.ProcessState)
		}
	}
	b := reopen(t, path, Options{})
	if got, want := b.number(countNotesSQL), int64(here+4*there); got != want {
		t.Errorf("%d of %d first writes are there", got, want)
	}
	b.sound()
}

// childHolds holds SQLite's own lock, as another program would, or the lock
// files, as a Placet that hangs would, for so many milliseconds.
func childHolds(args []string) error {
	ms, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c, err := openConn(dsn(args[0], forWriting, time.Minute))
	if err != nil {
		return err
	}
	defer c.close()
	if args[1] == "files" {
		l, err := openLockFiles(args[0])
		if err != nil {
			return err
		}
		defer l.close()
		if !l.tryLock() {
			return errLocked
		}
	} else if _, err := c.exec(context.Background(), beginSQL); err != nil {
		return err
	}
	fmt.Println("held")
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return nil
}

var bothLocks = []string{"sqlite", "files"}

// Case 086: ten connections of their own, while another process holds the lock for a second.
func TestLockHeldForASecond(t *testing.T) {
	t.Parallel()
	for _, lock := range bothLocks {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			start(t, "hold", b.path, lock, "1000").expect("held")
			began := time.Now()
			if err := openMany(b.path, 10, Options{BusyTimeout: 30 * time.Second}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 500*time.Millisecond {
				t.Errorf("they were done after %v: nobody held the lock", took)
			}
			if n := b.number(countNotesSQL); n != 10 {
				t.Errorf("%d of 10 wrote", n)
			}
		})
	}
}

// Case 089: a deadline counts while the lock is awaited, and so does the end of the store.
func TestDeadlineAndCloseWhileLocked(t *testing.T) {
	t.Parallel()
	for _, lock := range bothLocks {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{BusyTimeout: time.Hour})
			start(t, "hold", b.path, lock, "3600000").expect("held") // until the test is over
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			if err := b.update(ctx, noteWriter("a")); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, txn.ErrNotCommitted) {
				t.Errorf("told %v", err)
			}
			if _, err := openEngine(ctx, b.path, Options{BusyTimeout: time.Hour}, testMigrations()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an open with an ended deadline said %v", err)
			}
			told := make(chan error)
			go func() { told <- b.write("b") }()
			eventually(t, func() bool { return b.queued() > 0 || len(b.writer.queue.woken) == 0 })
			if err := b.close(); err != nil {
				t.Errorf("close said %v", err)
			}
			if err := <-told; !errors.Is(err, txn.ErrNotCommitted) {
				t.Errorf("the one in the queue was told %v", err)
			}
		})
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	for _, lock := range bothLocks {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{BusyTimeout: 100 * time.Millisecond})
			c := start(t, "hold", b.path, lock, "60000")
			c.expect("held")
			ran := false
			for range 2 {
				err := b.update(context.Background(), func(h *handle) error { ran = true; return nil })
				if !errors.Is(err, txn.ErrBusy) || !errors.Is(err, txn.ErrNotCommitted) || ran {
					t.Errorf("told %v, its closure ran: %v", err, ran)
				}
			}
			if b.has("a") { // reads go on
				t.Error("a row out of nowhere")
			}
			if lock == "files" { // SQLite's own lock does not keep anybody from opening
				if _, err := openEngine(context.Background(), b.path, Options{BusyTimeout: 10 * time.Millisecond}, testMigrations()); !errors.Is(err, txn.ErrBusy) {
					t.Errorf("an open said %v", err)
				}
			}
			c.kill()
			b.mustWrite("a") // no lock was kept
			b.sound()
		})
	}
}

// childWritesPaced writes now and then, and says how long each took.
func childWritesPaced(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	e, err := openEngine(context.Background(), args[0], Options{}, testMigrations())
	if err != nil {
		return err
	}
	for i := range n {
		began := time.Now()
		if err := e.update(context.Background(), noteWriter(fmt.Sprint("paced-", i))); err != nil {
			return err
		}
		fmt.Println(time.Since(began).Microseconds())
		time.Sleep(2 * time.Millisecond)
	}
	return e.close()
}

// Beside a busy writer another process gets its turn.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	writes := 200
	if raceEnabled {
		writes = 20
	}
	c := start(t, "paced", b.path, strconv.Itoa(writes))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := b.write(fmt.Sprintf("%d-%d", caller, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	took := c.rest()
	close(stop)
	wg.Wait()
	if len(took) != writes || !c.cmd.ProcessState.Success() {
		t.Fatalf("%d of %d writes beside a busy process; it ended with %v", len(took), writes, c.cmd.ProcessState)
	}
	slices.SortFunc(took, func(a, b string) int { return atoi(a) - atoi(b) })
	t.Logf("beside %d writes of the busy process: p50 %s µs, p99 %s µs, worst %s µs",
		b.number(countNotesSQL)-int64(writes), took[writes/2], took[writes*99/100], took[writes-1])
	b.sound()
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// childMeetsIOError lets the kernel refuse the log's growth in the middle of a COMMIT.
func childMeetsIOError(args []string) error {
	var raise bool
	hooks := &Hooks{}
	e, err := openEngine(context.Background(), args[0], Options{Hooks: hooks}, testMigrations())
	if err != nil {
		return err
	}
	if err := e.update(context.Background(), noteWriter("first")); err != nil {
		return err
	}
	ignoreFileSize()
	size := uint64(e.file.logSize()) + 5000
	hooks.BeforeStatement = func(_ int, sql string) error {
		if sql == commitSQL && raise {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: noLimit})
		}
		return nil
	}
	raise = true
	err = e.update(context.Background(), func(h *handle) error { return writeWide(h, "second") })
	raise = false
	fmt.Println(errors.Is(err, txn.ErrUnknown), errors.Is(err, txn.ErrNotCommitted))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: noLimit, Max: noLimit}); err != nil {
		return err
	}
	if err := e.update(context.Background(), noteWriter("third")); err != nil {
		return err
	}
	return e.close()
}

// After an I/O error in COMMIT nobody can say what is on the disk.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	c := start(t, "ioerror", b.path)
	c.expect("true false")
	c.rest()
	if !c.cmd.ProcessState.Success() {
		t.Errorf("the child ended with %v", c.cmd.ProcessState)
	}
	if !b.has("first") || !b.has("third") {
		t.Error("what was acknowledged before and after is lost")
	}
	b.sound()
}
