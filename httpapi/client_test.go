package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/token"
)

func (w *world) client(as token.Scope) *httpapi.Client {
	return httpapi.NewClient(w.http.URL, w.tokens[as])
}

// heard is a far side that notes what it is sent and answers with {}.
type heard struct {
	mu   sync.Mutex
	got  []string
	body []string
	to   *httpapi.Client
}

func newHeard(t *testing.T) *heard {
	t.Helper()
	h := &heard{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.got = append(h.got, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Idempotency-Key"))
		h.body = append(h.body, string(b))
		h.mu.Unlock()
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	h.to = httpapi.NewClient(s.URL, "placet_x")
	return h
}

// What cannot be written as JSON text is refused with the name of the field, and
// nothing is sent: another text would have been asked, answered or run.
func TestClientSendsNoOtherText(t *testing.T) {
	t.Parallel()
	const bad = "x\xff"
	for field, send := range map[string]func(*httpapi.Client) error{
		"/prompt": func(c *httpapi.Client) error {
			_, err := c.Ask(t.Context(), "job_1", httpapi.Asking{Prompt: bad})
			return err
		},
		"/options/1": func(c *httpapi.Client) error {
			_, err := c.Ask(t.Context(), "job_1", httpapi.Asking{Prompt: "?", Options: []string{"a", bad}})
			return err
		},
		"/note": func(c *httpapi.Client) error {
			_, err := c.Decide(t.Context(), "apr_1", httpapi.Deciding{Note: bad})
			return err
		},
		"/by": func(c *httpapi.Client) error {
			_, err := c.Resolve(t.Context(), "job_1", "dec_1", httpapi.Resolving{Choice: "yes", By: bad})
			return err
		},
		"/edited_args/a": func(c *httpapi.Client) error {
			_, err := c.Decide(t.Context(), "apr_1", httpapi.Deciding{EditedArgs: json.RawMessage(`{"a":"\ud800"}`)})
			return err
		},
		"/command/2": func(c *httpapi.Client) error {
			_, err := c.StartJob(t.Context(), httpapi.Starting{Command: httpapi.Command("printf", "%s", bad)})
			return err
		},
		"/env/A": func(c *httpapi.Client) error {
			_, err := c.StartJob(t.Context(), httpapi.Starting{Command: httpapi.Command("env"), Env: map[string]string{"A": bad}})
			return err
		},
		"/text": func(c *httpapi.Client) error {
			return c.SendToJob(t.Context(), "job_1", httpapi.Sending{Text: bad})
		},
		"Idempotency-Key": func(c *httpapi.Client) error {
			_, err := c.Call(t.Context(), "refund", []byte(`{}`), "a\nb")
			return err
		},
		"Authorization": func(c *httpapi.Client) error {
			_, err := httpapi.NewClient(c.URL, "placet_x\n").Whoami(t.Context())
			return err
		},
		"/order": func(c *httpapi.Client) error {
			_, err := c.Call(t.Context(), "refund", []byte(`{"order":"`+bad+`"}`), "")
			return err
		},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			h := newHeard(t)
			err := send(h.to)
			if !errors.Is(err, call.ErrUsage) || !strings.Contains(err.Error(), field+" ") {
				t.Errorf("got %v, and it does not name %s", err, field)
			}
			if len(h.got) > 0 {
				t.Errorf("sent %q %q", h.got, h.body)
			}
		})
	}
}

