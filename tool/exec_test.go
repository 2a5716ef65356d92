package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/process"
)

// helperExec is a program that does what [helper] does in that role.
func helperExec(t testing.TB, role string, args ...string) *Exec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExec(append([]string{self, "helper", role}, args...), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func shell(t testing.TB, script string) *Exec {
	t.Helper()
	e, err := NewExec([]string{"sh", "-c", script}, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// writeProgram writes an executable script. While a test of ours forks, the child has
// the file open for writing too, and starting it fails with "text file busy": hence
// the lock.
func writeProgram(t testing.TB, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// await waits until a file is there.
func await(t testing.TB, path string) {
	t.Helper()
	for range 2000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", path)
}

func aCall(args string) Call {
	return Call{CallID: "call_7", RunID: "run_3", Tool: "x", Attempt: 2, Args: []byte(args)}
}

func TestExecGetsWhatItNeedsAndNoMore(t *testing.T) {
	t.Setenv("PLACET_TOKEN", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("LANG", "C.UTF-8")
	e := helperExec(t, "echo", "a b", "")
	const args = "{\"n\":9007199254740993, \"s\":\"\\u00e9\"}\n"
	out, err := e.Run(t.Context(), aCall(args))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Stdin, Dir string
		Argv, Env  []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Stdin != args {
		t.Errorf("standard input %q, want %q", got.Stdin, args)
	}
	if want, _ := filepath.EvalSymlinks(e.Dir); got.Dir != want {
		t.Errorf("ran in %s, want %s", got.Dir, want)
	}
	if strings.Join(got.Argv, "|") != "a b|" {
		t.Errorf("arguments %q", got.Argv)
	}
	allowed := map[string]bool{"PATH": true, "HOME": true, "LANG": true, "TZ": true, "TMPDIR": true}
	have := map[string]string{}
	for _, kv := range got.Env {
		k, v, _ := strings.Cut(kv, "=")
		have[k] = v
	}
	for k, want := range map[string]string{"PLACET_CALL_ID": "call_7", "PLACET_RUN_ID": "run_3", "PLACET_ATTEMPT": "2", "LANG": "C.UTF-8", "PATH": os.Getenv("PATH")} {
		if have[k] != want {
			t.Errorf("%s=%q, want %q", k, have[k], want)
		}
		delete(have, k)
	}
	for k := range have {
		if !allowed[k] {
			t.Errorf("%s was passed on", k)
		}
	}
}

func TestExecResult(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", MaxResult-2)
	tests := []struct {
		name, out string
		want      string // the result; or
		says      string // what the refusal says
	}{
		{"object", " \n{\"a\" : 1.0}\n\n", `{"a" : 1.0}`, ""},
		{"null", "null", "null", ""},
		{"big integer", "[9007199254740993]\n", "[9007199254740993]", ""},
		{"nothing", "", "", "no result"},
		{"white space", " \n", "", "no result"},
		{"text", "done", "", "not exactly one JSON value"},
		{"two values", "{}{}", "", "not exactly one JSON value"},
		{"two lines", "{}\n{}\n", "", "not exactly one JSON value"},
		{"log line first", "starting\n{}", "", "not exactly one JSON value"},
		{"duplicate key", `{"a":1,"a":2}`, "", "duplicate"},
		{"NaN", "NaN", "", "not exactly one JSON value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := helperExec(t, "print", tt.out).Run(t.Context(), aCall(`{}`))
			if tt.says == "" {
				if err != nil || string(out) != tt.want {
					t.Errorf("Run = %s, %v; want %s", out, err, tt.want)
				}
				return
			}
			if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), tt.says) || out != nil {
				t.Errorf("Run = %s, %v; want an unknown outcome that says %q", out, err, tt.says)
			}
		})
	}
	t.Run("case 106: invalid UTF-8", func(t *testing.T) {
		t.Parallel()
		out, err := shell(t, `printf '"\377"'`).Run(t.Context(), aCall(`{}`))
		if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "not exactly one JSON value") {
			t.Errorf("Run = %q, %v", out, err)
		}
	})
	t.Run("largest", func(t *testing.T) {
		t.Parallel()
		out, err := helperExec(t, "bytes", strconv.Itoa(len(big))).Run(t.Context(), aCall(`{}`))
		if err != nil || len(out) != MaxResult {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	})
	t.Run("one more", func(t *testing.T) {
		t.Parallel()
		_, err := helperExec(t, "bytes", strconv.Itoa(len(big)+1)).Run(t.Context(), aCall(`{}`))
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
}

// Case 165: output without end is cut at a documented size, and memory stays flat.
func TestCase165ExecPrintsWithoutEnd(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := helperExec(t, "flood").Run(t.Context(), aCall(`{}`))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("Run: %v", err)
	}
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 16 {
		t.Errorf("%d MiB were allocated", grown)
	}
}

func TestExecFailure(t *testing.T) {
	t.Parallel()
	run := func(role string, args ...string) error {
		out, err := helperExec(t, role, args...).Run(t.Context(), aCall(`{}`))
		if err == nil || out != nil {
			t.Errorf("%s: Run = %s, %v", role, out, err)
			return errors.New("")
		}
		if errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotStarted) {
			t.Errorf("%s: %v is not an error that the tool returned", role, err)
		}
		return err
	}
	if got := run("fail", " card declined\n").Error(); got != "card declined" {
		t.Errorf("message %q", got)
	}
	if got := run("fail", "").Error(); got != "The program ended with exit status 3 and said nothing on standard error." {
		t.Errorf("message %q", got)
	}
	got := run("fail-long").Error()
	if len(got) > maxMessage || len(got) < maxMessage-10 || !strings.HasPrefix(got, "…ää") || !strings.HasSuffix(got, "äthe end") {
		t.Errorf("a long message has %d bytes: %.20q…", len(got), got)
	}
	// Case 106.
	if got := run("fail-bytes").Error(); got != "bad \uFFFD byte\uFFFDs [altered: bytes that are no text were replaced]" {
		t.Errorf("message %q", got)
	}
}

func TestExecKilled(t *testing.T) {
	t.Parallel()
	_, err := helperExec(t, "kill").Run(t.Context(), aCall(`{}`))
	if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "signal: killed") || !strings.Contains(err.Error(), "about to die") {
		t.Errorf("Run: %v", err)
	}
}

func TestExecNeedNotReadItsInput(t *testing.T) {
	t.Parallel()
	large := `{"a":"` + strings.Repeat("x", MaxArgs-10) + `"}` // more than a pipe holds
	for name, e := range map[string]*Exec{
		"never reads": helperExec(t, "print", `"ok"`),
		"closes":      helperExec(t, "close-stdin"),
		"reads some":  shell(t, `head -c 10 >/dev/null; echo '"ok"'`),
	} {
		if out, err := e.Run(t.Context(), aCall(large)); err != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	out, err := shell(t, `wc -c`).Run(t.Context(), aCall(large))
	if err != nil || string(out) != strconv.Itoa(len(large)) {
		t.Errorf("wc -c = %s, %v; want %d", out, err, len(large))
	}
}

func TestExecIsStoppedWithItsContext(t *testing.T) {
	t.Parallel()
	for role, end := range map[string]string{"hang": "signal: terminated", "stubborn": "signal: killed"} { // one obeys
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			ready := filepath.Join(t.TempDir(), "ready")
			e := helperExec(t, role, ready)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { _, err := e.Run(ctx, aCall(`{}`)); done <- err }()
			await(t, ready)
			start := time.Now()
			cancel()
			err := <-done
			if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "was stopped ("+end+")") {
				t.Errorf("Run: %v", err)
			}
			if took := time.Since(start); role == "stubborn" && took < process.StopGrace {
				t.Errorf("killed after %s, before its grace was over", took)
			}
		})
	}
}

