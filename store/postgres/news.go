package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/placet-dev/placet/store"
)

// news tells other processes of this one's commits, and hears of theirs. It is a hint:
// who waits looks every second too.
//
// NOTIFY in the transaction itself would have all commits of the server wait for each
// other; so one is sent afterwards, for all that was committed within 5 ms.
type news struct {
	e    *engine
	id   string // of this process, which needs not hear of itself
	kick chan struct{}
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	streams map[string]struct{} // that others are to hear of

	pinged atomic.Bool // a ping is on its way
	silent atomic.Bool // nothing arrives
}

func newNews(e *engine) *news {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return &news{e: e, id: hex.EncodeToString(id[:]), kick: make(chan struct{}, 1), quit: make(chan struct{}), streams: map[string]struct{}{}}
}

func (n *news) start() {
	n.done.Go(n.send)
	n.done.Go(n.listen)
}

func (n *news) stop() {
	close(n.quit)
	n.done.Wait()
}

// tell has others hear of streams.
func (n *news) tell(streams []string) {
	n.mu.Lock()
	for _, s := range streams {
		n.streams[s] = struct{}{}
	}
	n.mu.Unlock()
	store.Hint(n.kick)
}

func (n *news) send() {
	for {
		select {
		case <-n.kick:
		case <-n.quit:
			n.notifyAll() // what was committed last
			return
		}
		timer := time.NewTimer(gatherNews)
		select {
		case <-timer.C:
		case <-n.quit: // what was committed is told all the same
			timer.Stop()
		}
		n.notifyAll()
	}
}

func (n *news) notifyAll() {
	n.mu.Lock()
	streams := n.streams
	n.streams = map[string]struct{}{}
	n.mu.Unlock()
	n.notify(payloads(n.id, slices.Sorted(maps.Keys(streams))))
}

const (
	// The news need not outlast a crash, and so waits for no disk.
	notifySQL = `SELECT set_config('synchronous_commit', 'off', true), pg_notify(?, ?)`

	payloadMax  = 7900 // bytes; the server takes less than 8,000
	payloadsMax = 16   // more are one that says all
	everything  = "*"
	pingWord    = "ping"
)

// payloads are lines: who sends it, then streams.
func payloads(id string, streams []string) (list []string) {
	text := id
	for _, s := range streams {
		if len(s)+1 > payloadMax-len(id) || strings.Contains(s, "\n") {
			return []string{id + "\n" + everything}
		}
		if len(text)+1+len(s) > payloadMax {
			list, text = append(list, text), id
		}
		text += "\n" + s
	}
	if text != id {
		list = append(list, text)
	}
	if len(list) > payloadsMax {
		return []string{id + "\n" + everything}
	}
	return list
}

func (n *news) notify(payloads []string) {
	if len(payloads) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
	defer cancel()
	c, err := n.e.take(ctx)
	if err != nil {
		return // others look every second
	}
	defer c.release()
	for _, p := range payloads {
		if err := c.send(request{sql: notifySQL}, []any{n.e.where.channel(), p}); err != nil {
			return
		}
	}
	_ = c.flush(answerLimit)
}

// listen hears of others' commits on a connection of its own, and makes it anew when it
// is lost.
func (n *news) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-n.quit; cancel() }()
	wait := reconnectMin
	for ctx.Err() == nil {
		began := time.Now()
		err := n.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		n.e.o.Logger.Debug("the connection that listens is made anew", "store", n.e.where.String(), "error", err)
		if time.Since(began) > reconnectMax {
			wait = reconnectMin
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		wait = min(2*wait, reconnectMax)
	}
}

func (n *news) listenOnce(ctx context.Context) error {
	c, err := n.e.where.dial(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	if err := c.run(`LISTEN `+quoted(n.e.where.channel()), nil, nil); err != nil {
		return err
	}
	if c.pooled {
		n.fallSilent()
	}
	n.pinged.Store(false)
	n.e.watcher.wakes.WakeAll() // what was told before nobody heard
	if err := c.pg.Conn().SetDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		if err := n.hearOne(ctx, c); err != nil {
			return err
		}
	}
}

// hearOne waits for one message. Where nothing comes for long it sends one to itself:
// a pooler may have swallowed the LISTEN, or a network the connection.
func (n *news) hearOne(ctx context.Context, c *conn) error {
	wait := pingEvery
	if n.pinged.Load() {
		wait = answerLimit
	}
	patient, cancel := context.WithTimeout(ctx, wait)
	msg, err := c.pg.ReceiveMessage(patient)
	cancel()
	if err == nil {
		if heard, ok := msg.(*pgproto3.NotificationResponse); ok {
			n.hear(heard.Payload)
		}
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case n.pinged.Load():
		n.fallSilent()
		return errSilent
	}
	n.pinged.Store(true)
	n.notify([]string{n.id + "\n" + pingWord})
	return nil
}

var errSilent = errors.New("the server's notifications do not arrive")

func (n *news) fallSilent() {
	if n.silent.Swap(true) {
		return
	}
	n.e.o.Logger.Warn("PostgreSQL's notifications do not arrive, so others' decisions are noticed up to a second late. "+
		"Where the URL names a pooler in transaction mode, give the server itself with "+listenParam+"=HOST:PORT.", "store", n.e.where.String())
}

func (n *news) hear(payload string) {
	from, rest, _ := strings.Cut(payload, "\n")
	n.pinged.Store(false)
	n.silent.Store(false)
	switch {
	case rest == pingWord || from == n.id:
	case rest == everything:
		n.e.watcher.wakes.WakeAll()
	default:
		n.e.watcher.wakes.Wake(strings.Split(rest, "\n")...)
	}
}
