package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// kinds names what an id's prefix says.
var kinds = []struct{ prefix, name string }{
	{id.Approval, "approval"},
	{id.Call, "call"},
	{id.Run, "run"},
	{id.Job, "job"},
	{id.Question, "question"},
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
	found, err := complete(ctx, st, given, wanted)
	if err != nil {
		return "", err
	}
	switch prefix, _ := kindOf(found); prefix {
	case id.Approval:
		s, err := readApproval(ctx, st, found)
		if err != nil {
			return "", err
		}
		a.maskOf(s.Decision, requestOf(s.Decision))
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

func complete(ctx context.Context, st *store.Store, given string, wanted []string) (string, error) {
	prefix, name := kindOf(given)
	begins := strings.Join(slices.DeleteFunc(slices.Clone(wanted), func(w string) bool {
		return len(wanted) > 1 && w != id.Approval && w != id.Call && w != id.Run // no command completes the ids of those yet
	}), ", ")
	if i := strings.LastIndex(begins, ", "); i >= 0 {
		begins = begins[:i] + " or" + begins[i+1:]
	}
	ok := false
	for _, w := range wanted {
		ok = ok || prefix == w
	}
	switch {
	case prefix == "":
		return "", decision.ErrNotFound.Say("%s is not an id.", quote(given)).Hint("Here an id begins with %s.", begins)
	case !ok:
		return "", decision.ErrUsage.Say("%s is the id of %s.", given, withArticle(name)).Hint("Here an id begins with %s.", begins)
	case id.Has(prefix, given):
		return given, nil
	}
	found, err := beginning(ctx, st, prefix, given)
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

// wholly refuses to decide by a part of an id where nobody is shown first whose it is:
// what stands behind the beginning may be empty, and then it is whatever is there.
func wholly(given, found string) error {
	if given == found {
		return nil
	}
	return decision.ErrUsage.Say("Nothing is decided unasked by a part of an id.").Hint("Give all of it: %s.", found)
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
	err = txn.View(ctx, st, func(tx run.Tx) error {
		found = nil
		switch prefix {
		case id.Approval:
			ds, err := tx.Decisions(decision.Query{Space: event.MainSpace, Type: decision.Approval, Prefix: given, Limit: maxCandidates + 1})
			for _, d := range ds {
				found = append(found, d.ID)
			}
			return err
		case id.Call:
			cs, err := tx.Calls(call.Query{Space: event.MainSpace, Prefix: given, Limit: maxCandidates + 1})
			for _, c := range cs {
				found = append(found, c.ID)
			}
			return err
		case id.Run:
			rs, err := tx.Runs(run.Query{Space: event.MainSpace, Prefix: given, Limit: maxCandidates + 1})
			for _, r := range rs {
				found = append(found, r.ID)
			}
			return err
		}
		return nil // no command completes the ids of other kinds yet
	})
	return found, err
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
