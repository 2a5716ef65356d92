// Queue is a worker over a queue that delivers at least once. Its messages are
// files in a folder. Each is delivered twice here; each mail is sent once.
//
//	go run ./examples/queue                # works in the folder queue-example
//	go run ./examples/queue                # the same messages again: no mail is sent
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

type mail struct {
	To string `json:"to"`
}

func main() {
	dir := "queue-example"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dir string) error {
	q, err := openQueue(dir)
	if err != nil {
		return err
	}
	st, err := sqlite.Open(ctx, filepath.Join(dir, "placet.db"), nil)
	if err != nil {
		return err
	}
	defer st.Close()
	sent := 0
	tools, err := tool.NewRegistry(tool.MustNew("send_mail", "Send a mail.", tool.RemoteMutation,
		func(_ context.Context, m mail) (string, error) { sent++; return "sent to " + m.To, nil }, nil))
	if err != nil {
		return err
	}
	w := worker{q, call.NewExecutor(call.Config{Store: st, Tools: tools}), out}

	// Whoever sends a call chooses its ids: by them a repeat is known as one.
	for _, to := range []string{"ana", "ben"} {
		message := fmt.Sprintf(`{"v":1,"run_id":"news","call_id":"to-%s","tool":"send_mail","args":{"to":%q}}`, to, to)
		if err := q.send("call-"+to, []byte(message)); err != nil {
			return err
		}
	}
	err = errors.Join(w.deliverTwice(ctx), approveAll(ctx, decision.Operator{Store: st}, q), w.deliverTwice(ctx))
	fmt.Fprintln(out, "mails sent:", sent)
	return err
}

// approveAll says yes to what waits, and sends the word to go on with it.
func approveAll(ctx context.Context, people decision.Operator, q *queue) error {
	waiting, err := people.Pending(ctx, 0)
	for i, a := range waiting {
		err = errors.Join(err,
			people.ApproveShown(ctx, a.RunID, a.ID, a.Digest, "eva", ""),
			q.send(fmt.Sprint("go-on-", i+1), fmt.Appendf(nil, `{"v":1,"approval_id":%q}`, a.ID)))
	}
	return err
}

type worker struct {
	queue *queue
	calls *call.Executor
	out   io.Writer
}

// deliverTwice works on every message, forgets to say so, and works on all of
// them again when the queue delivers them anew.
func (w worker) deliverTwice(ctx context.Context) error {
	forget := func(string) error { return nil }
	return errors.Join(w.work(ctx, forget), w.queue.redeliver(), w.work(ctx, w.queue.done))
}

func (w worker) work(ctx context.Context, done func(name string) error) error {
	for {
		name, message, err := w.queue.receive()
		if err != nil || name == "" {
			return err
		}
		res, err := w.calls.Handle(ctx, message)
		var waits *call.PendingError
		switch {
		case errors.As(err, &waits): // it is stored; another message goes on with it
			fmt.Fprintln(w.out, name, "waits for a person")
		case errors.Is(err, call.ErrEnvelope): // it will not get better
			fmt.Fprintln(w.out, name, "is dropped:", err)
		case err != nil: // not done: it is delivered again
			fmt.Fprintln(w.out, name, "failed:", err)
			continue
		default:
			fmt.Fprintln(w.out, name, res.Status, string(res.Value))
		}
		if err := done(name); err != nil {
			return err
		}
	}
}
