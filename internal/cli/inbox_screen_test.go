package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/debian"
)

// inbox opens the inbox at a terminal.
func (w *world) inbox(env ...string) *screen {
	w.t.Helper()
	c := w.command("inbox", "--by", "ana")
	c.Env = append(append(c.Env, "TERM=xterm-256color", "NO_COLOR=", "VISUAL=", "EDITOR=false"), env...)
	return startTall(w.t, c)
}

// startTall starts a command at a terminal with room for a whole approval.
func startTall(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	return startSized(t, c, &pty.Winsize{Rows: 40, Cols: 100})
}

// places are where somebody can be when the inbox ends.
var places = map[string]func(*screen){
	"the queue":    atQueue,
	"an approval":  atApproval,
	"the question": atQuestion,
	"the word":     func(s *screen) { atQuestion(s); s.key("approve"); s.until("approve") },
	"a note":       func(s *screen) { atQuestion(s); s.key("\tapprove\r"); s.until("goes back to the word") },
}

func atQueue(s *screen)    { s.until("1 waits") }
func atApproval(s *screen) { atQueue(s); s.key("\r"); s.until("The record") }
func atQuestion(s *screen) { atApproval(s); s.key("a"); s.until("Type the word") }

// However the inbox ends, nothing is decided by it, and the terminal is as it was (135).
func TestTheInboxEndsWithoutADecision(t *testing.T) {
	t.Parallel()
	signal := func(sig syscall.Signal) func(*screen) {
		return func(s *screen) { s.cmd.Process.Signal(sig) }
	}
	for name, end := range map[string]struct {
		do   func(*screen)
		code int
		says string
	}{
		"SIGINT":          {signal(syscall.SIGINT), 1, "The inbox was ended by a signal."},
		"SIGTERM":         {signal(syscall.SIGTERM), 1, "The inbox was ended by a signal."},
		"SIGHUP":          {signal(syscall.SIGHUP), 1, "The inbox was ended by a signal."},
		"SIGKILL":         {signal(syscall.SIGKILL), -1, ""},
		"closed terminal": {func(s *screen) { s.keys.Close() }, 1, ""},
		"control c":       {func(s *screen) { s.key("\x03") }, 0, ""},
	} {
		for at, goTo := range places {
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				p := w.park()
				s := w.inbox()
				goTo(s)
				end.do(s)
				code, text := s.end()
				if code != end.code {
					t.Errorf("exit code %d, want %d:\n%q", code, end.code, text)
				}
				mustContain(t, text, end.says)
				if name != "SIGKILL" && name != "closed terminal" && !strings.Contains(text, "\x1b[?1049l") {
					t.Error("the screen before was not restored")
				}
				if d := w.show(p.ApprovalID); d.Status != decision.Pending || d.DecidedBy != "" {
					t.Errorf("it is %s by %q", d.Status, d.DecidedBy)
				}
			})
		}
	}
}

// A terminal whose other end is gone ends the inbox, also where nobody sends a signal.
func TestTheInboxEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	c := w.command("inbox")
	c.Path = "/bin/sh"
	c.Args = []string{"sh", "-c", "trap '' HUP; exec placet inbox"}
	c.Env = append(c.Env, "TERM=xterm")
	s := startTall(t, c)
	atQuestion(s)
	s.keys.Close()
	if code, _ := s.end(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if d := w.show(p.ApprovalID); d.Status != decision.Pending {
		t.Errorf("it is %s", d.Status)
	}
}

// The terminal's modes are as they were before.
func TestTheInboxRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park()
	c := w.command("inbox")
	c.Path = "/bin/sh"
	c.Args = []string{"sh", "-c", `before=$(stty -g); placet inbox; [ "$before" = "$(stty -g)" ] && echo SAME`}
	c.Env = append(c.Env, "TERM=xterm")
	s := startTall(t, c)
	atQuestion(s)
	s.key("\x03")
	if code, text := s.end(); code != 0 || !strings.Contains(text, "SAME") {
		t.Errorf("exit code %d:\n%q", code, text)
	}
}

// Where there is no colour nothing is coloured, and where there is no terminal there is a list.
func TestTheInboxWithoutColourAndWithoutATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.inbox("NO_COLOR=1")
	atQuestion(s)
	s.key("\x03")
	_, text := s.end()
	if found := regexp.MustCompile(`\x1b\[([0-9;]*;)?([34][0-7]|9[0-7]|10[0-7]|[34]8;[0-9;]*)m`).FindString(text); found != "" {
		t.Errorf("%q is a colour", found)
	}
	for name, c := range map[string]*exec.Cmd{
		"--list":    w.command("inbox", "--list"),
		"TERM=dumb": w.command("inbox"),
		"--json":    w.command("inbox", "--json"),
	} {
		c.Env = append(c.Env, "TERM=xterm")
		if name == "TERM=dumb" {
			c.Env = append(c.Env, "TERM=dumb")
		}
		code, text := startAtTerminal(t, c).end()
		if code != 0 || !strings.Contains(text, p.ApprovalID) || strings.Contains(text, "\x1b") {
			t.Errorf("%s: exit code %d:\n%q", name, code, text)
		}
	}
}

