package call

import (
	"errors"
	"testing"

	"github.com/placet-dev/placet/txn"
)

// Once a tool was started, no error says that nothing happened, whatever the store
// said of its last write: who tries again would do it twice.
func TestUnstoredOutcomeIsNeverNothing(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{txn.ErrNotCommitted, txn.ErrBusy, txn.ErrUnknown, errors.New("disk"), ErrLeaseLost} {
		err := errUnstored(started{}, cause)
		if errors.Is(err, txn.ErrNotCommitted) || !errors.Is(err, txn.ErrUnknown) {
			t.Errorf("%v is told as %v", cause, err)
		}
	}
}
