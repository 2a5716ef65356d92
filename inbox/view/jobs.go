package view

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/progress"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
)

// JobObject is a job as the API writes it.
type JobObject struct {
	JobID            string          `json:"job_id"`
	Name             string          `json:"name"`
	Status           job.Status      `json:"status"`
	Paused           bool            `json:"paused"`
	Command          []string        `json:"command"`
	Shell            string          `json:"shell"`
	Cwd              string          `json:"cwd"`
	Tags             []string        `json:"tags"`
	TimeoutSeconds   int64           `json:"timeout_seconds"`
	Principal        string          `json:"principal"`
	CreatedAt        string          `json:"created_at"`
	StartedAt        string          `json:"started_at"`
	EndedAt          string          `json:"ended_at"`
	ExitCode         *int            `json:"exit_code"`
	FailureReason    string          `json:"failure_reason"`
	Progress         json.RawMessage `json:"progress"`
	PendingDecisions int64           `json:"pending_decisions"`
	Trigger          *job.Trigger    `json:"trigger"`
	HomeID           string          `json:"home_id"`
	Host             string          `json:"host"`
}

// QuestionObject is a question as the API writes it, as far as a job's page shows it.
type QuestionObject struct {
	DecisionID string `json:"decision_id"`
	Prompt     string `json:"prompt"`
	Status     string `json:"status"`
	Choice     string `json:"choice"`
	By         string `json:"by"`
	CreatedAt  string `json:"created_at"`
}

// JobList is a page of jobs.
type JobList struct {
	At         time.Time
	Jobs       []JobObject
	Newest     bool // newest first; otherwise those that need a person first
	Statuses   []Option
	Name, Tag  string
	Filtered   bool
	Back, Next string
	Room       *Room
}

// Job is the page of one job.
type Job struct {
	JobObject
	At        time.Time
	Mask      *display.Mask
	Room      *Room
	Questions []QuestionObject
	More      bool // it asked more questions than these
	Out, Err  Output
	Charts    []Chart
	Recent    []EventRow
	Seq       int64 // of its last event, by which it is noticed that something changed
}

// Output is a piece of what a job printed on one of its streams.
type Output struct {
	JobID    string
	Stream   job.Stream
	Data     string
	From     int64  // where the piece begins
	Size     int64  // of all that there is
	Missing  string // why there is none that could be shown; empty: there is
	Back     string // pages beside this one
	Next     string
	Whole    bool // it is a page of its own
	Finished bool // nothing more will come
}

// title is a job's name, or its command where it has none.
func (j JobObject) title() string {
	if j.Name != "" {
		return j.Name
	}
	return j.line()
}

// line is the command as one text.
func (j JobObject) line() string {
	if j.Shell != "" {
		return j.Shell
	}
	words := make([]string, len(j.Command))
	for i, w := range j.Command {
		words[i] = display.ShellWord(w)
	}
	return strings.Join(words, " ")
}

// part is how much of it a job says is done, of one that runs.
func (j JobObject) part() (float64, bool) {
	if j.Status != job.Running {
		return 0, false
	}
	return progress.Part(j.Progress)
}

func percent(part float64) string { return fmt.Sprintf("%d%%", int(math.Floor(part*100))) }

// outcome is how a job ended, in words.
func (j JobObject) outcome() string {
	switch j.Status {
	case job.Queued:
		switch {
		case j.Paused:
			return "It is paused: it does not start until somebody lets it."
		case j.Trigger != nil:
			return "It starts when another job is " + string(j.Trigger.Status) + "."
		}
		return "It waits to be started."
	case job.Launching:
		return "It is being started."
	case job.Running:
		return "It runs."
	case job.Completed:
		return "It ended well."
	case job.Failed:
		return "It failed."
	case job.TimedOut:
		return "Its time limit passed."
	case job.Cancelled:
		return "It was stopped, or could never start."
	case job.Orphaned:
		return "What looked after it was lost. Nothing of it runs any more."
	}
	return capital(review.PlainWord(string(j.Status))) + "."
}

func (j Job) version() string {
	return versionOf(j.Status, j.Paused, j.PendingDecisions, j.EndedAt, string(j.Progress))
}

func (j Job) asked() string {
	var b strings.Builder
	for _, q := range j.Questions {
		b.WriteString(q.DecisionID + q.Status)
	}
	return b.String()
}

func (o Output) version() string { return fmt.Sprint(o.From, o.Size, o.Missing, o.Finished) }

// mostOutput is how many bytes of HTML a piece of output may take.
const mostOutput = 90 << 10

// shown is the piece as it is shown: each line escaped, its end kept. Where that takes too
// much room, the beginning goes, and left is how many bytes of the piece that were.
func (o Output) shown() (text string, left int) {
	lines := strings.SplitAfter(o.Data, "\n")
	size, from := 0, len(lines)
	for from > 0 && size <= mostOutput {
		from--
		size += len(literal(lines[from]))
	}
	if size > mostOutput && from < len(lines)-1 {
		from++ // the line that was one too many
	}
	var b strings.Builder
	for i, l := range lines {
		if i < from {
			left += len(l)
			continue
		}
		b.WriteString(literal(l))
	}
	if text = b.String(); len(text) > 2*mostOutput { // one line of much that cannot be seen
		head, tail, cut := display.HeadTail(text, mostOutput)
		return head + " … " + tail, left + cut
	}
	return text, left
}

// literal is a line of output fit to be shown, with its end.
func literal(l string) string {
	if whole, ok := strings.CutSuffix(l, "\n"); ok {
		return display.Line(strings.TrimSuffix(whole, "\r")) + "\n"
	}
	return display.Line(l)
}

func sizeWord(o Output) string {
	if o.Missing != "" || o.Size == 0 {
		return ""
	}
	return string(o.Stream) + ", " + display.Bytes(int(o.Size))
}

func pieceWord(o Output) string {
	if o.Size == 0 {
		return ""
	}
	return fmt.Sprintf("bytes %s to %s of %s", display.Count(int(o.From)), display.Count(int(o.From)+len(o.Data)), display.Count(int(o.Size)))
}

// outputTo is the page of a piece of output.
func outputTo(o Output, offset int64) string {
	return fmt.Sprintf("/jobs/%s/output?stream=%s&offset=%d", o.JobID, o.Stream, offset)
}

func asks(n int64) string {
	if n == 1 {
		return "asks a question"
	}
	return fmt.Sprintf("asks %s questions", display.Count(int(n)))
}

// since is when a job came to stand as it does.
func since(j JobObject) time.Time {
	for _, stamp := range []string{j.EndedAt, j.StartedAt} {
		if stamp != "" {
			return at(stamp)
		}
	}
	return at(j.CreatedAt)
}
