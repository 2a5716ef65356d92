package browsertest

import "fmt"

// Contrast is how well a piece of text can be told from what is behind it.
type Contrast struct {
	Element, Text      string
	Colour, Background string  // as seen, with everything shining through
	Ratio              float64 // 1 to 21
	Needs              float64 // 4.5; 3 for large text
	// Unknown says why the ratio could not be computed, such as an image behind the text;
	// it is 0 then.
	Unknown string
}

func (c Contrast) String() string {
	if c.Unknown != "" {
		return fmt.Sprintf("%s %q: %s", c.Element, c.Text, c.Unknown)
	}
	return fmt.Sprintf("%s %q: %s on %s is %.2f, and has to be %.1f", c.Element, c.Text, c.Colour, c.Background, c.Ratio, c.Needs)
}

// Contrast lists the text whose contrast is too low by WCAG 2 (level AA), or not known:
// what is seen, also in fields and in front of and behind elements (::before, ::after), but
// for what is disabled. Behind a text is what its element stands in, and not what was only
// moved there.
func (p *Page) Contrast() (low []Contrast) {
	p.tb.Helper()
	for _, c := range p.Contrasts() {
		if c.Ratio < c.Needs {
			low = append(low, c)
		}
	}
	return low
}

// Contrasts lists all text that is seen.
func (p *Page) Contrasts() []Contrast {
	p.tb.Helper()
	return mustRun[[]Contrast](p, "look at colours", "contrast")
}

// Overflow lists what makes the page wider than the window, so that a reader would have to
// scroll sideways; empty where nothing does.
func (p *Page) Overflow() []string {
	p.tb.Helper()
	return mustRun[[]string](p, "look at widths", "overflow", p.to.width)
}

// Target is something that can be clicked or tapped.
type Target struct {
	Element       string
	Width, Height float64 // CSS pixels
}

func (t Target) String() string {
	return fmt.Sprintf("%s is %.0f by %.0f", t.Element, t.Width, t.Height)
}

// TargetSize is how wide and high a target has to be by WCAG 2.2 (level AA).
const TargetSize = 24

// SmallTargets lists what can be tapped and is narrower or lower than [TargetSize], but for
// links inside of text. What has a label is as large as both together.
func (p *Page) SmallTargets() []Target {
	p.tb.Helper()
	return mustRun[[]Target](p, "look at sizes", "targets", TargetSize)
}
