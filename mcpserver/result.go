package mcpserver

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// object is an answer of the API as a tool's result: as structured content, and as text
// for clients that know only that.
func object(answer []byte) *mcp.CallToolResult {
	answer = bytes.TrimSpace(answer)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}, StructuredContent: json.RawMessage(answer)}
}

// decode reads an answer of the API.
func decode(answer []byte, v any) error {
	if err := json.Unmarshal(answer, v); err != nil {
		return fault.New(fault.Internal, "The daemon's answer cannot be read.").Because(err)
	}
	return nil
}

// failed is a refusal as a tool's result, so that the model reads it.
func failed(err error) *mcp.CallToolResult {
	b, merr := json.Marshal(struct {
		Error *fault.Error `json:"error"`
	}{fault.From(err)})
	if merr != nil { // details that are no JSON: they came from afar
		b, _ = json.Marshal(map[string]any{"error": map[string]string{"code": "internal", "reason": "internal", "message": "The refusal cannot be written."}})
	}
	r := object(b)
	r.IsError = true
	return r
}

// with is an answer with members added; the rest keeps its bytes.
func with(answer []byte, more map[string]any) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := decode(answer, &members); err != nil {
		return nil, err
	}
	for name, v := range more {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		members[name] = b
	}
	return json.Marshal(members)
}

// note adds words for people to a result.
func note(r *mcp.CallToolResult, words string) *mcp.CallToolResult {
	r.Content = append(r.Content, &mcp.TextContent{Text: words})
	return r
}
