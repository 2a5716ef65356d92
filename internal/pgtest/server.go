package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	tick = 10 * time.Millisecond // between two looks at a server that is coming up
	// patience is how long a server may take to shut down, and a test's leavings to
	// be removed, before that counts as a fault.
	patience = 30 * time.Second
)

// Options says how a server is to be. The zero value is for tests.
type Options struct {
	// Durable makes commits reach the disk, as measurements need. Default: they
	// reach the operating system, which outlives a killed server as well.
	Durable bool
	// Config holds lines for postgresql.conf.
	Config []string
	// Dir is the folder below which the server keeps its files. Where we are root,
	// the user postgres has to be able to reach it. Default: the temporary folder, and
	// memory where there is room and the server is not durable.
	Dir string
}

// Server is a PostgreSQL server on loopback. Methods are safe for concurrent use,
// but one that starts or ends the server is not to meet another such.
type Server struct {
	at    *url.URL // of the database that Schema uses; settled before Start returns
	bin   string
	place *place // nil: somebody else's server

	mu      sync.Mutex
	process *process // nil: never started, or stopped
}

// parent is where the server's folder comes to lie.
func (o Options) parent() string {
	switch {
	case o.Dir != "":
		return o.Dir
	case !o.Durable && memory() != "":
		return memory()
	}
	return reachable()
}

// ErrNotOurs is what [Server.Restart] and its like say about a server that was
// started elsewhere.
var ErrNotOurs = errors.New("this PostgreSQL server was not started by pgtest.Start here, so it is not stopped or changed here either")

// Start starts a server with an empty data folder and returns when it answers.
// It ends with [Server.Stop], or with our process.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	place, err := newPlace(o.parent())
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, place: place}
	if err := s.create(ctx, o); err != nil {
		return nil, errors.Join(err, place.remove())
	}
	if err := s.startSomewhere(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.place.dir, "data") }
func (s *Server) log() string  { return filepath.Join(s.place.dir, "log") }

// create makes the data folder.
func (s *Server) create(ctx context.Context, o Options) error {
	args := []string{"-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"}
	err := s.initdb(ctx, append(args, "--locale=C", "--locale-provider=icu", "--icu-locale=und"))
	if err != nil && ctx.Err() == nil {
		// Before version 15 a cluster could not order by ICU, and not every build has it.
		err = s.initdb(ctx, append(args, "--locale=C"))
	}
	if err != nil {
		return err
	}
	return s.append(append(settings(o), o.Config...))
}

// settings are what every server has. A text that is compared or ordered without
// naming a collation is so by ICU's, as in most installations, not byte by byte.
func settings(o Options) []string {
	lines := []string{
		"listen_addresses = '127.0.0.1'",
		"unix_socket_directories = ''",
		"max_connections = 300",
		"shared_buffers = 64MB",
		"max_locks_per_transaction = 256", // many schemas with many tables each
		"timezone = 'UTC'",
		"dynamic_shared_memory_type = mmap", // its files go with the folder, also where the server was killed
	}
	if !o.Durable {
		// synchronous_commit stays on: what was acknowledged has reached the
		// operating system, so killing the server loses nothing.
		lines = append(lines, "fsync = off", "full_page_writes = off")
	}
	return lines
}

func (s *Server) initdb(ctx context.Context, args []string) error {
	var out strings.Builder
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), args...)
	cmd.Dir, cmd.Env = s.place.dir, environment()
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := launch(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.signal(os.Kill)
		<-p.done
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("initdb: %w: %s", p.err, &out)
	}
	return nil
}

// environment keeps what a developer's shell says about PostgreSQL (PGPORT, PGDATA,
// PGOPTIONS) and about languages from reaching a server.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
}

func (s *Server) append(lines []string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// startSomewhere tries ports: one that was free may be taken before it is used.
func (s *Server) startSomewhere(ctx context.Context) error {
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.at = &url.URL{
			Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: "sslmode=disable",
			Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		}
		err = s.Start(ctx)
		if !errors.Is(err, errPortTaken) || try == 10 {
			return err
		}
	}
}

// freePort keeps below the ports that systems give to outgoing connections, so that
// none of those sits on ours while the server is down between two starts.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found on 127.0.0.1")
}

var errPortTaken = errors.New("the port is taken")

