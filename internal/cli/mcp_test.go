package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
)

// mcp is placet mcp as a client starts it. more is its environment.
func (w *world) mcp(more ...string) (session *mcp.ClientSession, told *bytes.Buffer, c *exec.Cmd) {
	w.t.Helper()
	c = w.command("mcp")
	c.Env = append(c.Env, more...)
	told = &bytes.Buffer{}
	c.Stderr = told
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(w.t.Context(), &mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		w.t.Fatalf("%v: %s", err, told)
	}
	w.t.Cleanup(func() { session.Close() })
	return session, told, c
}

// asked calls a tool that has to do it, and reads its result.
func asked[T any](w *world, s *mcp.ClientSession, tool string, args any) (o T) {
	w.t.Helper()
	r, err := s.CallTool(w.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		w.t.Fatalf("%s: %v %+v", tool, err, r)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

type health struct {
	Ready bool
	Token token.Object
}

// Without a token it is an agent of the store's user: also where the home's admin token
// cannot be read, as it is not looked at.
func TestMCPIsAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	if err := os.WriteFile(s.at.TokenFile, []byte("nobody's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	session, told, _ := w.mcp()
	h := asked[health](w, session, "doctor", nil)
	if !h.Ready || h.Token.Scope != token.Agent || !strings.HasPrefix(h.Token.Principal, "local:") || !strings.HasSuffix(h.Token.Principal, "/mcp") {
		t.Errorf("it is %+v", h)
	}
	j := asked[httpapi.Job](w, session, "job_start", map[string]any{"command": []string{"true"}})
	if j.Principal != h.Token.Principal {
		t.Errorf("the job is %s's", j.Principal)
	}
	again, _, _ := w.mcp()
	if other := asked[health](w, again, "doctor", nil); other.Token.ID != h.Token.ID {
		t.Errorf("it has another token: %+v", other.Token)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if told.Len() > 0 {
		t.Errorf("it says %s", told)
	}
	s.end(syscall.SIGTERM)
}

// With a reviewer's token it can answer questions; with one that is good no more, or none
// where PLACET_URL names a daemon, it does not begin.
func TestMCPHasTheTokenItIsGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	reviewer := s.client(token.Reviewer, "ana")
	for name, env := range map[string][]string{
		"over the socket": {"PLACET_TOKEN=" + reviewer.Token}, "at an address": {"PLACET_TOKEN=" + reviewer.Token, "PLACET_URL=" + s.at.URL},
	} {
		session, _, _ := w.mcp(env...)
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || !slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Name == "job_resolve" }) {
			t.Errorf("%s: %v, %v", name, tools, err)
		}
	}
	agent := s.client(token.Agent, "gone")
	me, err := agent.Whoami(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.home.RevokeToken(t.Context(), me.ID); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env  []string
		says string
	}{
		{[]string{"PLACET_TOKEN=" + agent.Token}, "does not take the token in PLACET_TOKEN"},
		{[]string{"PLACET_URL=" + s.at.URL}, "PLACET_TOKEN is not set"},
		{[]string{"PLACET_URL=http://127.0.0.1:1", "PLACET_TOKEN=x"}, "No daemon answers"},
	} {
		c := w.command("mcp")
		c.Env = append(c.Env, tt.env...)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		_ = c.Run()
		if c.ProcessState.ExitCode() != 1 || out.Len() > 0 || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%q ends with %d: %s%s", tt.env, c.ProcessState.ExitCode(), out.String(), errs.String())
		}
	}
	s.end(syscall.SIGTERM)
}

// The agent token can be revoked like any other: the next serve of the home makes a new
// one.
func TestMCPWithARevokedAgentToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	session, _, _ := w.mcp()
	was := asked[health](w, session, "doctor", nil).Token.ID
	if _, err := s.home.RevokeToken(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	mustContain(t, w.refused(1, "mcp"), "does not take the home's agent token", "Start placet serve again")
	s.end(syscall.SIGTERM)
	s = w.serve()
	session, _, _ = w.mcp()
	if is := asked[health](w, session, "doctor", nil).Token.ID; is == was {
		t.Error("it is the revoked token still")
	}
	s.end(syscall.SIGTERM)
}

// With no daemon there is nothing to serve; where the daemon comes back, it is found again.
func TestMCPAndItsDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mustContain(t, w.refused(1, "mcp"), "No daemon serves this store", "placet serve")
	s := w.serve()
	session, _, c := w.mcp()
	s.end(syscall.SIGTERM)
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "job_list"})
	if err != nil || !r.IsError {
		t.Fatalf("%+v %v", r, err)
	}
	mustContain(t, r.Content[0].(*mcp.TextContent).Text, "does not answer", "placet serve", `"code":"unavailable"`)
	s = w.serve()
	asked[httpapi.Jobs](w, session, "job_list", nil)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := session.Wait(); err != nil {
		t.Logf("the client saw %v", err)
	}
	s.end(syscall.SIGTERM)
}

// A token that is more than an agent's is not taken from the agent's file.
func TestMCPTakesNoOtherScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	admin, err := os.ReadFile(w.db() + ".admin-token")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.db()+".agent-token", admin, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := w.run("mcp")
	mustContain(t, errs, "scope admin", "placet serve")
	if code != 1 {
		t.Errorf("it ends with %d", code)
	}
	s.end(syscall.SIGTERM)
}
