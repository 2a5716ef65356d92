package inbox

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

func (b *Inbox) runs(w http.ResponseWriter, r *http.Request, who reviewer) {
	status, after := r.URL.Query().Get("status"), r.URL.Query().Get("after")
	list, err := get[struct {
		Runs []run.Object
		Next string
	}](r.Context(), who.door, "/v1/runs", params("status", status, "after", after, "limit", strconv.Itoa(onPage)))
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	l := view.RunList{At: time.Now(), Runs: list.Runs, Statuses: statuses(status, run.Statuses(), review.StatusWord), Filtered: status != "", Room: view.NewRoom()}
	l.Granted = b.granted(r.Context(), list.Runs)
	l.Back, l.Next = around("/runs", after, list.Next, "status", status)
	b.show(w, r, http.StatusOK, view.RunsPage(b.shell(r, who, view.Runs, "Runs"), l))
}

// stepsOnPage is how many steps of a run a page has.
const stepsOnPage = 25

// run shows a run with some of its steps, or one of them.
func (b *Inbox) run(w http.ResponseWriter, r *http.Request, who reviewer) {
	id := r.PathValue("id")
	after, err := wholeNumber(r.URL.Query(), "after")
	var one int64
	if err == nil {
		one, err = wholeNumber(r.URL.Query(), "step")
	}
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	limit := stepsOnPage + 1 // one more tells whether there is a next page
	if one > 0 {
		after, limit = one-1, 1
	}
	stream := decision.Ref{Kind: decision.OwnerRun, ID: id}.Stream()
	end, err := b.endOf(r.Context(), stream)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	o, err := get[run.Object](r.Context(), who.door, "/v1/runs/"+url.PathEscape(id),
		params("steps_after", strconv.FormatInt(after, 10), "steps_limit", strconv.Itoa(limit)))
	switch {
	case errors.Is(err, decision.ErrNotFound):
		b.calls(w, r, who, id, err)
		return
	case err == nil && one > 0 && (len(o.Steps) == 0 || o.Steps[0].Index != one):
		err = decision.ErrNotFound.Say("Run %s has no step %d.", id, one)
	}
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	v := runPage(o, after, one)
	if o.PendingApproval != "" {
		if a, err := review.Read(r.Context(), b.c.Store, b.c.Space, o.PendingApproval); err == nil && a.Granted() {
			v.Granted = &view.Approval{Approval: a, Unserved: b.c.Unserved(a.Owner.ID)}
		}
	}
	b.show(w, r, http.StatusOK, view.RunPage(b.following(r, who, view.Runs, "A run", stream, end), v))
}

// granted are the approvals that runs of a list wait for although people said yes: somebody
// has to go on with the run. A list does without where that cannot be read.
func (b *Inbox) granted(ctx context.Context, rs []run.Object) map[string]bool {
	yes := map[string]bool{}
	err := txn.View(ctx, b.c.Store, func(tx decision.Tx) error {
		clear(yes)
		for _, r := range rs {
			if r.PendingApproval == "" {
				continue
			}
			d, err := tx.Decision(r.PendingApproval)
			if err != nil && !errors.Is(err, decision.ErrNotFound) {
				return err
			}
			yes[d.ID] = err == nil && d.Space == b.c.Space && d.Status == decision.Approved && d.Open && !d.Overdue(tx.Now())
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		b.c.Log.Warn("what runs wait for was not read for a page", "error", err)
	}
	return yes
}

// runPage is a run's page behind a step.
func runPage(o run.Object, after, one int64) view.Run {
	v := view.Run{Object: o, At: time.Now(), Mask: &display.Mask{}, Room: view.NewRoom(), One: one}
	path := "/runs/" + url.PathEscape(o.RunID)
	if one > 0 {
		if one > 1 {
			v.Back = address(path, "step", strconv.FormatInt(one-1, 10))
		}
		if one < o.StepCount {
			v.Next = address(path, "step", strconv.FormatInt(one+1, 10))
		}
		return v
	}
	if after > 0 {
		v.Back = path
	}
	if len(o.Steps) > stepsOnPage {
		v.Steps = o.Steps[:stepsOnPage]
		v.Next = address(path, "after", strconv.FormatInt(v.Steps[stepsOnPage-1].Index, 10))
	}
	return v
}

// calls shows the calls that a run id groups, where no run has it; none is the answer where
// there are none.
func (b *Inbox) calls(w http.ResponseWriter, r *http.Request, who reviewer, runID string, none error) {
	after := r.URL.Query().Get("before")
	c := view.Calls{RunID: runID}
	err := txn.View(r.Context(), b.c.Store, func(tx call.Tx) (err error) {
		c.Calls, err = tx.Calls(call.Query{Space: b.c.Space, RunID: runID, After: after, Limit: onPage + 1})
		return err
	})
	if err == nil && len(c.Calls) == 0 {
		err = none
	}
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	path := "/runs/" + url.PathEscape(runID)
	if len(c.Calls) > onPage {
		c.Calls = c.Calls[:onPage]
		c.Next = address(path, "before", c.Calls[onPage-1].ID)
	}
	if after != "" {
		c.Back = path
	}
	b.show(w, r, http.StatusOK, view.CallsPage(b.shell(r, who, view.Runs, "Calls"), c))
}

// call shows one call.
func (b *Inbox) call(w http.ResponseWriter, r *http.Request, who reviewer) {
	id := r.PathValue("id")
	stream, end, err := b.streamOfCall(r.Context(), id)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	o, err := get[call.Object](r.Context(), who.door, "/v1/calls/"+url.PathEscape(id), nil)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	v := view.Call{Object: o, Mask: &display.Mask{}, Room: view.NewRoom(), Stream: stream}
	b.show(w, r, http.StatusOK, view.CallPage(b.following(r, who, view.Runs, "A call", stream, end), v))
}

// streamOfCall is the stream of a call's events, which may be its run's, and where that
// ends now.
func (b *Inbox) streamOfCall(ctx context.Context, id string) (stream string, h event.Head, err error) {
	err = txn.View(ctx, b.c.Store, func(tx call.Tx) error {
		k, err := tx.Call(id)
		if err != nil {
			return err
		}
		stream = k.Stream()
		h, err = tx.Head(stream)
		return err
	})
	return stream, h, err
}
