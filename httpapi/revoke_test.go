package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// waits are requests that wait, by what for, with what wakes each.
func (w *world) waits(s seeds, secret string) map[string]string {
	wait := fmt.Sprintf(`{"decision_id":%q,"after":%q}`, s.question, s.cursor)
	return map[string]string{
		"a call":     w.head("GET", "/v1/calls/"+s.call+"?wait=1h", secret) + "\r\n",
		"a job":      w.head("POST", "/v1/jobs/"+s.job+"/wait", secret) + fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(wait), wait),
		"a question": w.head("GET", "/v1/decisions/"+s.question+"/wait?after="+s.cursor, secret) + "\r\n",
		"output":     w.head("GET", "/v1/jobs/"+s.job+"/tail?follow=true", secret) + "\r\n",
	}
}

// stream reads events until there are no more.
func (l *line) stream() string {
	l.t.Helper()
	res, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatalf("cut off: %v", err)
	}
	return string(text)
}

func (w *world) reviewer() (id, secret string) {
	w.t.Helper()
	t, secret, err := token.Create(w.t.Context(), w.st, token.New{Space: "main", Scope: token.Reviewer, Name: "leaving"})
	if err != nil {
		w.t.Fatal(err)
	}
	return t.ID, secret
}

// What waits with a token that is revoked here ends at once, and nothing else does.
func TestRevokingEndsWhatWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	id, secret := w.reviewer()
	var lines []*line
	for _, request := range w.waits(s, secret) {
		lines = append(lines, w.line().say(request))
	}
	follows := w.line().say(w.head("GET", "/v1/events?stream=call:"+s.call, secret) + "\r\n")
	stays := w.line().say(w.waits(s, "agent")["a call"])
	w.untilWaiters(len(lines) + 2)
	w.want(w.do("admin", "DELETE", "/v1/tokens/"+id, ""), 200, "id", id)
	for _, l := range lines {
		w.want(l.answer(), 401, "reason", "unauthenticated")
	}
	follows.stream()
	w.untilWaiters(1)
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+s.approval+"/decide", decide(false, s.digest)), 200)
	w.want(stays.answer(), 200, "status", "denied")
}

// Of what happens after another process revoked a token, who waits with it is told nothing.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	id, secret := w.reviewer()
	lines := map[string]*line{}
	for what, request := range w.waits(s, secret) {
		lines[what] = w.line().say(request)
	}
	follows := w.line().say(w.head("GET", "/v1/events?stream=call:"+s.call, secret) + "\r\n")
	w.untilWaiters(len(lines) + 1)
	if _, err := token.Revoke(t.Context(), w.st, "main", id); err != nil {
		t.Fatal(err)
	}
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+s.approval+"/decide", decide(false, s.digest, `"note":"the-note"`)), 200)
	w.want(w.do("agent", "POST", "/v1/jobs/"+s.job+"/send", `{"text":"the-output\n"}`), 200)
	w.want(w.do("reviewer", "POST", "/v1/jobs/"+s.job+"/decision/"+s.question+"/resolve", `{"choice":"yes"}`), 200)
	for what, l := range lines {
		if r := l.answer(); r.status != 401 || r.get("reason") != "unauthenticated" {
			t.Errorf("%s: %d %s", what, r.status, r.text)
		}
	}
	if rest := follows.stream(); !strings.Contains(rest, "approval.requested") || strings.Contains(rest, "approval.decided") {
		t.Errorf("told: %s", rest)
	}
	w.untilWaiters(0)
}

// A stream on which nothing happens notices too.
func TestRevokedElsewhereWhileNothingHappens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.api.SetKeepAlive(time.Millisecond)
	id, secret := w.reviewer()
	l := w.line().say(w.head("GET", "/v1/events", secret) + "\r\n")
	w.untilWaiters(1)
	if _, err := token.Revoke(t.Context(), w.st, "main", id); err != nil {
		t.Fatal(err)
	}
	l.stream()
	w.untilWaiters(0)
}

// A token that is revoked in the middle of what is stored is told no more of it.
func TestRevokedBetweenBatches(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stream := "call:" + w.park("agent").get("call_id")
	id, secret := w.reviewer()
	l := w.line().say(w.head("GET", "/v1/events?stream="+stream, secret) + "\r\n")
	res, err := http.ReadResponse(l.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && lines.Text() != "event: approval.requested" { // what was stored is told
	}
	if _, err := token.Revoke(t.Context(), w.st, "main", id); err != nil {
		t.Fatal(err)
	}
	late := event.New(event.ResumeRefused, "", "test", map[string]string{"reason": "late"})
	if err := txn.Update(t.Context(), w.st, func(tx event.Tx) error { return tx.Append(stream, late) }); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	for lines.Scan() {
		_, _ = io.WriteString(&rest, lines.Text()+"\n")
	}
	if strings.Contains(rest.String(), "late") || lines.Err() != nil {
		t.Errorf("told after all: %s, %v", rest.String(), lines.Err())
	}
}

// The client that follows says that it was the token.
func TestRevokedWhileTheClientFollows(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id, secret := w.reviewer()
	followed := make(chan error, 1)
	go func() {
		followed <- httpapi.NewClient(w.http.URL, secret).Follow(t.Context(), "", "", func(event.Object) error { return nil })
	}()
	w.untilWaiters(1)
	w.want(w.do("admin", "DELETE", "/v1/tokens/"+id, ""), 200)
	if err := <-followed; !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("got %v", err)
	}
}
