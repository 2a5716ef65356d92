package inbox

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/internal/review"
)

// shell is what is around a page of that title.
func (b *Inbox) shell(r *http.Request, who reviewer, section view.Section, title string) view.Shell {
	s := view.Shell{
		Title: title, Nonce: nonceOf(r.Context()), Style: b.assets.style, Code: b.assets.code, Who: who.who(), Section: section, Count: -1,
	}
	if err := b.c.Writes(); err != nil {
		f := fault.From(err)
		s.Store = strings.TrimSpace(f.Message + " " + f.Advice)
	}
	if who.ID != "" && section != view.Waiting { // that one counts by itself
		s.Count = b.count(r.Context())
	}
	return s
}

// show sends a page once it is whole: what fails while it is made is an error of its own.
func (b *Inbox) show(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	var buf bytes.Buffer
	// Nothing is read for it any more. The server takes a form that is too slow for one whose
	// sender has left; it is told why it was refused all the same.
	if err := page.Render(context.WithoutCancel(r.Context()), &buf); err != nil {
		b.c.Log.Error("a page could not be made", "path", r.URL.Path, "error", err)
		http.Error(w, "This page could not be made. The daemon's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(buf.Bytes())
	}
}

// fail shows why something did not work.
func (b *Inbox) fail(w http.ResponseWriter, r *http.Request, who reviewer, err error) {
	f := fault.From(err)
	status, title := problem.Status(f), "This did not work"
	if status == http.StatusNotFound {
		title = "Not here"
	}
	if status == http.StatusInternalServerError && r.Context().Err() == nil {
		b.c.Log.Error("a page failed", "path", r.URL.Path, "error", err)
	}
	b.show(w, r, status, view.Message(b.shell(r, who, "", title), refusal(f)))
}

// refusal is why something was refused, as a page says it.
func refusal(err error) view.Notice { return told(review.RefusalOf(err)) }

// told is a refusal as a page says it.
func told(r review.Refusal) view.Notice {
	n := view.Notice{Sort: view.Refused, Title: r.Title, Text: r.Text, More: r.More}
	if r.Instead != "" {
		n.More, n.To = "See what is asked now", "/approvals/"+r.Instead
	}
	return n
}

func (b *Inbox) missing(w http.ResponseWriter, r *http.Request, who reviewer) {
	b.fail(w, r, who, decision.ErrNotFound.Say("There is no page %s.", r.URL.Path))
}
