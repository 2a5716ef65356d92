package pgtest_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
)

// A process that is killed cannot stop its server.
func TestServerEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	dir := parent(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Process.Kill(); owner.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "failed") {
		t.Fatalf("%q, %v", line, err)
	}
	connect(t, strings.TrimSpace(line)) // a backend of its own has to go as well
	pids := serverProcesses(t, dir)
	if len(pids) < 2 {
		t.Fatalf("the server has only the processes %v", pids)
	}

	start(t, pgtest.Options{Dir: dir})
	if got := len(entries(t, dir)); got != 4 {
		t.Errorf("beside a living owner's server there are %d files and folders: %v", got, entries(t, dir))
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	owner.Wait()
	for _, pid := range pids {
		awaitEnd(t, pid)
	}

	start(t, pgtest.Options{Dir: dir})
	if got := len(entries(t, dir)); got != 4 {
		t.Errorf("the next start left %d files and folders: %v", got, entries(t, dir))
	}
}

// serverProcesses are the first process of the one server below dir and its children.
func serverProcesses(t *testing.T, dir string) []int {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "data", "postmaster.pid"))
	if len(files) != 1 {
		t.Fatalf("%d servers in %s", len(files), dir)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	return append(pgtest.Children(first), first)
}

// awaitEnd asks again until pid has ended: it is not our child, so there is no signal.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	ctx := bounded(t)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !pgtest.Ended(pid) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("process %d still runs", pid)
		}
	}
}
