package call

import (
	"fmt"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/txn"
)

// errServer refuses to go on by hand with what came in through a server's door, and
// says how it stands: who carried it out, who will, or how it is decided.
func (s subject) errServer() error {
	what := fmt.Sprintf("Call %s came in through the HTTP tool server", s.call.ID)
	if s.grant != nil {
		what = fmt.Sprintf("Approval %s was parked by the HTTP tool server", s.grant.ID)
	}
	switch {
	case s.attempt != nil:
		return s.seeCall("%s, and %s; call %s is %s.", what, s.attempt.whoRan(), s.call.ID, s.call.Status)
	case s.call.Status.Terminal():
		return s.seeCall("%s; call %s is %s and never ran.", what, s.call.ID, s.call.Status)
	case s.grant == nil:
		return ErrUsage.Say("%s; only it may go on with it.", what).Hint("Look at it with GET /v1/calls/%s.", s.call.ID)
	case s.grant.Status == decision.Pending:
		return ErrUsage.Say("%s; only it may run it.", what).Hint("Decide it with POST /v1/approvals/%s/decide.", s.grant.ID)
	case s.call.ContinueBy == ByCaller:
		return ErrUsage.Say("%s, which has its answer from POST /v1/approvals/%s/decide; only its client may carry it out.", what, s.grant.ID).
			Hint(`That client sends {"call_id":%q} to POST /v1/calls.`, s.call.ID)
	}
	return ErrUsage.Say("%s, which has its answer from POST /v1/approvals/%s/decide; the daemon runs it by itself.", what, s.grant.ID).
		Hint("Follow it: GET /v1/calls/%s?wait=30s. If nothing happens: placet doctor.", s.call.ID)
}

func (s subject) seeCall(format string, args ...any) *fault.Error {
	err := ErrUsage.Say(format, args...)
	if s.grant != nil && s.call.Status == Unknown && s.call.ApprovalID != s.grant.ID {
		return err.Hint("Whether to run it again is approval %s.", s.call.ApprovalID)
	}
	return err.Hint("Look at it: placet show %s.", s.call.ID)
}

// whoRan names who carried an attempt out.
func (a Attempt) whoRan() string {
	began := "attempt " + fmt.Sprint(a.N) + ", begun at " + txn.Stamp(a.StartedAt)
	if by, ok := strings.CutPrefix(a.Owner, outside); ok {
		return fmt.Sprintf("%q carried it out (%s)", by, began)
	}
	ran := "ran it"
	if a.Outcome == "" {
		ran = "is running it"
	}
	id, err := process.Parse(a.Owner)
	if err != nil {
		return fmt.Sprintf("the daemon %s (%s)", ran, began)
	}
	return fmt.Sprintf("the daemon, process %d, %s (%s)", id.PID, ran, began)
}
