package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// reasons are all with which this door refuses or fails, but for failures of our own.
// They are words that programs compare: one that is new is added here on purpose.
var reasons = []string{
	"already_decided", "approval_changed", "approval_expired", "approval_hash", "at_work", "body_too_large", "call_conflict", "call_running", "choice_conflict",
	"claim_lost", "client_gone", "commit_unknown", "cross_site", "delivery_state", "expired", "flow_run", "forbidden", "invalid_arguments", "key_conflict", "lease_lost",
	"malformed", "method_not_allowed", "moved", "no_agent", "no_jobs", "no_route", "no_runs", "no_slot", "no_tool", "not_committed", "not_found", "not_offered", "not_pending", "not_ready",
	"request_timeout", "restored", "run_ended", "run_leased", "run_state", "runner_not_reached", "runner_refused", "schema_newer", "self_decision", "shutdown", "stopped", "store_busy",
	"store_unreadable", "too_large", "too_many_pending", "too_many_targets", "unauthenticated", "unknown_cursor", "unknown_host", "unknown_tool", "unsupported_media_type",
	"usage", "view_too_long", "withdrawn",
}

// prober sends generated requests to a world and judges the answers.
type prober struct {
	*world
	c    *contract
	ids  known
	took *sync.Map // operations that took a request
	had  string    // what was stored after the last request
}

func newProber(t testing.TB) *prober {
	t.Helper()
	w := setup(t)
	w.loop()
	return &prober{w, theDocument(t), knownOf(w.seed()), &sync.Map{}, ""}
}

// probe sends one request that chance makes for an operation.
func (p *prober) probe(o operation, as string, chance *rand.Rand) {
	p.t.Helper()
	m := maker{Rand: chance, c: p.c, ids: p.ids}
	p.judge(o, as, m.request(o))
}

// judge sends a request and says what is wrong with the answer.
func (p *prober) judge(o operation, as string, r made) {
	p.t.Helper()
	before := p.had
	if before == "" {
		before = p.stored()
	}
	p.had = ""
	got, sent := p.send(as, r)
	if !sent {
		return
	}
	what := fmt.Sprintf("%s as %q: %s", o.ID, as, r)
	sane(p.t, what, got)
	keepsTo(p.t, r.method, strings.SplitN(r.path, "?", 2)[0], got)
	if got.status < 400 {
		p.took.Store(o.ID, true)
		p.ids.learn(got)
	} else {
		if p.had = p.stored(); p.had != before {
			p.t.Errorf("%s\nis refused with %d %s, and changes %s", what, got.status, got.text, cmp.Diff(before, p.had))
		}
		if !slices.Contains(reasons, got.get("reason")) || foreign.MatchString(got.text) {
			p.t.Errorf("%s\nis refused in foreign words: %d %s", what, got.status, got.text)
		}
	}
	if want := p.owed(o, as); r.plain && want != 0 && got.status != want {
		p.t.Errorf("%s\nis answered with %d %s, not %d", what, got.status, got.text, want)
	}
}

// owed is the status that every request of theirs gets; 0: it depends.
func (p *prober) owed(o operation, as string) int {
	words := strings.TrimSuffix(strings.TrimPrefix(o.Description, "Scopes: "), ".")
	switch {
	case o.open():
		return 0
	case as == "":
		return http.StatusUnauthorized
	case words != "any" && !slices.Contains(strings.Split(words, ", "), as):
		return http.StatusForbidden
	}
	return 0
}

// wait is how long an answer is waited for that may take an hour.
const wait = 100 * time.Millisecond

func (p *prober) send(as string, m made) (r reply, sent bool) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), wait)
	defer stop()
	if !strings.Contains(m.path, "/wait") && !strings.Contains(m.path, "/tail") && !strings.Contains(m.path, "/events") {
		ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(ctx, m.method, p.http.URL+m.path, strings.NewReader(m.body))
	if err != nil {
		p.t.Fatalf("%s: %v", m, err)
	}
	if as != "" {
		req.Header.Set("Authorization", "Bearer "+p.tokens[token.Scope(as)])
	}
	if m.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(m.headers); i += 2 {
		req.Header.Set(m.headers[i], m.headers[i+1])
	}
	res, err := p.http.Client().Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return r, false // it waits
	}
	if err != nil {
		p.t.Fatalf("%s: %v", m, err)
	}
	defer res.Body.Close()
	r = reply{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return r, true
	}
	text, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		p.t.Fatalf("%s: %v", m, err)
	}
	return r.read(text), err == nil
}

