package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// machine says what the figures were measured on, and how busy it was.
func machine(_ context.Context, b *bench) error {
	b.title("machine")
	flush, err := flushTime(b.path("flush"))
	if err != nil {
		return err
	}
	b.line("%s, %d processors, %s; one flush of 4 KiB takes %s", runtime.Version(), runtime.GOMAXPROCS(0), load(), flush.Round(time.Microsecond))
	b.line("%d turns of %s for each side; rates are medians, ratios are medians of neighbouring turns", b.rounds, b.slice)
	return nil
}

// load is what others did to the machine in the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return "load " + one
}

// flushTime is the median of writing and flushing a page.
func flushTime(path string) (time.Duration, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []float64
	for i := range 50 {
		began := time.Now()
		if _, err := f.WriteAt(make([]byte, 4096), int64(i)*4096); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began)))
	}
	return time.Duration(median(took)), nil
}

// cpuTime is what this process has used. Beside other programs it says more than the clock.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// resident is the process's memory as the system counts it, peak the most there was.
func resident() string          { return ofStatus("self", "VmRSS:") }
func residentOf(pid int) string { return ofStatus(strconv.Itoa(pid), "VmRSS:") }
func peak() string              { return ofStatus("self", "VmHWM:") }

func ofStatus(process, name string) string {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			var kb int64
			if _, err := fmt.Sscan(rest, &kb); err == nil {
				return size(kb << 10)
			}
		}
	}
	return "unknown"
}

func size(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
