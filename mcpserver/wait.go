package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/fault"
)

// Clients give a call up after a minute. So a wait is cut into slices: each answers in
// time, with what the next one goes on from.

// stillWaiting is the result of a slice that saw nothing.
const stillWaiting = "still_waiting"

// Bounds of the whole waits; the API's own.
const (
	usualJobWait   = 3600   // seconds
	longestJobWait = 86_400 // seconds
	longestWait    = time.Hour
)

// slice does one operation, for as long as a slice lasts; over says that it took longer
// and was given up.
func (a *asked) slice(ctx context.Context, o operation) (answer []byte, over bool, err error) {
	cut, cancel := context.WithTimeout(ctx, a.c.Slice)
	defer cancel()
	answer, err = do(cut, a.door, o)
	return answer, err != nil && cut.Err() != nil && ctx.Err() == nil, err
}

// waitForJob waits for an event of a job.
func waitForJob(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	whole := int64(usualJobWait)
	if raw, given := a.args["timeout_seconds"]; given {
		n, err := strconv.ParseInt(text(raw), 10, 64)
		if err != nil {
			return nil, errArgs.Say("timeout_seconds: expected integer of at most 64 bits.")
		}
		if n < 1 || n > longestJobWait {
			return nil, errArgs.Say("timeout_seconds: %d is no number from 1 to %d.", n, longestJobWait)
		}
		whole = n
	}
	now := min(whole, max(1, int64(a.c.Slice/time.Second)))
	a.args["timeout_seconds"] = json.RawMessage(strconv.FormatInt(now, 10))
	defer a.progress(ctx, "waiting for an event of the job")()
	answer, err := do(ctx, a.door, a.tool.request(a.args))
	if err != nil {
		return nil, err
	}
	var got struct {
		Result string `json:"result"`
	}
	if json.Unmarshal(answer, &got) == nil && got.Result == "timeout" && whole > now {
		if answer, err = with(answer, map[string]any{"result": stillWaiting, "timeout_seconds": whole - now}); err != nil {
			return nil, err
		}
	}
	return object(answer), nil
}

// waitForCall waits for a call to end.
func waitForCall(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	whole := longestWait
	if raw, given := a.args["wait"]; given {
		d, err := time.ParseDuration(text(raw))
		if err != nil || d < 0 || d > longestWait {
			return nil, errArgs.Say("wait: %s is no time from 0s to %s.", shown(text(raw)), longestWait).Hint(`Write it like "90s".`)
		}
		whole = d
	}
	now := min(whole, a.c.Slice)
	o := a.tool.request(a.args)
	o.query.Set("wait", now.String())
	defer a.progress(ctx, "waiting for the call to end")()
	answer, err := do(ctx, a.door, o)
	if err != nil {
		return nil, err
	}
	var got struct {
		Status call.Status `json:"status"`
	}
	if json.Unmarshal(answer, &got) == nil && !got.Status.Terminal() {
		more := map[string]any{"result": "timeout"}
		if whole > now {
			more = map[string]any{"result": stillWaiting, "wait": (whole - now).String()}
		}
		if answer, err = with(answer, more); err != nil {
			return nil, err
		}
	}
	return object(answer), nil
}

// tailJob reads output, and waits for it where it is asked to.
func tailJob(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	defer a.progress(ctx, "waiting for output of the job")()
	answer, over, err := a.slice(ctx, a.tool.request(a.args))
	if over {
		at := int64(0)
		if raw, given := a.args["offset"]; given {
			at, _ = strconv.ParseInt(text(raw), 10, 64) // the API has taken it
		}
		answer, err = json.Marshal(map[string]any{"data": "", "next": at, "end": false, "result": stillWaiting})
	}
	if err != nil {
		return nil, err
	}
	var got struct {
		Data []byte `json:"data"`
	}
	r := object(answer)
	if json.Unmarshal(answer, &got) == nil && len(got.Data) > 0 && utf8.Valid(got.Data) {
		return note(r, string(got.Data)), nil
	}
	return r, nil
}

// stopJob stops a job. The stop goes on when a slice of it is given up.
func stopJob(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	defer a.progress(ctx, "waiting for the job to end")()
	o := a.tool.request(a.args)
	answer, over, err := a.slice(ctx, o)
	if over {
		answer, err = do(ctx, a.door, operation{method: http.MethodGet, path: strings.TrimSuffix(o.path, "/stop")})
		if err == nil {
			answer, err = with(answer, map[string]any{"result": stillWaiting})
		}
	}
	if err != nil {
		return nil, err
	}
	return object(answer), nil
}

// callTool calls a tool. One that runs for longer than a slice goes on; its key then
// tells which call it is.
func callTool(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	if _, given := a.args["idempotency_key"]; !given {
		a.args["idempotency_key"] = json.RawMessage(strconv.Quote("mcp-" + rand.Text()))
	}
	defer a.progress(ctx, "the tool is at work")()
	o := a.tool.request(a.args)
	answer, over, err := a.slice(ctx, o)
	if over {
		answer, over, err = a.slice(ctx, o)
	}
	if over {
		return nil, fault.New(fault.Unknown, "The call has not answered in time; it may be under way.").
			Hint("Call again with idempotency_key %s: that makes no second call.", a.args["idempotency_key"])
	}
	if err != nil {
		return nil, err
	}
	return object(answer), nil
}
