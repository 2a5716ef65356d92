package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store/sqlite"
)

// childEnv tells a copy of the test binary where to dispatch, and when to be killed.
const childEnv = "PLACET_DELIVERY_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		at, path, _ := strings.Cut(part, " ")
		err := dispatchUntilKilled(at, path)
		fmt.Fprintln(os.Stderr, "the child was not killed:", err)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// points are those of a delivery's way at which a process can be lost.
var points = []struct {
	name     string
	outcomes []delivery.AttemptOutcome // of the first delivery, in the end
	sent     string                    // by the process that was lost
	again    bool                      // by the next one
}{
	{"before the claim's commit", []delivery.AttemptOutcome{"delivered"}, "", true},
	{"after the claim's commit", []delivery.AttemptOutcome{"reclaimed", "delivered"}, "", true},
	{"while it is sent", []delivery.AttemptOutcome{"reclaimed", "delivered"}, "it", true},
	{"before the outcome's commit", []delivery.AttemptOutcome{"reclaimed", "delivered"}, "it", true},
	{"after the outcome's commit", []delivery.AttemptOutcome{"delivered"}, "it", false},
}

func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// deadly is a channel that tells what it sends on standard output.
type deadly struct{ at string }

func (deadly) Check(delivery.Target) error { return nil }

func (c deadly) Send(_ context.Context, m delivery.Message) delivery.Outcome {
	if c.at == points[1].name {
		killSelf()
	}
	fmt.Println(m.DeliveryID)
	if c.at == points[2].name {
		killSelf()
	}
	return delivery.Outcome{Result: delivery.Arrived}
}

// dispatchUntilKilled is the whole life of the child.
func dispatchUntilKilled(at, path string) error {
	at = strings.ReplaceAll(at, "_", " ")
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	claims, settles := false, false
	over := make(chan struct{})
	hooks := &sqlite.Hooks{BeforeStatement: func(_ int, sql string) error {
		switch {
		case strings.HasPrefix(sql, "UPDATE delivery ") && strings.Contains(sql, ", try_at ="):
			claims = true
		case strings.HasPrefix(sql, "UPDATE delivery ") && strings.Contains(sql, ", try_outcome ="):
			settles = true
		case sql == "COMMIT" && (claims && at == points[0].name || settles && at == points[3].name):
			killSelf()
		case sql == "COMMIT" && settles:
			close(over)
		}
		return nil
	}}
	s, err := sqlite.Open(ctx, path, &sqlite.Options{Hooks: hooks, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	alive := func() {
		select {
		case <-over: // this is called after the commit was answered
			killSelf()
		default:
		}
	}
	d := &delivery.Dispatcher{Store: s, Channels: delivery.Channels{delivery.KindWebhook: deadly{at}}, Owner: "child", Alive: alive, PerTarget: 1}
	d.Loop(ctx)
	return nil
}

// A process is killed at each point of a delivery: nothing is lost, what is not known is
// shown as reclaimed and comes again under the same id, and what comes behind it in its
// lane does so after it.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, point := range points {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				w := setup(t)
				s := w.root()
				w.add(s)
				w.tell(s, event.JobPaused, 2)
				first := w.every()[0]
				if err := w.s.Close(); err != nil {
					t.Fatal(err)
				}
				sent := w.killed(point.name)
				w.s = w.open()
				w.desk = w.deskOn(w.s)
				w.later(time.Hour)
				w.dispatch(w.s)
				all := w.allDelivered(2)
				var got []delivery.AttemptOutcome
				for _, a := range w.attempts(first.ID) {
					got = append(got, a.Outcome)
				}
				if !slices.Equal(got, point.outcomes) {
					t.Errorf("its attempts: %v", got)
				}
				if want := strings.ReplaceAll(point.sent, "it", first.ID); sent != want {
					t.Errorf("the killed process sent %q, want %q", sent, want)
				}
				var again []string
				for _, m := range w.sink.all() {
					again = append(again, m.DeliveryID)
				}
				want := []string{all[0].ID, all[1].ID}
				if !point.again {
					want = want[1:]
				}
				if !slices.Equal(again, want) {
					t.Errorf("the next process sent %v, want %v", again, want)
				}
			}
		})
	}
}

// killed runs the child until it is killed, and returns what it has sent.
func (w *world) killed(at string) string {
	w.Helper()
	c := exec.CommandContext(w.ctx, os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+strings.ReplaceAll(at, " ", "_")+" "+w.path)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.Fatalf("the child ended with %v: %s", err, errs.String())
	}
	return strings.TrimSpace(out.String())
}
