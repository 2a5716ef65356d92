package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

const (
	inboxPending  = 100_000
	inboxDecided  = 60 // asked and decided before all that waits
	inboxWriters  = 64
	inboxLooks    = 60
	inboxFirst    = 100 * time.Millisecond // of the queue, to its first byte
	inboxApproval = 50 * time.Millisecond  // of an approval
	inboxPage     = 300 << 10
	inboxScript   = 15 << 10
	inboxStyle    = 30 << 10
)

// inboxPages measures the inbox where much waits, in a file and on a server: from a request
// to the first byte of its page, and how large what a browser loads is. Layout shift is a
// browser's to measure: the browser tests do.
func inboxPages(ctx context.Context, b *bench) error {
	b.title("inbox: %d approvals wait (targets: queue %s to the first byte and %d KiB, approval %s, script %d KiB, style %d KiB)",
		b.pending, inboxFirst, inboxPage>>10, inboxApproval, inboxScript>>10, inboxStyle>>10)
	if err := os.Mkdir(b.path("inbox"), 0o700); err != nil {
		return err
	}
	file := longQueue{"SQLite", b.path("inbox"), b.path("inbox/placet.db"), b.path("inbox/few.db"), openFile, nil}
	if err := b.inboxOf(ctx, file); err != nil {
		return err
	}
	url, stop, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return b.inboxOf(ctx, longQueue{"PostgreSQL", b.path("inbox"), url("bench_inbox"), url("bench_inbox_few"), openServer, vacuum})
}

// longQueue is where a store lies in which much waits, and another one in which little does.
type longQueue struct {
	name      string
	home      string // of the daemon
	many, few string
	open      func(ctx context.Context, at string) (*store.Store, error)
	rest      func(ctx context.Context, at string) error // what the database does by itself once there is time; nil: nothing
}

func openFile(ctx context.Context, path string) (*store.Store, error) {
	return sqlite.Open(ctx, path, &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
}

func openServer(ctx context.Context, url string) (*store.Store, error) {
	return postgres.Open(ctx, url, &postgres.Options{Conns: pgConns, Logger: slog.New(slog.DiscardHandler)})
}

// vacuum does what the server does of itself within a minute or two.
func vacuum(ctx context.Context, url string) error {
	plain, _, err := pgtest.SplitSchema(url)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, plain)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

// inboxOf measures one kind of store: what is read of it, its pages, and last what is
// written, since that changes what is read.
func (b *bench) inboxOf(ctx context.Context, q longQueue) error {
	b.line("-- %s", q.name)
	approval, err := b.fillQueue(ctx, q)
	if err != nil {
		return err
	}
	if err := b.pagesOf(ctx, q, approval); err != nil {
		return err
	}
	return b.askAmong(ctx, q)
}

func (b *bench) pagesOf(ctx context.Context, q longQueue, approval string) error {
	s, err := b.serveIn(ctx, q.home, q.many)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.signIn(ctx)
	if err != nil {
		return err
	}
	return b.lookAround(ctx, r, approval)
}

// lookAround loads each page many times, and what belongs to the last.
func (b *bench) lookAround(ctx context.Context, r *reviewer, approval string) (err error) {
	var page []byte
	for _, at := range []struct{ name, path string }{
		{"the queue", "/"},
		{"its second page", ""},
		{"filtered by tool", "/?tool=refund"},
		{"a search", "/?q=o-7"},
		{"a search without a match", "/?q=nothing-of-the-sort"},
		{"what was decided", "/decided"},
		{"an approval", "/approvals/" + approval},
	} {
		if at.path == "" {
			at.path = nextPage(page)
		}
		if page, err = b.look(ctx, r, at.name, at.path); err != nil {
			return err
		}
	}
	for _, file := range regexp.MustCompile(`/assets/inbox-[0-9a-f]+\.(css|js)`).FindAllString(string(page), -1) {
		body, _, err := r.get(ctx, file)
		if err != nil {
			return err
		}
		b.line("%-28s %6.1f KiB", file[len("/assets/"):], float64(len(body))/1024)
	}
	return nil
}

// fillQueue parks so many calls after a few that are decided, measures what is read of the
// store, and names an approval.
func (b *bench) fillQueue(ctx context.Context, q longQueue) (approval string, err error) {
	w, err := b.openQueue(ctx, q, q.many)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.store.Close()) }()
	for range inboxDecided {
		if err := w.askAndDecide(ctx); err != nil {
			return "", err
		}
	}
	if approval, err = b.parkMany(ctx, w); err != nil {
		return "", err
	}
	if q.rest != nil {
		// Whoever reads the log first gives all events of the flood their places.
		last := func(tx event.Tx) error { _, err := tx.LastPos(); return err }
		if err := errors.Join(txn.View(ctx, w.store, last), q.rest(ctx, q.many)); err != nil {
			return "", err
		}
	}
	return approval, b.readRows(ctx, w)
}

