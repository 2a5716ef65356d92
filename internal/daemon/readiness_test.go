package daemon

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// A loop that hangs makes the daemon not ready, whichever it is, and is named; one that
// comes round again makes it ready.
func TestReadyNamesTheLoopThatHangs(t *testing.T) {
	t.Parallel()
	all := []string{"sweep", "continue", "decisions", "jobs", "deliveries"}
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.serve()
			if err := s.home.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			letGo := w.holdUp(name)
			if err := s.home.Ready(t.Context()); err != nil {
				t.Errorf("it hangs for no time yet: %v", err)
			}
			w.clock.advance(time.Minute)
			for _, other := range all {
				if other != name {
					w.comes(other)
				}
			}
			err := s.home.Ready(t.Context())
			if f := fault.From(err); f == nil || f.Code != fault.Unavailable || f.Reason != "not_ready" || !strings.Contains(err.Error(), "the loop "+name+" has not come round for 1m") {
				t.Errorf("while %s hangs: %v", name, err)
			}
			for _, other := range all {
				if err != nil && other != name && strings.Contains(err.Error(), other+" has not") {
					t.Errorf("%s hangs too: %v", other, err)
				}
			}
			letGo()
			w.comes(name)
			if err := s.home.Ready(t.Context()); err != nil {
				t.Errorf("after it hung: %v", err)
			}
		})
	}
}

// The figures have the age of each loop: long of the one that hangs, and short of one that
// came round since, however slow the machine is.
func TestLoopsAges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	letGo := w.holdUp("jobs")
	defer letGo()
	w.clock.advance(2 * time.Hour)
	w.comes("sweep")
	got := s.figures()
	for _, want := range []string{`placet_loop_age_seconds{loop="continue"} `, `placet_loop_age_seconds{loop="decisions"} `, "placet_work_under_way 0", "placet_work_unserved 0"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among the figures", want)
		}
	}
	if age := figure(t, got, `placet_loop_age_seconds{loop="jobs"}`); age < 7200 {
		t.Errorf("a loop that has hung for two hours came round %v s ago", age)
	}
	if age := figure(t, got, `placet_loop_age_seconds{loop="sweep"}`); age >= 3600 {
		t.Errorf("a loop that has just come round did so %v s ago", age)
	}
}

// figure is one of the figures.
func figure(t *testing.T, figures, name string) float64 {
	t.Helper()
	_, rest, ok := strings.Cut("\n"+figures, "\n"+name+" ")
	if !ok {
		t.Fatalf("%q is not among the figures", name)
	}
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// figures is /metrics.
func (s *serving) figures() string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.at.URL+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.home.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// A store that went back in time is read from; the daemon says at its start, and to who
// asks whether it is ready, that nothing else is done, until that is accepted.
func TestServeARestoredStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent, ana := s.who()
	p := s.park(agent)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(w.db)
	if err != nil {
		t.Fatal(err)
	}
	s = w.serve()
	agent.URL, ana.URL = s.at.URL, s.at.URL
	s.park(agent)
	if len(s.at.Warnings) != 0 {
		t.Errorf("nothing is wrong: %q", s.at.Warnings)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.db, kept, 0o600); err != nil { // as somebody does who copies files
		t.Fatal(err)
	}

	s = w.serve()
	agent.URL, ana.URL = s.at.URL, s.at.URL
	if len(s.at.Warnings) != 1 || !strings.Contains(s.at.Warnings[0], "went back in time") || !strings.Contains(s.at.Warnings[0], "placet db accept-restore") {
		t.Errorf("said at the start: %q", s.at.Warnings)
	}
	err = s.home.Ready(t.Context())
	if f := fault.From(err); f == nil || f.Code != fault.Unavailable || !errors.Is(err, txn.ErrRestored) || !strings.Contains(err.Error(), "placet db accept-restore") {
		t.Errorf("ready: %v", err)
	}
	list, err := ana.Approvals(t.Context(), "pending", "", 10)
	if err != nil || len(list.Approvals) != 1 || list.Approvals[0].ID != p.ApprovalID {
		t.Errorf("it is read from: %+v %v", list, err)
	}
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); !errors.Is(err, txn.ErrRestored) {
		t.Errorf("decided: %v", err)
	}
	if _, err := agent.Call(t.Context(), "refund", []byte(order), ""); !errors.Is(err, txn.ErrRestored) {
		t.Errorf("called: %v", err)
	}
	if err := sqlite.AcceptRestore(t.Context(), w.db); err != nil {
		t.Fatal(err)
	}
	w.until("it is ready once that is accepted", func() bool { return s.home.Ready(t.Context()) == nil })
	s.approve(ana, p.ApprovalID)
	again := "" // it was asked before the store went back, and may have run since: a person is asked once more
	w.until("it is asked about once more", func() bool {
		c, err := agent.GetCall(t.Context(), p.CallID, 0)
		again = c.ApprovalID
		return err == nil && c.Status == call.Unknown && again != p.ApprovalID
	})
	s.approve(ana, again)
	s.becomes(agent, p.CallID, call.Succeeded)
}

// Where the home's own token is of the time that was lost, nothing can be served.
func TestServeARestoredStoreWithoutItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, err := sqlite.Open(t.Context(), w.db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := token.Create(t.Context(), st, token.New{Space: "main", Scope: token.Agent, Name: "bot"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(w.db)
	if err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.db, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.start(); !errors.Is(err, txn.ErrRestored) || !strings.Contains(err.Error(), "placet db accept-restore") {
		t.Errorf("got %v", err)
	}
}

// A store has one daemon at a time.
func TestOneDaemonServesAStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	if _, err := w.start(); !errors.Is(err, ErrServed) {
		t.Errorf("a second one: %v", err)
	}
	link := w.db + ".link"
	if err := os.Symlink(w.db, link); err != nil {
		t.Fatal(err)
	}
	if _, err := w.start(func(c *Config) { c.DB = place.File(link) }); err == nil {
		t.Error("a second one, by another name")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve()
}

func TestUnusableConfig(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"a yes that lasts for ever": func(c *Config) { c.GrantTTL = 2 * longestGrant }, "less than no yes": func(c *Config) { c.GrantTTL = -1 },
		"no address": func(c *Config) { c.Listen = "here" }, "no drain": func(c *Config) { c.Drain = -1 }, "never": func(c *Config) { c.Every = -1 },
		"a lease that cannot be kept": func(c *Config) { c.Lease = time.Millisecond }, "no program": func(c *Config) { c.Program = []string{} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if _, err := newWorld(t).start(change); !errors.Is(err, call.ErrUsage) {
				t.Errorf("got %v", err)
			}
		})
	}
}
