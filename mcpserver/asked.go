package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asked is one call of a tool.
type asked struct {
	*Server
	tool *tool
	args values
	door Door
	req  *mcp.CallToolRequest
}

// handler answers calls of a tool. What goes wrong is a result, too: the model can
// read it and do better.
func (s *Server) handler(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := s.answer(ctx, t, req)
		if err != nil {
			return failed(err), nil
		}
		return r, nil
	}
}

func (s *Server) answer(ctx context.Context, t *tool, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args, err := t.read(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	var h http.Header
	if req.Extra != nil {
		h = req.Extra.Header
	}
	a := &asked{Server: s, tool: t, args: args, door: s.c.Door(h), req: req}
	if t.run != nil {
		return t.run(ctx, a)
	}
	return a.plain(ctx, t.request(args))
}

// plain is an operation's answer as the result.
func (a *asked) plain(ctx context.Context, o operation) (*mcp.CallToolResult, error) {
	answer, err := do(ctx, a.door, o)
	if err != nil {
		return nil, err
	}
	return object(answer), nil
}

// startJob starts a job, in this process's folder where it names none and there is one to
// be at home in.
func startJob(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	if _, given := a.args["cwd"]; !given && a.c.Cwd != "" {
		b, err := json.Marshal(a.c.Cwd)
		if err != nil {
			return nil, err
		}
		a.args["cwd"] = b
	}
	return a.plain(ctx, a.tool.request(a.args))
}

// viewJobs lists jobs in the order of attention.
func viewJobs(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	o := a.tool.request(a.args)
	o.query.Set("view", "attention")
	return a.plain(ctx, o)
}