// What can be written is sent as it is; arguments byte for byte.
func TestClientSendsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	h := newHeard(t)
	args := `{ "order": "é \u00e9 <&> ` + "\u2028" + `",  "n": 1.0e2 }`
	if _, err := h.to.Call(t.Context(), "refund", []byte(args), "key 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.CallInRun(t.Context(), "run 7", "refund", []byte(args), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.Reserve(t.Context(), httpapi.Reserving{Tool: "refund", Args: []byte(`{}`), IdempotencyKey: "key 2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.WaitForQuestion(t.Context(), "dec_1", "s1-a", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.TailJob(t.Context(), "job_1", job.Tailing{Stream: job.Stderr, Offset: 7, MaxBytes: 9, Follow: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.Jobs(t.Context(), httpapi.JobQuery{Name: "train", Tag: "gpu", Status: job.Failed, After: "job_1", Limit: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.to.Jobs(t.Context(), httpapi.JobQuery{ByAttention: true}); err != nil {
		t.Fatal(err)
	}
	if err := h.to.SendToJob(t.Context(), "job_1", httpapi.Sending{Data: []byte("\xff\x00")}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"POST /v1/tools/refund/call key 1",
		"POST /v1/tools/refund/call?run_id=run+7 ",
		"POST /v1/calls key 2",
		"GET /v1/decisions/dec_1/wait?after=s1-a&wait=1m0s ",
		"GET /v1/jobs/job_1/tail?follow=true&max_bytes=9&offset=7&stream=stderr ",
		"GET /v1/jobs?after=job_1&limit=3&name=train&status=failed&tag=gpu ",
		"GET /v1/jobs?view=attention ",
		"POST /v1/jobs/job_1/send ",
	}
	if strings.Join(h.got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(h.got, "\n"), strings.Join(want, "\n"))
	}
	for i, b := range map[int]string{0: args, 1: args, 2: `{"tool":"refund","args":{}}`, 7: `{"data":"/wA="}`} {
		if got := strings.TrimSuffix(h.body[i], "\n"); got != b {
			t.Errorf("request %d carries %s, want %s", i, got, b)
		}
	}
}

// A job's input takes any bytes: as text, or in base64 where they are none.
func TestSendAnyBytesToAJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	c := w.client(token.Agent)
	j, err := c.StartJob(t.Context(), httpapi.Starting{Command: httpapi.Command("cat")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []httpapi.Sending{{Text: "text\n"}, {Data: []byte("\xff\x00\xed\xa0\x80\n")}, {EOF: true}} {
		if err := c.SendToJob(t.Context(), j.JobID, s); err != nil {
			t.Fatal(err)
		}
	}
	w.want(w.do("agent", "POST", "/v1/jobs/"+j.JobID+"/send", `{"text":"a","data":"YQ=="}`), 400, "reason", "malformed")
	if got, err := c.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"completed"}, TimeoutSeconds: 60}); err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v %v", got, err)
	}
	tail, err := c.TailJob(t.Context(), j.JobID, job.Tailing{MaxBytes: 7})
	if err != nil || string(tail.Data) != "text\n\xff\x00" {
		t.Fatalf("%q %v", tail.Data, err)
	}
	if tail, err = c.TailJob(t.Context(), j.JobID, job.Tailing{Offset: tail.Next}); err != nil || string(tail.Data) != "\xed\xa0\x80\n" {
		t.Errorf("%q %v", tail.Data, err)
	}
}

// A line that never ends is not collected for ever, whoever sends it.
func TestFollowBoundsALine(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, ": follows\n\nid: 1\nevent: call.created\ndata: ")
		a := bytes.Repeat([]byte("a"), 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(a); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	err := httpapi.NewClient(s.URL, "").Follow(t.Context(), "", "", func(event.Object) error { return nil })
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.TooLarge {
		t.Errorf("got %v", err)
	}
}

// A front end that is written against decision.Approver works over HTTP as well.
func TestClientIsAnApprover(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var a decision.Approver = w.client(token.Reviewer)
	p, other := w.park("agent"), w.park("agent")
	list, err := a.Pending(t.Context(), 0)
	if err != nil || len(list) != 2 || list[0].ID != other.get("approval_id") {
		t.Fatalf("%+v %v", list, err)
	}
	s, err := a.Show(t.Context(), p.get("approval_id"))
	if err != nil || s.Digest != p.get("digest") || s.Status != decision.Pending || s.Tool != "refund" || s.RunID != p.get("run_id") ||
		s.Owner != (decision.Ref{Kind: decision.OwnerCall, ID: p.get("call_id")}) || s.CreatedAt.IsZero() || s.Overdue || s.RequestedBy != "" {
		t.Errorf("%+v %v", s, err)
	}
	if req, err := request.Decode(s.Request); err != nil || req.Tool.Name != "refund" || string(req.Args) != `{"order":"o-7","amount":500}` {
		t.Errorf("%+v %v", req, err)
	}
	if _, err := a.Show(t.Context(), "apr_x"); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := a.ApproveShown(t.Context(), "run_x", s.ID, s.Digest, "ana", ""); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("of another run: %v", err)
	}
	if err := a.ApproveShown(t.Context(), s.RunID, s.ID, "sha256-placet1:00", "ana", ""); !errors.Is(err, decision.ErrApprovalChanged) {
		t.Errorf("another digest: %v", err)
	}
	if err := a.ApproveShown(t.Context(), s.RunID, s.ID, s.Digest, "ana", "fine"); err != nil {
		t.Fatal(err)
	}
	if s, err = a.Show(t.Context(), s.ID); err != nil || s.Status != decision.Approved || s.DecidedBy != "ana" || s.Note != "fine" ||
		s.Choice != decision.ChoiceApprove || s.DecidedAt.IsZero() || !s.Verified {
		t.Errorf("%+v %v", s, err)
	}
	if err := a.RejectShown(t.Context(), "", s.ID, s.Digest, "bo", ""); !errors.Is(err, decision.ErrNotPending) {
		t.Errorf("another answer: %v", err)
	} else if st, ok := decision.StandingOf(err); !ok || st.By != "ana" {
		t.Errorf("what stands is lost: %+v", st)
	}
	if err := a.RejectShown(t.Context(), "", other.get("approval_id"), other.get("digest"), "bo", "no"); err != nil {
		t.Error(err)
	}
	if err := a.Cancel(t.Context(), "run_x", "ana", ""); !errors.Is(err, decision.ErrForbidden) {
		t.Errorf("a reviewer cancels: %v", err)
	}
	if err := w.client(token.Operator).Cancel(t.Context(), "run_x", "ana", ""); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("a run that is not there: %v", err)
	}
}
