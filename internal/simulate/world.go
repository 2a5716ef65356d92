package simulate

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/token"
)

// patience bounds waits that end by themselves unless something is broken.
const patience = 90 * time.Second

// world is a server, the daemons on it, and what is seen of them from outside.
type world struct {
	t       testing.TB
	server  *pgtest.Server
	store   *store.Store // of the harness: straight to the server, through no proxy
	seen    string       // path of the witness file
	conf    *config.Config
	members []*member
	http    *http.Client
	tokens  map[string]string // secrets by name
}

// people are who asks and who decides.
var people = []struct {
	name  string
	scope token.Scope
}{{"bot", token.Agent}, {"ana", token.Reviewer}, {"bo", token.Reviewer}, {"cy", token.Reviewer}, {"root", token.Admin}}

// newWorld starts a server of its own with so many daemons on it.
func newWorld(t testing.TB, daemons int) *world {
	t.Helper()
	s, err := pgtest.Start(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	db, dir := s.URL("postgres"), t.TempDir()
	w := &world{t: t, server: s, http: newHTTP(t), tokens: map[string]string{}}
	var conf string
	conf, w.seen = writeTools(t, dir)
	if w.conf, err = config.Load(conf); err != nil {
		t.Fatal(err)
	}
	if w.store, err = postgres.Open(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	for n := range daemons {
		m := newMember(t, n, db, dir, conf)
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
		w.members = append(w.members, m)
	}
	w.admit()
	return w
}

// newHTTP is a client that keeps no connection to a daemon that was killed.
func newHTTP(t testing.TB) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// admit makes the tokens, with that of the first daemon's home.
func (w *world) admit() {
	w.t.Helper()
	at := w.members[0].endpoint()
	home := &httpapi.Client{URL: at.url, Token: at.admin, HTTP: w.http}
	for _, p := range people {
		k, err := home.CreateToken(w.t.Context(), httpapi.NewToken{Scope: p.scope, Name: p.name})
		if err != nil {
			w.t.Fatal(err)
		}
		w.tokens[p.name] = k.Secret
	}
}

// as is somebody at one of the daemons, where that is reached now.
func (w *world) as(name string, n int) *httpapi.Client {
	return &httpapi.Client{URL: w.members[n].endpoint().url, Token: w.tokens[name], HTTP: w.http}
}

// within bounds one request.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
