package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/placet-dev/placet/delivery"
)

// AddWakeTarget has somebody told of events. A webhook's secret is in this answer alone.
func (c *Client) AddWakeTarget(ctx context.Context, w Waking) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodPost, at("wake-targets"), w, &t)
}

// WakeTargetQuery selects wake targets, newest first.
type WakeTargetQuery struct {
	JobID  string // empty: all
	RunID  string // empty: all
	Prefix string // of the id; empty: all
	After  string // id of the last one seen
	Limit  int    // 1 to 500. Default: 50.
}

// WakeTargets lists wake targets.
func (c *Client) WakeTargets(ctx context.Context, q WakeTargetQuery) (l WakeTargets, err error) {
	path := query(at("wake-targets"), "job_id", q.JobID, "run_id", q.RunID, "prefix", q.Prefix, "after", q.After, "limit", number(q.Limit))
	return l, c.Do(ctx, http.MethodGet, path, nil, &l)
}

// GetWakeTarget reads a wake target.
func (c *Client) GetWakeTarget(ctx context.Context, id string) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodGet, at("wake-targets", id), nil, &t)
}

// RemoveWakeTarget takes a wake target away; what was not sent to it is dropped.
func (c *Client) RemoveWakeTarget(ctx context.Context, id string) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodDelete, at("wake-targets", id), nil, &t)
}

// EnableWakeTarget puts a wake target in use again that was disabled.
func (c *Client) EnableWakeTarget(ctx context.Context, id string) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodPost, at("wake-targets", id, "enable"), nil, &t)
}

// RotateWakeTarget gives a webhook a new secret; an empty one has it made. It is in this
// answer alone.
func (c *Client) RotateWakeTarget(ctx context.Context, id string, r Rotating) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodPost, at("wake-targets", id, "rotate"), r, &t)
}

// DeliveryQuery selects deliveries, newest first.
type DeliveryQuery struct {
	TargetID string          // empty: all
	JobID    string          // empty: all
	RunID    string          // empty: all
	Status   delivery.Status // empty: all
	Prefix   string          // of the id; empty: all
	After    string          // id of the last one seen
	Limit    int             // 1 to 500. Default: 50.
}

// Deliveries lists deliveries.
func (c *Client) Deliveries(ctx context.Context, q DeliveryQuery) (l Deliveries, err error) {
	path := query(at("deliveries"), "target_id", q.TargetID, "job_id", q.JobID, "run_id", q.RunID, "status", string(q.Status), "prefix", q.Prefix,
		"after", q.After, "limit", number(q.Limit))
	return l, c.Do(ctx, http.MethodGet, path, nil, &l)
}

// GetDelivery reads a delivery.
func (c *Client) GetDelivery(ctx context.Context, id string) (d delivery.DeliveryObject, err error) {
	return d, c.Do(ctx, http.MethodGet, at("deliveries", id), nil, &d)
}

// DeliveryAttempts lists all tries at a delivery, oldest first.
func (c *Client) DeliveryAttempts(ctx context.Context, id string) (l DeliveryAttempts, err error) {
	return l, c.Do(ctx, http.MethodGet, at("deliveries", id, "attempts"), nil, &l)
}

// RetryDelivery tries a dead delivery again, out of its order, or one that is retrying at
// once.
func (c *Client) RetryDelivery(ctx context.Context, id, by string) (d delivery.DeliveryObject, err error) {
	return d, c.Do(ctx, http.MethodPost, at("deliveries", id, "retry"), By{by}, &d)
}

// RegisterRelay makes the caller a wake target that fetches what it is told. The same
// name again goes on with what was not acknowledged.
func (c *Client) RegisterRelay(ctx context.Context, r Registering) (t delivery.Object, err error) {
	return t, c.Do(ctx, http.MethodPost, at("relay", "register"), r, &t)
}

// PollRelay fetches what is due for a relay, and waits at most a minute for the first.
// Each has to be acknowledged before its lease ends, or it comes again.
func (c *Client) PollRelay(ctx context.Context, targetID string, limit int, lease, wait time.Duration) ([]Fetched, error) {
	seconds, waits := "", ""
	if lease > 0 {
		seconds = strconv.FormatInt(int64(lease/time.Second), 10)
	}
	if wait > 0 {
		waits = wait.String()
	}
	var l FetchedList
	path := query(at("relay", "poll"), "target_id", targetID, "limit", number(limit), "lease_seconds", seconds, "wait", waits)
	err := c.Do(ctx, http.MethodGet, path, nil, &l)
	return l.Deliveries, err
}

// AckRelay says that a delivery has arrived; again is fine.
func (c *Client) AckRelay(ctx context.Context, f Fetched) (d delivery.DeliveryObject, err error) {
	return d, c.Do(ctx, http.MethodPost, at("relay", "ack"), Holding{f.DeliveryID, f.LeaseToken}, &d)
}

// ReleaseRelay gives a delivery back unsent: it comes again, and no attempt is spent.
func (c *Client) ReleaseRelay(ctx context.Context, f Fetched) (d delivery.DeliveryObject, err error) {
	return d, c.Do(ctx, http.MethodPost, at("relay", "release"), Holding{f.DeliveryID, f.LeaseToken}, &d)
}
