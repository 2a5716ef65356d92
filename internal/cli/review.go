package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// shownApproval is an approval with where its stream stood when it was read.
type shownApproval struct {
	decision.Decision
	Overdue  bool
	replaced string // the approval of the same call whose yes this one is asked instead of
	seen     event.Cursor
}

// readApproval reads an approval and the end of its stream at one moment, so
// that whoever then waits on the stream misses nothing.
func readApproval(ctx context.Context, st *store.Store, id string) (s shownApproval, err error) {
	err = txn.View(ctx, st, func(tx call.Tx) error {
		s = shownApproval{}
		d, err := tx.Decision(id)
		if err != nil {
			return err
		}
		if d.Type != decision.Approval {
			return decision.ErrNotFound.Say("There is no approval %s.", id)
		}
		h, err := tx.Head(d.Owner.Stream())
		if err != nil {
			return err
		}
		s = shownApproval{Decision: d, Overdue: d.Overdue(tx.Now()), seen: event.CursorAt(h)}
		s.replaced, err = replaced(tx, d)
		return err
	})
	return s, err
}

// replaced finds the yes that d took the place of: what it allowed is not what
// would run now. A question of the runtime's own is another one.
func replaced(tx call.Tx, d decision.Decision) (string, error) {
	if d.N < 2 || d.CallID == "" || d.Kind == decision.KindInterrupted {
		return "", nil
	}
	ds, err := tx.Decisions(decision.Query{Space: d.Space, Type: decision.Approval, CallID: d.CallID, Limit: 500})
	for _, o := range ds {
		if o.N == d.N-1 && o.Status == decision.Superseded && o.Choice == decision.ChoiceApprove {
			return o.ID, err
		}
	}
	return "", err
}

func replacedWords(id string) string {
	return id + ": what was approved is not what would run now"
}

// review shows an approval to a person: whatever others supplied stands on lines
// of its own, one field each, and the last line is ours.
func (a *app) review(to *writer, s shownApproval) {
	d, req := s.Decision, requestOf(s.Decision)
	p := page{a: a, to: to, mask: a.maskOf(d, req)}
	p.say("Approval %s", own(d.ID))
	p.facts(p.approvalFacts(s, req))
	p.policyWords(d, req)
	p.fields(fmt.Sprintf("Arguments of %s (%s):", display.Line(req.Tool.Name), display.Bytes(len(req.Args))), p.mask.Fields(req.Args))
	if d.EditedArgs != nil {
		p.fields(fmt.Sprintf("Edited arguments, which run instead (%s):", display.Bytes(len(d.EditedArgs))), p.mask.Fields(d.EditedArgs))
	}
	p.say("")
	p.say("End of approval %s. The lines above may carry text that a model chose; what follows is Placet's own.", own(d.ID))
}

// page prints one approval.
type page struct {
	a    *app
	to   *writer
	mask *display.Mask
}

func (p page) say(format string, args ...any) { p.a.print(p.to, format, args) }

// fact is a line about an approval or a call. An empty text is left out.
type fact struct {
	name string
	text safe
}

func (p page) facts(fs []fact) {
	for _, f := range fs {
		if f.text != "" {
			p.say("  %-10s %s", safe(f.name), f.text)
		}
	}
}

// foreign is a text that somebody else wrote, and that may repeat a secret.
func (p page) foreign(s string) safe { return safe(display.Excerpt(p.mask.Text(s), 0)) }

func (p page) approvalFacts(s shownApproval, req request.Request) []fact {
	d := s.Decision
	status := string(d.Status)
	switch {
	case !d.Open && (d.Status == decision.Pending || d.Status == decision.Approved):
		status += ", and closed: its " + string(d.Owner.Kind) + " has ended"
	case s.Overdue:
		status += ", and its time is over"
	}
	fs := []fact{
		{"status", own(status)},
		{"tool", own(d.Tool)},
		{"about", p.foreign(req.Tool.Description)},
		{"effect", own(req.Tool.SideEffect)},
		{"runs", p.foreign(req.Tool.Implementation)},
		{"", own(unpinned(req.Tool.Implementation))},
		{"kind", p.foreign(d.Kind)},
		{"replaces", own(s.replacedWords())},
		{"asked", own(stamp(d.CreatedAt) + by(d.RequestedBy))},
		{"expires", own(orNever(d.ExpiresAt))},
		{"run", own(d.RunID)},
		{"step", own(d.StepID)},
		{"call", own(d.CallID)},
		{"digest", own(d.Digest)},
	}
	for _, k := range sortedKeys(d.Metadata) {
		word := d.Metadata[k]
		if display.SecretName(k) {
			word = display.Masked
		}
		fs = append(fs, fact{"metadata", p.foreign(k + ": " + word)})
	}
	if d.Status == decision.Withdrawn {
		fs = append(fs, fact{"withdrawn", own(stamp(d.SettledAt) + by(d.WithdrawnBy))})
	}
	if d.DecidedBy == "" {
		return append(fs, fact{"note", p.foreign(d.Note)})
	}
	return append(fs,
		fact{"decided", own(string(d.Choice) + " at " + stamp(d.DecidedAt) + by(d.DecidedBy))},
		fact{"as", own(d.DecidedPrincipal)},
		fact{"note", p.foreign(d.Note)},
		fact{"good until", own(stamp(d.GrantExpiresAt))},
		fact{"used", own(stamp(d.ConsumedAt))})
}

// unpinned says what a yes does not cover where a program is named and not pinned.
func unpinned(implementation string) string {
	if !strings.HasPrefix(implementation, "exec ") || strings.HasPrefix(implementation, "exec sha256:") {
		return ""
	}
	return "A yes covers this command line, not what its files hold when it runs; pin: true in placet.yaml covers that, too."
}

func (s shownApproval) replacedWords() string {
	if s.replaced == "" {
		return ""
	}
	return replacedWords(s.replaced)
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

func orNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return stamp(t)
}

// policyWords prints what is said about the request, and whose words they are.
func (p page) policyWords(d decision.Decision, req request.Request) {
	reason, presentation := "Reason, as the policy gave it", "Presentation, as supplied by the policy; it may carry text a model chose:"
	if d.Kind == decision.KindInterrupted {
		reason, presentation = "Reason, Placet's own", "Presentation, Placet's own; the arguments in it may carry text a model chose:"
	}
	if d.Reason != "" {
		p.say("")
		p.say("%s (%s):", safe(reason), safe(display.Bytes(len(d.Reason))))
		p.say("  %s", p.foreign(d.Reason))
	}
	if !plainDocument(d.Presentation, req) {
		p.fields(presentation, p.mask.Fields(p.mask.Scrub(d.Presentation)))
	}
	if !plainDocument(d.Capability, req) {
		p.fields("Capability, as supplied by the policy: what a yes permits:", p.mask.Fields(p.mask.Scrub(d.Capability)))
	}
}

// plainDocument reports whether a document is the {tool, args} that stands where
// the policy said nothing: the arguments below say the same.
func plainDocument(doc []byte, req request.Request) bool {
	plain, err := policy.Plain(req)
	if err != nil {
		return false
	}
	same, err := canon.Equal(plain, doc)
	return err == nil && same
}

func (p page) fields(title string, fs []display.Field) {
	p.say("")
	p.say("%s", safe(title))
	width := 0
	for _, f := range fs {
		width = max(width, min(len([]rune(f.Name)), 24))
	}
	for _, f := range fs {
		p.say("  %-*s  %s  (%s)", width, safe(f.Name), safe(f.Text), safe(display.Bytes(f.Size)))
	}
	if len(fs) == 0 {
		p.say("  none")
	}
}
