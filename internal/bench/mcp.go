package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/httpapi"
)

const mcpIn = time.Millisecond

// overMCP measures what it costs that a question is asked by a tool: job_status at /mcp
// against the same GET, by turns, on connections that stay.
func overMCP(ctx context.Context, b *bench) error {
	b.title("mcp: job_status at /mcp over the same GET (target: p50 under %s more)", mcpIn)
	s, err := b.serve(ctx, "mcp")
	if err != nil {
		return err
	}
	defer s.close()
	j, err := httpapi.NewClient(s.url, s.agent).StartJob(ctx, httpapi.Starting{Command: json.RawMessage(`["true"]`)})
	if err != nil {
		return err
	}
	plain := func() error {
		_, err := s.exchange(ctx, http.MethodGet, "/v1/jobs/"+j.JobID, "", nil, j.JobID)
		return err
	}
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		tool, err := s.statusTool(ctx, revision, j.JobID)
		if err != nil {
			return err
		}
		sides := [2]sample{}
		for range max(b.parked, 10) {
			for i, ask := range []func() error{plain, tool} {
				began := time.Now()
				if err := ask(); err != nil {
					return err
				}
				sides[i].took = append(sides[i].took, time.Since(began))
			}
		}
		for i := range sides {
			slices.Sort(sides[i].took)
		}
		n := len(sides[0].took)
		get, call := sides[0].took, sides[1].took
		b.line("%s: GET p50 %s, p99 %s; tool p50 %s, p99 %s; p50 of the tool is %s more",
			revision, micro(get[n/2]), micro(get[n*99/100]), micro(call[n/2]), micro(call[n*99/100]), micro(call[n/2]-get[n/2]))
	}
	return nil
}

// statusTool asks for a job by the tool, in that revision of the protocol.
func (s *server) statusTool(ctx context.Context, revision, jobID string) (func() error, error) {
	header := map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision}
	meta := ""
	if revision >= "2026-07-28" {
		header["Mcp-Method"], header["Mcp-Name"] = "tools/call", "job_status"
		meta = fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`, revision)
	} else {
		hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, revision)
		res, err := s.exchange(ctx, http.MethodPost, "/mcp", hello, header, "serverInfo")
		if err != nil {
			return nil, err
		}
		header["Mcp-Session-Id"] = res.Get("Mcp-Session-Id")
	}
	n := 1
	return func() error {
		n++
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"job_status","arguments":{"job_id":%q}%s}}`, n, jobID, meta)
		_, err := s.exchange(ctx, http.MethodPost, "/mcp", call, header, "structuredContent")
		return err
	}, nil
}

// exchange sends one request; its answer has to have that in it.
func (s *server) exchange(ctx context.Context, method, path, body string, header map[string]string, with string) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+s.agent)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && !strings.Contains(string(b), with) {
		err = fmt.Errorf("%s %s is answered with %d: %.300s", method, path, res.StatusCode, b)
	}
	return res.Header, err
}
