package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

// serveWord is this program as a daemon of its own, so that what it costs is told apart
// from what its clients cost.
const serveWord = "serve-for-bench"

// server is a daemon in a process of its own.
type server struct {
	url           string
	agent, review string // tokens
	admin         *httpapi.Client
	cmd           *exec.Cmd
	in            io.WriteCloser
	out           *bufio.Reader
}

// greeting is what the daemon prints first.
type greeting struct{ URL, TokenFile string }

func (b *bench) serve(ctx context.Context, name string) (*server, error) {
	dir := b.path(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return b.serveIn(ctx, dir, filepath.Join(dir, "placet.db"))
}

// serveIn serves the store db, a file or a server's URL. What else the daemon keeps lies in
// the folder dir.
func (b *bench) serveIn(ctx context.Context, dir, db string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, self, serveWord, db)}
	s.cmd.Env = append(os.Environ(), "PLACET_HOME="+dir)
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := s.greet(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *server) greet(ctx context.Context) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the daemon did not begin: %w", err)
	}
	var g greeting
	if err := json.Unmarshal(line, &g); err != nil {
		return err
	}
	secret, err := os.ReadFile(g.TokenFile)
	if err != nil {
		return err
	}
	s.url, s.admin = g.URL, httpapi.NewClient(g.URL, strings.TrimSpace(string(secret)))
	for scope, to := range map[token.Scope]*string{token.Agent: &s.agent, token.Reviewer: &s.review} {
		t, err := s.admin.CreateToken(ctx, httpapi.NewToken{Scope: scope, Name: string(scope)})
		if err != nil {
			return err
		}
		*to = t.Secret
	}
	return nil
}

// close ends the daemon as a user would, by its standard input's end.
func (s *server) close() error {
	return errors.Join(s.in.Close(), s.cmd.Wait())
}

// holds is what the daemon holds, stacks included.
func (s *server) holds() (int64, error) {
	if _, err := io.WriteString(s.in, "held\n"); err != nil {
		return 0, err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(line), 10, 64)
}

// serveForBench is this program as a daemon; it tells what it holds whenever it is asked.
func serveForBench(db string) error {
	at, err := place.Named(db)
	if err != nil {
		return err
	}
	conf, err := config.Empty()
	if err != nil {
		return err
	}
	if conf.Tools, err = tool.NewRegistry(noop("refund", tool.RemoteMutation)); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer stop()
		for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
			fmt.Println(held())
		}
	}()
	return daemon.Serve(ctx, daemon.Config{
		DB: at, Conf: conf, Listen: "127.0.0.1:0", Principal: "bench", Program: []string{self}, Log: slog.New(slog.DiscardHandler),
		Ready: func(s daemon.Started) {
			g, _ := json.Marshal(greeting{s.URL, s.TokenFile}) // two texts
			fmt.Println(string(g))
		},
	})
}
