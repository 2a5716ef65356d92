package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

const (
	mostScript = 15 << 10
	mostStyle  = 30 << 10
	zone       = "Asia/Tokyo"
)

// chatty is a job that tells of itself until it is stopped.
const chatty = `["sh", "-c", "for i in 1 2 3; do echo \"epoch $i\"; echo \"AGENT_EVENT {\\\"type\\\":\\\"progress\\\",\\\"message\\\":\\\"epoch $i of 9\\\",\\\"data\\\":{\\\"done\\\":$i,\\\"of\\\":9}}\"; done; echo careful >&2; exec sleep 100000"]`

// A person signs in, decides, sees what comes of it, and looks at everything else that
// there is: each page stands still, asks nobody else, and tells the time where they are.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	if _, err := w.Operator.RegisterRelay(t.Context(), httpapi.Registering{Name: "phone", Events: []string{"approval.requested"}}); err != nil {
		t.Fatal(err)
	}
	parked, other := w.Call("refund", large), w.Call("refund", `{"order_id":"o-8","amount":80}`)
	j := w.Job(httpapi.Starting{Name: "train", Tags: []string{"gpu"}, Command: json.RawMessage(chatty)})
	asked := w.Ask(j.JobID, "Continue past epoch 40?", "continue", "stop")
	r := w.StartRun("Refund o-9.")

	p := browsertest.New(t)
	p.TimeZone(zone)
	p.Open(w.URL + "/")
	p.Screenshot("walk/sign-in")
	p.Fill("input[name=token]", secret(t, w, token.Operator, "otto").Secret)
	p.Follow("button >> Sign in")
	p.Follow("button >> Sign out")
	enter(p, w.URL+"/", secret(t, w, token.Reviewer, "ana").Secret)
	visit(t, p, w, "queue", "/")
	light(t, p)

	visit(t, p, w, "approval", "/approvals/"+parked.ApprovalID)
	p.Type("#note", "Checked.")
	p.Follow(approveIt)
	p.WaitText(`[data-region="became"]`, "succeeded")
	p.Screenshot("walk/approved")
	if got, want := p.Text(`[data-region="decide"] p`), "by ana "; !strings.HasPrefix(got, want) {
		t.Errorf("who approved is shown as %q", got)
	}
	still(t, p, "approved")
	clean(t, p, w.URL, "approved")

	var ds delivery.DeliveryObject
	if l, err := w.Admin.Deliveries(t.Context(), httpapi.DeliveryQuery{Limit: 1}); err != nil || len(l.Deliveries) == 0 {
		t.Fatalf("there is no delivery: %v", err)
	} else {
		ds = l.Deliveries[0]
	}
	for _, one := range [][2]string{
		{"decided", "/decided"},
		{"question", "/questions/" + asked.DecisionID},
		{"jobs", "/jobs"},
		{"job", "/jobs/" + j.JobID},
		{"output", "/jobs/" + j.JobID + "/output?stream=stdout"},
		{"runs", "/runs"},
		{"run", "/runs/" + r.RunID},
		{"step", "/runs/" + r.RunID + "?step=1"},
		{"call", "/calls/" + parked.CallID},
		{"events", "/events"},
		{"stream", "/events?stream=call:" + parked.CallID},
		{"deliveries", "/deliveries"},
		{"delivery", "/deliveries/" + ds.DeliveryID},
		{"edit", "/approvals/" + other.ApprovalID + "/edit"},
		{"approval-of-a-run", "/approvals/" + r.PendingApproval},
	} {
		visit(t, p, w, one[0], one[1])
	}
}