// Other arguments are written in an editor; what it left is shown, and approved by the word.
func TestTheInboxEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	seen := filepath.Join(w.dir, "seen")
	editor := filepath.Join(w.dir, "editor.sh")
	script := `#!/bin/sh
cp "$2" "` + seen + `.txt"; ls -ld "$2" "$(dirname "$2")" > "` + seen + `.mode"; echo "$2" > "` + seen + `.path"; echo "$1" > "` + seen + `.flag"
sed 's/500/120/' "$2" > "$2.new" && cat "$2.new" > "$2"
`
	if err := os.WriteFile(editor, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s := w.inbox("EDITOR=" + editor + " --wait")
	atApproval(s)
	s.key("e")
	s.until("Approve this instead?")
	s.until("would run")
	s.until("Type the word")
	s.key("approve")
	s.until("> ")
	s.key("\r")
	s.until("Recorded")
	s.key("q")
	if code, text := s.end(); code != 0 {
		t.Fatalf("exit code %d:\n%q", code, text)
	}
	d := w.show(p.ApprovalID)
	var args map[string]any
	if err := json.Unmarshal(d.EditedArgs, &args); err != nil || args["amount"] != 120.0 || args["order_id"] != "o-7" || d.DecidedBy != "ana" {
		t.Errorf("it is %s with %s: %v", d.Status, d.EditedArgs, err)
	}
	read := func(what string) string {
		b, err := os.ReadFile(seen + what)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	mustContain(t, read(".txt"), "{\n  \"order_id\": \"o-7\",")
	mustContain(t, read(".mode"), "-rw-------", "drwx------")
	mustContain(t, read(".flag"), "--wait")
	if _, err := os.Stat(filepath.Dir(strings.TrimSpace(read(".path")))); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// An editor that fails, that changes nothing or that leaves what cannot run changes nothing.
func TestTheInboxTakesNoBadEdit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ editor, says string }{
		"fails":      {"exit 3; :", "did not end well"},
		"nothing":    {"true", "Nothing was changed"},
		"no JSON":    {"printf '{' >", "cannot run"},
		"no refund":  {`printf '{"order_id":1,"amount":5}' >`, "cannot run"},
		"not there":  {"/no/such/editor", "did not end well"},
		"taken away": {"rm", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.park()
			s := w.inbox("EDITOR=" + c.editor)
			atApproval(s)
			s.key("e")
			s.until(c.says)
			s.key("q")
			if code, _ := s.end(); code != 0 || w.show(p.ApprovalID).Status != decision.Pending {
				t.Errorf("exit code %d, %s", code, w.show(p.ApprovalID).Status)
			}
		})
	}
}

// A signal while an editor is open ends both, and the file is gone.
func TestTheInboxEndsWithItsEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	path := filepath.Join(w.dir, "path")
	s := w.inbox(`EDITOR=sh -c 'echo "$1" > ` + path + `; echo EDITOR-IS-OPEN; sleep 1000' sh`)
	atApproval(s)
	s.key("e")
	s.until("EDITOR-IS-OPEN")
	s.cmd.Process.Signal(syscall.SIGTERM)
	code, text := s.end()
	mustContain(t, text, "The inbox was ended by a signal.")
	b, err := os.ReadFile(path)
	if err != nil || code != 1 || w.show(p.ApprovalID).Status != decision.Pending {
		t.Fatalf("exit code %d, %s: %v", code, w.show(p.ApprovalID).Status, err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(b))); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// tmux is a terminal that keeps what is on it.
type tmux struct {
	t    *testing.T
	path string
	sock string
}

func (m *tmux) do(args ...string) string {
	m.t.Helper()
	out, err := exec.Command(m.path, append([]string{"-S", m.sock, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// until waits for a text to be on the screen. tmux tells nobody when something changes, so
// it is asked again and again.
func (m *tmux) until(text string) string {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		seen := m.do("capture-pane", "-p")
		if strings.Contains(seen, text) {
			return seen
		}
		select {
		case <-tick.C:
		case <-late:
			m.t.Fatalf("there is no %q on the screen:\n%s", text, seen)
		}
	}
}

// The whole story under a real terminal program: open, look, approve, and see the result of
// a resume in another process.
func TestTheInboxUnderTmux(t *testing.T) {
	t.Parallel()
	path, err := debian.Tmux.Path(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	p := w.park()
	c := w.command("inbox", "--by", "ana")
	m := &tmux{t, path, filepath.Join(w.dir, "s")}
	start := exec.Command(path, "-S", m.sock, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "placet inbox --by ana; echo ENDED $?; exec sleep 1000")
	start.Env, start.Dir = append(c.Env, "NO_COLOR="), w.dir
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { m.do("kill-server") })
	seen := m.until("> never")
	mustContain(t, seen, "Waiting for a person", "1 waits", "refund", `"order_id":"o-7"`)
	m.do("send-keys", "Enter")
	mustContain(t, m.until("Approve this call?"), "order_id │ \"o-7\"", "amount   │ 500", "a approve")
	m.do("send-keys", "a")
	m.until("Type the word approve")
	m.do("send-keys", "approve")
	m.until("> approve")
	if d := w.show(p.ApprovalID); d.Status != decision.Pending {
		t.Fatalf("it is %s before Enter", d.Status)
	}
	m.do("send-keys", "Enter")
	m.until("Nothing has run yet.")
	if d := w.show(p.ApprovalID); d.Status != decision.Approved || d.DecidedBy != "ana" {
		t.Fatalf("it is %s by %q", d.Status, d.DecidedBy)
	}
	if _, stderr, code := w.run("resume", p.ApprovalID); code != 0 {
		t.Fatalf("resume: %d %s", code, stderr)
	}
	mustContain(t, m.until("It ran, and succeeded."), "The call: succeeded", "Result")
	m.do("resize-window", "-x", "40", "-y", "20")
	m.until("more below")
	m.do("send-keys", "Escape")
	mustContain(t, m.until("Waiting for a person"), "approved by ana")
	m.do("send-keys", "q")
	m.until("ENDED 0")
}
