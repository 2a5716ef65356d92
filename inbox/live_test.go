package inbox_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

func unserved(why string) func(*inbox.Config) {
	return func(c *inbox.Config) { c.Unserved = func(string) string { return why } }
}

func asPending(err error, p **call.PendingError) bool { return errors.As(err, p) }

// stream is what a page hears of.
type stream struct {
	t    testing.TB
	body *bufio.Reader
	end  func() error
	id   string
}

// follow opens the stream that a page names.
func (b *browser) follow(at string, headers ...string) *stream {
	b.w.t.Helper()
	req, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, b.w.http.URL+at, nil)
	if err != nil {
		b.w.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.c.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	b.w.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b.w.t.Fatalf("%s answers %d, %s", at, res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &stream{b.w.t, bufio.NewReader(res.Body), res.Body.Close, ""}
}

// next is the next event and its data; "end" where the stream ended.
func (s *stream) next() (name, data string) {
	s.t.Helper()
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return "end", ""
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "id":
			s.id = value
		case field == "event":
			name = value
		case field == "data":
			data = value
		case line == "\n" && name != "":
			return name, data
		}
	}
}

func (p *page) live() string {
	for _, n := range p.elements("body") {
		return attr(n, "data-live")
	}
	return ""
}

// What happens between a page and its stream is told all the same, and once; a stream
// that was cut off goes on where it was (case 155).
func TestLiveQueue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	there := w.park("refund", small)
	p := b.get("/")
	people := decision.Operator{Store: w.st, Principal: "ben"}
	fresh := w.park("refund", `{"order":"o-8","amount":1}`)
	passing := w.park("refund", `{"order":"o-9","amount":1}`)
	for _, d := range []decision.Decision{there, passing} {
		if err := people.RejectShown(t.Context(), "", d.ID, d.Digest, "Ben", ""); err != nil {
			t.Fatal(err)
		}
	}
	s := b.follow(p.live())
	name, data := s.next()
	if name != "queue" || !strings.Contains(data, `"new":["`+fresh.ID+`"]`) || !strings.Contains(data, `{"id":"`+there.ID+`","text":"rejected by Ben"}`) || !strings.Contains(data, `"total":1`) {
		t.Errorf("it is told %s %s", name, data)
	}
	_ = s.end()
	another := w.park("refund", `{"order":"o-10","amount":1}`)
	s = b.follow(p.live(), "Last-Event-ID", s.id)
	if name, data := s.next(); name != "queue" || !strings.Contains(data, `"new":["`+another.ID+`"]`) || strings.Contains(data, fresh.ID) {
		t.Errorf("after the cut it is told %s %s", name, data)
	}
	// A filtered page hears of what it shows.
	s = b.follow(b.get("/?tool=wipe").live())
	w.park("refund", `{"order":"o-11","amount":1}`)
	wiped := w.park("wipe", `{}`)
	for {
		_, data := s.next()
		if strings.Contains(data, `"new":`) {
			if !strings.Contains(data, `"new":["`+wiped.ID+`"]`) {
				t.Errorf("it is told %s", data)
			}
			break
		}
	}
}

func TestLiveApproval(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	d := w.park("refund", small)
	p := b.get("/approvals/" + d.ID)
	if err := (decision.Operator{Store: w.st, Principal: "ben"}).RejectShown(t.Context(), "", d.ID, d.Digest, "Ben", ""); err != nil {
		t.Fatal(err)
	}
	s := b.follow(p.live())
	if name, _ := s.next(); name != "changed" {
		t.Errorf("it is told %s", name)
	}
}

// No event tells that a record was altered outside of Placet: an open page looks.
func TestLiveAltered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	d, q := w.park("refund", small), w.ask(decision.Asking{Prompt: "Go on?", By: "bot"})
	for at, alter := range map[string]string{
		"/approvals/" + d.ID: `UPDATE decision SET presentation = CAST('{"title":"A small refund"}' AS BLOB) WHERE id = ?`,
		"/questions/" + q.ID: `UPDATE decision SET prompt = CAST('Stop?' AS BLOB) WHERE id = ?`,
	} {
		p := b.get(at)
		w.alter(alter, strings.TrimPrefix(strings.TrimPrefix(at, "/approvals/"), "/questions/"))
		if name, _ := b.follow(p.live()).next(); name != "changed" {
			t.Errorf("%s is told %s", at, name)
		}
		if now := b.get(at).live(); now == p.live() || strings.Contains(now, "true") {
			t.Errorf("the page follows as before: %s", now)
		}
	}
}

