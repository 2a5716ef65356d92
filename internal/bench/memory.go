package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// compareMemory has one process for each file do the same work.
func (b *bench) compareMemory(ctx context.Context, empty, long string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, path string }{{"empty file", empty}, {"long file", long}} {
		cmd := exec.CommandContext(ctx, self, "-probe", f.path, "-rounds", strconv.Itoa(b.probed))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		b.line("memory, %s: %s", f.name, strings.TrimSpace(string(out)))
	}
	return nil
}

// probeMemory is this program as a child: it does cycles on a file and tells its
// memory a third of the way through and at the end.
func probeMemory(ctx context.Context, b *bench, path string) error {
	w, err := openWorld(ctx, path, nil)
	if err != nil {
		return err
	}
	defer w.store.Close()
	var early string
	for i := range b.rounds {
		if err := w.cycle(ctx); err != nil {
			return err
		}
		if i == b.rounds/3 {
			early = memory()
		}
	}
	if _, err := w.op.Pending(ctx, 0); err != nil {
		return err
	}
	b.line("%s after a third of %d cycles, %s after all", early, b.rounds, memory())
	return nil
}

func memory() string {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return "heap " + size(int64(m.HeapAlloc)) + " and resident " + resident()
}
