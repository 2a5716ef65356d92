package browsertest

import "time"

// Timing is how long a page took, and how large it is.
type Timing struct {
	FirstByte time.Duration // of the document, from when it was asked for
	Parsed    time.Duration // until the document was read, from when the page was left before
	Loaded    time.Duration // until everything had loaded that it names
	Document  Size
	All       Size // with what the document loaded
	Requests  int  // that All counts
}

// Size is in bytes.
type Size struct {
	Wire    int64 // as sent, with headers; 0 from the cache
	Decoded int64 // of the body, after decompression
}

// Timing is what the browser has measured of the page.
func (p *Page) Timing() Timing {
	p.tb.Helper()
	m := mustRun[struct {
		FirstByte, Parsed, Loaded float64 // milliseconds
		Document, All             Size
		Requests                  int
	}](p, "measure the page", "timing")
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	return Timing{
		FirstByte: ms(m.FirstByte), Parsed: ms(m.Parsed), Loaded: ms(m.Loaded), Document: m.Document, All: m.All, Requests: m.Requests,
	}
}

// LayoutShift is the sum of how far what was shown has moved since the page was opened, as
// the browser counts it (0: nothing moved), but for what came of somebody's doing. It needs
// the page's scripts.
func (p *Page) LayoutShift() float64 {
	p.tb.Helper()
	if p.to.scriptOff {
		p.tb.Fatal("LayoutShift needs the page's scripts, and they are off")
	}
	return mustRun[float64](p, "measure what moved", "shift")
}
