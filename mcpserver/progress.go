package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progress tells a client that asked for it that a wait goes on, at once and then every
// now and then, until it is stopped. Nothing is told after that.
func (a *asked) progress(ctx context.Context, message string) (stop func()) {
	token := a.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	tell := func(n int) {
		// A client that is gone needs no progress.
		_ = a.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: message})
	}
	tell(1)
	var telling sync.WaitGroup
	telling.Go(func() {
		again := time.NewTicker(a.c.ProgressEvery)
		defer again.Stop()
		for n := 2; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				tell(n)
			}
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