// A stream ends with the sign-in, and with a place that is gone the page is read anew.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	s := b.follow(b.get("/").live())
	ts, err := token.List(t.Context(), w.st, token.Query{Space: event.MainSpace, Principal: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := token.Revoke(t.Context(), w.st, event.MainSpace, ts[0].ID); err != nil {
		t.Fatal(err)
	}
	w.park("refund", small)
	for _, want := range []string{"changed", "end"} { // the page reads itself anew, and is led to the form that asks for a token
		if name, data := s.next(); name != want || strings.Contains(data, "apr_") {
			t.Errorf("who was revoked is told %s %s, want %s", name, data, want)
		}
	}
	b = w.as(token.Reviewer, "ben")
	for _, q := range []url.Values{{"on": {"queue"}, "after": {"p999-abcdef123456"}}, {"on": {"call:call_nothing"}}, {"on": {"call:call_nothing"}, "after": {"s1-abcdef123456"}}} {
		s := b.follow("/live?" + q.Encode())
		if name, _ := s.next(); name != "changed" {
			t.Errorf("%s is told %s", q, name)
		}
		if name, _ := s.next(); name != "end" {
			t.Errorf("%s is told %s", q, name)
		}
	}
}

// Pages that follow do not hold up a daemon that stops.
func TestLiveStops(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.as(token.Reviewer, "ana").follow("/live?on=queue")
	if err := w.pages.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() { name, _ := s.next(); done <- name }()
	select {
	case name := <-done:
		if name != "end" {
			t.Errorf("it is told %s", name)
		}
	case <-time.After(5 * time.Minute):
		t.Error("it goes on")
	}
}

// What waited for a run that ended is told to have ended, although no event names it.
func TestLiveEndOfARun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.goes("pay", w.tools(w.ran), proposing(use("refund", `{}`)), run.DefaultLimits())
	b := w.as(token.Reviewer, "ana")
	p := b.get("/")
	if got := p.rows(); len(got) != 1 || got[0] != r.ApprovalID {
		t.Fatalf("waiting is %q", got)
	}
	if err := (decision.Operator{Store: w.st}).Cancel(t.Context(), r.ID, "ben", ""); err != nil {
		t.Fatal(err)
	}
	if name, data := b.follow(p.live()).next(); name != "queue" || !strings.Contains(data, `{"id":"`+r.ApprovalID+`","text":"no longer needed"}`) || !strings.Contains(data, `"total":0`) {
		t.Errorf("it is told %s %s", name, data)
	}
}

// Whoever follows hears of the own space only, and not even whether a stream of another is
// there.
func TestLiveHoldsTheSpace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	p := b.get("/")
	tools, err := tool.NewRegistry(tool.Tool{Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation}, Run: w.ran})
	if err != nil {
		t.Fatal(err)
	}
	others := call.NewExecutor(call.Config{Store: w.st, Space: "other", Tools: tools, Log: slog.New(slog.DiscardHandler)})
	_, err = others.Call(t.Context(), "refund", []byte(`{}`))
	var theirs *call.PendingError
	if !errors.As(err, &theirs) {
		t.Fatal(err)
	}
	stream := "call:" + theirs.CallID
	if _, err := event.Read(t.Context(), w.st, stream, "", 1); err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{stream, "call:call_nothing"} {
		s := b.follow("/live?on=" + on)
		for _, want := range []string{"changed", "end"} {
			if name, data := s.next(); name != want || data != "{}" && want != "end" {
				t.Errorf("who follows %s is told %s %s, want %s", on, name, data, want)
			}
		}
	}
	// Only a slow machine would not notice a hint here; none is wrong about there being one.
	ours := w.park("refund", small)
	if name, data := b.follow(p.live()).next(); name != "queue" || !strings.Contains(data, `"new":["`+ours.ID+`"]`) || strings.Contains(data, theirs.ApprovalID) {
		t.Errorf("it is told %s %s", name, data)
	}
}