func TestExecThatFinishesWhenStopped(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { await(t, ready); cancel() }()
	out, err := helperExec(t, "finish", ready).Run(ctx, aCall(`{}`))
	if err != nil || string(out) != `{"cleaned":true}` {
		t.Errorf("Run = %s, %v; a result that came is a result", out, err)
	}
}

// pidIn reads the process id that a helper wrote.
func pidIn(t testing.TB, path string) process.Identity {
	t.Helper()
	await(t, path)
	var pid int
	for range 1000 { // it may be there and still empty
		b, _ := os.ReadFile(path)
		if n, _ := fmt.Fscan(bytes.NewReader(b), &pid); n == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	id, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestExecGrandchildHoldsThePipes(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	start := time.Now()
	large := `{"a":"` + strings.Repeat("x", MaxArgs-10) + `"}` // nobody reads it, and no pipe holds it
	out, err := helperExec(t, "grandchild", mark).Run(t.Context(), aCall(large))
	if err != nil || string(out) != `"left one behind"` {
		t.Errorf("Run = %s, %v", out, err)
	}
	if took := time.Since(start); took > 4*process.StopGrace {
		t.Logf("Run hung for %s", took)
	}
	left := pidIn(t, mark+".pid")
	if err := syscall.Kill(left.PID, syscall.SIGKILL); err != nil {
		t.Errorf("what the program left running was killed: %v", err)
	}
}

func TestExecStopsTheWholeGroup(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	e := helperExec(t, "parent", mark)
	go func() { _, err := e.Run(ctx, aCall(`{}`)); done <- err }()
	await(t, mark)
	child := pidIn(t, mark+".pid")
	cancel()
	if err := <-done; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("Run: %v", err)
	}
	for range 1000 {
		if !process.Alive(child) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the program's child still runs")
}

func TestExecAtLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "ok.sh"), "#!/bin/sh\necho '\"ok\"'\n")
	if err := os.WriteFile(filepath.Join(dir, "plain.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		argv []string
		dir  string
		want string
	}{
		{"nothing", nil, dir, "names no program"},
		{"empty", []string{""}, dir, "names no program"},
		{"missing", []string{"./no.sh"}, dir, "no.sh\" cannot be used: it does not exist"},
		{"missing, absolute", []string{"/no/such/program"}, dir, "does not exist"},
		{"not executable", []string{"./plain.txt"}, dir, "is not an executable file"},
		{"a folder", []string{"./folder"}, dir, "folder\" cannot be used: is a directory"},
		{"not in PATH", []string{"no-such-program-anywhere"}, dir, "is in no folder of PATH"},
		{"in dir, but bare", []string{"ok.sh"}, dir, "is in no folder of PATH"},
		{"no such dir", []string{"sh"}, filepath.Join(dir, "no"), "does not exist"},
		{"dir is a file", []string{"sh"}, filepath.Join(dir, "ok.sh"), "is not a folder"},
		{"NUL", []string{"sh", "a\x00b"}, dir, "NUL"},
		{"invalid UTF-8", []string{"sh", "\xff"}, dir, "not valid UTF-8"},
	}
	for _, tt := range tests {
		e, err := NewExec(tt.argv, tt.dir, false)
		if !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: NewExec = %v, %v; want one that says %s", tt.name, e, err, tt.want)
		}
		if _, err := NewExecProbe(tt.argv, tt.dir); !errors.Is(err, ErrInvalidTool) {
			t.Errorf("%s: NewExecProbe: %v", tt.name, err)
		}
	}
	for name, argv := range map[string][]string{
		"relative": {"./ok.sh"}, "absolute": {filepath.Join(dir, "ok.sh")}, "unclean": {"folder/../ok.sh"},
	} {
		e, err := NewExec(argv, dir, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := "exec " + filepath.Join(dir, "ok.sh"); e.Implementation() != want {
			t.Errorf("%s: %q, want %q", name, e.Implementation(), want)
		}
		if out, err := e.Run(t.Context(), aCall(`{}`)); err != nil || string(out) != `"ok"` {
			t.Errorf("%s: Run = %s, %v", name, out, err)
		}
	}
}