// visit opens a page and looks at all that holds of each.
func visit(t *testing.T, p *browsertest.Page, w *daemontest.World, name, path string) {
	t.Helper()
	p.Forget()
	p.Open(w.URL + path)
	if p.Status() != http.StatusOK {
		t.Errorf("%s: status %d: %s", name, p.Status(), p.Text("main"))
	}
	p.Screenshot("walk/" + name)
	still(t, p, name)
	clean(t, p, w.URL, name)
	local(t, p, name)
	outlined(t, p.Tree(), name, true)
	for _, low := range p.Contrast() {
		t.Errorf("%s: hard to read: %v", name, low)
	}
	for _, wide := range p.Overflow() {
		t.Errorf("%s: wider than the window: %s", name, wide)
	}
}

// still looks whether nothing has moved.
func still(t *testing.T, p *browsertest.Page, name string) {
	t.Helper()
	if moved := p.LayoutShift(); moved != 0 {
		t.Errorf("%s: what is shown has moved by %v", name, moved)
	}
}

// light looks whether the files of each page are small.
func light(t *testing.T, p *browsertest.Page) {
	t.Helper()
	seen := map[string]int64{}
	p.Forget()
	p.Reload()
	for _, r := range p.Requests() {
		seen[r.Type] += r.Bytes
	}
	for sort, most := range map[string]int64{"Script": mostScript, "Stylesheet": mostStyle} {
		if n := seen[sort]; n == 0 || n >= most {
			t.Errorf("%s takes %d bytes, and may take less than %d", sort, n, most)
		}
	}
}

// local looks whether each instant is shown where the reader is, with UTC beside it.
func local(t *testing.T, p *browsertest.Page, name string) {
	t.Helper()
	at, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	type instant struct{ Stamp, Text, Title string }
	times := browsertest.Eval[[]instant](p, `[...document.querySelectorAll("time[data-local]")].map(t => ({Stamp: t.dateTime, Text: t.textContent, Title: t.title}))`)
	for _, i := range times {
		when, err := time.Parse(time.RFC3339Nano, i.Stamp)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := when.In(at).Format("Jan 2, 2006, 3:04:05 PM")
		if got := strings.Join(strings.Fields(i.Text), " "); got != want {
			t.Errorf("%s: %s is shown as %q, and is %q in %s", name, i.Stamp, got, want, zone)
		}
		if want := when.UTC().Format("15:04:05"); !strings.Contains(i.Title, want) || !strings.Contains(i.Title, "UTC") {
			t.Errorf("%s: %s has the title %q, without %s UTC", name, i.Stamp, i.Title, want)
		}
	}
}

// boxes are where the rows of the queue stand.
const boxes = `JSON.stringify([...document.querySelectorAll(".row")].map(r => { const b = r.getBoundingClientRect(); return [r.id, b.x, b.y, b.width, b.height]; }))`

// What waits anew and what was settled elsewhere is told on the queue as it is looked at,
// and no row moves: nobody presses something else than they aimed at.
func TestQueueStandsStill(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	gone, stays := w.Call("refund", large), w.Call("refund", `{"order_id":"o-8","amount":80}`)
	p := visitor(t, w, "ana")
	p.WaitFor("#row-" + stays.ApprovalID)
	before := browsertest.Eval[string](p, boxes)
	for range 3 {
		w.Call("write_note", `{"text":"`+strings.Repeat("a word ", 20)+`"}`)
	}
	p.WaitText("#news", "3 new: show them")
	decideAs(t, w.Reviewer, gone, false, "")
	p.WaitText("#row-"+gone.ApprovalID+" [data-state]", "rejected by ana")
	p.WaitText("#waiting-count", "4")
	p.WaitText("#queue-count", "4 wait")
	if after := browsertest.Eval[string](p, boxes); after != before {
		t.Errorf("rows have moved:\n%s\n%s", before, after)
	}
	still(t, p, "queue")
	p.Screenshot("walk/queue-with-news")
	p.Follow("#news")
	p.WaitGone("#row-" + gone.ApprovalID)
	if n := p.Seen(".row"); n != 4 {
		t.Errorf("there are %d rows", n)
	}
	clean(t, p, w.URL, "queue")
}
