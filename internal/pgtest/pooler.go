package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler starts a pgbouncer in transaction mode in front of s and returns the URL of
// the database postgres through it; [Via] makes those of others. It ends with the
// test. A connection through it has, from one transaction to the next, any of a few
// to the server, so what belongs to a session (LISTEN, prepared statements, advisory
// locks, SET) does not work.
func Pooler(tb testing.TB, s *Server) string {
	tb.Helper()
	bin, err := bouncer()
	if err != nil {
		tb.Fatal(err)
	}
	for try := 1; ; try++ {
		at, err := startPooler(tb, bin, s)
		if err == nil {
			return at
		}
		if !errors.Is(err, errPortTaken) || try == 10 {
			tb.Fatal(err)
		}
	}
}

// bouncer finds pgbouncer also where Debian puts it, which is not in everybody's PATH.
func bouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("pgbouncer is not here: install it (scripts/test-postgres does on Debian)")
}

func startPooler(tb testing.TB, bin string, s *Server) (at string, err error) {
	place, err := newPlace(reachable())
	if err != nil {
		return "", err
	}
	port, err := freePort()
	if err != nil {
		return "", errors.Join(err, place.remove())
	}
	self := "self_" + unique()
	file := filepath.Join(place.dir, "pgbouncer.ini")
	err = os.WriteFile(file, []byte(poolerConfig(s, port, self)), 0o600)
	if err == nil {
		err = giveAway(file)
	}
	if err != nil {
		return "", errors.Join(err, place.remove())
	}
	var said strings.Builder
	cmd := exec.Command(bin, file)
	cmd.Dir, cmd.Env, cmd.Stderr = place.dir, environment(), &said
	p, err := launch(cmd, syscall.SIGKILL)
	if err != nil {
		return "", errors.Join(err, place.remove())
	}
	stop := func() error {
		p.signal(os.Kill) // it has nothing to put in order
		<-p.done
		return place.remove()
	}
	at = Via(s.URL("postgres"), "postgres://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err := poolerAnswers(p, strings.Replace(at, "/postgres?", "/"+self+"?", 1)); err != nil {
		return "", errors.Join(err, stop(), errors.New(said.String()))
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return at, nil
}

// poolerConfig has a database of a name that no other pgbouncer knows, to tell ours
// from one that took the port first.
func poolerConfig(s *Server, port int, self string) string {
	server := fmt.Sprintf("host=%s port=%s user=%s", s.at.Hostname(), s.at.Port(), s.at.User.Username())
	if password, ok := s.at.User.Password(); ok {
		server += fmt.Sprintf(" password='%s'", strings.ReplaceAll(password, "'", "''"))
	}
	return strings.Join([]string{
		"[databases]",
		self + " = dbname=postgres " + server,
		"* = " + server,
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(port),
		"unix_socket_dir =",
		"auth_type = any",
		"admin_users = postgres",
		"pool_mode = transaction",
		"max_client_conn = 200",
		// For how long it believes that a server is down which has come back: 15 s by default.
		"server_login_retry = 0.1",
		// Any other parameter that a client sends at its start is refused, as a
		// pgbouncer that was set up without us in mind does.
		"ignore_startup_parameters = extra_float_digits",
		"",
	}, "\n")
}

func poolerAnswers(p *process, at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := ping(ctx, at)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("pgbouncer ended (%w); %w perhaps", p.err, errPortTaken)
		case <-ctx.Done():
			return fmt.Errorf("pgbouncer did not answer in time: %w", err)
		case <-ticker.C:
		}
	}
}

func ping(ctx context.Context, at string) error {
	c, err := pgconn.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.Exec(ctx, "SELECT 1").Close()
}
