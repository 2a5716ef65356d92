package inbox

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
)

func (b *Inbox) jobs(w http.ResponseWriter, r *http.Request, who reviewer) {
	q := r.URL.Query()
	l := view.JobList{At: time.Now(), Newest: q.Get("view") == "newest", Name: q.Get("name"), Tag: q.Get("tag"), Room: view.NewRoom()}
	status, after := q.Get("status"), q.Get("after")
	l.Filtered = status != "" || l.Name != "" || l.Tag != ""
	l.Newest = l.Newest || l.Filtered || after != ""
	asked := params("status", status, "name", l.Name, "tag", l.Tag, "after", after, "limit", strconv.Itoa(onPage))
	if !l.Newest {
		asked.Set("view", "attention")
	}
	list, err := get[struct {
		Jobs []view.JobObject
		Next string
	}](r.Context(), who.door, "/v1/jobs", asked)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	l.Jobs, l.Statuses = list.Jobs, statuses(status, job.Statuses(), review.StatusWord)
	l.Back, l.Next = around("/jobs", after, list.Next, "view", "newest", "status", status, "name", l.Name, "tag", l.Tag)
	b.show(w, r, http.StatusOK, view.JobsPage(b.shell(r, who, view.Jobs, "Jobs"), l))
}

// What a job's page shows of it.
const (
	questionsOfJob = 20
	recentEvents   = 10
	chartedEvents  = 400
	outputShown    = 64 << 10 // bytes of each stream
)

func (b *Inbox) job(w http.ResponseWriter, r *http.Request, who reviewer) {
	id := r.PathValue("id")
	stream := job.RefOf(id).Stream()
	end, err := b.endOf(r.Context(), stream)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	v, err := readJob(r.Context(), who.door, id, end.Seq)
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	b.show(w, r, http.StatusOK, view.JobPage(b.following(r, who, view.Jobs, "A job", stream, end), v))
}

// readJob reads all that a job's page shows.
func readJob(ctx context.Context, d Door, id string, seq int64) (v view.Job, err error) {
	v = view.Job{At: time.Now(), Mask: &display.Mask{}, Room: view.NewRoom(), Seq: seq}
	if v.JobObject, err = getJob(ctx, d, id); err != nil {
		return v, err
	}
	qs, err := get[struct {
		Decisions []view.QuestionObject
		Next      string
	}](ctx, d, "/v1/decisions", params("job_id", id, "limit", strconv.Itoa(questionsOfJob)))
	if err != nil {
		return v, err
	}
	v.Questions, v.More = qs.Decisions, qs.Next != ""
	stream := job.RefOf(id).Stream()
	recent, err := listEvents(ctx, d, params("stream", stream, "order", "newest", "limit", strconv.Itoa(recentEvents)))
	if err != nil {
		return v, err
	}
	v.Recent = rowsOf(recent.Events)
	told, err := listEvents(ctx, d, params("stream", stream, "type", string(event.JobOutput), "order", "newest", "limit", strconv.Itoa(chartedEvents)))
	if err != nil {
		return v, err
	}
	v.Charts = chartsOf(told.Events)
	v.Out, err = lastOutput(ctx, d, v.JobObject, job.Stdout)
	if err == nil {
		v.Err, err = lastOutput(ctx, d, v.JobObject, job.Stderr)
	}
	return v, err
}

func getJob(ctx context.Context, d Door, id string) (view.JobObject, error) {
	return get[view.JobObject](ctx, d, "/v1/jobs/"+url.PathEscape(id), nil)
}

// lastOutput is the end of what a job printed on a stream.
func lastOutput(ctx context.Context, d Door, j view.JobObject, s job.Stream) (view.Output, error) {
	o, err := outputAt(ctx, d, j, s, 0, 1)
	if err != nil || o.Missing != "" || o.Size <= 1 {
		return o, err
	}
	return outputAt(ctx, d, j, s, max(0, o.Size-outputShown), outputShown)
}

// outputAt is a piece of what a job printed. Where it cannot be had, the page says why.
func outputAt(ctx context.Context, d Door, j view.JobObject, s job.Stream, offset, most int64) (view.Output, error) {
	o := view.Output{JobID: j.JobID, Stream: s, From: offset, Finished: j.Status.Terminal()}
	if j.HomeID != "" && j.Status != job.Queued {
		o.Missing = elsewhere(ctx, d, j)
		return o, nil
	}
	t, err := get[struct {
		Data []byte
		Size int64
	}](ctx, d, "/v1/jobs/"+url.PathEscape(j.JobID)+"/tail", params("stream", string(s), "offset", strconv.FormatInt(offset, 10), "max_bytes", strconv.FormatInt(most, 10)))
	if f := fault.From(err); err != nil && (f.Reason == job.ErrOutputGone.Reason || f.Reason == job.ErrElsewhere.Reason) {
		o.Missing = f.Message + " " + f.Advice
		return o, nil
	}
	o.Data, o.Size = string(t.Data), t.Size
	return o, err
}

// elsewhere says where the output of a job lies that another daemon looks after: only that
// one is asked for it, and with a token that is not kept here.
func elsewhere(ctx context.Context, d Door, j view.JobObject) string {
	hs, err := get[struct {
		Homes []struct {
			HomeID string `json:"home_id"`
			Host   string `json:"host"`
			URL    string `json:"url"`
		}
	}](ctx, d, "/v1/homes", nil)
	where := "It lies on another machine"
	if j.Host != "" {
		where = "It lies on " + j.Host
	}
	for _, h := range hs.Homes {
		if err == nil && h.HomeID == j.HomeID && h.URL != "" {
			where += ", whose own pages are at " + h.URL
		}
	}
	return where + ". At a terminal: placet job tail " + j.JobID
}

// jobOutput shows all that a job printed, piece by piece.
func (b *Inbox) jobOutput(w http.ResponseWriter, r *http.Request, who reviewer) {
	q := r.URL.Query()
	s := job.Stream(q.Get("stream"))
	offset, err := wholeNumber(q, "offset")
	if err == nil && s != job.Stdout && s != job.Stderr {
		err = decision.ErrUsage.Say("There is no output %q.", s).Hint("It is stdout or stderr.")
	}
	var j view.JobObject
	if err == nil {
		j, err = getJob(r.Context(), who.door, r.PathValue("id"))
	}
	var o view.Output
	if err == nil {
		o, err = outputAt(r.Context(), who.door, j, s, offset, outputShown)
	}
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	path := "/jobs/" + url.PathEscape(j.JobID) + "/output"
	o.Whole = true
	if offset > 0 {
		o.Back = address(path, "stream", string(s), "offset", strconv.FormatInt(max(0, offset-outputShown), 10))
	}
	if end := offset + int64(len(o.Data)); end < o.Size {
		o.Next = address(path, "stream", string(s), "offset", strconv.FormatInt(end, 10))
	}
	b.show(w, r, http.StatusOK, view.OutputPage(b.shell(r, who, view.Jobs, "Output"), j, o))
}

// mostCharts is how many numbers of one job are drawn.
const mostCharts = 6

// isNumbers reports whether the numbers in what a job tells under a name are drawn.
func isNumbers(name string) bool {
	return slices.Contains([]string{"progress", "metric", "metrics"}, name)
}
