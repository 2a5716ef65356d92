package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/placet-dev/placet/mcpserver"
)

// A line that is no JSON is answered and passed over: what was asked before and after it
// is answered too.
func TestGarbageOverStandardInput(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := mcpserver.New(mcpserver.Config{Door: func(http.Header) mcpserver.Door { return d }, Log: slog.New(slog.DiscardHandler)})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, out) }()
	go func() {
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{{{`, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "\xff\xfe", strings.Repeat("x", 5<<20),
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"job_status","arguments":{"job_id":"job_1"}}}`,
		} {
			if _, err := io.WriteString(toServer, line+"\n"); err != nil {
				t.Error(err)
			}
		}
	}()
	answers, refusals := map[float64]bool{}, 0
	lines := bufio.NewScanner(fromServer)
	lines.Buffer(nil, 1<<20)
	for len(answers) < 2 || refusals < 3 {
		if !lines.Scan() {
			t.Fatalf("it ended after %v and %d refusals: %v", answers, refusals, lines.Err())
		}
		var got struct {
			ID    any
			Error *struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		switch id := got.ID.(type) {
		case float64:
			answers[id] = got.Error == nil
		case nil:
			if got.Error != nil && got.Error.Code == -32700 {
				refusals++
			}
		}
	}
	if !answers[1] || !answers[2] || refusals != 3 {
		t.Errorf("%v, %d refusals", answers, refusals)
	}
	if _, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	toServer.Close() // what was asked is answered before it leaves
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":3`) {
		t.Errorf("%s %v", lines.Text(), lines.Err())
	}
	go io.Copy(io.Discard, fromServer)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
