package txn

import (
	"context"
	"errors"
	"time"
)

// Retry repeats a write while it is known that nothing, or not known whether
// anything, was written, until ctx ends: first after 5 ms, then after twice as long,
// at most 1 s. The write has to be guarded, so that one that was committed all the
// same is not done twice. Any other error, and the last one, are the answer.
func Retry(ctx context.Context, write func() error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := write()
		if err == nil || !errors.Is(err, ErrNotCommitted) && !errors.Is(err, ErrUnknown) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
