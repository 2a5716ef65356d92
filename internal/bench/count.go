package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/store/sqlite"
)

// count says what one cycle and one allowed call ask of the database.
func count(ctx context.Context, b *bench) error {
	b.title("count: statements of the writer, one caller (targets: four transactions for a cycle, two for an allowed call)")
	c := &counter{}
	w, err := openWorld(ctx, b.path("count.db"), &sqlite.Hooks{BeforeStatement: c.see})
	if err != nil {
		return err
	}
	defer w.store.Close()
	for _, s := range []side{{"cycle", w.cycle}, {"allowed call", w.allowed}} {
		if err := s.once(ctx); err != nil { // the first one makes rows that the others find
			return err
		}
		c.transactions = nil
		if err := s.once(ctx); err != nil {
			return err
		}
		c.report(b, s.name)
	}
	return b.countFlushes(ctx)
}

// counter collects the writer's statements by transaction. With one caller each
// transaction has one closure.
type counter struct{ transactions [][]string }

func (c *counter) see(_ int, sql string) error {
	if strings.HasPrefix(sql, "BEGIN") {
		c.transactions = append(c.transactions, nil)
	}
	if n := len(c.transactions); n > 0 {
		c.transactions[n-1] = append(c.transactions[n-1], brief(sql))
	}
	return nil
}

func (c *counter) report(b *bench, name string) {
	total := 0
	for _, t := range c.transactions {
		total += len(t)
	}
	b.line("%s: %d transactions, %d statements", name, len(c.transactions), total)
	for i, t := range c.transactions {
		b.line("  %d: %2d  %s", i+1, len(t), strings.Join(t, ", "))
	}
}

var table = regexp.MustCompile(`(?i)(FROM|INTO|UPDATE) (\w+)`)

// brief is a statement's verb and table.
func brief(sql string) string {
	verb := strings.ToLower(strings.Fields(sql)[0])
	if m := table.FindStringSubmatch(sql); m != nil && verb != "rollback" {
		return verb + " " + m[2]
	}
	return verb
}

// countFlushes has the system count, where it can.
func (b *bench) countFlushes(ctx context.Context) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.line("flushes: not counted, strace is not installed")
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	few, many := b.probed/30, b.probed/6
	n := [2]int{}
	for i, cycles := range []int{few, many} {
		path := b.path(fmt.Sprintf("flushes-%d", i))
		cmd := exec.CommandContext(ctx, strace, "-f", "-c", "-o", path, "-e", "trace=fsync,fdatasync",
			self, "-probe", b.path(fmt.Sprintf("flushes-%d.db", i)), "-rounds", strconv.Itoa(cycles))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.line("flushes: not counted: %v %s", err, out)
			return nil
		}
		if n[i], err = straceCalls(path); err != nil {
			return err
		}
	}
	b.line("flushes: %.2f for each cycle of one caller", float64(n[1]-n[0])/float64(many-few))
	return nil
}

// straceCalls adds up the calls in strace's summary.
func straceCalls(path string) (n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 5 && strings.HasSuffix(f[len(f)-1], "sync") {
			calls, err := strconv.Atoi(f[3])
			if err != nil {
				return 0, fmt.Errorf("strace: %q", line)
			}
			n += calls
		}
	}
	return n, nil
}
