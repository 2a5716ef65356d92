package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/pgtest"
)

// endpoint is how a daemon is reached, and who its home lets act.
type endpoint struct{ url, admin string }

// member is one of the daemons: a home, a network to the server, and a process at most
// times.
type member struct {
	n     int
	home  string
	conf  string
	url   string // of the database, through the proxy
	proxy *pgtest.Proxy
	log   *logs

	mu      sync.Mutex
	at      endpoint // the last that was told; the process behind it may be gone
	cmd     *exec.Cmd
	dead    chan struct{} // closed when the present process has ended
	killing bool          // the present process is to end
	strange []string      // how those ended that nobody killed
}

// logs is what a daemon's processes said, one after the other.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// last is the end of it.
func (l *logs) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.b.Bytes()
	return string(b[max(0, len(b)-n):])
}

func newMember(t testing.TB, n int, db, dir, conf string) *member {
	t.Helper()
	proxy := pgtest.NewProxy(t, db)
	m := &member{n: n, home: filepath.Join(dir, fmt.Sprint("home", n)), conf: conf, url: proxy.URL(db), proxy: proxy, log: &logs{}}
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("daemon %d said last:\n%s", m.n, m.log.last(3000))
		}
	})
	return m
}

var errEnded = errors.New("the daemon ended before it served")

// start starts a process and returns once it serves.
func (m *member) start() error {
	cmd := exec.Command(os.Args[0], daemonWord, m.url, m.home, m.conf)
	cmd.Stderr, cmd.SysProcAttr = m.log, attributes()
	if _, err := cmd.StdinPipe(); err != nil { // open for as long as we live
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	dead := make(chan struct{})
	m.mu.Lock()
	m.cmd, m.dead, m.killing = cmd, dead, false
	m.mu.Unlock()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		_ = cmd.Wait()
		close(dead)
		return fmt.Errorf("%w: %s", errEnded, m.log.last(500))
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		m.gone(cmd)
		close(dead)
	}()
	return m.found(line)
}

// gone notes how a process ended that nobody killed while it served.
func (m *member) gone(cmd *exec.Cmd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.killing {
		m.strange = append(m.strange, fmt.Sprintf("daemon %d ended by itself (%s): %s", m.n, cmd.ProcessState, m.log.last(2000)))
	}
}

// strangeEnds tells how processes ended that nobody killed.
func (m *member) strangeEnds() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.strange)
}

// found takes in what a daemon told when it was ready.
func (m *member) found(line []byte) error {
	var s daemon.Started
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	secret, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = endpoint{s.URL, strings.TrimSpace(string(secret))}
	return nil
}

func (m *member) endpoint() endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// process is the present one.
func (m *member) process() (*os.Process, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return nil, nil
	}
	return m.cmd.Process, m.dead
}

// signal sends the present process a signal; one that has ended takes none.
func (m *member) signal(s syscall.Signal) {
	if p, _ := m.process(); p != nil {
		_ = p.Signal(s)
	}
}

// kill ends the present process as a crash would.
func (m *member) kill() {
	p, dead := m.process()
	if p == nil {
		return
	}
	m.mu.Lock()
	m.killing = true
	m.mu.Unlock()
	_ = p.Kill()
	<-dead
}

// ended reports whether there is no process.
func (m *member) ended() bool {
	_, dead := m.process()
	select {
	case <-dead:
		return true
	default:
		return false
	}
}
