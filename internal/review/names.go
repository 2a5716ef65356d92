package review

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// Names are what things are called in a list, by their ids: in our words with a foreign name
// that is no secret. What is not there any more has none.
type Names map[string]string

// About is what an event or a delivery is about: a stream's root, and what of it.
type About struct{ Stream, Subject string }

// Root is the id of what the stream is of.
func (a About) Root() string {
	_, root, _ := strings.Cut(a.Stream, ":")
	return root
}

// longNaming is how long names are looked for: a page does without the rest, since what has
// them may be large.
const longNaming = 300 * time.Millisecond

// alwaysNamed is how many are read however long it takes: on a slow machine, too, a page of
// a few is whole.
const alwaysNamed = 5

// Of is what something is about: its subject, or else what that belongs to; empty: not known.
func (n Names) Of(a About) string { return cmp.Or(n[a.Subject], n[a.Root()]) }

// ReadNames finds what the subjects and roots of a page are called, in one reading.
func ReadNames(ctx context.Context, s txn.Store, space string, all []About) (names Names, err error) {
	err = txn.View(ctx, s, func(tx Tx) error {
		names = Names{}
		began := time.Now()
		for _, a := range all {
			if len(names) >= alwaysNamed && time.Since(began) > longNaming {
				return nil
			}
			if err := errors.Join(names.root(tx, space, a), names.subject(tx, space, a.Subject)); err != nil {
				return err
			}
		}
		return nil
	})
	return names, err
}

// root names what a stream is of. A run's id may be its starter's choice, so that it does not
// tell what it is the id of.
func (n Names) root(tx Tx, space string, a About) error {
	root := a.Root()
	if _, known := n[root]; known || root == "" {
		return nil
	}
	if a.Stream != (decision.Ref{Kind: decision.OwnerRun, ID: root}).Stream() {
		return n.subject(tx, space, root)
	}
	r, err := tx.Run(root)
	if err == nil && r.Space == space {
		n[root] = runName(r)
	}
	return absent(err)
}

func (n Names) subject(tx Tx, space, subject string) (err error) {
	if _, known := n[subject]; known {
		return nil
	}
	switch {
	case id.Has(id.Approval, subject), id.Has(id.Question, subject):
		var d decision.Decision
		if d, err = tx.Decision(subject); err == nil && d.Space == space {
			n[subject], err = decisionName(tx, d)
		}
	case id.Has(id.Call, subject):
		c, cerr := tx.Call(subject)
		if err = cerr; err == nil && c.Space == space {
			n[subject] = "call of " + c.Tool
		}
	case id.Has(id.Job, subject):
		j, jerr := tx.Job(subject)
		if err = jerr; err == nil && j.Space == space {
			n[subject] = jobName(j.Spec.Name)
		}
	}
	return absent(err)
}

func decisionName(tx Tx, d decision.Decision) (string, error) {
	if d.Type != decision.Question {
		return "approval of " + cmp.Or(d.Node, d.Tool), nil
	}
	j, err := tx.Job(d.Owner.ID)
	if err != nil {
		return "", err
	}
	return "question of " + jobName(j.Spec.Name), nil
}

func jobName(name string) string {
	if name == "" {
		return "a job"
	}
	return "job " + name
}

func runName(r run.Run) string {
	switch {
	case r.Flow.Name != "":
		return "run of plan " + r.Flow.Name
	case r.Agent.Name != "":
		return "run of agent " + r.Agent.Name
	}
	return "a run"
}

// absent drops the error of what is not there.
func absent(err error) error {
	if errors.Is(err, decision.ErrNotFound) {
		return nil
	}
	return err
}
