package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// Approval is the page of one approval.
type Approval struct {
	review.Approval
	Whole  bool // long values are shown whole
	Own    bool // whoever looks asked for it, and may not decide it
	Notice *Notice
	// Unserved says that nobody here can carry it out, although it is approved; empty: somebody can.
	Unserved string
}

func whenSettled(d decision.Decision) time.Time {
	if !d.DecidedAt.IsZero() {
		return d.DecidedAt
	}
	return d.SettledAt
}

// MustOpen reports whether a value that would run is not shown whole yet.
func (a Approval) MustOpen() bool { return !a.Whole && review.IsLong(a.Args()) }

func (a Approval) exact() string { return string(a.Mask.JSON(a.RunArgs())) }

func (a Approval) plainPresentation() bool { return a.PlainDocument(a.Presentation) }

func (a Approval) scrubbed(doc []byte) display.Node { return a.Mask.Tree(a.Mask.Scrub(doc)) }

// next says what becomes of it now, and what to type where a person goes on with it.
func (a Approval) next() string {
	text, _ := a.Next()
	switch {
	case a.Unserved != "" && a.Granted() && a.Doubtful:
		return "It may have run already. " + a.Unserved
	case a.Unserved != "" && a.Granted():
		return "Nothing has run yet. " + a.Unserved
	}
	return text
}

// command is what a person types to go on with it; empty: nobody has to.
func (a Approval) command() string {
	_, command := a.Next()
	if command == nil || a.Unserved != "" && a.Granted() {
		return ""
	}
	return "placet " + strings.Join(command, " ")
}

// isOver reports whether nothing of it changes by itself any more.
func (a Approval) isOver() bool {
	return !a.Granted() && (a.Call == nil || a.Call.Status != call.Running && a.Call.Status != call.Unknown)
}

// version changes when the answer that the page asks for is another one, or none.
func (a Approval) version() string {
	return fmt.Sprint(a.Status, a.Decidable(), a.Digest, a.Choice)
}

// stage changes when what becomes of it does.
func (a Approval) stage() string {
	v := a.version()
	if a.Call != nil {
		v += fmt.Sprint(a.Call.Status, a.Call.Version)
	}
	if a.Run != nil {
		v += fmt.Sprint(a.Run.Status)
	}
	return v
}

// sortedNames are those of the metadata, without what is told elsewhere.
func sortedNames(m map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return name == "origin" || name == "principal" })
}

func metadataText(a Approval, name string) string {
	if display.SecretName(name) {
		return display.Masked
	}
	return a.Mask.Text(a.Metadata[name])
}

// askedBy is who asks, and through which door.
func (a Approval) askedBy() string {
	if a.RequestedBy == "" {
		return "Asked through " + a.Door() + ","
	}
	return "Asked by " + first(a.RequestedBy, 60) + " through " + a.Door() + ","
}
