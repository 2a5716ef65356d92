//go:build unix

package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// receiver is who webhooks are sent to.
type receiver struct {
	t    *testing.T
	addr string
	got  chan received
	srv  *http.Server

	mu  sync.Mutex
	how func(http.ResponseWriter, *http.Request)
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, addr: "127.0.0.1:0", got: make(chan received, 100)}
	r.start()
	t.Cleanup(func() { r.kill() })
	return r
}

// start listens, again at the same place.
func (r *receiver) start() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = l.Addr().String()
	r.srv = &http.Server{Handler: r}
	go r.srv.Serve(l)
}

// kill cuts every connection, and listens no more.
func (r *receiver) kill() { r.srv.Close() }

func (r *receiver) url() string { return "http://" + r.addr + "/hook" }

func (r *receiver) then(how func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.how = how
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	r.got <- received{q.Header.Clone(), body}
	r.mu.Lock()
	how := r.how
	r.mu.Unlock()
	if how != nil {
		how(w, q)
	}
}

func (r *receiver) next() received {
	r.t.Helper()
	select {
	case m := <-r.got:
		return m
	case <-time.After(patience):
		r.t.Fatal("no message came")
		panic("unreachable")
	}
}

func answering(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func (m received) id() string { return m.header.Get("webhook-id") }

// data is what a message tells.
func (m received) data(t *testing.T) map[string]any {
	t.Helper()
	var e struct {
		SpecVersion string
		Data        map[string]any
	}
	if err := json.Unmarshal(m.body, &e); err != nil || e.SpecVersion != "1.0" {
		t.Fatalf("%s %v", m.body, err)
	}
	return e.Data
}

// signed reports whether the message is signed with a secret as it was shown.
func (m received) signed(t *testing.T, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", m.id(), m.header.Get("webhook-timestamp"), m.body)
	return strings.Contains(m.header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// hears adds a webhook that hears of a job, and tries again soon.
func (s *served) hears(r *receiver, jobID string, events ...string) delivery.Object {
	s.t.Helper()
	t, err := s.home.AddWakeTarget(s.t.Context(), httpapi.Waking{JobID: jobID, Adding: delivery.Adding{
		Type: delivery.KindWebhook, URL: r.url(), Events: events, RetryDelaySeconds: 0.02,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// waits is a job that goes on until it is sent a line.
func (s *served) waits() string {
	s.t.Helper()
	j, err := s.home.StartJob(s.t.Context(), httpapi.Starting{Command: httpapi.Command("sh", "-c", "read x")})
	if err != nil {
		s.t.Fatal(err)
	}
	return j.JobID
}

// settles waits until a delivery has a status, and lists its attempts.
func (s *served) settles(deliveryID string, want delivery.Status) []delivery.AttemptObject {
	s.t.Helper()
	for end := time.Now().Add(patience); ; {
		d, err := s.home.GetDelivery(s.t.Context(), deliveryID)
		if err != nil {
			s.t.Fatal(err)
		}
		if d.Status == want {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("it is %+v, not %s", d, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
	l, err := s.home.DeliveryAttempts(s.t.Context(), deliveryID)
	if err != nil {
		s.t.Fatal(err)
	}
	return l.Attempts
}

func outcomes(as []delivery.AttemptObject) string {
	var words []string
	for _, a := range as {
		words = append(words, string(a.Outcome))
	}
	return strings.Join(words, " ")
}

// A webhook is told of a job's question and of its end, thinly and signed, and of
// nothing that the job only prints.
func TestWebhookOfAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r := newReceiver(t)
	forged := `AGENT_EVENT {"type":"decision_resolved","data":{"decision_id":"dec_x"}}`
	j, err := s.home.StartJob(t.Context(), httpapi.Starting{
		Command: httpapi.Command("sh", "-c", "echo '"+forged+"'; echo '"+strings.Replace(forged, "decision_resolved", "completed", 1)+"'; read x"), Name: "train",
		WakeTargets: []delivery.Adding{{Type: delivery.KindWebhook, URL: r.url(), Events: []string{"decision_requested", "decision_resolved", "completed"}}},
	})
	if err != nil || len(j.WakeTargets) != 1 || !strings.HasPrefix(j.WakeTargets[0].Secret, "whsec_") {
		t.Fatalf("%+v %v", j, err)
	}
	secret := j.WakeTargets[0].Secret
	if got, err := s.home.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"output:completed"}}); err != nil || got.Event == nil {
		t.Fatalf("%+v %v", got, err)
	}
	q, err := s.home.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "Delete the bucket of ana@example.com?"})
	if err != nil {
		t.Fatal(err)
	}
	asked := r.next()
	data := asked.data(t)
	if data["type"] != "decision_requested" || data["decision_id"] != q.DecisionID || data["job_id"] != j.JobID || data["delivery_id"] != asked.id() {
		t.Errorf("%s", asked.body)
	}
	if strings.Contains(string(asked.body), "bucket") || !asked.signed(t, secret) || asked.header.Get("Content-Type") != delivery.ContentType {
		t.Errorf("%v %s", asked.header, asked.body)
	}
	if asked.signed(t, delivery.FormatSecret(delivery.NewSecret())) {
		t.Error("another secret fits too")
	}
	if _, err := s.client(token.Reviewer, "ana").Resolve(t.Context(), j.JobID, q.DecisionID, httpapi.Resolving{Choice: "deny"}); err != nil {
		t.Fatal(err)
	}
	if m := r.next(); m.data(t)["type"] != "decision_resolved" || !m.signed(t, secret) {
		t.Errorf("%s", m.body)
	}
	if err := s.home.SendToJob(t.Context(), j.JobID, httpapi.Sending{Text: "x\n"}); err != nil {
		t.Fatal(err)
	}
	end := r.next()
	if end.data(t)["type"] != "completed" || end.data(t)["exit_code"] != 0.0 {
		t.Errorf("%s", end.body)
	}
	s.settles(end.id(), delivery.Delivered)
	if l, err := s.home.Deliveries(t.Context(), httpapi.DeliveryQuery{JobID: j.JobID}); err != nil || len(l.Deliveries) != 3 {
		t.Errorf("%+v %v", l, err)
	}
	again, err := s.home.GetWakeTarget(t.Context(), j.WakeTargets[0].TargetID)
	if err != nil || again.Secret != "" {
		t.Errorf("the secret is shown again: %+v %v", again, err)
	}
}

// A receiver that is killed and comes back gets what it missed, under the same id.
func TestReceiverComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r := newReceiver(t)
	id := s.waits()
	s.hears(r, id, "cancelled")
	r.then(func(http.ResponseWriter, *http.Request) { r.kill() })
	if _, err := s.home.StopJob(t.Context(), id, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	first := r.next()
	s.settlesSoon(first.id(), 2)
	r.then(nil)
	r.start()
	second := r.next()
	if second.id() != first.id() || string(second.body) != string(first.body) {
		t.Errorf("%s, then %s", first.id(), second.id())
	}
	as := s.settles(second.id(), delivery.Delivered)
	if len(as) < 3 || as[0].Outcome != "failed" || as[len(as)-1].Outcome != "delivered" {
		t.Errorf("%s", outcomes(as))
	}
}

// settlesSoon waits until so many tries at a delivery have ended.
func (s *served) settlesSoon(deliveryID string, n int) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		l, err := s.home.DeliveryAttempts(s.t.Context(), deliveryID)
		if err != nil || time.Now().After(end) {
			s.t.Fatal(err)
		}
		if len(l.Attempts) > n || len(l.Attempts) == n && l.Attempts[n-1].Outcome != "" {
			return
		}
	}
}

// A daemon that is killed while a receiver has not answered leaves an attempt that is
// found to be lost; the next daemon sends the message again under the same id.
func TestServeIsKilledWhileItDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r := newReceiver(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	r.then(func(http.ResponseWriter, *http.Request) { <-held })
	id := s.waits()
	s.hears(r, id, "paused", "cancelled")
	if _, err := s.home.StopJob(t.Context(), id, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	first := r.next()
	s.end(syscall.SIGKILL)
	w.endDeliveryLease(first.id())
	r.then(nil)
	s = w.serve()
	second := r.next()
	if second.id() != first.id() || string(second.body) != string(first.body) {
		t.Errorf("%s, then %s", first.id(), second.id())
	}
	if got := outcomes(s.settles(first.id(), delivery.Delivered)); got != "reclaimed delivered" {
		t.Errorf("the attempts are: %s", got)
	}
}

// endDeliveryLease makes the lease of a lost attempt end.
func (w *world) endDeliveryLease(deliveryID string) {
	w.t.Helper()
	err := txn.Update(w.t.Context(), w.store, func(tx delivery.Tx) error {
		d, err := tx.Delivery(deliveryID)
		if err != nil {
			return err
		}
		next := d
		next.LeaseUntil = tx.Now().Add(-time.Second)
		won, err := tx.PutDelivery(d, delivery.Change{Next: next})
		if err == nil && !won {
			err = delivery.ErrMoved
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// One that says 410 is told nothing more until somebody puts it in use again; what was
// given up is then tried again by hand, and says so.
func TestGoneAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r := newReceiver(t)
	r.then(answering(http.StatusGone))
	id := s.waits()
	target := s.hears(r, id, "cancelled")
	if _, err := s.home.StopJob(t.Context(), id, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	gone := r.next().id()
	s.settles(gone, delivery.Dead)
	out, _, code := w.run("doctor")
	mustContain(t, out, "placet deliveries --status dead", "placet wake enable "+target.TargetID, "410")
	if code != 1 {
		t.Errorf("doctor ends with %d", code)
	}
	_, errs, code := w.run("deliveries", "retry", gone)
	mustContain(t, errs, "not in use")
	if code != 1 {
		t.Errorf("it ends with %d", code)
	}
	r.then(nil)
	if _, errs, code := w.run("wake", "enable", target.TargetID); code != 0 {
		t.Fatal(errs)
	}
	out, errs, code = w.run("deliveries", "retry", gone, "--by", "ana")
	mustContain(t, out, gone, "tried again by hand")
	if code != 0 {
		t.Fatal(errs)
	}
	if m := r.next(); m.id() != gone {
		t.Errorf("it came as %s", m.id())
	}
	if got := outcomes(s.settles(gone, delivery.Delivered)); got != "gone delivered" {
		t.Errorf("the attempts are: %s", got)
	}
}

// A program is a target: it gets the message on its standard input, and what it is
// about in its environment, and nothing of the daemon's.
func TestProgramIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(map[string]string{"told.sh": "#!/bin/sh\ncat > \"$1.tmp\"; env > \"$1.env\"; mv \"$1.tmp\" \"$1\"\n"})
	s := w.serve()
	id := s.waits()
	to := filepath.Join(w.dir, "told")
	out, errs, code := w.run("wake", "add", "--job", id, "--event", "cancelled", "--", filepath.Join(w.dir, "told.sh"), to)
	if code != 0 || !strings.HasPrefix(out, "tgt_") {
		t.Fatalf("%s %s", out, errs)
	}
	if _, err := s.home.StopJob(t.Context(), id, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	l, err := s.home.Deliveries(t.Context(), httpapi.DeliveryQuery{JobID: id})
	if err != nil || len(l.Deliveries) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
	s.settles(l.Deliveries[0].DeliveryID, delivery.Delivered)
	body, err := os.ReadFile(to)
	if err != nil || (received{body: body}).data(t)["type"] != "cancelled" {
		t.Errorf("%s %v", body, err)
	}
	env, err := os.ReadFile(to + ".env")
	if err != nil || !strings.Contains(string(env), "PLACET_DELIVERY_ID="+l.Deliveries[0].DeliveryID) || strings.Contains(string(env), "PLACET_TOKEN") {
		t.Errorf("%s %v", env, err)
	}
}

// A client in an agent's process fetches what it is told under a lease, acknowledges it,
// or gives it back.
func TestRelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	bot, other := s.client(token.Agent, "bot"), s.client(token.Agent, "other")
	j, err := bot.StartJob(t.Context(), httpapi.Starting{Command: httpapi.Command("sh", "-c", "read x")})
	if err != nil {
		t.Fatal(err)
	}
	me, err := bot.RegisterRelay(t.Context(), httpapi.Registering{JobID: j.JobID, Name: "bot", Events: []string{"cancelled"}})
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan []httpapi.Fetched, 1)
	go func() {
		got, err := bot.PollRelay(t.Context(), me.TargetID, 10, 0, time.Minute)
		if err != nil {
			t.Error(err)
		}
		polled <- got
	}()
	if _, err := s.home.StopJob(t.Context(), j.JobID, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	got := <-polled
	if len(got) != 1 || !strings.Contains(string(got[0].Event), `"type":"dev.placet.cancelled"`) {
		t.Fatalf("%+v", got)
	}
	for name, as := range map[string]*httpapi.Client{"another agent": other, "a forger": bot} {
		forged := got[0]
		forged.LeaseToken += "x"
		if _, err := as.AckRelay(t.Context(), forged); err == nil {
			t.Errorf("%s acknowledged it", name)
		}
		if _, err := as.ReleaseRelay(t.Context(), forged); err == nil {
			t.Errorf("%s gave it back", name)
		}
	}
	if _, err := bot.ReleaseRelay(t.Context(), got[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := bot.AckRelay(t.Context(), got[0]); err == nil {
		t.Error("what was given back was acknowledged")
	}
	again, err := bot.PollRelay(t.Context(), me.TargetID, 0, time.Minute, 0)
	if err != nil || len(again) != 1 || again[0].DeliveryID != got[0].DeliveryID || again[0].LeaseToken == got[0].LeaseToken {
		t.Fatalf("%+v %v", again, err)
	}
	for range 2 {
		if d, err := bot.AckRelay(t.Context(), again[0]); err != nil || d.Status != delivery.Delivered || d.Attempts != 1 {
			t.Errorf("%+v %v", d, err)
		}
	}
	if back, err := bot.RegisterRelay(t.Context(), httpapi.Registering{JobID: j.JobID, Name: "bot"}); err != nil || back.TargetID != me.TargetID {
		t.Errorf("a client that comes again is %+v %v", back, err)
	}
	if late, err := bot.RegisterRelay(t.Context(), httpapi.Registering{JobID: j.JobID, Name: "late"}); err == nil {
		t.Errorf("a job that has ended is heard of anew: %+v", late)
	}
}

// Approvals and questions that are settled before their message went out are not asked
// about any more, and the stream says so.
func TestSettledIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r := newReceiver(t)
	r.then(answering(http.StatusServiceUnavailable))
	if _, err := s.home.AddWakeTarget(t.Context(), httpapi.Waking{Adding: delivery.Adding{Type: delivery.KindWebhook, URL: r.url(), Events: []string{"approval.requested"}}}); err != nil {
		t.Fatal(err)
	}
	bot, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	p := s.parkOver(bot)
	m := r.next()
	if m.data(t)["approval_id"] != p.ApprovalID || m.data(t)["digest"] != p.Digest {
		t.Errorf("%s", m.body)
	}
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Digest: p.Digest}); err != nil {
		t.Fatal(err)
	}
	e := s.seen("call:"+p.CallID, event.DeliveryDropped)
	if !strings.Contains(string(e.Payload), m.id()) {
		t.Errorf("%s", e.Payload)
	}
	s.settles(m.id(), delivery.Dropped)
}

// Whatever a receiver does, its deliveries end as the guide says, and those of a healthy
// one are not held up.
func TestReceiversOfAllSorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	elsewhere := newReceiver(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	retryAfter := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	hugely := func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
	}
	slowly := func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			_, _ = w.Write([]byte("."))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-held:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	sorts := []struct {
		name string
		how  func(http.ResponseWriter, *http.Request)
		want delivery.Status
		as   string
		says string
	}{
		{"200", nil, delivery.Delivered, "delivered", ""},
		{"204", answering(http.StatusNoContent), delivery.Delivered, "delivered", ""},
		{"302", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, elsewhere.url(), http.StatusFound) }, delivery.Dead, "failed failed", "redirect"},
		{"410", answering(http.StatusGone), delivery.Dead, "gone", "410"},
		{"429", retryAfter, delivery.Retrying, "failed", "429"},
		{"500", answering(http.StatusInternalServerError), delivery.Dead, "failed failed", "500"},
		{"never", func(http.ResponseWriter, *http.Request) { <-held }, delivery.Dead, "failed failed", "time was up"},
		{"slowly", slowly, delivery.Delivered, "delivered", ""},
		{"hugely", hugely, delivery.Delivered, "delivered", ""},
		{"hanging up", hangUp, delivery.Dead, "failed failed", "connection"},
	}
	id := s.waits()
	holding := newReceiver(t)
	holding.then(func(http.ResponseWriter, *http.Request) { <-held })
	hangs, err := s.home.AddWakeTarget(t.Context(), httpapi.Waking{JobID: id, Adding: delivery.Adding{
		Type: delivery.KindWebhook, URL: holding.url(), Events: []string{"cancelled"}, TimeoutSeconds: 60,
	}})
	if err != nil {
		t.Fatal(err)
	}
	receivers, targets := make([]*receiver, len(sorts)), make([]delivery.Object, len(sorts))
	for i, sort := range sorts {
		receivers[i] = newReceiver(t)
		receivers[i].then(sort.how)
		var err error
		targets[i], err = s.home.AddWakeTarget(t.Context(), httpapi.Waking{JobID: id, Adding: delivery.Adding{
			Type: delivery.KindWebhook, URL: receivers[i].url(), Events: []string{"cancelled"}, MaxAttempts: 2, RetryDelaySeconds: 0.01, TimeoutSeconds: 0.5,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.home.StopJob(t.Context(), id, httpapi.Stopping{KillAfterSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	for i, sort := range sorts {
		l, err := s.home.Deliveries(t.Context(), httpapi.DeliveryQuery{TargetID: targets[i].TargetID})
		if err != nil || len(l.Deliveries) != 1 {
			t.Fatalf("%s: %+v %v", sort.name, l, err)
		}
		dlv := l.Deliveries[0].DeliveryID
		as := s.settles(dlv, sort.want)
		d, err := s.home.GetDelivery(t.Context(), dlv)
		if err != nil || outcomes(as) != sort.as || !strings.Contains(d.Message, sort.says) || sort.want == delivery.Dead && d.Message == "" {
			t.Errorf("%s: %+v, attempts %s, %v", sort.name, d, outcomes(as), err)
		}
		if m := receivers[i].next(); m.id() != dlv {
			t.Errorf("%s: it came as %s", sort.name, m.id())
		}
		if sort.name != "429" {
			continue
		}
		next, err := time.Parse(time.RFC3339, d.NextTryAt)
		if err != nil || time.Until(next) < 50*time.Minute {
			t.Errorf("the next try is at %s, although an hour was asked for", d.NextTryAt)
		}
	}
	if l, err := s.home.Deliveries(t.Context(), httpapi.DeliveryQuery{TargetID: hangs.TargetID}); err != nil || l.Deliveries[0].Status != delivery.Dispatching {
		t.Errorf("the one that hangs held nobody up, and is %+v %v", l, err)
	}
	select {
	case m := <-elsewhere.got:
		t.Errorf("a redirect was followed: %s", m.body)
	default:
	}
	if got, err := s.home.GetWakeTarget(t.Context(), targets[3].TargetID); err != nil || got.Status != "disabled" {
		t.Errorf("who said 410 is %+v %v", got, err)
	}
}

// A limit that is none is refused, and not taken for the usual one.
func TestWakeLimitsAreLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, flag := range []string{"--max-attempts=0", "--max-attempts=101", "--retry-delay=0", "--retry-delay=2h", "--timeout=0s", "--timeout=61s", "--max-age=0", "--max-age=721h"} {
		_, stderr, code := w.run("wake", "add", flag, "--", "/bin/true")
		if name, _, _ := strings.Cut(flag, "="); code != 2 || !strings.Contains(stderr, name+" is ") || !strings.Contains(stderr, "It is from ") {
			t.Errorf("%s: exit code %d, %s", flag, code, stderr)
		}
	}
}