func TestExecImplementation(t *testing.T) {
	t.Parallel()
	// The vector "with an implementation" of vectors/canonical.json.
	e := &Exec{Argv: []string{"./refund.sh"}, path: "/srv/tools/refund.sh"}
	if got, err := e.describe(); err != nil || got != "exec /srv/tools/refund.sh" {
		t.Errorf("describe = %q, %v", got, err)
	}
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"", "-c", "plain=1,2;é'"}, `exec /p -c plain=1,2;é'`},
		{[]string{"", "", "a b", "a\"b", `a\b`, "a\nb", "a\tb", "\x7f"}, `exec /p "" "a b" "a\"b" "a\\b" "a\nb" "a\tb" "` + "\x7f" + `"`},
		{[]string{"", "<&>", "\u0085", "$HOME", "*"}, `exec /p <&> "` + "\u0085" + `" $HOME *`},
	} {
		e := &Exec{Argv: tt.argv, path: "/p"}
		if got, err := e.describe(); err != nil || got != tt.want {
			t.Errorf("describe(%q) = %s, %v; want %s", tt.argv, got, err, tt.want)
		}
	}
	e = &Exec{Argv: []string{""}, path: "/with a space", Pin: true, pins: []pinned{{sum: "ab12"}}}
	if got, _ := e.describe(); got != `exec sha256:ab12 "/with a space"` {
		t.Errorf("describe = %s", got)
	}
}

