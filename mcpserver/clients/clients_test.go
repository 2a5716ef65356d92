package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// drive runs drive.mjs from a folder in which it finds the clients.
func (w *world) drive(client, transport string) saw {
	w.t.Helper()
	dir := w.t.TempDir()
	script, err := os.ReadFile("drive.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "drive.mjs"), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(w.installed(), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	order, err := json.Marshal(map[string]any{
		"command": w.program, "env": w.env, "url": w.url,
		"tokens": map[string]string{"agent": w.token(token.Agent, "bot"), "reviewer": w.token(token.Reviewer, "ana")},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	out, errs, err := w.run(filepath.Join(dir, "drive.mjs"), client, transport, string(order))
	var s saw
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil {
		w.t.Fatalf("client %s over %s: %v: %s%s", client, transport, err, out, errs)
	}
	return s
}

type refusal struct {
	IsError           bool
	Thrown            string
	StructuredContent struct {
		Error struct{ Code, Reason, Message string }
	}
}

type question struct {
	Status, Choice, Principal string
	Input                     struct{ Epochs int }
}

// saw is what drive.mjs prints.
type saw struct {
	Forms    []struct{ Message, Mode string }
	Progress int
	Stderr   string
	Server   struct{ Name string }
	Tools    []struct {
		Name        string
		InputSchema struct{ Type string }
	}
	ReviewerTools []string
	Doctor        struct {
		Ready bool
		Token struct{ Scope, Principal string }
	}
	Text                      string
	Unknown, Missing, Resolve refusal
	Declined, Answered        question
	Waited                    struct {
		Result string
		Event  struct{ Type string }
	}
	Stopped struct{ Status string }
}

// The official TypeScript clients do an agent's and a reviewer's work, over standard
// input and output and over HTTP: the one of the older revisions, and the current one.
func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	w := serve(t)
	for _, client := range []string{"1", "2"} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(client+" over "+transport, func(t *testing.T) {
				t.Parallel()
				inner := *w
				inner.t = t
				mustBeDone(t, inner.drive(client, transport), transport)
			})
		}
	}
}

func mustBeDone(t *testing.T, s saw, transport string) {
	t.Helper()
	must := func(ok bool, what string, got any) {
		t.Helper()
		if !ok {
			t.Errorf("%s: %+v", what, got)
		}
	}
	names := []string{}
	for _, tool := range s.Tools {
		names = append(names, tool.Name)
		must(tool.InputSchema.Type == "object", tool.Name+" has a schema", tool)
	}
	must(slices.Contains(names, "tool_call") && !slices.Contains(names, "job_resolve"), "the agent's tools", names)
	must(slices.Contains(s.ReviewerTools, "job_resolve"), "the reviewer's tools", s.ReviewerTools)
	must(s.Server.Name == "placet", "the server", s.Server)
	must(s.Doctor.Ready && s.Doctor.Token.Scope == "agent", "doctor", s.Doctor)
	if transport == "stdio" {
		must(strings.HasPrefix(s.Doctor.Token.Principal, "local:") && strings.HasSuffix(s.Doctor.Token.Principal, "/mcp"), "whose placet mcp is", s.Doctor.Token)
	}
	must(strings.Contains(s.Text, `"ready":true`), "the text", s.Text)
	must(s.Unknown.IsError && s.Unknown.StructuredContent.Error.Reason == "malformed", "an unknown argument", s.Unknown)
	must(s.Missing.IsError && s.Missing.StructuredContent.Error.Reason == "not_found", "an unknown job", s.Missing)
	must(s.Resolve.Thrown != "" || s.Resolve.IsError, "an agent that resolves", s.Resolve)
	must(s.Declined.Status == "pending", "a declined form", s.Declined)
	must(s.Answered.Status == "resolved" && s.Answered.Choice == "yes" && s.Answered.Principal == "ana" && s.Answered.Input.Epochs == 3, "an answered form", s.Answered)
	must(len(s.Forms) == 2 && s.Forms[0].Message == "Go on?", "the forms", s.Forms)
	must(s.Waited.Result == "event" && s.Waited.Event.Type == "decision_resolved", "the wait", s.Waited)
	must(s.Progress > 0, "progress", s.Progress)
	must(s.Stopped.Status == "cancelled", "the stopped job", s.Stopped)
	must(s.Stderr == "", "standard error", s.Stderr)
}

// The inspector's command line lists and calls tools, and finds nothing in their schemas
// that some client could not take.
func TestInspector(t *testing.T) {
	t.Parallel()
	w := serve(t)
	script := w.installed(".bin", "mcp-inspector")
	overHTTP := []string{"--transport", "http", "--server-url", w.url + "/mcp", "--header", "Authorization: Bearer " + w.token(token.Admin, "boss")}
	overStdio := []string{w.program, "mcp"}
	for k, v := range w.env {
		overStdio = append(overStdio, "-e", k+"="+v)
	}
	for name, target := range map[string][]string{"http": overHTTP, "stdio": overStdio} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := *w
			inner.t = t
			ask := func(args ...string) string {
				out, errs, err := inner.run(script, slices.Concat([]string{"--cli"}, target, args)...)
				if err != nil {
					t.Errorf("%q: %v: %s%s", args, err, out, errs)
				}
				return out
			}
			if out := ask("--method", "tools/list", "--strict"); !strings.Contains(out, `"job_request_decision"`) || strings.Contains(out, `"job_resolve"`) != (name == "http") {
				t.Errorf("the tools are %s", out)
			}
			if out := ask("--method", "tools/call", "--tool-name", "doctor"); !strings.Contains(out, `"ready": true`) {
				t.Errorf("doctor says %s", out)
			}
			if out := ask("--method", "tools/call", "--tool-name", "job_list", "--tool-arg", "limit=3"); !strings.Contains(out, `"jobs"`) {
				t.Errorf("job_list says %s", out)
			}
		})
	}
}
