package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is the example, built, with a working folder of its own.
type program struct {
	path, dir string
}

func build(t *testing.T) program {
	t.Helper()
	p := program{filepath.Join(t.TempDir(), "approve.exe"), t.TempDir()}
	if out, err := exec.Command("go", "build", "-o", p.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return p
}

// run is one process of it; ok is whether it succeeded.
func (p program) run(args ...string) (out string, ok bool) {
	cmd := exec.Command(p.path, args...)
	cmd.Dir = p.dir
	b, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(b)), err == nil
}

func (p program) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := p.run(args...)
	if !ok {
		t.Fatalf("%v: %s", args, out)
	}
	return out
}

func (p program) mustRefuse(t *testing.T, why string, args ...string) {
	t.Helper()
	if out, ok := p.run(args...); ok || !strings.Contains(out, why) {
		t.Errorf("%v: %s", args, out)
	}
}

func TestApproveInThreeProcesses(t *testing.T) {
	t.Parallel()
	p := build(t)
	id := p.mustRun(t, "park")
	p.mustRefuse(t, "still pending", "resume", id)
	if shown := p.mustRun(t, "approve", id); !strings.Contains(shown, `"amount":500`) {
		t.Errorf("a reviewer is shown %s", shown)
	}
	p.mustRefuse(t, "already", "approve", id)
	if got := p.mustRun(t, "resume", id); got != `succeeded "refunded"` {
		t.Errorf("the first resume says %q", got)
	}
	p.mustRefuse(t, "already", "resume", id)

	paid, err := os.ReadFile(filepath.Join(p.dir, "refunds.txt"))
	if err != nil || string(paid) != "500 on o-7\n" {
		t.Errorf("paid %q, %v", paid, err)
	}
}