// A relative argument means another file in another folder: the yes is for one of them.
func TestExecFolderIsPartOfTheImplementation(t *testing.T) {
	t.Parallel()
	project := func() string {
		dir := filepath.Join(t.TempDir(), "a project")
		if err := os.MkdirAll(filepath.Join(dir, "tools"), 0o700); err != nil {
			t.Fatal(err)
		}
		writeProgram(t, filepath.Join(dir, "deploy.sh"), "#!/bin/sh\necho 1\n")
		return dir
	}
	dir, other := project(), project()
	sh := mustImplementation(t, []string{"sh"}, dir, false)[len("exec "):]
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("#!/bin/sh\necho 1\n")))
	shSum, err := fileSum(sh)
	if err != nil {
		t.Fatal(err)
	}
	inDir := `exec "dir:` + dir + `" `
	for _, tt := range []struct {
		argv []string
		pin  bool
		want string
	}{
		{[]string{"sh", "deploy.sh"}, false, inDir + sh + " deploy.sh"},
		{[]string{"sh", "-x", "./deploy.sh", "now"}, false, inDir + sh + " -x ./deploy.sh now"},
		{[]string{"sh", "tools"}, false, inDir + sh + " tools"},
		{[]string{"sh", "."}, false, inDir + sh + " ."},
		{[]string{"sh", "../a project/deploy.sh"}, false, inDir + sh + ` "../a project/deploy.sh"`},
		{[]string{"sh", "missing.sh"}, false, "exec " + sh + " missing.sh"},
		{[]string{"sh", "", "-c", "echo 1"}, false, "exec " + sh + ` "" -c "echo 1"`},
		{[]string{"sh", sh}, false, "exec " + sh + " " + sh},
		{[]string{"./deploy.sh", "now"}, false, `exec "` + dir + `/deploy.sh" now`},
		{[]string{"./deploy.sh", "now"}, true, "exec " + sum + ` "` + dir + `/deploy.sh" now`},
		{[]string{"sh", "deploy.sh", "tools", sh}, true, "exec sha256:" + shSum + " " + sum + " sha256:" + shSum + inDir[len("exec"):] + sh + " deploy.sh tools " + sh},
	} {
		if got := mustImplementation(t, tt.argv, dir, tt.pin); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.argv, got, tt.want)
		}
	}
	if mustImplementation(t, []string{"sh", "deploy.sh"}, dir, false) == mustImplementation(t, []string{"sh", "deploy.sh"}, other, false) {
		t.Error("two folders share an implementation")
	}
}

func mustImplementation(t *testing.T, argv []string, dir string, pin bool) string {
	t.Helper()
	e, err := NewExec(argv, dir, pin)
	if err != nil {
		t.Fatal(err)
	}
	return e.Implementation()
}

func TestPinCoversFilesAmongTheArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "s.sh")
	writeProgram(t, script, "echo 1\n")
	e, err := NewExec([]string{"sh", "s.sh"}, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := e.Run(t.Context(), aCall(`{}`)); err != nil || string(out) != "1" {
		t.Errorf("unchanged: %s, %v", out, err)
	}
	writeProgram(t, script, "touch ran; echo 2\n")
	if _, err := e.Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "s.sh\" changed since it was loaded") {
		t.Errorf("changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the changed script ran")
	}
}

