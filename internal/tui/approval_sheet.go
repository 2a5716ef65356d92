package tui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

func (p *approval) body(w, h int) []string {
	if !p.loaded {
		s := &sheet{width: w}
		p.note.on(s)
		if p.note == nil {
			s.say(quiet, "Reading…")
		}
		return s.lines
	}
	s := &sheet{width: w, open: p.open}
	p.note.on(s)
	p.state(s)
	// What follows changes only where it is read again: the ages in it may be a little old.
	key := fmt.Sprint(w, p.open, p.exact, p.readings)
	if p.drawn.key != key {
		below := &sheet{width: w, open: p.open}
		for _, part := range []func(*sheet){p.runs, p.purpose, p.words, p.before, p.record, p.history} {
			part(below)
		}
		below.notes()
		p.drawn = drawn{key, below.lines}
	}
	s.notes()
	if len(s.lines) > 0 && s.lines[len(s.lines)-1] != "" {
		s.put("")
	}
	return p.window(append(s.lines, p.drawn.lines...), w, h)
}

// state is how it was answered and what became of it; nothing while it waits.
func (p *approval) state(s *sheet) {
	a := p.a
	if a.Decidable() {
		return
	}
	settled(s, a.Decision, a.Standing(), a.Mask)
	p.became(s)
}

// settled is how something stopped waiting, and who saw to that.
func settled(s *sheet, d decision.Decision, word string, m *display.Mask) {
	s.put(lookOf(word).of(strings.ToUpper(word[:1]) + word[1:]))
	if d.Type == decision.Question {
		s.fact("answer", string(d.Choice))
	}
	switch {
	case d.DecidedBy != "":
		s.fact("by", d.DecidedBy)
		s.fact("proved as", d.DecidedPrincipal)
		s.own("at", review.UTC(d.DecidedAt))
	case !d.SettledAt.IsZero():
		s.fact("by", d.WithdrawnBy)
		s.own("at", review.UTC(d.SettledAt))
	case word == "expired":
		s.own("since", review.UTC(d.ExpiresAt))
	}
	s.fact("note", m.Text(d.Note))
}

// became is what happened once it was decided, through to the result.
func (p *approval) became(s *sheet) {
	a := p.a
	s.head("What happened next", "")
	text, command := a.Next()
	s.say(plain, text)
	if command != nil {
		s.command(p.Command(command...))
	}
	if p.absent != "" && a.Status == decision.Approved {
		s.say(warns, p.absent)
	}
	if k := a.Call; k != nil && k.Status != call.Pending {
		more := ""
		if k.Kind != "" {
			more = ", " + review.PlainWord(string(k.Kind))
		}
		s.indented("  ", []span{{"The call: ", quiet}, {review.StatusWord(string(k.Status)), lookOf(string(k.Status))}, {more, quiet}})
		if m := a.Mask.Text(k.Message); m != "" {
			s.words(m)
		}
		if len(k.Result) > 0 {
			s.under("Result", "")
			s.tree(a.Mask.Tree(a.Mask.Scrub(k.Result)))
		}
	}
	if a.Run != nil {
		s.indented("  ", []span{{"The run: ", quiet}, {review.StatusWord(string(a.Run.Status)), plain}})
	}
	if p.newest() != "" {
		s.say(quiet, "Press l to see its newest approval.")
	}
}

// runs is what would run, exactly.
func (p *approval) runs(s *sheet) {
	a := p.a
	s.head(a.RunsTitle(), "")
	if a.Altered != nil {
		(&notice{bad, "This record was altered", a.Altered.Error(), "It cannot be approved. A no is still possible."}).on(s)
	}
	s.fact("what", a.Subject())
	if effect := string(a.Request.Tool.SideEffect); effect != "" {
		s.own("effect", cmp.Or(review.Effect(effect), effect))
	}
	s.fact("about", a.Mask.Text(a.Request.Tool.Description))
	if impl := a.Mask.Text(a.Request.Tool.Implementation); impl != "" {
		s.fact("carried out by", impl)
		s.say(quiet, review.Unpinned(a.Request.Tool.Implementation))
	}
	if a.Doubtful && a.Status == decision.Pending {
		s.say(warns, " It may have run already: it was started, and nobody knows what became of it. ")
	}
	exact := string(a.Mask.JSON(a.RunArgs()))
	size := display.Bytes(len(a.RunArgs()))
	if a.EditedArgs != nil {
		size += ", edited by a reviewer"
	}
	s.warn(exact)
	if p.exact {
		s.under("Arguments, the exact text", size)
		s.words(exact)
	} else {
		s.under("Arguments", size)
		s.tree(a.Args())
	}
	if p.mustOpen() {
		s.put("")
		s.say(warns, " Not everything that will run is shown. Press o to open it all. ")
	}
	if a.EditedArgs != nil {
		s.under("What the reviewer changed", "")
		s.diff(a.Mask.Diff(a.Request.Args, a.EditedArgs), "asked for", "approved")
	}
	if a.Decidable() {
		s.say(quiet, a.Then())
	}
}