// Start starts a server again that was stopped or killed, on the same port and with
// the same data, and returns when it answers: after a [Server.Kill], when it has
// recovered.
func (s *Server) Start(ctx context.Context) error {
	if s.place == nil {
		return ErrNotOurs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.running() {
		return errors.New("the server is running")
	}
	log, err := os.Create(s.log()) // of this start only: older words do not explain it
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", s.at.Port())
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.place.dir, environment(), log, log
	// SIGQUIT ends at once and takes PostgreSQL's own processes along.
	p, err := launch(cmd, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	s.process = p
	if err := s.answers(ctx, p); err != nil {
		s.kill()
		return err
	}
	return nil
}

// answers waits until the server p accepts connections.
func (s *Server) answers(ctx context.Context, p *process) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := s.isItself(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return s.explain(p.err)
		case <-ctx.Done():
			return fmt.Errorf("the PostgreSQL server did not answer in time (%w), last: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// isItself asks the server who it is: while ours finds the port taken, whoever has
// taken it may well answer.
func (s *Server) isItself(ctx context.Context) error {
	return s.admin(ctx, "postgres", func(c *pgx.Conn) error {
		var data string
		if err := c.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
			return err
		}
		if data != s.data() {
			return fmt.Errorf("%w, by the server of %s", errPortTaken, data)
		}
		return nil
	})
}

func (s *Server) explain(exit error) error {
	said := s.Log()
	err := fmt.Errorf("the PostgreSQL server ended (%w): %s", exit, said)
	if strings.Contains(said, "could not create any TCP/IP sockets") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// Log is what the server has said since its last start.
func (s *Server) Log() string {
	if s.place == nil {
		return ""
	}
	said, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// URL is the address of a database of the server.
func (s *Server) URL(database string) string {
	at := *s.at
	at.Path = "/" + database
	return at.String()
}

// admin runs do on a connection of its own.
func (s *Server) admin(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return do(c)
}

// Mode is how a server is shut down.
type Mode string

const (
	Fast      Mode = "fast"      // connections are ended, then everything is written
	Immediate Mode = "immediate" // like a crash: the next start recovers
)

func (m Mode) signal() (os.Signal, error) {
	switch m {
	case Fast:
		return syscall.SIGINT, nil
	case Immediate:
		return syscall.SIGQUIT, nil
	}
	return nil, fmt.Errorf("a server is shut down %q or %q, not %q", Fast, Immediate, string(m))
}

// Down shuts the server down and keeps its data for [Server.Start]. It does nothing
// when the server is down.
func (s *Server) Down(m Mode) error {
	if s.place == nil {
		return ErrNotOurs
	}
	sig, err := m.signal()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	s.process.signal(sig)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-s.process.done:
		s.process = nil
		return nil
	case <-late.C:
		s.kill()
		return fmt.Errorf("the PostgreSQL server did not shut down in %v and was killed: %s", patience, s.Log())
	}
}

// Restart shuts the server down in the mode and starts it again on the same port.
func (s *Server) Restart(ctx context.Context, m Mode) error {
	if err := s.Down(m); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Kill ends every process of the server with SIGKILL, as a crash or the system's
// memory killer would. [Server.Start] recovers it.
func (s *Server) Kill() error {
	if s.place == nil {
		return ErrNotOurs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	return nil
}

// kill is [Server.Kill] under the lock.
func (s *Server) kill() {
	if s.process == nil {
		return
	}
	if s.process.running() {
		killChildren(s.process)
	}
	s.process.signal(syscall.SIGKILL)
	<-s.process.done
	s.process = nil
}

// Stop shuts the server down and removes its files. It works twice.
func (s *Server) Stop() error {
	if s.place == nil {
		return ErrNotOurs
	}
	err := s.Down(Fast)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place.lock == nil {
		return err
	}
	err = errors.Join(err, s.place.remove())
	s.place.lock = nil
	return err
}

// Config adds lines to postgresql.conf and returns when they are in force for new connections.
// What takes a restart is in force after [Server.Restart]; a server that is down
// has them when it starts.
func (s *Server) Config(ctx context.Context, lines ...string) error {
	if s.place == nil {
		return ErrNotOurs
	}
	if err := s.append(lines); err != nil || !s.running() {
		return err
	}
	before, err := s.loaded(ctx)
	if err != nil {
		return err
	}
	s.reload()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		now, err := s.loaded(ctx)
		if err != nil {
			return err
		}
		if now.After(before) {
			return s.heeded(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// heeded returns when the checkpointer has read the settings, too. It was told with the
// others, and looks before it does what it is asked for. It is who says to all commits whether
// there are standbys to wait for, whatever their own settings are.
func (s *Server) heeded(ctx context.Context) error {
	return s.admin(ctx, "postgres", func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "CHECKPOINT")
		return err
	})
}

func (s *Server) reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.signal(syscall.SIGHUP)
	}
}

// loaded is when a new connection's settings were read.
func (s *Server) loaded(ctx context.Context) (at time.Time, err error) {
	err = s.admin(ctx, "postgres", func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_conf_load_time()").Scan(&at)
	})
	return at, err
}

func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place == nil || s.process != nil && s.process.running()
}
