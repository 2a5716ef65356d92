package daemon

import (
	"testing"
	"time"

	"github.com/placet-dev/placet/fault"
)

// A loop that hangs makes the daemon not ready, in a word of its own.
func TestAHungLoopIsNotReady(t *testing.T) {
	t.Parallel()
	l := newLoop("sweep", time.Second, nil, nil)
	l.now = func() time.Time { return time.Now().Add(time.Hour) }
	d := &daemon{loops: []*loop{l}}
	if err := fault.From(d.ready(t.Context())); err == nil || err.Reason != "not_ready" || err.Code != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}
