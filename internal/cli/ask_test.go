package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
)

// screen is a placet process at a terminal, and what stands on it.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys *os.File

	mu   sync.Mutex
	grew *sync.Cond
	text strings.Builder
	over bool
}

func (w *world) atTerminal(args ...string) *screen {
	w.t.Helper()
	return startAtTerminal(w.t, w.command(args...))
}

func startAtTerminal(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	return startSized(t, c, nil)
}

// startSized starts a command at a terminal of that size; nil: of none.
func startSized(t *testing.T, c *exec.Cmd, size *pty.Winsize) *screen {
	t.Helper()
	s := &screen{t: t, cmd: c}
	s.grew = sync.NewCond(&s.mu)
	f, err := pty.StartWithSize(s.cmd, size)
	if err != nil {
		t.Fatal(err)
	}
	s.keys = closable(t, f)
	t.Cleanup(func() { s.keys.Close() })
	go s.read()
	return s
}

// closable is the same terminal, which is really gone once it is closed: not kept
// open by whoever reads it then.
func closable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	syscall.ForkLock.RLock() // what another test starts would keep the terminal
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.keys.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.over = err != nil // the process and its terminal are gone
		s.grew.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits for a text to be on the screen.
func (s *screen) until(text string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), text) {
		if s.over {
			s.t.Fatalf("ended without %q:\n%s", text, s.text.String())
		}
		s.grew.Wait()
	}
}

func (s *screen) key(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the process and returns its exit code and the whole screen. What it leaves
// at its terminal for long is not waited for.
func (s *screen) end() (int, string) {
	s.t.Helper()
	_ = s.cmd.Wait()
	late := time.AfterFunc(time.Minute, func() { s.keys.Close() })
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.over {
		s.grew.Wait()
	}
	return s.cmd.ProcessState.ExitCode(), s.text.String()
}

const question = "Approve exactly this? [y/N] "

func TestYesAtATerminalDecidesOnWhatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.atTerminal("approve", p.ApprovalID, "--by", "ana", "--note", "looks right")
	s.until(question)
	s.key("y\n")
	code, text := s.end()
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	mustContain(t, text, `title  "Refund 500 on o-7"  (17 bytes)`, "End of approval "+p.ApprovalID,
		`A yes records: approved by "ana" as local:`, `with the note "looks right", for digest `+p.Digest, "is approved by ana.")
	d := w.show(p.ApprovalID)
	if d.Status != decision.Approved || d.DecidedBy != "ana" || d.Note != "looks right" || !strings.HasPrefix(d.DecidedPrincipal, "local:") {
		t.Errorf("got %+v", d)
	}
}

func TestNoAtATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.atTerminal("reject", p.ApprovalID)
	s.until("Reject it? [y/N] ")
	s.key("yes\n")
	if code, text := s.end(); code != 0 || w.show(p.ApprovalID).Status != decision.Rejected {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// Whatever ends the question without a yes leaves the approval as it was (135, 139).
func TestEverythingButYesLeavesItPending(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*screen){
		"empty line":       func(s *screen) { s.key("\n") },
		"n":                func(s *screen) { s.key("n\n") },
		"another word":     func(s *screen) { s.key("yeah\n") },
		"delete and enter": func(s *screen) { s.key("\x1b[3~\n") },
		"escape and enter": func(s *screen) { s.key("\x1b\n") },
		"tab and enter":    func(s *screen) { s.key("\t\n") },
		"pasted lines":     func(s *screen) { s.key("y\nand more\n") },
		"end of input":     func(s *screen) { s.key("\x04") },
		"y, end of input":  func(s *screen) { s.key("y\x04\x04") },
		"control c":        func(s *screen) { s.key("\x03") },
		"y, control c":     func(s *screen) { s.key("y\x03") },
		"SIGINT":           func(s *screen) { s.cmd.Process.Signal(syscall.SIGINT) },
		"SIGTERM":          func(s *screen) { s.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":           func(s *screen) { s.cmd.Process.Signal(syscall.SIGHUP) },
		"closed terminal":  func(s *screen) { s.keys.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.park()
			s := w.atTerminal("approve", p.ApprovalID)
			s.until(question)
			end(s)
			code, text := s.end()
			if code != 1 {
				t.Errorf("exit code %d, want 1:\n%s", code, text)
			}
			if name != "closed terminal" { // where nobody can read it
				mustContain(t, text, "Not decided: approval "+p.ApprovalID+" is as it was.")
			}
			if name == "end of input" {
				mustContain(t, text, question+"\r\n")
			}
			if d := w.show(p.ApprovalID); d.Status != decision.Pending || d.DecidedBy != "" {
				t.Errorf("it is %s by %q", d.Status, d.DecidedBy)
			}
		})
	}
}