// Case 027: what the path names may change after the yes.
func TestCase027PinnedProgramChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.sh")
	const script = "#!/bin/sh\necho '\"one\"'\n"
	writeProgram(t, path, script)
	pinned, err := NewExec([]string{"./p.sh"}, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	loose, err := NewExec([]string{"./p.sh"}, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("exec sha256:%x %s", sha256.Sum256([]byte(script)), path); pinned.Implementation() != want {
		t.Errorf("implementation %s, want %s", pinned.Implementation(), want)
	}
	if out, err := pinned.Run(t.Context(), aCall(`{}`)); err != nil || string(out) != `"one"` {
		t.Errorf("unchanged: %s, %v", out, err)
	}

	marker := filepath.Join(dir, "ran")
	writeProgram(t, path, "#!/bin/sh\ntouch ran\necho '\"two\"'\n")
	_, err = pinned.Run(t.Context(), aCall(`{}`))
	if !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "changed since it was loaded") {
		t.Errorf("changed: %v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the changed program ran")
	}
	if out, err := loose.Run(t.Context(), aCall(`{}`)); err != nil || string(out) != `"two"` {
		t.Errorf("not pinned: %s, %v", out, err)
	}
	writeProgram(t, path, script)
	if _, err := pinned.Run(t.Context(), aCall(`{}`)); err != nil {
		t.Errorf("as it was: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*Exec{"pinned": pinned, "not pinned": loose} {
		if _, err := e.Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("%s and gone: %v", name, err)
		}
	}
}

func TestExecNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "interpreter.sh"), "#!/no/such/interpreter\n")
	e, err := NewExec([]string{"./interpreter.sh"}, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("no interpreter: %v", err)
	}
	if _, err := (&Exec{Argv: []string{"sh"}}).Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("not made with NewExec: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shell(t, `echo 1`).Run(ended, aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("context ended before: %v", err)
	}
	c := aCall(`{}`)
	c.CallID = "a\x00b"
	if _, err := shell(t, `echo 1`).Run(t.Context(), c); !errors.Is(err, ErrNotStarted) {
		t.Errorf("NUL in the environment: %v", err)
	}
}

func TestExecProbe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		out  string
		want ProbeResult
	}{
		{`{"outcome":"succeeded","result":{"a":9007199254740993}}`, ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage(`{"a":9007199254740993}`)}},
		{`{"outcome":"succeeded","result":null}`, ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage(`null`)}},
		{" {\"message\":\"declined\",\"outcome\":\"failed\"}\n", ProbeResult{Outcome: ProbeFailed, Message: "declined"}},
		{`{"outcome":"not_found"}`, ProbeResult{Outcome: ProbeNotFound}},
	}
	for _, tt := range tests {
		got, err := parseProbe([]byte(tt.out))
		if err != nil || got.Outcome != tt.want.Outcome || string(got.Result) != string(tt.want.Result) || got.Message != tt.want.Message {
			t.Errorf("%s = %+v, %v", tt.out, got, err)
		}
	}
	for _, out := range []string{
		``, `null`, `{}`, `[]`, `"succeeded"`, `{"outcome":"succeeded"}`, `{"outcome":"Succeeded","result":1}`,
		`{"outcome":"succeeded","result":1,"message":"x"}`, `{"outcome":"failed"}`, `{"outcome":"failed","message":null}`,
		`{"outcome":"failed","message":1}`, `{"outcome":"failed","message":"x","result":1}`, `{"outcome":"not_found","message":"x"}`,
		`{"outcome":"not_found"}{}`, `{"outcome":"not_found","outcome":"succeeded"}`, `{"Outcome":"not_found"}`,
		`{"outcome":"not_found","extra":1}`, `{"outcome":"running"}`, `{"outcome":null}`, `not_found`, "{\"outcome\":\"not_\xff\"}",
	} {
		if got, err := parseProbe([]byte(out)); err == nil {
			t.Errorf("%s settles something: %+v", out, got)
		}
	}

	self, _ := os.Executable()
	probe := func(args ...string) *ExecProbe {
		p, err := NewExecProbe(append([]string{self, "helper"}, args...), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if r, err := probe("print", `{"outcome":"not_found"}`).Probe(t.Context(), aCall(`{}`)); err != nil || r.Outcome != ProbeNotFound {
		t.Errorf("Probe = %+v, %v", r, err)
	}
	for _, p := range []*ExecProbe{probe("fail", "x"), probe("kill"), probe("print", "yes"), probe("flood")} {
		if r, err := p.Probe(t.Context(), aCall(`{}`)); err == nil || r.Outcome != "" {
			t.Errorf("%v: Probe = %+v, %v", p.exec.Argv[2:], r, err)
		}
	}
}
