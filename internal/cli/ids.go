package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// kinds names what an id's prefix says.
var kinds = []struct{ prefix, name string }{
	{id.Approval, "approval"},
	{id.Call, "call"},
	{id.Run, "run"},
	{id.Job, "job"},
	{id.Question, "question"},
	{id.Token, "token"},
	{id.Target, "wake target"},
	{id.Delivery, "delivery"},
	{id.Step, "step"},
	{id.Event, "event"},
}

// kindOf is the prefix of an id and what it stands for; both empty for anything else.
func kindOf(s string) (prefix, name string) {
	for _, k := range kinds {
		if strings.HasPrefix(s, k.prefix) {
			return k.prefix, k.name
		}
	}
	return "", ""
}

// maxCandidates is how many ids an ambiguous prefix is answered with.
const maxCandidates = 5

// find completes an id of which the beginning was given; wanted are the kinds
// that the command takes. From then on whatever this command prints hides the
// secrets of what the id names.
func (a *app) find(ctx context.Context, st *store.Store, given string, wanted ...string) (string, error) {
	found, err := complete(given, wanted, func(prefix string) ([]string, error) { return beginning(ctx, st, prefix, given) })
	if err != nil {
		return "", err
	}
	switch prefix, _ := kindOf(found); prefix {
	case id.Approval:
		s, err := readApproval(ctx, st, found)
		if err != nil {
			return "", err
		}
		a.maskOf(s.Decision, s.Request)
	case id.Call:
		k, err := readCall(ctx, st, found)
		if err != nil {
			return "", err
		}
		a.callMask(k)
	case id.Run:
		w, err := readRun(ctx, st, found)
		if err != nil {
			return "", err
		}
		a.runMask(a.known(), w.steps, w.approvals)
	}
	return found, nil
}

// complete makes a whole id of one that was given, of one of the wanted kinds. list is
// asked for those of a kind that begin so.
func complete(given string, wanted []string, list func(prefix string) ([]string, error)) (string, error) {
	prefix, name := kindOf(given)
	begins := "Here an id begins with " + either(wanted) + "."
	switch {
	case prefix == "":
		return "", decision.ErrNotFound.Say("%s is not an id.", quote(given)).Hint("%s", begins)
	case !slices.Contains(wanted, prefix):
		return "", decision.ErrUsage.Say("%s is the id of %s.", given, withArticle(name)).Hint("%s", begins)
	case id.Has(prefix, given):
		return given, nil
	}
	var found []string
	var err error
	if len(given) <= maxID {
		found, err = list(prefix)
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", decision.ErrNotFound.Say("No %s has an id that begins with %s.", name, given)
	case len(found) > 1:
		return "", ambiguous(given, name, found)
	}
	return found[0], nil
}

// maxID bounds ids, also those that a program chose itself.
const maxID = 200

// either lists words of which one is meant.
func either(words []string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}

// wholly refuses to decide by a part of an id where nobody is shown first whose it is:
// what stands behind the beginning may be empty, and then it is whatever is there.
func wholly(given, found string) error {
	if given == found {
		return nil
	}
	return decision.ErrUsage.Say("Nothing is decided unasked by a part of an id.").Hint("Give all of it: %s.", found)
}

// listsOf is the command that lists a kind.
var listsOf = map[string]string{id.Job: "placet job list", id.Question: "placet decisions", id.Token: "placet token list", id.Target: "placet wake list", id.Delivery: "placet deliveries"}

// anyOfAKind refuses to act on what a bare prefix names: whatever there is.
func anyOfAKind(given string) error {
	if lists, ok := listsOf[given]; ok {
		_, name := kindOf(given)
		return decision.ErrUsage.Say("%s begins the id of every %s.", given, name).Hint("Give more of it; %s lists them.", lists)
	}
	return nil
}

func ambiguous(given, name string, found []string) error {
	more := ""
	if len(found) > maxCandidates {
		found, more = found[:maxCandidates], ", and more"
	}
	return decision.ErrUsage.Say("More than one %s has an id that begins with %s: %s%s.", name, given, strings.Join(found, ", "), more).
		Hint("Give more of the id.")
}

// beginning lists ids of a kind that begin so, newest first, one more than is shown.
func beginning(ctx context.Context, st *store.Store, prefix, given string) (found []string, err error) {
	const limit = maxCandidates + 1
	switch prefix {
	case id.Token:
		ts, err := token.List(ctx, st, token.Query{Space: event.MainSpace, Prefix: given, Limit: limit})
		for _, t := range ts {
			found = append(found, t.ID)
		}
		return found, err
	case id.Target, id.Delivery:
		err := txn.View(ctx, st, func(tx delivery.Tx) (err error) {
			found, err = beginningOfDeliveries(tx, prefix, given, limit)
			return err
		})
		return found, err
	case id.Job, id.Question:
		err := txn.View(ctx, st, func(tx job.Tx) (err error) {
			found, err = beginningOfJobs(tx, prefix, given, limit)
			return err
		})
		return found, err
	}
	err = txn.View(ctx, st, func(tx run.Tx) (err error) {
		found, err = beginningOfRuns(tx, prefix, given, limit)
		return err
	})
	return found, err
}

