package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/place"
)

// daemonWord is the first argument of a copy of this program that is to be a daemon.
const daemonWord = "simulated-daemon"

const (
	// lease is how long a daemon claims what it carries out, short enough that a test sees
	// it end.
	lease = 2 * time.Second
	every = 300 * time.Millisecond
)

// Part plays the part that this process was started for, if it was started for one: a
// daemon, or what a daemon starts. TestMain calls it first.
func Part() {
	if len(os.Args) < 2 || os.Args[1] == "" || os.Args[1][0] == '-' {
		return
	}
	if os.Args[1] != daemonWord {
		os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	if err := serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is placet serve, with shorter times than its flags offer. It ends with the process
// that started it, whose end closes standard input.
func serve(url, home, conf string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	p, err := place.Parse(url, home)
	if err != nil {
		return err
	}
	c, err := config.Load(conf)
	if err != nil {
		return err
	}
	return daemon.Serve(ctx, daemon.Config{
		DB: p, Conf: c, Listen: "127.0.0.1:0", Principal: "local:simulated", Program: []string{os.Args[0]}, Lease: lease, Every: every,
		Drain: time.Second, Ready: tell, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// tell says on standard output how the daemon is reached.
func tell(s daemon.Started) {
	b, err := json.Marshal(s)
	if err != nil {
		panic("simulate: " + err.Error()) // our own value
	}
	fmt.Printf("%s\n", b)
}
