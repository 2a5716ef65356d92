package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
)

// guest is a handler at a path of the server's.
type guest struct {
	seen    chan string   // method and body of each request that reached it
	ended   chan error    // why the context of a stream ended
	flushes chan struct{} // what a stream sends next
}

func (g *guest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	g.seen <- r.Method + " " + string(b)
	if r.Method != http.MethodGet {
		_, _ = w.Write([]byte(`{"ok":true}`))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for {
		_, _ = w.Write([]byte("data: 1\n\n"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-g.flushes:
		case <-r.Context().Done():
			g.ended <- context.Cause(r.Context())
			return
		}
	}
}

func withGuest(t *testing.T) (*world, *guest) {
	t.Helper()
	w := setup(t)
	g := &guest{make(chan string, 100), make(chan error, 1), make(chan struct{})}
	w.api.Mount("/guest", "guest", g)
	return w, g
}

// A guest is reached by who passes what every operation asks for, and by nobody else.
func TestMount(t *testing.T) {
	t.Parallel()
	w, g := withGuest(t)
	w.want(w.do("", "POST", "/guest", `{}`), 401)
	w.want(w.do("nobody", "POST", "/guest", `{}`), 401)
	w.want(w.do("agent", "POST", "/guest", `{}`, "Host", "evil.example"), 403, "reason", "unknown_host")
	w.want(w.do("agent", "POST", "/guest", `{}`, "Origin", "http://evil.example"), 403, "reason", "cross_site")
	w.want(w.do("agent", "POST", "/guest", `{}`, "Content-Type", "text/plain"), 415)
	w.want(w.do("agent", "POST", "/guest", `"`+strings.Repeat("x", httpapi.MaxBody)+`"`), 413)
	w.want(w.do("agent", "POST", "/guest", ``), 400)
	w.want(w.do("agent", "POST", "/guest?a=1&a=2", `{}`), 400)
	w.want(w.do("agent", "PUT", "/guest", `{}`), 405)
	w.want(w.do("agent", "POST", "/guest/x", `{}`), 404)
	w.want(w.do("agent", "DELETE", "/guest", `{}`), 400)
	if len(g.seen) > 0 {
		t.Fatalf("it was reached: %s", <-g.seen)
	}
	w.want(w.do("agent", "POST", "/guest", `not JSON: that is the guest's to say`), 200)
	if got := <-g.seen; got != "POST not JSON: that is the guest's to say" {
		t.Errorf("it saw %q", got)
	}
	w.want(w.do("agent", "DELETE", "/guest", ""), 200)
	if text := w.do("admin", "GET", "/metrics", "").text; !strings.Contains(text, `placet_http_requests_total{operation="guest",status="401"} 2`) {
		t.Error("it is not counted")
	}
}

// open opens the guest's stream and reads what it begins with.
func (w *world) openGuest(secret string) io.ReadCloser {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.http.URL+"/guest", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	w.readPiece(res.Body)
	return res.Body
}

func (w *world) readPiece(r io.Reader) {
	w.t.Helper()
	b := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "data: 1\n\n" {
		w.t.Fatalf("%q %v", b, err)
	}
}

// A guest's stream ends with its token, whoever revokes it.
func TestAGuestsStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(w *world, id string){
		"here": func(w *world, id string) { w.want(w.do("admin", "DELETE", "/v1/tokens/"+id, ""), 200) },
		"by another process": func(w *world, id string) {
			if _, err := token.Revoke(w.t.Context(), w.st, "main", id); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		w, g := withGuest(t)
		w.api.SetKeepAlive(time.Millisecond)
		id, secret := w.reviewer()
		w.openGuest(secret)
		revoke(w, id)
		if err := <-g.ended; !errors.Is(err, token.ErrUnauthenticated) {
			t.Errorf("%s: it ended with %v", name, err)
		}
	}
}

// Each piece of a stream has its own time: the whole may take longer.
func TestAGuestsStreamIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	w, g := withGuest(t)
	w.api.SetPatience(0, 200*time.Millisecond, 0)
	stream := w.openGuest(w.tokens[token.Agent])
	over := time.After(500 * time.Millisecond)
	for more := true; more; {
		select {
		case <-over:
			more = false
		case g.flushes <- struct{}{}:
			w.readPiece(stream)
		}
	}
	time.Sleep(300 * time.Millisecond) // the last deadline has passed; the next piece has one of its own
	g.flushes <- struct{}{}
	w.readPiece(stream)
}

// A client inside is judged like any other, and cancels like any other.
func TestInside(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	ctx := t.Context()
	agent := w.api.Inside(w.tokens[token.Agent])
	me, err := agent.Whoami(ctx)
	if err != nil || me.Scope != token.Agent {
		t.Fatalf("%+v %v", me, err)
	}
	if _, err := w.api.Inside("nobody").Whoami(ctx); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := agent.Tokens(ctx, "", 0); !errors.Is(err, httpapi.ErrScope) {
		t.Errorf("an agent lists tokens: %v", err)
	}
	status, answer, err := agent.Send(ctx, http.MethodGet, "/v1/jobs", url.Values{"limit": {"0"}}, nil, nil)
	if err != nil || status != http.StatusBadRequest || !strings.Contains(string(answer), "malformed") {
		t.Errorf("%d %s %v", status, answer, err)
	}
	status, answer, err = agent.Send(ctx, http.MethodPost, "/v1/tools/look_up/call", nil, http.Header{"Idempotency-Key": {"k"}}, []byte(`{"order":"o-7","amount":9007199254740993}`))
	if err != nil || status != http.StatusOK || !strings.Contains(string(answer), "9007199254740993") {
		t.Errorf("%d %s %v", status, answer, err)
	}
	j, err := agent.StartJob(ctx, httpapi.Starting{Command: httpapi.Command("cat")})
	if err != nil {
		t.Fatal(err)
	}
	waiting, give := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := agent.WaitForJob(waiting, j.JobID, httpapi.Waiting{Types: []string{"completed"}})
		ended <- err
	}()
	w.untilWaiters(1)
	give()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it was given up, and ended with %v", err)
	}
}
