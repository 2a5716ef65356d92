package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// approvalUnder is the approval to ask for under a ruling. Where the call may have run
// already, the presentation says so.
func (e *Executor) approvalUnder(s subject, args []byte, ru policy.Ruling) (*decision.Decision, error) {
	d := e.newApproval(s)
	d.Kind, d.Capability, d.Reason = ru.Kind, ru.Capability, ru.Reason
	d.Presentation = presentation(s, ru.Presentation)
	d.ForbidEdits = ru.ForbidEdits || s.doubtful()
	d.GrantTTL = decision.Shorter(ru.GrantTTL, e.grantTTL(s))
	return d, bind(s, d, args)
}

func (e *Executor) newApproval(s subject) *decision.Decision {
	return &decision.Decision{
		ID: e.conf.NewID(id.Approval), Space: s.call.Space, Type: decision.Approval, Owner: s.call.Root(), N: s.nextApproval(),
		SpecDigest: s.tool.SpecDigest(), ArgsDigest: s.call.ArgsDigest,
		RunID: s.call.RunID, CallID: s.call.approvedAs(), StepID: s.call.StepID, Tool: s.tool.Name,
		RequestedBy: s.call.Principal, Metadata: s.call.Metadata,
		Status: decision.Pending, Open: true, Needs: 1,
	}
}

// bind puts the exact request into d and seals it with its digest.
func bind(s subject, d *decision.Decision, args []byte) (err error) {
	if d.Request, err = s.requestJSON(args); err != nil {
		return err
	}
	d.Digest, err = d.Binding()
	return err
}

// doubtful reports whether the call may have run already.
func (s subject) doubtful() bool { return s.call.Status == Unknown }

func presentation(s subject, p json.RawMessage) []byte {
	if !s.doubtful() {
		return p
	}
	b, err := canon.AppendString([]byte(`{"notice":`), s.notice(s.life.restoredTo))
	if err != nil {
		panic(err) // our own ASCII text
	}
	b = append(b, `,"presentation":`...)
	b = append(b, p...)
	return append(b, '}')
}

// notice is the same for every evaluation of the same attempt.
func (s subject) notice(restoredTo time.Time) string {
	if s.attempt == nil || s.attempt.Epoch < s.life.epoch {
		return restoredNotice(restoredTo)
	}
	return fmt.Sprintf("Attempt %d started at %s and its outcome is unknown; this call may already have run.",
		s.attempt.N, s.attempt.StartedAt.UTC().Format(time.RFC3339))
}

func restoredNotice(to time.Time) string {
	return fmt.Sprintf("The store was restored to %s; this call may already have run.", to.UTC().Format(time.RFC3339))
}

// meets reports whether the grant is the yes that the ruling asks for.
func (e *Executor) meets(s subject, args []byte, ru policy.Ruling) (bool, error) {
	if s.grant.Kind == decision.KindInterrupted {
		return e.meetsSpent(s, args, ru)
	}
	shown := presentation(s, ru.Presentation)
	req, err := s.requestJSON(args)
	if err != nil {
		return false, err
	}
	if g := s.grant; ru.Kind == g.Kind && bytes.Equal(ru.Capability, g.Capability) && bytes.Equal(shown, g.Presentation) && bytes.Equal(req, g.Request) {
		return true, nil // byte for byte what the grant's digest was found to be over
	}
	got, err := request.ApprovalDigest(ru.Kind, ru.Capability, shown, req)
	return got == s.grant.Digest, err
}

// meetsSpent reports whether the grant that the interrupted attempt spent is the
// yes that the ruling asks for (spec 1.11 p).
func (e *Executor) meetsSpent(s subject, args []byte, ru policy.Ruling) (bool, error) {
	if s.spent == nil {
		return false, nil // it ran without one
	}
	if asked, _, err := s.recorded(*s.spent); err != nil || !bytes.Equal(asked, args) { // what ran was edited
		return err == nil && s.spent.SpecDigest == s.tool.SpecDigest() && sameAuthority(*s.spent, s, ru, args), err
	}
	got, err := s.digest(args, ru.Kind, ru.Capability, ru.Presentation)
	return got == s.spent.Digest, err
}

func (s subject) digest(args []byte, kind string, capability, presentation []byte) (string, error) {
	req, err := s.requestJSON(args)
	if err != nil {
		return "", err
	}
	return request.ApprovalDigest(kind, capability, presentation, req)
}

// sameAuthority reports whether a ruling on edited arguments asks for what d
// granted: the same kind and capability. The capability that stands for "these
// arguments" counts as the same, because the editor saw and said exactly the
// new ones.
func sameAuthority(d decision.Decision, s subject, ru policy.Ruling, edited []byte) bool {
	if ru.Kind != d.Kind {
		return false
	}
	if same, err := canon.Equal(ru.Capability, d.Capability); err == nil && same {
		return true
	}
	req, err := request.Decode(d.Request)
	return err == nil && isPlain(d.Capability, s, req.Args) && isPlain(ru.Capability, s, edited)
}

func isPlain(capability []byte, s subject, args []byte) bool {
	plain, err := policy.Plain(s.request(args))
	if err != nil {
		return false
	}
	same, err := canon.Equal(capability, plain)
	return err == nil && same
}
