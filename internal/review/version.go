package review

import (
	"context"
	"strconv"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Version changes when what a page says to run is something else: other arguments were
// approved, or the record was altered, to match its digest or not.
func (a Approval) Version() string { return versionOf(a.Decision, a.Altered) }

// Version is that of an approval's.
func (q Question) Version() string { return versionOf(q.Decision, q.Altered) }

func versionOf(d decision.Decision, altered error) string {
	return d.Digest + "." + d.EditedDigest + "." + strconv.FormatBool(altered == nil)
}

// ReadVersion reads that of a decision of the space: [decision.ErrNotFound].
func ReadVersion(ctx context.Context, s txn.Store, space, id string) (string, error) {
	var d decision.Decision
	err := txn.View(ctx, s, func(tx Tx) (err error) {
		d, err = tx.Decision(id)
		if err == nil && d.Space != space {
			err = decision.ErrNotFound.Say("There is no decision %s.", id)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return versionOf(d, d.Intact()), nil
}
