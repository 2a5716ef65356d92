package review

import (
	"context"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// FollowFor is Follow with another patience.
func FollowFor(ctx context.Context, s txn.Store, space, stream string, after event.Cursor, atMost time.Duration) (event.Cursor, bool, error) {
	return follow(ctx, s, event.Waiting{Stream: stream, After: after, Timeout: atMost}, space)
}
