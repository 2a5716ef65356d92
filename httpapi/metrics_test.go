package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/txn"
)

// figures reads /metrics and insists on lines of it.
func (w *world) figures(wants ...string) {
	w.t.Helper()
	r := w.do("reviewer", "GET", "/metrics", "")
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		w.t.Fatalf("%d %s", r.status, r.header.Get("Content-Type"))
	}
	lines := map[string]bool{}
	for line := range strings.Lines(r.text) {
		lines[strings.TrimSpace(line)] = true
	}
	for _, want := range wants {
		if !lines[want] {
			w.t.Errorf("%q is not among the figures:\n%s", want, of(r.text, "placet_"))
		}
	}
}

// of keeps the lines that begin so.
func of(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// An operator sees how much waits, stands still and runs.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	w.api.Gauge("placet_test", "A figure.", map[string]string{"loop": "one"}, func() float64 { return 1 })
	w.api.Gauge("placet_test", "A figure.", map[string]string{"loop": "two"}, func() float64 { return 2.5 })
	w.figures(
		`placet_store_answers 1`, `placet_pending{type="approval"} 0`, `placet_pending{type="question"} 0`,
		`placet_approved_not_run{owner="call"} 0`, `placet_approved_not_run{owner="run"} 0`,
		`placet_jobs{status="queued"} 0`, `placet_jobs{status="orphaned"} 0`,
		`placet_test{loop="one"} 1`, `placet_test{loop="two"} 2.5`, `placet_http_waiters 0`,
	)
	p, _ := w.park("agent"), w.park("agent")
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(true, p.get("digest"))), 200)
	j := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201)
	at := "/v1/jobs/" + j.get("job_id")
	w.want(w.do("agent", "POST", at+"/wait", `{"types":["started"],"timeout_seconds":60}`), 200, "result", "event")
	w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"?"}`), 201)
	w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"??"}`), 201)
	w.figures(
		`placet_pending{type="approval"} 1`, `placet_pending{type="question"} 2`, `placet_approved_not_run{owner="call"} 1`,
		`placet_jobs{status="running"} 1`, `placet_jobs{status="completed"} 0`,
		`placet_http_requests_total{operation="callTool",status="202"} 2`, `placet_http_requests_total{operation="decide",status="200"} 1`,
	)
	w.want(w.do("agent", "POST", at+"/send", `{"eof":true}`), 200)
	w.want(w.do("agent", "POST", at+"/wait", `{"types":["completed"],"timeout_seconds":60}`), 200, "result", "event")
	w.figures(`placet_pending{type="question"} 0`, `placet_jobs{status="running"} 0`, `placet_jobs{status="completed"} 1`)
}

// What happens is counted by its type, where the server is told.
func TestMetricsOfEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for range 3 {
		w.api.Observe(event.Event{Type: event.CallStarted})
	}
	w.figures(`placet_events_total{type="call.started"} 3`)
}

// Whoever waits is counted while they do: for calls, events, jobs, questions and output.
func TestMetricsOfWaiters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	p := w.park("agent")
	j := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201)
	at := "/v1/jobs/" + j.get("job_id")
	q := w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"?"}`), 201)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 5)
	begin := func(method, path, body string) {
		req, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.tokens["agent"])
		req.Header.Set("Content-Type", "application/json")
		go func() {
			res, err := w.http.Client().Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body) // until it is cut off
				res.Body.Close()
			}
			ended <- err
		}()
	}
	begin("GET", "/v1/calls/"+p.get("call_id")+"?wait=1h", "")
	begin("GET", "/v1/events?stream=call:"+p.get("call_id"), "")
	begin("POST", at+"/wait", `{"types":["completed"],"timeout_seconds":3600}`)
	begin("GET", "/v1/decisions/"+q.get("decision_id")+"/wait?wait=1h&after="+q.get("cursor"), "")
	begin("GET", at+"/tail?follow=true", "")
	w.until(`placet_http_waiters 5`)
	stop()
	for range cap(ended) {
		<-ended
	}
	w.until(`placet_http_waiters 0`)
}

// until asks again until a figure is there.
func (w *world) until(want string) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r := w.do("reviewer", "GET", "/metrics", "")
		if strings.Contains(r.text, want+"\n") {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s does not come:\n%s", want, of(r.text, "placet_http"))
		}
	}
}

// failing is a store that answers so many readings more, and no others.
type failing struct {
	txn.Store
	left *atomic.Int64
}

func (f failing) View(ctx context.Context, fn func(txn.Tx) error) error {
	if f.left.Add(-1) < 0 {
		return errors.New("the disk is gone")
	}
	return f.Store.View(ctx, fn)
}

// A store that does not answer is told as a figure, and takes no other with it.
func TestMetricsWithoutTheStore(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	left.Store(1 << 40)
	w := setup(t, func(c *httpapi.Config) { c.Store = failing{c.Store, &left} })
	left.Store(1) // to find the token
	r := w.want(w.do("reviewer", "GET", "/metrics", ""), 200)
	if !strings.Contains(r.text, "placet_store_answers 0\n") || !strings.Contains(r.text, "placet_http_waiters 0\n") || strings.Contains(r.text, "placet_pending") {
		t.Errorf("figures of a store that did not answer:\n%s", of(r.text, "placet_"))
	}
	left.Store(1 << 40)
	w.figures(`placet_store_answers 1`)
}
