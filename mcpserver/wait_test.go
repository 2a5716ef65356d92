package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/mcpserver"
)

// A wait is cut into slices, each of which says how to go on, until its whole time is over.
func TestJobWaitIsSliced(t *testing.T) {
	t.Parallel()
	d := &door{}
	d.then(func(context.Context, sent) (int, string) {
		return http.StatusOK, `{"result":"timeout","cursor":"s3-x"}`
	})
	s := at(t, d, mcpserver.Config{Slice: 25 * time.Second}, nil, versions[0])
	for _, row := range []struct{ given, asked, result, left string }{
		{``, `25`, "still_waiting", "3575"},
		{`,"timeout_seconds":60`, `25`, "still_waiting", "35"},
		{`,"timeout_seconds":35`, `25`, "still_waiting", "10"},
		{`,"timeout_seconds":25`, `25`, "timeout", ""},
		{`,"timeout_seconds":10`, `10`, "timeout", ""},
	} {
		a := ok(t, s, "job_wait", `{"job_id":"job_1","types":["completed"]`+row.given+`}`)
		if a.get("result") != row.result || a.get("timeout_seconds") != row.left || a.get("cursor") != "s3-x" {
			t.Errorf("%s answers %s", row.given, a.text)
		}
		lines := d.lines()
		if last := lines[len(lines)-1]; !strings.HasSuffix(last, `"timeout_seconds":`+row.asked+`}`) {
			t.Errorf("%s asked %s", row.given, last)
		}
	}
	for _, result := range []string{`{"result":"event","event":{"type":"completed"},"cursor":"s4-x"}`, `{"result":"ended","cursor":"s4-x"}`, `{"result":"shutdown","cursor":"s4-x"}`} {
		d.then(func(context.Context, sent) (int, string) { return http.StatusOK, result })
		if a := ok(t, s, "job_wait", `{"job_id":"job_1","types":["completed"]}`); a.text != result {
			t.Errorf("%s, want %s", a.text, result)
		}
	}
}

func TestCallWaitIsSliced(t *testing.T) {
	t.Parallel()
	d := &door{}
	d.then(func(context.Context, sent) (int, string) {
		return http.StatusOK, `{"call_id":"call_1","status":"pending"}`
	})
	s := at(t, d, mcpserver.Config{Slice: 25 * time.Second}, nil, versions[0])
	for _, row := range []struct{ given, asked, result, left string }{
		{``, "25s", "still_waiting", "59m35s"},
		{`,"wait":"60s"`, "25s", "still_waiting", "35s"},
		{`,"wait":"25s"`, "25s", "timeout", ""},
		{`,"wait":"0s"`, "0s", "timeout", ""},
	} {
		a := ok(t, s, "call_wait", `{"call_id":"call_1"`+row.given+`}`)
		if a.get("result") != row.result || a.get("wait") != row.left || a.get("status") != "pending" || a.get("call_id") != "call_1" {
			t.Errorf("%s answers %s", row.given, a.text)
		}
		lines := d.lines()
		if want := "GET /v1/calls/call_1?wait=" + row.asked; lines[len(lines)-1] != want {
			t.Errorf("%s asked %s", row.given, lines[len(lines)-1])
		}
	}
}

// untilGivenUp is an API that does not answer.
func untilGivenUp(ctx context.Context, _ sent) (int, string) {
	<-ctx.Done()
	return 0, ""
}

func TestTailAndStopAreSliced(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := at(t, d, mcpserver.Config{Slice: time.Millisecond}, nil, versions[0])
	d.then(untilGivenUp)
	a := ok(t, s, "job_tail", `{"job_id":"job_1","offset":12,"follow":true}`)
	if want := `{"data":"","end":false,"next":12,"result":"still_waiting"}`; a.text != want {
		t.Errorf("%s, want %s", a.text, want)
	}
	d.then(func(ctx context.Context, o sent) (int, string) {
		if o.method == http.MethodPost {
			return untilGivenUp(ctx, o)
		}
		return http.StatusOK, `{"job_id":"job_1","status":"running"}`
	})
	a = ok(t, s, "job_stop", `{"job_id":"job_1"}`)
	if want := `{"job_id":"job_1","result":"still_waiting","status":"running"}`; a.text != want {
		t.Errorf("%s, want %s", a.text, want)
	}
}

