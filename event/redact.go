package event

import (
	"context"

	"github.com/placet-dev/placet/txn"
)

// Redact empties the body of one event: its payload, actor and salt become
// NULL; its envelope and hashes stay, so the chain still verifies. Who did it
// and why is an event of the same stream. It cannot be undone.
//
// [ErrNoEvent]: there is no such event, or it is empty already. [ErrUsage]: by is
// empty, or one of the texts is not valid UTF-8 without NUL.
func Redact(ctx context.Context, s txn.Store, stream string, streamSeq int64, by, note string) error {
	if by == "" || !txn.IsText(by) || !txn.IsText(note) {
		return ErrUsage.Say("Who redacts has to be named, and the name and the note have to be valid text.")
	}
	return txn.Update(ctx, s, func(tx Tx) error {
		if _, err := tx.Head(stream); err != nil {
			return err
		}
		done, err := tx.Redact(stream, streamSeq)
		if err != nil {
			return err
		}
		if !done {
			return ErrNoEvent.Say("Stream %s has no event %d with a body.", stream, streamSeq)
		}
		return tx.Append(stream, New(EventRedacted, stream, by, struct {
			StreamSeq int64  `json:"stream_seq"`
			Note      string `json:"note,omitempty"`
		}{streamSeq, note}))
	})
}