// openQueue opens a store in which as much may wait as is measured.
func (b *bench) openQueue(ctx context.Context, q longQueue, at string) (*world, error) {
	st, err := q.open(ctx, at)
	if err != nil {
		return nil, err
	}
	port := call.Deferred(st)
	port.MaxPending = int64(2*b.pending + 1000*inboxWriters) // near a limit one would ask after the other
	return newWorld(st, func(c *call.Config) { c.Approval, c.ApprovalTTL = port, 24*time.Hour })
}

func (b *bench) parkMany(ctx context.Context, w *world) (approval string, err error) {
	var all sync.WaitGroup
	errs := make([]error, inboxWriters)
	last := make([]string, inboxWriters)
	for i := range inboxWriters {
		all.Go(func() {
			for n := i; n < b.pending && errs[i] == nil; n += inboxWriters {
				var p *call.PendingError
				if p, errs[i] = w.park(ctx); errs[i] == nil {
					last[i] = p.ApprovalID
				}
			}
		})
	}
	all.Wait()
	return last[0], errors.Join(errs...)
}

// askAndDecide is what is written from a question to its answer.
func (w *world) askAndDecide(ctx context.Context) error {
	p, err := w.park(ctx)
	if err != nil {
		return err
	}
	return w.op.ApproveShown(ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "fine")
}

// readRows measures what the pages read of the store, each in a view of its own.
func (b *bench) readRows(ctx context.Context, w *world) error {
	for _, of := range []struct {
		name string
		read func(tx store.Tx) error
	}{
		{"rows: a page", func(tx store.Tx) error { _, err := tx.Queue(decision.Queued{Space: event.MainSpace}); return err }},
		{"rows: the counts", func(tx store.Tx) error { _, err := tx.QueueCounts(event.MainSpace); return err }},
		{"rows: a search in vain", func(tx store.Tx) error {
			_, err := tx.Queue(decision.Queued{Space: event.MainSpace, Search: "nothing-of-the-sort"})
			return err
		}},
		{"rows: what was decided", func(tx store.Tx) error {
			_, err := tx.SettledDecisions(decision.Settled{Space: event.MainSpace})
			return err
		}},
	} {
		var s sample
		for range inboxLooks {
			began := time.Now()
			if err := txn.View(ctx, w.store, of.read); err != nil {
				return err
			}
			s.took = append(s.took, time.Since(began))
		}
		b.line("%-28s p50 %s, p99 %s", of.name, micro(s.percentile(50)), micro(s.percentile(99)))
	}
	return nil
}

// askAmong asks and decides where little waits and where much does, in turns.
func (b *bench) askAmong(ctx context.Context, q longQueue) error {
	few, err := b.openQueue(ctx, q, q.few)
	if err != nil {
		return err
	}
	defer few.store.Close()
	many, err := b.openQueue(ctx, q, q.many)
	if err != nil {
		return err
	}
	defer many.store.Close()
	for _, callers := range []int{1, pgConns} {
		got, err := b.turns(ctx, callers, side{"few", few.askAndDecide}, side{"many", many.askAndDecide})
		if err != nil {
			return err
		}
		b.line("%3d ask and decide: %6.0f/s, p50 %s, p99 %s; where little waits %6.0f/s, p50 %s, p99 %s; ratio %.2f", callers,
			got[1].rate(), micro(got[1].percentile(50)), micro(got[1].percentile(99)),
			got[0].rate(), micro(got[0].percentile(50)), micro(got[0].percentile(99)), got[1].ratio(&got[0], 1))
	}
	return nil
}

// reviewer is somebody's browser, without the browser.
type reviewer struct {
	url  string
	http *http.Client
}

func (s *server) signIn(ctx context.Context) (*reviewer, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	r := &reviewer{s.url, &http.Client{Jar: jar}}
	form := strings.NewReader(url.Values{"token": {s.review}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/sign-in", form)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/" {
		return nil, fmt.Errorf("the sign-in answered %d at %s", res.StatusCode, res.Request.URL.Path)
	}
	return r, nil
}

// get loads a page, and says how long its first byte took.
func (r *reviewer) get(ctx context.Context, path string) (body []byte, first time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	res, err := r.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	first = time.Since(began)
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d", path, res.StatusCode)
	}
	return body, first, err
}

func (b *bench) look(ctx context.Context, r *reviewer, name, path string) (page []byte, err error) {
	var took []time.Duration
	for range inboxLooks {
		var first time.Duration
		if page, first, err = r.get(ctx, path); err != nil {
			return nil, err
		}
		took = append(took, first)
	}
	slices.Sort(took)
	b.line("%-28s %6.1f KiB, first byte p50 %s, p99 %s", name, float64(len(page))/1024, micro(took[len(took)/2]), micro(took[len(took)*99/100]))
	return page, nil
}

var nextLink = regexp.MustCompile(`rel="next" href="([^"]+)"`)

func nextPage(page []byte) string {
	if m := nextLink.FindSubmatch(page); m != nil {
		return html.UnescapeString(string(m[1]))
	}
	return "/"
}
