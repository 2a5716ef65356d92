package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Limits of a connection. Bodies, answers and long polls have time limits of their
// own in httpapi; requestTimeout is only for a body that nobody there looks at.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeader      = 64 << 10
)

// settling is how long a loop may take to notice that it is to end.
const settling = time.Second

func (d *daemon) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: d.api, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(d.c.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 4)
	for _, l := range []net.Listener{d.tcp, d.unix} {
		if l != nil {
			go func() { failed <- server.Serve(l) }()
		}
	}
	working, stop := context.WithCancel(context.Background())
	loops := d.begin(working, failed)
	endDeliveries := d.beginDeliveries()
	err := d.home.tell(d.found.Found)
	if err == nil {
		if d.c.Ready != nil {
			d.c.Ready(d.found)
		}
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	d.putDown(server, endDeliveries)
	stop()
	d.settle(loops)
	os.Remove(d.home.foundFile())
	return err
}

// begin starts the loops. They end with ctx, and loops is closed then.
func (d *daemon) begin(ctx context.Context, failed chan<- error) (loops <-chan struct{}) {
	var all sync.WaitGroup
	all.Go(func() { d.sweeping.run(ctx) })
	all.Go(func() { d.continuing.run(ctx) })
	all.Go(func() { d.work.follow(ctx, d.deciding, d.continuing.poke) })
	if d.jobs != nil {
		all.Go(func() {
			if err := d.jobs.Loop(ctx); err != nil {
				failed <- err
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	return ended
}

// putDown tells whoever waits, lets nothing new begin, and gives what has begun so long.
func (d *daemon) putDown(server *http.Server, endDeliveries func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.c.Drain)
	defer cancel()
	d.runs.Stop()
	left := sync.OnceFunc(func() {
		d.c.Log.Warn("what was under way has not ended in time; it is left as it stands, to be found", "drain", d.c.Drain)
	})
	var all sync.WaitGroup
	for _, end := range []func(context.Context) error{endDeliveries, d.api.Shutdown, d.mcp.Shutdown, d.inbox.Shutdown, d.work.stop, d.runs.Wait, d.exec.Wait} {
		all.Go(func() {
			if end(ctx) != nil {
				left()
			}
		})
	}
	all.Go(func() {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	})
	all.Wait()
}

// settle waits for the loops, unless one of them hangs.
func (d *daemon) settle(loops <-chan struct{}) {
	select {
	case <-loops:
	case <-time.After(settling):
		d.c.Log.Warn("a loop has not ended in time; it is left as it stands")
	}
}
