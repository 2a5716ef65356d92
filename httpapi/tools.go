package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Tools is a list of tools.
type Tools struct {
	Tools []tool.Object `json:"tools"`
}

// Result is what a call came to (spec 4.3). Absent values are left out.
type Result struct {
	Status          call.Status     `json:"status"`
	CallID          string          `json:"call_id,omitempty"`
	RunID           string          `json:"run_id,omitempty"`
	ApprovalID      string          `json:"approval_id,omitempty"`
	Digest          string          `json:"digest,omitempty" doc:"of the approval that it waits for"`
	ExpiresAt       string          `json:"expires_at,omitempty"`
	URL             string          `json:"url,omitempty" doc:"where the call is followed"`
	ReviewURL       string          `json:"review_url,omitempty" doc:"where a person decides, in a browser"`
	Result          json.RawMessage `json:"result,omitempty"`
	Kind            string          `json:"kind,omitempty"`
	Message         string          `json:"message,omitempty"`
	EditedArgs      json.RawMessage `json:"edited_args,omitempty" doc:"the arguments that ran, where a reviewer edited them"`
	EffectiveDigest string          `json:"effective_digest,omitempty" doc:"binds them to the approval"`
}

type callIn struct {
	Name  string          `path:"name" maxLength:"200"`
	RunID string          `query:"run_id" maxLength:"200" doc:"names the calls whose guards count together"`
	Key   string          `header:"Idempotency-Key" maxLength:"200" doc:"by which the same request again makes no second call; kept 30 days"`
	Body  json.RawMessage `doc:"the tool's arguments, a JSON object"`
}

type resultOut struct {
	Status int
	Body   Result
}

func (s *Server) registerTools() {
	add(s, route{method: http.MethodGet, path: "/v1/tools", id: "listTools", summary: "The tools that can be called"},
		func(context.Context, caller, *none) (*body[Tools], error) {
			list := Tools{Tools: []tool.Object{}}
			for _, t := range s.c.Tools.List() {
				o := t.Object()
				o.InputSchema = (&display.Mask{}).Schema(o.InputSchema)
				list.Tools = append(list.Tools, o)
			}
			return &body[Tools]{list}, nil
		})
	add(s, route{
		method: http.MethodPost, path: "/v1/tools/{name}/call", id: "callTool", scopes: agents,
		summary: "Call a tool. 202: it waits for a person, or a first request with this key is still running", shape: "the tool's arguments, a JSON object",
	}, s.callTool)
}

// callTool makes a call. It goes on when its client hangs up: what was begun is
// never given up for that.
func (s *Server) callTool(ctx context.Context, c caller, in *callIn) (*resultOut, error) {
	if _, err := s.c.Tools.Lookup(in.Name); err != nil {
		return nil, err
	}
	opts := []call.Option{call.InRun(in.RunID)}
	if in.Key != "" {
		opts = append(opts, call.WithIdempotencyKey("POST /v1/tools/{name}/call", in.Key))
	}
	done, err := s.begin()
	if err != nil {
		return nil, err
	}
	ended := make(chan func() (*resultOut, error), 1)
	go func() {
		defer done()
		res, err := s.calls.Call(context.WithoutCancel(ctx), c.Principal, in.Name, in.Body, opts...)
		ended <- func() (*resultOut, error) { return s.called(res, err) }
	}()
	select {
	case out := <-ended:
		return out()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// called is what a call came to, as it is answered.
func (s *Server) called(res call.Result, err error) (*resultOut, error) {
	var parked *call.PendingError
	switch {
	case errors.As(err, &parked):
		return &resultOut{http.StatusAccepted, s.pending(parked)}, nil
	case errors.Is(err, call.ErrRunning):
		if r, ok := s.running(err); ok {
			return &resultOut{http.StatusAccepted, r}, nil
		}
		return nil, err
	case err != nil:
		return nil, err
	case res.Status == call.Invalid:
		return nil, tool.ErrInvalidArguments.Say("%s", res.Message)
	}
	return &resultOut{http.StatusOK, s.result(res)}, nil
}

func (s *Server) result(res call.Result) Result {
	r := Result{
		Status: res.Status, CallID: res.CallID, RunID: res.RunID, Result: res.Value, Kind: string(res.Kind), Message: res.Message,
		EditedArgs: res.EditedArgs(), EffectiveDigest: res.EffectiveDigest,
	}
	if res.CallID != "" {
		r.URL = s.callURL(res.CallID)
	}
	if res.Status == call.Unknown || res.Status == call.Pending {
		r.ApprovalID = res.ApprovalID
	}
	return r
}

func (s *Server) pending(p *call.PendingError) Result {
	r := Result{
		Status: call.Pending, ApprovalID: p.ApprovalID, CallID: p.CallID, RunID: p.RunID, Digest: p.Digest,
		ExpiresAt: txn.Stamp(p.ExpiresAt), URL: s.callURL(p.CallID),
	}
	if s.pages != nil {
		r.ReviewURL = s.c.URL + "/approvals/" + p.ApprovalID
	}
	if p.MayHaveRun {
		r.Kind, r.Message = p.Kind, p.Error()
	}
	return r
}

// running reads out of a refusal which call is still running.
func (s *Server) running(err error) (Result, bool) {
	var at call.At
	if f := fault.From(err); json.Unmarshal(f.Details, &at) != nil || at.CallID == "" {
		return Result{}, false
	}
	return Result{Status: call.Running, CallID: at.CallID, RunID: at.RunID, URL: s.callURL(at.CallID)}, true
}

func (s *Server) callURL(id string) string { return s.c.URL + "/v1/calls/" + id }
