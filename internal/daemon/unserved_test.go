package daemon

import (
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// Approved work that no process here can carry out is told once in the log, when it has
// waited for a minute, and counted; what is taken back is forgotten.
func TestUnservedIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("clerk")
	s := w.serve()
	agent, ana := s.who()
	gone, changed := s.park(agent), s.parkTool(agent, "look_at")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	st := w.open()
	r := w.waiting(st, "stranger", run.ContinuedBy(call.ByDaemon))
	w.granted(st, r.ApprovalID)
	w.conf.Tools = &tool.Registry{} // without refund
	w.toolThat("Another one.", "look_at", tool.RemoteMutation)

	s = w.serve()
	agent.URL, ana.URL = s.at.URL, s.at.URL
	for _, id := range []string{gone.ApprovalID, changed.ApprovalID} {
		s.approve(ana, id)
	}
	told := map[string]string{gone.CallID: "no process here has tool refund", changed.CallID: "tool look_at has changed since", r.ID: `needs the agent "stranger"`}
	passes := func() {
		w.comes("continue")
		w.comes("continue")
	}
	passes()
	for id := range told {
		if n := w.log.count(id); n != 0 {
			t.Errorf("told %d times of %s at once", n, id)
		}
	}
	w.clock.advance(call.ServedWithin)
	for range 3 {
		passes()
	}
	for id, why := range told {
		if n := w.log.count(id); n != 1 || w.log.count(why) != 1 {
			t.Errorf("told %d times of %s, want once: %s", n, id, why)
		}
	}
	if got := s.figure("placet_work_unserved"); got != "3" {
		t.Errorf("counted: %s", got)
	}
	if w.log.count("DELETE /v1/calls/"+changed.CallID) != 1 {
		t.Error("what to do is not said")
	}
	if o, err := agent.WithdrawCall(t.Context(), changed.CallID); err != nil || o.Status != call.Cancelled {
		t.Fatalf("%+v %v", o, err)
	}
	passes()
	if got := s.figure("placet_work_unserved"); got != "2" {
		t.Errorf("counted after it was taken back: %s", got)
	}
	if w.refund.n.Load() != 0 {
		t.Error("something ran")
	}
	again, err := agent.Call(t.Context(), "look_at", []byte(order), "") // asked again, of the tool as it is
	if err != nil {
		t.Fatal(err)
	}
	s.approve(ana, again.ApprovalID)
	s.becomes(agent, again.CallID, call.Succeeded)
}

// parkTool parks a call of a tool that is registered only now.
func (s *serving) parkTool(c *httpapi.Client, name string) httpapi.Result {
	s.t.Helper()
	s.tool(name, tool.RemoteMutation)
	r, err := c.Call(s.t.Context(), name, []byte(order), "")
	if err != nil || r.Status != call.Pending {
		s.t.Fatalf("%+v %v", r, err)
	}
	return r
}

// Where a daemon with the tool as it was comes, the work goes on.
func TestServedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent, ana := s.who()
	p := s.park(agent)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	whole := w.conf.Tools
	w.conf.Tools = &tool.Registry{}
	s = w.serve()
	ana.URL = s.at.URL
	s.approve(ana, p.ApprovalID)
	w.comes("continue")
	w.comes("continue")
	if c, _ := w.stored(p.CallID); c.Status != call.Pending || !c.NextTryAt.IsZero() {
		t.Errorf("%s, tried again at %s", c.Status, c.NextTryAt)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.conf.Tools = whole
	s = w.serve()
	agent.URL = s.at.URL
	s.becomes(agent, p.CallID, call.Succeeded)
}

// What is begun is begun once, and not where the daemon stops or has no room.
func TestBegin(t *testing.T) {
	t.Parallel()
	k := &continuer{slots: make(chan struct{}, 2), busy: map[string]bool{}}
	hold, did := make(chan struct{}), make(chan struct{}, 10)
	work := func() { <-hold; did <- struct{}{} }
	for _, c := range []struct {
		id   string
		want error
	}{{"a", nil}, {"a", errBusy}, {"b", nil}, {"c", errFull}, {"b", errBusy}} {
		if err := k.begin(c.id, work); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.id, err, c.want)
		}
	}
	close(hold)
	<-did
	<-did
	if err := k.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := k.begin("d", work); !errors.Is(err, httpapi.ErrShutdown) {
		t.Errorf("while it stops: %v", err)
	}
	if len(did) != 0 || len(k.slots) != 0 || len(k.busy) != 0 {
		t.Errorf("%d more, %d slots, busy with %v", len(did), len(k.slots), k.busy)
	}
}

// A daemon that runs as a service whose manager would end its jobs says what to set.
func TestServiceManager(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		unit   string
		ofUser bool
	}{
		"0::/system.slice/placet.service\n":                                                                           {"placet.service", false},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/placet.service\n":                                 {"placet.service", true},
		"0::/user.slice/user-1000.slice/session-2.scope\n":                                                            {"", false},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope\n": {"", false},
		"0::/\n": {"", false},
		"":       {"", false},
		"12:cpu,cpuacct:/system.slice/other.service\n1:name=systemd:/system.slice/placet@a.service\n0::/\n": {"placet@a.service", false},
		"2:memory:/system.slice/docker.service\n1:name=systemd:/docker/3f\n":                                {"", false},
		"nonsense\n::\n": {"", false},
	} {
		if unit, ofUser := unitOf(text); unit != want.unit || ofUser != want.ofUser {
			t.Errorf("%q: %q %v", text, unit, ofUser)
		}
	}
	for mode, wants := range map[string][]string{
		"control-group": {"placet.service", "KillMode=control-group", "ends every job", "KillMode=process"},
		"mixed":         {"KillMode=mixed", "KillMode=process"},
		"":              {"Unless", "KillMode=process"},
		"process":       nil, "none": nil,
	} {
		got := warnOf("placet.service", mode)
		if (got == "") != (wants == nil) {
			t.Errorf("%q: %q", mode, got)
		}
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in: %s", want, got)
			}
		}
	}
}

func isReason(err error, want string) bool { f := fault.From(err); return f != nil && f.Reason == want }
