package inbox

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/txn"
)

// The pages that show what there is, and change nothing but a delivery's next attempt.
// They are read through the API, whose rights and masking are theirs.
func (b *Inbox) routeReading() {
	b.page("GET /runs", b.runs)
	b.page("GET /runs/{id}", b.run)
	b.page("GET /calls/{id}", b.call)
	b.page("GET /jobs", b.jobs)
	b.page("GET /jobs/{id}", b.job)
	b.page("GET /jobs/{id}/output", b.jobOutput)
	b.page("GET /events", b.events)
	b.page("GET /deliveries", b.deliveries)
	b.page("GET /deliveries/{id}", b.delivery)
	b.page("POST /deliveries/{id}/retry", b.retryDelivery)
}

// unread says why something cannot be shown.
func (b *Inbox) unread(w http.ResponseWriter, r *http.Request, who reviewer, err error) {
	f := fault.From(err)
	if f.Code == fault.Internal && r.Context().Err() == nil {
		b.c.Log.Error("a page failed", "path", r.URL.Path, "error", err)
	}
	n := refusal(f)
	title := "This cannot be shown"
	switch f.Code {
	case fault.NotFound:
		title = "Not here"
	case fault.Internal:
	default:
		n.Title = "It cannot be shown"
	}
	b.show(w, r, problem.Status(f), view.Message(b.shell(r, who, "", title), n))
}

// endOf is where a stream ends now: a page that is read afterwards and follows from there
// misses nothing. Without such a stream it is the beginning.
func (b *Inbox) endOf(ctx context.Context, stream string) (h event.Head, err error) {
	err = txn.View(ctx, b.c.Store, func(tx event.Tx) (err error) {
		h, err = tx.Head(stream)
		return err
	})
	if errors.Is(err, event.ErrNoStream) {
		return event.Head{}, nil
	}
	return h, err
}

// following is the shell of a page that is told when something happens in a stream.
func (b *Inbox) following(r *http.Request, who reviewer, section view.Section, title, stream string, h event.Head) view.Shell {
	s := b.shell(r, who, section, title)
	if h.Seq > 0 {
		s.Live = live(stream, event.CursorAt(h), nil)
	}
	return s
}

// statuses are what a list can be filtered by, in the words in which it shows them.
func statuses[S ~string](chosen string, all []S, word func(string) string) []view.Option {
	os := []view.Option{{Text: "any status", Chosen: chosen == ""}}
	for _, s := range all {
		os = append(os, view.Option{Value: string(s), Text: word(string(s)), Chosen: string(s) == chosen})
	}
	return os
}

// params are those of a page's address that have a value.
func params(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func address(path string, pairs ...string) string {
	if q := params(pairs...); len(q) > 0 {
		return path + "?" + q.Encode()
	}
	return path
}

// around are the pages beside one of a list: its first, unless it is that, and the next.
func around(path, after, next string, pairs ...string) (first, further string) {
	if after != "" {
		first = address(path, pairs...)
	}
	if next != "" {
		further = address(path, append(pairs, "after", next)...)
	}
	return first, further
}

// wholeNumber reads a parameter that is a number of 0 or more; absent, it is 0.
func wholeNumber(q url.Values, name string) (int64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, decision.ErrUsage.Say("%s is no whole number: %q.", name, text)
	}
	return n, nil
}
