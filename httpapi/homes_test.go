package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// towns are two machines on one store: the first one has the jobs.
type towns struct {
	a, b *world
	home job.Home // the first one's, as it is registered
	job  string   // one that runs there, and belongs to "agent"

	mu    sync.Mutex
	asked []*http.Request // what reached the first one
}

func newTowns(t *testing.T) *towns {
	t.Helper()
	w := &towns{home: job.Home{ID: id.New(id.Home), Host: "alpha", Dir: t.TempDir(), Version: "v9", Process: "p", Epoch: 1}}
	supervise := func(c *httpapi.Config, host, home, dir string) {
		c.Jobs = job.NewSupervisor(job.Config{
			Store: c.Store, Dir: dir, Home: home, Host: host, URL: "http://" + c.Hosts[0], Program: []string{os.Args[0]}, Log: slog.New(slog.DiscardHandler),
		})
	}
	w.a = setup(t, func(c *httpapi.Config) { supervise(c, "alpha", w.home.ID, w.home.Dir) })
	handler := w.a.http.Config.Handler
	w.a.http.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r)
		w.mu.Unlock()
		handler.ServeHTTP(rw, r)
	})
	w.b = setupOn(t, w.a.st, func(c *httpapi.Config) { supervise(c, "beta", id.New(id.Home), t.TempDir()) })
	t.Cleanup(func() { w.a.endJob(w.job) })
	w.job = w.a.want(w.a.do("agent", "POST", "/v1/jobs", `{"command":["cat"],"name":"train"}`), 201).get("job_id")
	return w
}

// register writes the first one's home as a change of it says.
func (w *towns) register(change func(*job.Home, time.Time)) {
	w.a.t.Helper()
	err := txn.Update(w.a.t.Context(), w.a.st, func(tx store.Tx) error {
		was, err := tx.Home(w.home.ID)
		if err != nil {
			was = job.Home{}
		}
		h := w.home
		h.Since, h.LeaseUntil, h.URL = tx.Now(), tx.Now().Add(time.Hour), w.a.http.URL
		change(&h, tx.Now())
		return tx.PutHome(was, h)
	})
	if err != nil {
		w.a.t.Fatal(err)
	}
}

func (w *towns) present() { w.register(func(*job.Home, time.Time) {}) }

// reached is how often the first one was asked since it was asked last.
func (w *towns) reached() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.asked)
	w.asked = nil
	return n
}

// What needs a job's files is passed on to the machine that has them, and answered as it
// is there.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	w.present()
	w.a.loop()
	at := "/v1/jobs/" + w.job
	w.reached()
	w.b.want(w.b.do("agent", "POST", at+"/send", `{"text":"one\n"}`), 200)
	piece := w.b.want(w.b.do("agent", "GET", at+"/tail?follow=true", ""), 200)
	if b, _ := base64.StdEncoding.DecodeString(piece.get("data")); string(b) != "one\n" || piece.body["next"] != float64(4) {
		t.Errorf("tail: %s", piece.text)
	}
	if n := w.reached(); n != 2 {
		t.Errorf("the other daemon was asked %d times", n)
	}
	w.b.want(w.b.do("agent", "GET", at, ""), 200, "status", "running", "host", "alpha", "home_id", w.home.ID)
	w.a.want(w.a.do("agent", "GET", at, ""), 200, "status", "running", "host", "", "home_id", "")
	if l := w.b.want(w.b.do("reviewer", "GET", "/v1/jobs?view=attention", ""), 200); !strings.Contains(l.text, `"host":"alpha"`) {
		t.Errorf("listed: %s", l.text)
	}
	homes := w.b.want(w.b.do("operator", "GET", "/v1/homes", ""), 200)
	if !strings.Contains(homes.text, fmt.Sprintf(`"home_id":%q,"host":"alpha"`, w.home.ID)) || !strings.Contains(homes.text, `"present":true,"here":false`) {
		t.Errorf("homes: %s", homes.text)
	}
	w.b.want(w.b.do("agent", "GET", "/v1/homes", ""), 403)
	if _, err := httpapi.NewClient(w.b.http.URL, w.b.tokens[token.Operator]).Homes(t.Context()); err != nil {
		t.Error(err)
	}
	w.b.want(w.b.do("agent", "POST", at+"/send", `{"text":"two\n","eof":true}`), 200)
	w.a.want(w.a.do("agent", "POST", at+"/wait", `{"types":["completed"],"timeout_seconds":60}`), 200, "result", "event")
	w.b.want(w.b.do("agent", "POST", at+"/send", `{"text":"three\n"}`), 409, "reason", "run_state")
	if got := w.b.want(w.b.do("agent", "GET", at+"/tail", ""), 200).get("data"); got != base64.StdEncoding.EncodeToString([]byte("one\ntwo\n")) {
		t.Errorf("tail: %s", got)
	}
}

// A stop is a row: whoever is asked, the machine that runs the job carries it out.
func TestStoppedFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	w.present()
	w.a.loop()
	w.reached()
	w.b.want(w.b.do("agent", "POST", "/v1/jobs/"+w.job+"/stop", `{"kill_after_seconds":1}`), 200, "status", "cancelled")
	if n := w.reached(); n != 0 {
		t.Errorf("the other daemon was asked %d times", n)
	}
}

