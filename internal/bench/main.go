package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/placet-dev/placet/job"
)

// bench is one run: what was asked for, and where figures go.
type bench struct {
	out     io.Writer
	dir     string        // temporary; removed at the end
	slice   time.Duration // how long one side is measured before it is the other's turn
	rounds  int           // turns of each side
	records int64
	parked  int // pending approvals in the long file
	pending int // approvals that wait in the inbox
	probed  int // cycles of a process whose memory and flushes are looked at
	callers int // only so many at once; 0: each of the usual numbers
}

// section is one group of figures.
type section struct {
	name string
	run  func(context.Context, *bench) error
}

var sections = []section{
	{"machine", machine},
	{"count", count},
	{"rate", rates},
	{"allowed", allowed},
	{"canon", canonical},
	{"start", start},
	{"records", history},
	{"sweep", sweep},
	{"steps", steps},
	{"growth", growth},
	{"waiting", waiting},
	{"waiters", waiters},
	{"jobs", jobs},
	{"decided", decided},
	{"longpolls", httpWaiters},
	{"deliveries", deliveries},
	{"mcp", overMCP},
	{"inbox", inboxPages},
	{"postgres", onPostgres},
	{"pgrecords", historyOnPostgres},
}

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == job.RunnerCommand:
		os.Exit(job.Runner(os.Args[2]))
	case len(os.Args) > 1 && os.Args[1] == printWord:
		printEvents()
		return
	case len(os.Args) > 2 && os.Args[1] == serveWord:
		if err := serveForBench(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := begin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func begin(args []string) error {
	b := &bench{out: os.Stdout, parked: 2000, probed: 3000}
	fs := flag.NewFlagSet("bench", flag.ExitOnError)
	fs.IntVar(&b.pending, "pending", inboxPending, "approvals that wait in the inbox")
	only := fs.String("only", "", "comma-separated sections; default: all of machine, count, rate, allowed, canon, start, records, sweep, steps, growth, waiting, waiters, jobs, decided, longpolls, deliveries, mcp, inbox, postgres, pgrecords")
	fs.DurationVar(&b.slice, "slice", time.Second, "how long one side is measured before it is the other's turn")
	fs.IntVar(&b.rounds, "rounds", 5, "turns of each side")
	fs.Int64Var(&b.records, "records", 1_000_000, "decided records in the long file")
	fs.IntVar(&b.callers, "callers", 0, "measure rates only with so many callers: 1, 16 or 256; default: all three")
	dir := fs.String("dir", "", "where the temporary databases lie; default: the system's place")
	profile := fs.String("cpuprofile", "", "write a CPU profile of the sections to this file")
	long := fs.Bool("growth", false, "with -probe, measure long runs instead")
	probe := fs.String("probe", "", "measure this process's memory on a store (used by the bench itself)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *probe != "" && *long {
		return probeGrowth(ctx, b, *probe)
	}
	if *probe != "" {
		return probeMemory(ctx, b, *probe)
	}
	tmp, err := os.MkdirTemp(*dir, "placet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b.dir = tmp
	return profiled(*profile, func() error { return b.sections(ctx, *only) })
}

// sections runs those that only names, or all.
func (b *bench) sections(ctx context.Context, only string) error {
	for _, s := range sections {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func profiled(path string, fn func() error) error {
	if path == "" {
		return fn()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return fn()
}

func (b *bench) title(format string, args ...any) {
	fmt.Fprintf(b.out, "\n== "+format+"\n", args...)
}

func (b *bench) line(format string, args ...any) {
	fmt.Fprintf(b.out, format+"\n", args...)
}

// path is a new file of the run.
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