func beginningOfJobs(tx job.Tx, prefix, given string, limit int) (found []string, err error) {
	if prefix == id.Question {
		return decisions(tx, decision.Question, given, limit)
	}
	js, err := tx.Jobs(job.Query{Space: event.MainSpace, Prefix: given, Limit: limit})
	for _, j := range js {
		found = append(found, j.ID)
	}
	return found, err
}

func beginningOfDeliveries(tx delivery.Tx, prefix, given string, limit int) (found []string, err error) {
	if prefix == id.Target {
		ts, err := tx.Targets(delivery.TargetQuery{Space: event.MainSpace, Prefix: given, Limit: limit})
		for _, t := range ts {
			found = append(found, t.ID)
		}
		return found, err
	}
	ds, err := tx.Deliveries(delivery.Query{Space: event.MainSpace, Prefix: given, Limit: limit})
	for _, d := range ds {
		found = append(found, d.ID)
	}
	return found, err
}

func beginningOfRuns(tx run.Tx, prefix, given string, limit int) (found []string, err error) {
	switch prefix {
	case id.Approval:
		return decisions(tx, decision.Approval, given, limit)
	case id.Call:
		cs, err := tx.Calls(call.Query{Space: event.MainSpace, Prefix: given, Limit: limit})
		for _, c := range cs {
			found = append(found, c.ID)
		}
		return found, err
	case id.Run:
		rs, err := tx.Runs(run.Query{Space: event.MainSpace, Prefix: given, Limit: limit})
		for _, r := range rs {
			found = append(found, r.ID)
		}
		return found, err
	}
	return nil, nil // no command completes the ids of other kinds
}

func decisions(tx decision.Tx, of decision.Type, given string, limit int) (found []string, err error) {
	ds, err := tx.Decisions(decision.Query{Space: event.MainSpace, Type: of, Prefix: given, Limit: limit})
	for _, d := range ds {
		found = append(found, d.ID)
	}
	return found, err
}

// jobID completes the id of a job at a daemon.
func (d reached) jobID(ctx context.Context, given string) (string, error) {
	return complete(given, []string{id.Job}, func(string) (found []string, err error) {
		l, err := d.Jobs(ctx, httpapi.JobQuery{Prefix: given, Limit: maxCandidates + 1})
		for _, j := range l.Jobs {
			found = append(found, j.JobID)
		}
		return found, err
	})
}

// runID completes the id of a run at a daemon.
func (d reached) runID(ctx context.Context, given string) (string, error) {
	return complete(given, []string{id.Run}, func(string) (found []string, err error) {
		l, err := d.RunsBeginning(ctx, given, maxCandidates+1)
		for _, r := range l.Runs {
			found = append(found, r.RunID)
		}
		return found, err
	})
}

// rootsOf completes the ids of a job and of a run, as far as they were given.
func (d reached) rootsOf(ctx context.Context, job, run string) (jobID, runID string, err error) {
	if job != "" {
		if jobID, err = d.jobID(ctx, job); err != nil {
			return "", "", err
		}
	}
	if run != "" {
		runID, err = d.runID(ctx, run)
	}
	return jobID, runID, err
}

// questionID completes the id of a question at a daemon.
func (d reached) questionID(ctx context.Context, given string) (string, error) {
	return complete(given, []string{id.Question}, func(string) (found []string, err error) {
		l, err := d.Questions(ctx, httpapi.QuestionQuery{Prefix: given, Limit: maxCandidates + 1})
		for _, q := range l.Decisions {
			found = append(found, q.DecisionID)
		}
		return found, err
	})
}

// targetID completes the id of a wake target at a daemon.
func (d reached) targetID(ctx context.Context, given string) (string, error) {
	return complete(given, []string{id.Target}, func(string) (found []string, err error) {
		l, err := d.WakeTargets(ctx, httpapi.WakeTargetQuery{Prefix: given, Limit: maxCandidates + 1})
		for _, t := range l.WakeTargets {
			found = append(found, t.TargetID)
		}
		return found, err
	})
}

// deliveryID completes the id of a delivery at a daemon.
func (d reached) deliveryID(ctx context.Context, given string) (string, error) {
	return complete(given, []string{id.Delivery}, func(string) (found []string, err error) {
		l, err := d.Deliveries(ctx, httpapi.DeliveryQuery{Prefix: given, Limit: maxCandidates + 1})
		for _, one := range l.Deliveries {
			found = append(found, one.DeliveryID)
		}
		return found, err
	})
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