// Output is in base64 as in the API, and once more as text where it is text.
func TestTailShowsText(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	for data, want := range map[string]string{"aGVsbG8K": "hello\n", "/w==": "", "": ""} {
		d.then(func(context.Context, sent) (int, string) {
			return http.StatusOK, js(map[string]any{"data": data, "next": 1, "end": true})
		})
		a := ok(t, s, "job_tail", `{"job_id":"job_1"}`)
		got := ""
		if len(a.Content) > 1 {
			got = a.Content[1].(*mcp.TextContent).Text
		}
		if got != want {
			t.Errorf("%q is shown as %q", data, got)
		}
	}
}

// A tool that runs for longer than a slice is not given up: the same key tells which
// call it is, and makes no second one.
func TestALongToolCallIsFollowed(t *testing.T) {
	t.Parallel()
	d := &door{}
	s := at(t, d, mcpserver.Config{Slice: time.Millisecond}, nil, versions[0])
	d.then(func(ctx context.Context, o sent) (int, string) {
		if len(d.lines()) == 1 {
			return untilGivenUp(ctx, o)
		}
		return http.StatusAccepted, `{"status":"running","call_id":"call_1"}`
	})
	a := ok(t, s, "tool_call", `{"tool":"refund","args":{}}`)
	lines := d.lines()
	if a.get("status") != "running" || len(lines) != 2 || lines[0] != lines[1] || !strings.Contains(lines[0], "key=mcp-") {
		t.Errorf("%s after %q", a.text, lines)
	}
	ok(t, s, "tool_call", `{"tool":"refund","args":{}}`)
	if again := d.lines(); again[2] == lines[0] {
		t.Errorf("another call has the same key: %q", again)
	}
	d.then(untilGivenUp)
	a = refused(t, s, "tool_call", `{"tool":"refund","args":{},"idempotency_key":"k"}`, "unknown")
	if !strings.Contains(a.get("error", "hint"), `"k"`) {
		t.Errorf("%s does not say how to ask again", a.text)
	}
}

// A client that asks for it hears that a wait goes on, before it ends.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		told := make(chan *mcp.ProgressNotificationParams, 100)
		o := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params }}
		d := &door{}
		s := at(t, d, mcpserver.Config{ProgressEvery: time.Millisecond}, o, version)
		var got []*mcp.ProgressNotificationParams
		d.then(func(context.Context, sent) (int, string) {
			for range 2 {
				select {
				case p := <-told:
					got = append(got, p)
				case <-time.After(patience):
				}
			}
			return http.StatusOK, `{"result":"ended","cursor":"s1-x"}`
		})
		p := &mcp.CallToolParams{Name: "job_wait", Arguments: json.RawMessage(`{"job_id":"job_1","types":["completed"]}`)}
		p.SetProgressToken("mine")
		if _, err := s.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].ProgressToken != "mine" || got[0].Message == "" || got[1].Progress <= got[0].Progress {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// Who gives a call up releases what waits for it.
func TestACancelledCallReleasesItsWaiter(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		d := &door{}
		s := at(t, d, mcpserver.Config{}, nil, version)
		waits, released := make(chan struct{}), make(chan struct{})
		var once sync.Once
		d.then(func(ctx context.Context, o sent) (int, string) {
			once.Do(func() { close(waits) })
			<-ctx.Done()
			close(released)
			return 0, ""
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "job_wait", Arguments: json.RawMessage(`{"job_id":"job_1","types":["completed"]}`)})
			ended <- err
		}()
		<-waits
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s: a cancelled call had an answer", version)
		}
		select {
		case <-released:
		case <-time.After(patience):
			t.Errorf("%s: it waits on", version)
		}
	}
}
