package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/progress"
	"github.com/placet-dev/placet/job"
)

func newJobListCommand(a *app) *cobra.Command {
	var q httpapi.JobQuery
	var status string
	c := &cobra.Command{
		Use:   "list",
		Short: "List jobs, those that need a person first",
		Long: `Lists jobs: those that ask a question first, then those that failed or were lost, those
that run, the rest. With --status, and with --json, it lists the newest first.`,
		Args: noArgs,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case status == "":
				q.ByAttention = !a.json
			case status != "all":
				return oneOf("status", status, job.Statuses(), &q.Status)
			}
			return nil
		},
		RunE: a.asked(func(ctx context.Context, d reached, _ []string) error { return a.listJobs(ctx, d, q) }),
	}
	f := c.Flags()
	f.StringVar(&status, "status", "", "only those of this `WORD`: "+wordList(job.Statuses())+"; or all")
	f.StringVar(&q.Name, "name", "", "only those of this `NAME`, the newest first")
	f.StringVar(&q.Tag, "tag", "", "only those with this `TAG`, the newest first")
	return c
}

// oneOf reads a word that has to be one of a list.
func oneOf[T ~string](what, word string, list []T, to *T) error {
	for _, w := range list {
		if string(w) == word {
			*to = w
			return nil
		}
	}
	return use("There is no "+what+" "+quote(word)+".", "It is "+wordList(list)+" or all.")
}

// listedAtOnce is how many rows a list asks for at a time.
const listedAtOnce = 500

func (a *app) listJobs(ctx context.Context, d reached, q httpapi.JobQuery) error {
	q.Limit = listedAtOnce
	q.ByAttention = q.ByAttention && q.Name == "" && q.Tag == ""
	var all []httpapi.Job
	for {
		l, err := d.Jobs(ctx, q)
		if err != nil {
			return err
		}
		if a.json {
			for _, j := range l.Jobs {
				a.emit(j)
			}
		} else {
			all = append(all, l.Jobs...)
		}
		if q.After = l.Next; q.After == "" {
			break
		}
	}
	if a.json {
		return nil
	}
	if len(all) == 0 {
		a.note("None.")
		return nil
	}
	asked, err := questionsOf(ctx, d, all)
	if err != nil {
		return err
	}
	a.tableOfJobs(all, asked, time.Now())
	if q.ByAttention && len(all) == listedAtOnce {
		a.note("These are the %d that need a person most; there may be more. All of them, the newest first: %s",
			listedAtOnce, own(a.withGlobals("job", "list", "--status", "all")))
	}
	return nil
}

