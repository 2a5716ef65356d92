package browsertest

import (
	"context"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// recorder notes what the browser tells of a page. The browser's messages wait for it.
type recorder struct {
	dialog func() // answers one that was opened

	mu    sync.Mutex
	news  chan struct{} // closed with the next message about where the page is
	count int           // how often it went elsewhere

	loader  cdp.LoaderID // of the document that is shown
	loaded  map[cdp.LoaderID]bool
	answers map[cdp.LoaderID]int // status of documents

	traffic    traffic
	console    []Message
	violations []Violation
	dialogs    []string
	crashed    bool
}

func newRecorder() *recorder {
	return &recorder{
		news: make(chan struct{}), loaded: map[cdp.LoaderID]bool{}, answers: map[cdp.LoaderID]int{}, traffic: newTraffic(),
	}
}

// event takes in one message.
func (r *recorder) event(ev any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ev := ev.(type) {
	case *page.EventFrameNavigated:
		if ev.Frame.ParentID == "" {
			r.loader = ev.Frame.LoaderID
			r.moved()
		}
	case *page.EventNavigatedWithinDocument:
		r.moved()
	case *page.EventLifecycleEvent:
		if ev.Name == "load" {
			r.loaded[ev.LoaderID] = true
			r.tell()
		}
	case *page.EventJavascriptDialogOpening:
		r.dialogs = append(r.dialogs, ev.Message)
		r.dialog()
	case *inspector.EventTargetCrashed:
		r.crashed = true
		r.tell()
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument {
			r.answers[ev.LoaderID] = int(ev.Response.Status)
		}
		r.traffic.event(ev)
	case *runtime.EventConsoleAPICalled, *runtime.EventExceptionThrown, *log.EventEntryAdded:
		r.console = append(r.console, messageOf(ev))
	case *audits.EventIssueAdded:
		if v, ok := violationOf(ev.Issue); ok {
			r.violations = append(r.violations, v)
		}
	default:
		r.traffic.event(ev)
	}
}

func (r *recorder) moved() {
	r.count++
	r.tell()
}

func (r *recorder) tell() {
	close(r.news)
	r.news = make(chan struct{})
}

func (r *recorder) navigations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// loadedAfter waits until the page went elsewhere than it was, and has loaded there.
func (r *recorder) loadedAfter(ctx context.Context, before int) error {
	for {
		there, news := r.look(before)
		if there {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
	}
}

// look reports whether it has, and what tells when to look again.
func (r *recorder) look(before int) (there bool, news <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count > before && r.loaded[r.loader] || r.crashed, r.news
}

func (r *recorder) status() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[r.loader]
}

// Forget drops what was recorded of the page: requests, messages, violations and dialogs.
func (p *Page) Forget() {
	r := p.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traffic, r.console, r.violations, r.dialogs = newTraffic(), nil, nil, nil
}

// Dialogs are the texts of what the page asked or said with a dialog. All were agreed to.
func (p *Page) Dialogs() []string {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return slices.Clone(p.rec.dialogs)
}
