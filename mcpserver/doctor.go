package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// health is what doctor tells.
type health struct {
	Ready    bool            `json:"ready"`
	NotReady *fault.Error    `json:"not_ready,omitempty"` // why
	Token    json.RawMessage `json:"token"`
	// DeadDeliveries are those that were given up, as far as this token sees them.
	DeadDeliveries int  `json:"dead_deliveries"`
	MoreDead       bool `json:"more_dead_deliveries,omitempty"` // than were counted
}

func doctor(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	var h health
	_, err := do(ctx, a.door, operation{method: http.MethodGet, path: "/readyz"})
	if h.Ready = err == nil; err != nil {
		h.NotReady = fault.From(err)
	}
	if h.Token, err = do(ctx, a.door, operation{method: http.MethodGet, path: "/v1/whoami"}); err != nil {
		return nil, err
	}
	if h.DeadDeliveries, h.MoreDead, err = a.deadDeliveries(ctx); err != nil {
		return nil, err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return object(b), nil
}

// deadShown is how many of them are counted.
const deadShown = 500

// deadDeliveries counts what was given up, as far as the caller sees it; more: there are
// more than are counted.
func (a *asked) deadDeliveries(ctx context.Context) (n int, more bool, err error) {
	q := url.Values{"status": {"dead"}, "limit": {strconv.Itoa(deadShown)}}
	answer, err := do(ctx, a.door, operation{method: http.MethodGet, path: "/v1/deliveries", query: q})
	if err != nil {
		return 0, false, err
	}
	var page struct {
		Deliveries []json.RawMessage `json:"deliveries"`
		Next       string            `json:"next"`
	}
	err = decode(answer, &page)
	return len(page.Deliveries), page.Next != "", err
}
