package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/token"
)

const (
	// onQueue follows what happens to everything that waits; anything else that is followed
	// is a stream.
	onQueue = "queue"
	// readsWithin bounds how long a page may take to read what it is told.
	readsWithin = 30 * time.Second
)

// live is the address at which a page hears of what happens behind a cursor. more is what
// else it depends on: the filter of a queue, or what a decision's page shows.
func live(on string, after event.Cursor, more url.Values) string {
	q := url.Values{"on": {on}, "after": {string(after)}}
	maps.Copy(q, more)
	return "/live?" + q.Encode()
}

// liveOf is that of a decision's page, which also hears when its record is altered outside
// of Placet.
func liveOf(d decision.Decision, version string, after event.Cursor) string {
	return live(d.Owner.Stream(), after, url.Values{"of": {d.ID}, "shown": {version}})
}

// live tells a page of what happens, as Server-Sent Events: the id of each is the place
// behind it, from which a browser goes on by itself when it was cut off. What a page
// shows comes from the store, so that nothing here has to arrive.
func (b *Inbox) live(w http.ResponseWriter, r *http.Request, who reviewer) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	q := r.URL.Query()
	l := follower{
		b: b, r: r, w: w, c: http.NewResponseController(w), filter: f,
		on: q.Get("on"), after: event.Cursor(q.Get("after")), of: q.Get("of"), shown: q.Get("shown"),
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		l.after = event.Cursor(last)
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(b.stopping, stop)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return // whoever asks so reads nothing, and cannot be told apart from somebody who went
	}
	if l.send(": follows\n\n") != nil {
		return
	}
	if err := l.run(ctx); anew(err) {
		_ = l.send(changed + "event: end\ndata: {}\n\n")
	}
}

// anew reports whether a page is to be read anew: its place is gone, or whoever looked may
// not any more.
func anew(err error) bool {
	for _, one := range []error{event.ErrCursor, event.ErrNoStream, decision.ErrNotFound, token.ErrUnauthenticated, ErrAgent} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

type follower struct {
	b      *Inbox
	r      *http.Request
	w      http.ResponseWriter
	c      *http.ResponseController
	on     string
	after  event.Cursor
	filter review.Filter
	of     string // the decision that the page shows; empty: none
	shown  string // and what of it
}

func (l *follower) stream() string {
	if l.on == onQueue {
		return ""
	}
	return l.on
}

func (l *follower) run(ctx context.Context) error {
	err := review.CheckStream(ctx, l.b.c.Store, l.b.c.Space, l.stream())
	if err == nil {
		err = l.compare(ctx)
	}
	for err == nil {
		err = l.next(ctx)
	}
	return err
}

// next waits for what happens next, and tells the page.
func (l *follower) next(ctx context.Context) error {
	at, happened, err := review.Follow(ctx, l.b.c.Store, l.b.c.Space, l.stream(), l.after)
	l.after = at
	if err == nil {
		_, err = l.b.signIns.who(l.r, l.b.identity)
	}
	switch {
	case err != nil:
		return err
	case happened && l.on == onQueue:
		return l.tellQueue(ctx)
	case happened:
		return l.tellChange(ctx)
	}
	if err := l.compare(ctx); err != nil {
		return err
	}
	return l.send(": still here\n\n")
}

// compare tells a page whose decision was altered: no event does.
func (l *follower) compare(ctx context.Context) error {
	if l.of == "" {
		return nil
	}
	now, err := review.ReadVersion(ctx, l.b.c.Store, l.b.c.Space, l.of)
	if err != nil || now == l.shown {
		return err
	}
	l.shown = now
	return l.send(changed)
}

// changed has a page read itself anew.
const changed = "event: changed\ndata: {}\n\n"

// tellChange tells a page that it is not as it was.
func (l *follower) tellChange(ctx context.Context) error {
	page, err := event.Read(ctx, l.b.c.Store, l.on, l.after, 1000)
	if err != nil {
		return err
	}
	l.after = page.Cursor
	return l.send("id: " + string(l.after) + "\n" + changed)
}

// news is what a page of the queue is told: what waits, of which it counts what it does not
// show, and what does not wait any more.
type news struct {
	New     []string  `json:"new,omitempty"`
	Settled []settled `json:"settled,omitempty"`
	Total   int64     `json:"total"`
}

type settled struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (l *follower) tellQueue(ctx context.Context) error {
	read, err := l.b.news.Read(ctx, l.filter, l.after)
	if err != nil {
		return err
	}
	l.after = read.Seen
	n := news{Total: review.Total(read.Counts)}
	for _, d := range read.Waiting {
		n.New = append(n.New, d.ID)
	}
	for _, d := range read.Settled {
		n.Settled = append(n.Settled, settled{d.ID, review.SettledText(d)})
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return l.send("id: " + string(l.after) + "\nevent: queue\ndata: " + string(b) + "\n\n")
}

func (l *follower) send(text string) error {
	_ = l.c.SetWriteDeadline(time.Now().Add(readsWithin))
	if _, err := l.w.Write([]byte(text)); err != nil {
		return err
	}
	return l.c.Flush()
}