// purpose is what the run that asks is for, and why its agent wants this.
func (p *approval) purpose(s *sheet) {
	goal, said := p.a.Goal(), p.a.Said()
	if goal == "" && said == "" {
		return
	}
	s.head("What it is for", "")
	s.say(quiet, "The goal is in the words of whoever started the run; why, in its agent's. A model may have chosen them, and neither is what runs.")
	s.fact("goal", goal)
	s.fact("why", said)
}

// words are what is said about it, and whose words they are.
func (p *approval) words(s *sheet) {
	a := p.a
	plainShown, plainPermitted := a.PlainDocument(a.Presentation), a.PlainCapability()
	if a.Reason == "" && plainShown && plainPermitted {
		return
	}
	if a.OwnWords() {
		s.head("Why a person is asked", "")
	} else {
		s.head("In the policy's words", "")
		s.say(quiet, "Supplied by the policy. It may carry text that a model chose, and it is not what runs.")
	}
	if a.Reason != "" {
		s.words(a.Mask.Text(a.Reason))
	}
	if !plainShown {
		s.tree(a.Mask.Tree(a.Mask.Scrub(a.Presentation)))
	}
	if !plainPermitted {
		s.under("What a yes permits", "")
		s.tree(a.Mask.Tree(a.Mask.Scrub(a.Capability)))
	}
}

// before is how it differs from what was approved of this tool last.
func (p *approval) before(s *sheet) {
	a := p.a
	if a.Tool == "" {
		return
	}
	s.head("Since the last yes", "")
	if a.Before == nil {
		s.say(quiet, "Nobody has approved a call of this tool before.")
		return
	}
	s.by("  ", oneLook("Compared with the last yes to this tool, "+review.Ago(a.Before.DecidedAt, a.At), quiet), a.Before.DecidedBy)
	if a.Before.SpecDigest != a.SpecDigest {
		s.say(warns, " The tool itself has changed since: its description, schema or what carries it out. ")
	}
	changes := a.Changes()
	if len(changes) == 0 {
		s.say(warns, " Is it asked twice? Exactly these arguments were approved then. ")
		return
	}
	s.diff(changes, "then", "now")
}

func (p *approval) record(s *sheet) {
	a := p.a
	s.head("The record", "")
	s.own("asked", review.UTC(a.CreatedAt))
	s.fact("asked by", a.RequestedBy)
	s.fact("through", a.Door())
	s.fact("kind", a.Mask.Text(a.Kind))
	s.own("expires", review.UTC(a.ExpiresAt))
	if !a.GrantExpiresAt.IsZero() {
		s.own("yes good until", review.UTC(a.GrantExpiresAt))
	}
	s.fact("approval", a.ID)
	if a.Run != nil {
		s.fact("run", a.Run.ID)
	}
	if a.Call != nil {
		s.fact("call", a.Call.ID)
	}
	s.fact("digest", a.Digest)
	s.fact("digest of edit", a.EffectiveDigest)
	s.fact("instead of", a.Replaces)
	s.fact("replaced by", a.ReplacedBy)
	metadata(s, a.Metadata, a.Mask)
}

// metadata is what whoever asked noted, name by name, apart from what Placet says.
func metadata(s *sheet, m map[string]string, mask *display.Mask) {
	if len(m) > 0 {
		s.under("Noted by who asked", "")
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := mask.Text(m[k])
		if display.SecretName(k) {
			text = display.Masked
		}
		s.beside("  ", s.name(k), 18, func(lead []string) { s.long(lead, text, "") })
	}
}

func (p *approval) history(s *sheet) { history(s, p.a.History) }

// history is what happened, oldest first.
func history(s *sheet, es []review.Entry) {
	s.head("History", "")
	if len(es) == 0 {
		s.say(quiet, "Nothing yet.")
	}
	for _, e := range es {
		spans := []span{{review.UTC(e.At) + "  ", quiet}, {e.What, strong}}
		if e.Late {
			spans = append(spans, span{", late", quiet})
		}
		s.by("  ", spans, e.Who)
		if e.Why != "" {
			s.long([]string{"    ", "    "}, e.Why, "")
		}
	}
}
