package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// health is what doctor tells.
type health struct {
	Ready    bool            `json:"ready"`
	NotReady *fault.Error    `json:"not_ready,omitempty"` // why
	Token    json.RawMessage `json:"token"`
	// DeadDeliveries are those that were given up; absent where this daemon, or this
	// token, has none to tell of.
	DeadDeliveries *int `json:"dead_deliveries,omitempty"`
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
	if h.DeadDeliveries, err = a.deadDeliveries(ctx); err != nil {
		return nil, err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return object(b), nil
}

// pagesOfDead bounds how many of them are counted.
const pagesOfDead = 20

func (a *asked) deadDeliveries(ctx context.Context) (*int, error) {
	n, after := 0, ""
	for range pagesOfDead {
		q := url.Values{"status": {"dead"}, "limit": {"500"}}
		if after != "" {
			q.Set("after", after)
		}
		answer, err := do(ctx, a.door, operation{method: http.MethodGet, path: "/v1/deliveries", query: q})
		if f := fault.From(err); f != nil {
			if f.Code == fault.NotFound || f.Code == fault.Forbidden {
				return nil, nil
			}
			return nil, err
		}
		var page struct {
			Deliveries []json.RawMessage `json:"deliveries"`
			Next       string            `json:"next"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, errors.Join(fault.New(fault.Internal, "The daemon's answer cannot be read."), err)
		}
		if n += len(page.Deliveries); page.Next == "" {
			break
		}
		after = page.Next
	}
	return &n, nil
}