// Keys that were typed before the question answer nothing (137).
func TestKeysTypedAheadAnswerNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.atTerminal("approve", p.ApprovalID)
	s.key("y\ny\nyes\n")
	s.until(question)
	s.key("\n")
	if code, text := s.end(); code != 1 || w.show(p.ApprovalID).Status != decision.Pending {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// While somebody goes on typing no question is put at all (137). A key every 20
// ms is faster than the case has it; the ticker is that typing, not a wait.
func TestWhileSomebodyTypesNothingIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.atTerminal("approve", p.ApprovalID)
	typing := time.NewTicker(20 * time.Millisecond)
	defer typing.Stop()
	for i := range 100 {
		s.key([]string{"y", "\n", "y\n", "\r"}[i%4])
		<-typing.C
	}
	s.mu.Lock()
	asked := strings.Contains(s.text.String(), question)
	s.mu.Unlock()
	if asked {
		t.Error("it asked while somebody was typing")
	}
	s.until(question) // now it is quiet
	s.key("\x03")
	if code, _ := s.end(); code != 1 || w.show(p.ApprovalID).Status != decision.Pending {
		t.Errorf("exit code %d, status %s", code, w.show(p.ApprovalID).Status)
	}
}

// A question whose approval is settled elsewhere ends by itself, and says who and when (159).
func TestDecidedElsewhereEndsTheQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.atTerminal("approve", p.ApprovalID)
	s.until(question)
	if _, err := (decision.Operator{Store: w.store}).Decide(t.Context(), p.ApprovalID, decision.Answer{By: "bo", Note: "no"}); err != nil {
		t.Fatal(err)
	}
	code, text := s.end()
	at := w.show(p.ApprovalID).DecidedAt.UTC().Format("2006-01-02T15:04:05")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustContain(t, text, "was rejected by", `"bo" at `+at, "Nothing was decided here.")
}

func TestDeadlineEndsTheQuestion(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, call.Config{ApprovalTTL: 4 * time.Second}) // long enough to see the question
	p := w.park()
	s := w.atTerminal("approve", p.ApprovalID)
	code, text := s.end()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustContain(t, text, question, "expired at "+w.show(p.ApprovalID).ExpiresAt.Format("2006-01-02T15:04:05.000000Z"), "Nothing was decided.")
	if d := w.show(p.ApprovalID); d.DecidedBy != "" {
		t.Errorf("got %+v", d)
	}
}

// What is not pending is refused before anything is asked, with what stands.
func TestSettledIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	if _, err := (decision.Operator{Store: w.store}).Decide(t.Context(), p.ApprovalID, decision.Answer{Approved: true, By: "bo"}); err != nil {
		t.Fatal(err)
	}
	code, text := w.atTerminal("approve", p.ApprovalID).end()
	if code != 1 || strings.Contains(text, "[y/N]") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	mustContain(t, text, `already approved (decided by "bo" at `)
}

// Edited arguments are shown, and held against the schema, before the question (139).
func TestEditsAreShownBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	edit := func(name, text string) string {
		path := fmt.Sprintf("%s/%s", w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	code, text := w.atTerminal("approve", p.ApprovalID, "--edit", edit("bad", `{"order_id":"o-7","amount":-1}`)).end()
	if code != 1 || strings.Contains(text, "[y/N]") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	s := w.atTerminal("approve", p.ApprovalID, "--edit", edit("good", `{"order_id":"o-7","amount":400}`))
	s.until(question)
	s.key("y\n")
	code, text = s.end()
	mustContain(t, text, "Your edited arguments, which would run instead (31 bytes):", "amount    400  (3 bytes)")
	if d := w.show(p.ApprovalID); code != 0 || string(d.EditedArgs) != `{"order_id":"o-7","amount":400}` {
		t.Errorf("exit code %d, edited %s", code, d.EditedArgs)
	}
}

// With --json nothing is asked, also at a terminal.
func TestJSONNeverAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	code, text := w.atTerminal("approve", "--json", p.ApprovalID).end()
	if code != 2 || strings.Contains(text, "[y/N]") || w.show(p.ApprovalID).Status != decision.Pending {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}
