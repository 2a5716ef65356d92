package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// readApproval reads an approval with all that a person is shown of it.
func readApproval(ctx context.Context, st *store.Store, id string) (review.Approval, error) {
	return review.Read(ctx, st, event.MainSpace, id)
}

// replacedWords says that a call was approved before, and not like this; empty: it was not.
func replacedWords(s review.Approval) string {
	if s.Replaces == "" || s.CallID == "" {
		return ""
	}
	return s.Replaces + ": what was approved is not what would run now"
}

// review shows an approval to a person: whatever others supplied stands on lines
// of its own, one field each, and the last line is ours.
func (a *app) review(to *writer, s review.Approval) {
	d, req := s.Decision, s.Request
	p := page{a: a, to: to, mask: a.maskOf(d, req)}
	p.say("Approval %s", own(d.ID))
	p.facts(p.approvalFacts(s))
	p.policyWords(s)
	p.fields(fmt.Sprintf("Arguments of %s (%s):", display.Line(req.Tool.Name), display.Bytes(len(req.Args))), req.Args)
	if d.EditedArgs != nil {
		p.fields(fmt.Sprintf("Edited arguments, which run instead (%s):", display.Bytes(len(d.EditedArgs))), d.EditedArgs)
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

// effectOf is a side effect in words and as it is registered.
func effectOf(e tool.SideEffect) string {
	if e == "" {
		return ""
	}
	return e.Words() + " (" + string(e) + ")"
}

func (p page) approvalFacts(s review.Approval) []fact {
	d, req := s.Decision, s.Request
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
		{"effect", own(effectOf(req.Tool.SideEffect))},
		{"runs", p.foreign(req.Tool.Implementation)},
		{"", own(review.Unpinned(req.Tool.Implementation))},
		{"kind", p.foreign(d.Kind)},
		{"replaces", own(replacedWords(s))},
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
func (p page) policyWords(s review.Approval) {
	d := s.Decision
	reason, presentation := "Reason, as the policy gave it", "Presentation, as supplied by the policy; it may carry text a model chose:"
	if s.OwnWords() {
		reason, presentation = "Reason, Placet's own", "Presentation, Placet's own; the arguments in it may carry text a model chose:"
	}
	if d.Reason != "" {
		p.say("")
		p.say("%s (%s):", safe(reason), safe(display.Bytes(len(d.Reason))))
		p.say("  %s", p.foreign(d.Reason))
	}
	if !s.PlainDocument(d.Presentation) {
		p.fields(presentation, p.mask.Scrub(d.Presentation))
	}
	if !s.PlainDocument(d.Capability) {
		p.fields("Capability, as supplied by the policy: what a yes permits:", p.mask.Scrub(d.Capability))
	}
}

func (p page) fields(title string, doc []byte) {
	fs := p.mask.Fields(doc)
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
	p.oddities(string(p.mask.JSON(doc)))
}

// mostOddities is how many sorts of characters are named.
const mostOddities = 8

// oddities says what a reader would not notice in a text: what cannot be seen is written as
// an escape above, and what looks like something else is not.
func (p page) oddities(text string) {
	w := display.Warning(text)
	if w == "" {
		return
	}
	var names []string
	all := display.Oddities(text)
	for i, o := range all {
		if i == mostOddities {
			names = append(names, fmt.Sprintf("and %d other sorts", len(all)-mostOddities))
			break
		}
		names = append(names, o.Title)
	}
	p.say("  Look twice: %s: %s.", own(w), own(strings.Join(names, ", ")))
}
