package txn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/placet-dev/placet/txn"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	other := errors.New("another error")
	for name, tc := range map[string]struct {
		answers []error // of the write, one after the other
		want    error
		took    time.Duration
	}{
		"OK":              {[]error{nil}, nil, 0},
		"ErrNotCommitted": {[]error{txn.ErrNotCommitted, txn.ErrBusy, nil}, nil, 15 * time.Millisecond},
		"ErrUnknown":      {[]error{txn.ErrUnknown, nil}, nil, 5 * time.Millisecond},
		"another error":   {[]error{txn.ErrUnknown, other}, other, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), 0
				err := txn.Retry(t.Context(), func() error { n++; return tc.answers[n-1] })
				if err != tc.want || n != len(tc.answers) || time.Since(began) != tc.took {
					t.Errorf("%v after %d tries and %s, want %v after %d and %s", err, n, time.Since(began), tc.want, len(tc.answers), tc.took)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := txn.Retry(ctx, func() error { return txn.ErrBusy })
		if !errors.Is(err, txn.ErrBusy) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s, want the last error after 10 s", err, time.Since(began))
		}
	})
}