// stored is what requests can change, and what goes on by itself cannot: all decisions,
// all tokens, how many calls, runs and jobs there are, and how far each got that is no job.
func (p *prober) stored() string {
	p.t.Helper()
	var b strings.Builder
	err := txn.View(p.t.Context(), p.st, func(tx job.Tx) error {
		b.Reset()
		for after := ""; ; {
			hs, err := tx.Heads(after, 1000)
			if err != nil {
				return err
			}
			for _, h := range hs {
				if after = h.Stream; strings.HasPrefix(after, "job:") {
					h.Seq = 0
				}
				fmt.Fprintf(&b, "%s %d\n", h.Stream, h.Seq)
			}
			if len(hs) < 1000 {
				break
			}
		}
		ds, err := p.decisions(tx)
		for _, d := range ds {
			if d.Status == decision.Withdrawn && d.DecidedPrincipal == "" {
				d.Status = decision.Pending // its job has ended meanwhile
			}
			fmt.Fprintf(&b, "%s %s %s\n", d.ID, d.Status, d.Choice)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	ts, err := token.List(p.t.Context(), p.st, token.Query{Space: "main", Limit: 500})
	if err != nil {
		p.t.Fatal(err)
	}
	p.storedTargets(&b)
	for _, t := range ts {
		if t.JobID == "" { // those of jobs come when they are launched
			fmt.Fprintf(&b, "%s %t\n", t.ID, t.RevokedAt.IsZero())
		}
	}
	return b.String()
}

// storedTargets writes down what may not change by itself: only a client claims here.
func (p *prober) storedTargets(b *strings.Builder) {
	p.t.Helper()
	err := txn.View(p.t.Context(), p.st, func(tx delivery.Tx) error {
		ts, err := tx.Targets(delivery.TargetQuery{Space: "main", Limit: 500})
		if err != nil {
			return err
		}
		for _, t := range ts {
			fmt.Fprintf(b, "%s %d %x\n", t.ID, t.Version, t.Secret)
		}
		ds, err := tx.Deliveries(delivery.Query{Space: "main", TargetID: p.ids.ids[id.Target][1], Limit: 500})
		for _, d := range ds {
			if d.Status != delivery.Pending { // those come with the events of jobs
				fmt.Fprintf(b, "%s %s %d %d\n", d.ID, d.Status, d.Attempts, d.Fence)
			}
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *prober) decisions(tx decision.Tx) (all []decision.Decision, err error) {
	for after := ""; ; {
		ds, err := tx.Decisions(decision.Query{Space: "main", After: after, Limit: 500})
		all = append(all, ds...)
		if err != nil || len(ds) < 500 {
			return all, err
		}
		after = ds[len(ds)-1].ID
	}
}

// onlyReviewersDecide looks whether a yes, a no or an answer came from anybody else.
func (p *prober) onlyReviewersDecide() {
	p.t.Helper()
	err := txn.View(p.t.Context(), p.st, func(tx decision.Tx) error {
		ds, err := p.decisions(tx)
		for _, d := range ds {
			if d.Choice != "" && d.DecidedPrincipal != "reviewer" && d.DecidedPrincipal != "admin" {
				p.t.Errorf("%s is decided by %q", d.ID, d.DecidedPrincipal)
			}
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Every operation, with every scope and none, is asked what the document makes possible
// and what it forbids, of what there is and what there is not.
func TestGenerated(t *testing.T) {
	t.Parallel()
	const seedings, each = 3, 6
	took := &sync.Map{}
	t.Cleanup(func() {
		for _, o := range theDocument(t).ops {
			if _, ok := took.Load(o.ID); !ok && !t.Failed() && raceFactor == 1 {
				t.Errorf("%s took no request: what is made for it is never good", o.ID)
			}
		}
	})
	for _, as := range []string{"", "agent", "reviewer", "operator", "admin"} {
		t.Run("as "+as, func(t *testing.T) {
			t.Parallel()
			p := newProber(t)
			p.took = took
			for i := range uint64(max(seedings*each/raceFactor, each)) {
				if i > 0 && i%each == 0 { // what there was is decided, stopped or deleted by now
					p.ids, p.had = knownOf(p.seed()), ""
				}
				for _, o := range p.c.ops {
					h := fnv.New64a()
					_, _ = io.WriteString(h, o.ID+as)
					p.probe(o, as, rand.New(rand.NewPCG(h.Sum64(), i)))
				}
			}
			p.onlyReviewersDecide()
		})
	}
}

// Each parameter and each field by itself takes every extreme, where all else is good.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"/v1/jobs", "/v1/calls", "/"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			p := newProber(t)
			s := p.seed()
			for _, o := range p.c.ops {
				if (group == "/") == (strings.HasPrefix(o.path, "/v1/jobs") || strings.HasPrefix(o.path, "/v1/calls")) || !strings.HasPrefix(o.path, group) {
					continue
				}
				at := s
				if strings.HasPrefix(o.ID, "wait") || o.ID == "tailJob" { // of what has ended, so that nothing waits
					at.job, at.question = s.doneJob, s.answered
				}
				path := o.with(func(v string) string { return at.of(o, v) })
				body := o.minimal(p.c.schemas)
				if o.ID == "startJob" { // none is launched
					body = with(body, "trigger", fmt.Sprintf(`{"job_id":%q,"status":"failed"}`, s.job))
				}
				for i, r := range extremes(o, p.c.schemas, path, body) {
					if i%raceFactor == 0 {
						p.judge(o, "admin", r)
					}
				}
				if o.ID == "stopJob" || o.ID == "cleanJobs" || o.method == http.MethodDelete {
					s, p.had = p.seed(), ""
				}
			}
		})
	}
}

func FuzzRequests(f *testing.F) {
	p := newProber(f)
	scopes := []string{"", "agent", "reviewer", "operator", "admin"}
	for i := range p.c.ops {
		f.Add(uint8(i), uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, op, scope uint8, chance uint64) {
		inner := *p
		inner.world = p.in(t)
		inner.probe(p.c.ops[int(op)%len(p.c.ops)], scopes[int(scope)%len(scopes)], rand.New(rand.NewPCG(chance, 0)))
		inner.onlyReviewersDecide()
	})
}