// questionsOf are the questions that wait, of jobs that have some; by job, newest first.
func questionsOf(ctx context.Context, d reached, js []httpapi.Job) (map[string][]httpapi.Question, error) {
	of := map[string][]httpapi.Question{}
	left := int64(0)
	for _, j := range js {
		left += j.PendingDecisions
	}
	for after := ""; left > 0; {
		l, err := d.Questions(ctx, httpapi.QuestionQuery{Status: decision.Pending, After: after, Limit: listedAtOnce})
		if err != nil {
			return nil, err
		}
		for _, q := range l.Decisions {
			of[q.JobID] = append(of[q.JobID], q)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	return of, nil
}

func (a *app) tableOfJobs(js []httpapi.Job, asked map[string][]httpapi.Question, now time.Time) {
	names := []string{"id", "status", "since", "name", ""}
	away := slices.ContainsFunc(js, func(j httpapi.Job) bool { return j.HomeID != "" })
	if away {
		names = slices.Insert(names, 3, "host")
	}
	t := a.table(names...)
	var waiting []asking
	for _, j := range js {
		name := j.Name
		if name == "" {
			name = commandLine(j)
		}
		name = startOf(a.mask.Text(name), 24)
		cells := []string{j.JobID, string(j.Status), ago(now, since(j)), name, a.mask.Text(jobWords(j, asked[j.JobID]))}
		if away {
			cells = slices.Insert(cells, 3, hostOf(j))
		}
		t.row(cells...)
		for _, q := range asked[j.JobID] {
			waiting = append(waiting, asking{name, q})
		}
	}
	t.print()
	a.sayWaiting(waiting)
}

// hostOf is where a job is looked after, in a list of several homes'.
func hostOf(j httpapi.Job) string {
	switch {
	case j.HomeID == "":
		return "here"
	case j.Host == "":
		return "?"
	}
	return j.Host
}

// asking is a question with the name of its job.
type asking struct {
	job string
	q   httpapi.Question
}

// since is when a job came to stand as it does.
func since(j httpapi.Job) string {
	for _, at := range []string{j.EndedAt, j.StartedAt} {
		if at != "" {
			return at
		}
	}
	return j.CreatedAt
}

// ago is how long before now a time was, in its greatest unit.
func ago(now time.Time, at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	d := max(0, now.Sub(t))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	}
	return fmt.Sprintf("%dd ago", d/(24*time.Hour))
}

// jobWords is what there is to know of a job at a glance: what it asks, why it ended,
// how far it is.
func jobWords(j httpapi.Job, asked []httpapi.Question) string {
	var words []string
	if b := bar(j); b != "" {
		words = append(words, b)
	}
	switch {
	case len(asked) == 1:
		words = append(words, "asks: "+asked[0].Prompt)
	case j.PendingDecisions > 1:
		words = append(words, fmt.Sprintf("asks %d questions", j.PendingDecisions))
	case j.PendingDecisions == 1:
		words = append(words, "asks a question")
	case j.Paused:
		words = append(words, "paused")
	case j.Status == job.Queued && j.Trigger != nil:
		words = append(words, fmt.Sprintf("starts when %s is %s", j.Trigger.JobID, j.Trigger.Status))
	case j.FailureReason != "":
		words = append(words, j.FailureReason)
	}
	return strings.Join(words, "  ")
}

const barWidth = 20

// bar draws how far a running job says it is.
func bar(j httpapi.Job) string {
	part, ok := progress.Part(j.Progress)
	if j.Status != job.Running || !ok {
		return ""
	}
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), int(part*100))
}

// answeredAtMost is how many questions a list of jobs says the answer of.
const answeredAtMost = 10

// sayWaiting says what to type for the questions that wait.
func (a *app) sayWaiting(qs []asking) {
	if len(qs) == 0 {
		return
	}
	a.say("")
	a.say("%s for an answer:", safe(map[bool]string{true: "A question waits", false: "Questions wait"}[len(qs) == 1]))
	for i, w := range qs {
		if i == answeredAtMost {
			a.say("  and %d more: %s", len(qs)-i, own(a.withGlobals("decisions")))
			return
		}
		a.say("  %s asks: %s", own(w.job), own(startOf(a.mask.Text(w.q.Prompt), 100)))
		a.say("    %s", own(a.answerLine(w.q)))
	}
}

// answerLine is a command that gives a question its first answer, and what else could
// be answered.
func (a *app) answerLine(q httpapi.Question) string {
	choice, rest := "CHOICE", q.Options
	if len(rest) > 0 && display.Line(rest[0]) == rest[0] && a.mask.Text(rest[0]) == rest[0] { // it can be typed
		choice, rest = rest[0], rest[1:]
	}
	line := []string{"resolve"}
	if len(q.Form) > 0 {
		line = append(line, "--input", "@FILE")
	}
	if strings.HasPrefix(choice, "-") {
		line = append(line, "--")
	}
	text := a.withGlobals(append(line, q.DecisionID, choice)...)
	switch words := startOf(a.mask.Text(strings.Join(rest, ", ")), 60); {
	case len(rest) == 0:
		return text
	case choice == "CHOICE":
		return text + "   (CHOICE is: " + words + ")"
	default:
		return text + "   (or: " + words + ")"
	}
}

// startOf is the first n characters of a text, which is not fit to be shown yet.
func startOf(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