// Whoever asks goes on as himself: what the first daemon refuses is not passed on, and the
// second one judges by the same token.
func TestPassedOnAsOneself(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	w.present()
	at := "/v1/jobs/" + w.job
	w.reached()
	w.b.tokens["stranger"] = w.b.token(token.Agent, "stranger")
	w.b.want(w.b.do("stranger", "GET", at+"/tail", ""), 404)
	w.b.want(w.b.do("stranger", "POST", at+"/send", `{"text":"x"}`), 404)
	w.b.want(w.b.do("reviewer", "POST", at+"/send", `{"text":"x"}`), 403)
	w.b.want(w.b.do("nobody", "GET", at+"/tail", ""), 401)
	w.b.want(w.b.do("agent", "POST", at+"/send", `{"text":1}`), 400)
	if n := w.reached(); n != 0 {
		t.Errorf("the other daemon was asked %d times", n)
	}
	own, secret, err := token.Create(t.Context(), w.a.st, token.New{Space: "main", Scope: token.Agent, Name: "j", Principal: "agent", JobID: w.job})
	if err != nil {
		t.Fatal(err)
	}
	w.b.want(w.b.do(secret, "GET", at+"/tail", ""), 200)
	w.b.want(w.b.do(secret, "POST", at+"/send", `{"text":"x"}`), 403)
	w.mu.Lock()
	if len(w.asked) != 1 || w.asked[0].Header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("it was asked otherwise than as the job: %d", len(w.asked))
	}
	w.mu.Unlock()
	w.a.want(w.a.do("admin", "DELETE", "/v1/tokens/"+own.ID, ""), 200)
	w.reached()
	w.b.want(w.b.do(secret, "GET", at+"/tail", ""), 401)
	if n := w.reached(); n != 0 {
		t.Errorf("a revoked token was passed on %d times", n)
	}
}

// Where nothing can be passed on, the answer says where the job is.
func TestNotPassedOn(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	tail, send := "/v1/jobs/"+w.job+"/tail", "/v1/jobs/"+w.job+"/send"
	both := func(what string, status int, reason string, present bool, headers ...string) {
		t.Helper()
		w.reached()
		for _, r := range []reply{w.b.do("agent", "GET", tail, "", headers...), w.b.do("agent", "POST", send, `{"text":"x"}`, headers...)} {
			var at job.Elsewhere
			b, _ := json.Marshal(r.body["details"])
			_ = json.Unmarshal(b, &at)
			if w.b.want(r, status, "reason", reason); at.JobID != w.job || at.HomeID != w.home.ID || at.Present != present {
				t.Errorf("%s: %s", what, r.text)
			}
		}
		if n := w.reached(); n != 0 {
			t.Errorf("%s: the other daemon was asked %d times", what, n)
		}
	}
	both("never registered", 409, "job_elsewhere", false)
	w.register(func(h *job.Home, _ time.Time) { h.URL = "" })
	both("no address", 409, "job_elsewhere", true)
	w.register(func(h *job.Home, now time.Time) { h.Since, h.LeaseUntil = now.Add(-time.Hour), now.Add(-time.Second) })
	both("away", 409, "job_elsewhere", false)
	w.present()
	both("passed on before", 409, "job_elsewhere", true, "Placet-Passed-On", "yes")
	w.register(func(h *job.Home, _ time.Time) { h.URL = w.b.http.URL })
	both("it leads back", 409, "job_elsewhere", true)
	silent := httptest.NewServer(http.NotFoundHandler())
	w.register(func(h *job.Home, _ time.Time) { h.URL = silent.URL })
	both("no daemon", 502, "home_unreachable", true)
	silent.Close()
	both("nobody", 502, "home_unreachable", true)
	other := setup(t)
	w.register(func(h *job.Home, _ time.Time) { h.URL = other.http.URL })
	both("another store's daemon", 502, "home_unreachable", true)
	w.register(func(h *job.Home, _ time.Time) {
		h.URL = strings.Replace(w.a.http.URL, "127.0.0.1", "localhost", 1)
	})
	w.b.want(w.b.do("agent", "GET", tail, ""), 502, "reason", "home_unreachable") // it does not go by that name
}

// A daemon that takes a request and says nothing holds nobody up for long.
func TestPassedOnToASilentOne(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	w.b.api.SetFarPatience(100 * time.Millisecond)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			if _, err := l.Accept(); err != nil { // it is never answered, and closed with the test's process
				return
			}
		}
	}()
	w.register(func(h *job.Home, _ time.Time) { h.URL = "http://" + l.Addr().String() })
	at := "/v1/jobs/" + w.job
	w.b.want(w.b.do("agent", "GET", at+"/tail", ""), 502, "reason", "home_unreachable")
	w.b.want(w.b.do("agent", "GET", at+"/tail?follow=true", ""), 502, "reason", "home_unreachable")
	w.b.want(w.b.do("agent", "POST", at+"/send", `{"text":"x"}`), 502, "reason", "home_unreachable")
}

// Who follows a job that prints nothing waits on, as long as the daemon there answers.
func TestFollowedFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newTowns(t)
	w.present()
	w.a.loop()
	w.b.api.SetFarPatience(time.Second)
	w.reached()
	followed := make(chan reply, 1)
	go func() { followed <- w.b.do("agent", "GET", "/v1/jobs/"+w.job+"/tail?follow=true", "") }()
	for n := 0; n < 3; n += w.reached() { // it followed, looked, and follows again
		time.Sleep(10 * time.Millisecond)
	}
	w.a.want(w.a.do("agent", "POST", "/v1/jobs/"+w.job+"/send", `{"text":"one\n"}`), 200)
	if got := w.b.want(<-followed, 200).get("data"); got != base64.StdEncoding.EncodeToString([]byte("one\n")) {
		t.Errorf("tail: %s", got)
	}
}
